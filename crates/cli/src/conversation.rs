//! The conversation with one caller: read a line, perform it, answer, in one of three modes.
//!
//! ```text
//!                     +--------------------------- more lines, or interactive --+
//!                     v                                                         |
//!   accepted --> reading --- line ---> doing --- answers --> writing -----------+
//!                     |                                          |
//!                     +-- end, idle, too long --------+          +-- one-shot: one line, no more
//!                                                     v          v
//!                                                       closing
//! ```

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use ballast_expr::{bytes_of_text, is_text};
use ballast_model::SeverityOutput;
use ballast_net::is_memory_short;
use ballast_reconcile::ChangeRequest;
use ballast_stats::escape_json;
use ballast_worker::{Stream, WorkUnit, hold, select, sleep, take_turns, timeout, yield_now};

use crate::answer::{AnswerSeverity, CommandAnswer};
use crate::catalogue::{commands_of, find};
use crate::change_record::{ChangeRecord, ChangeScope};
use crate::command::{Command, CommandCall, CommandFamilies};
use crate::commands::master::{self, ForwardOutcome, forward};
use crate::control::Control;
use crate::help;
use crate::json;
use crate::line::{CommandInput, CommandLine, LineEvent, LineReader};
use crate::session::{CliSession, RequiredMode, SessionMode};
use crate::shared::{CallerEntry, CliShared, ProcessRole};
use crate::sockets;

/// The size of one read.
const READ_BYTES: usize = 4096;

/// A long answer is written in parts of about this many bytes.
const WRITE_BYTES: usize = 16_384;

/// A command has at most so many words, as in HAProxy.
const WORD_COUNT_MAX: usize = 64;

/// So many pieces that add little to an answer are asked for before other tasks have their turn.
const SILENT_PIECES_MAX: usize = 16;

/// Before closing, up to so many bytes that the caller has sent are read and dropped: closing with
/// unread bytes would be a reset, which could overtake the answer.
const DRAIN_BYTES_MAX: usize = 65_536;

/// Serves one caller until it leaves, falls silent or the process ends. A process that is stopping answers
/// as long as it has sessions, and does not wait for callers: for what one has asked, it does.
pub(crate) async fn run(
    stream: Stream,
    shared: Rc<CliShared>,
    session: CliSession,
    entry: CallerEntry,
) {
    let limits = shared.limits;
    let mut conversation = Conversation {
        stream,
        shared,
        session,
        reader: LineReader::new(limits.line_bytes_max, limits.payload_bytes_max),
        entry,
        unsent: RefCell::default(),
    };
    // An error means that the caller has left.
    if conversation.run().await.is_ok() {
        let _ = conversation.flush().await;
    }
    conversation.close();
}

/// The outcome of a command.
enum CommandOutcome {
    /// There is no answer.
    Nothing,
    /// The answer is one line, without the empty line that ends other answers.
    Line(String),
    /// A worker answers from now on: its socket, the first text to send, and how many of its first
    /// answers the caller must not see.
    Relay(OwnedFd, Vec<u8>, usize),
    /// An answer.
    Answer(CommandAnswer),
    /// There is no such command: the list of similar ones.
    Unknown(String),
}

/// The state of a conversation.
struct Conversation {
    stream: Stream,
    shared: Rc<CliShared>,
    session: CliSession,
    reader: LineReader,
    entry: CallerEntry,
    /// The end of what was written: a caller that reads once sees an answer with the prompt behind it.
    unsent: RefCell<String>,
}

impl Conversation {
    async fn run(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; READ_BYTES];
        loop {
            match self.reader.next_line() {
                LineEvent::Line(line) => {
                    // Until the answer is sent, and not only made.
                    let _hold = hold();
                    self.line(line).await?;
                    if self.session.quits || self.session.mode == SessionMode::OneShot {
                        return self.flush().await;
                    }
                    self.prompt().await?;
                    self.flush().await?;
                }
                LineEvent::Payload => {
                    // The prompt for a payload, unless the payload has been received.
                    if self.session.mode == SessionMode::Prompt && !self.reader.has_line() {
                        self.write("+ ").await?;
                    }
                }
                LineEvent::LineTooLong => return self.write(LINE_TOO_LONG).await,
                LineEvent::PayloadTooLong => return self.refuse(PAYLOAD_TOO_LONG).await,
                LineEvent::Nothing => {
                    self.flush().await?;
                    let count = self.read(&mut bytes).await?;
                    if count == 0 {
                        return Ok(());
                    }
                    self.reader.push(&bytes[..count]);
                }
            }
        }
    }

    /// Waits for bytes; 0 at the end of the stream or at the idle timeout.
    async fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = timeout(self.session.idle, self.stream.read(bytes)).await;
        read.unwrap_or(Ok(0))
    }

    /// Entries of lists and tables are what clients sent, which need not be text; names are looked for as
    /// they are. What makes something new from its words takes text only.
    fn takes_bytes(&self, words: &[String]) -> bool {
        let word = |at: usize| words.get(at).map(String::as_str);
        let is_of_entries = matches!(word(1), Some("acl" | "map" | "table"));
        let is_question = matches!(
            word(0),
            Some("clear" | "disable" | "enable" | "get" | "help" | "show" | "shutdown")
        );
        !self.shared.is_master() && (is_of_entries || is_question)
    }

    async fn line(&mut self, line: CommandLine) -> io::Result<()> {
        let mut commands = line.commands.into_iter();
        while let Some(input) = commands.next() {
            if !is_text(&input.text) && !self.takes_bytes(&input.words) {
                self.refuse("The command line is not valid UTF-8.").await?;
                continue;
            }
            if let Some(word) = input.words.first()
                && let ProcessRole::Worker(control) = self.shared.role.clone()
            {
                match word.as_str() {
                    sockets::REQUEST => return self.give_sockets(&*control).await,
                    sockets::TABLES_REQUEST => return self.give_table_channel(&*control).await,
                    _ => {}
                }
            }
            let text = input.text.clone();
            let changes = self.changes(&input);
            let logged = self.logged(&input);
            let began = Instant::now();
            match self.perform(input) {
                // The command chose a worker: only the prompt follows.
                CommandOutcome::Nothing => {}
                CommandOutcome::Line(text) => self.write(&format!("{text}\n")).await?,
                CommandOutcome::Relay(socket, first, hidden) => {
                    let mut first = first;
                    for rest in commands.by_ref() {
                        // The worker gets the other commands of the line, too.
                        first.pop_if(|byte| *byte == b'\n');
                        first.extend_from_slice(format!("; {}\n", rest.text).as_bytes());
                    }
                    self.relay(socket, first, hidden).await?;
                }
                _ if self.session.quits => return Ok(()),
                CommandOutcome::Answer(answer) => {
                    if matches!(answer, CommandAnswer::Pending(_)) {
                        self.flush().await?;
                    }
                    let answer = match changes {
                        // A command that changes nothing ends with its caller (`wait 1h`).
                        None if !self.shared.is_master() => select! {
                            answer = wait_for_answer(answer) => answer,
                            gone = self.stream.closed() => {
                                return gone.and(Err(io::ErrorKind::BrokenPipe.into()));
                            }
                        },
                        _ => wait_for_answer(answer).await,
                    };
                    let mut answer = answer;
                    if let Some(kind) = changes {
                        let took = began.elapsed();
                        // Of several commands that came together, the last one waits for the disk.
                        let is_last = commands.len() == 0 && !self.reader.has_bytes();
                        let unwritten = match is_last && refusal_of(&answer).is_none() {
                            true => self.unwritten().await,
                            false => None,
                        };
                        self.log_change((kind, &logged), took, (&answer, unwritten.as_deref()));
                        if let Some(why) = unwritten {
                            answer = answer.with_warning(&why);
                        }
                    }
                    self.answer(answer, &text, false).await?;
                }
                CommandOutcome::Unknown(help) => {
                    self.answer(CommandAnswer::info(help), &text, true).await?
                }
            }
            if self.session.leaves {
                self.session.quits = true;
                return Ok(());
            }
            // A master writes a prompt after each command, a worker after each line.
            if self.shared.is_master() && commands.len() > 0 {
                self.prompt().await?;
            }
            take_turns(WorkUnit::Exchange).await;
        }
        Ok(())
    }

    /// The commands of this process.
    fn commands(&self) -> CommandFamilies {
        commands_of(&self.shared.role)
    }

    /// Which part of the process a command changes, for the log. A master does not log the commands
    /// that it forwards: the worker does.
    fn changes(&self, input: &CommandInput) -> Option<ChangeScope> {
        let row = find(self.commands(), &input.words).filter(|_| !self.shared.is_master());
        row.and_then(|row| row.changes)
    }

    /// What logs show of a command: never a key.
    fn logged(&self, input: &CommandInput) -> String {
        match find(self.commands(), &input.words) {
            Some(row) if row.has_secrets => row.words.join(" "),
            _ => input.text.clone(),
        }
    }

    /// What of the changes so far is not in the files, where `persist on` is to write them.
    async fn unwritten(&self) -> Option<String> {
        let ProcessRole::Worker(control) = &self.shared.role else {
            return None;
        };
        if !control.persists() {
            return None;
        }
        // It is carried out after the changes that came before it were written.
        let outcome = control.request(ChangeRequest::PersistOutcome).await;
        let notes = outcome.ok()?.notes;
        Some(notes).filter(|notes| !notes.is_empty())
    }

    fn log_change(
        &self,
        (changes, what): (ChangeScope, &str),
        took: Duration,
        (answer, unwritten): (&CommandAnswer, Option<&str>),
    ) {
        let ProcessRole::Worker(control) = &self.shared.role else {
            return;
        };
        control.log_change(&ChangeRecord {
            changes,
            what,
            who: &self.session.caller,
            took,
            refused: refusal_of(answer),
            unwritten,
        });
    }

    /// `_getsocks`: has an answer of its own format, and the session ends after it.
    async fn give_sockets(&mut self, control: &dyn Control) -> io::Result<()> {
        self.flush().await?;
        if self.session.exposes {
            let mut all = control.listening_sockets();
            all.extend(self.shared.sockets());
            sockets::send_all(&self.stream, &all).await?;
        }
        self.session.quits = true;
        Ok(())
    }

    /// `_gettables`, as [`Self::give_sockets`].
    async fn give_table_channel(&mut self, control: &dyn Control) -> io::Result<()> {
        self.flush().await?;
        self.session.quits = true;
        if self.session.exposes
            && let Some(channel) = control.table_channel()
        {
            sockets::send_table_channel(&self.stream, channel.as_fd()).await?;
        }
        Ok(())
    }

    fn perform(&mut self, mut input: CommandInput) -> CommandOutcome {
        let count = &self.entry.caller.command_count;
        count.set(count.get() + 1);
        if let ProcessRole::Master(master) = &self.shared.role {
            let says_more = self.reader.has_bytes();
            input = match forward(&**master, &mut self.session, input, says_more) {
                ForwardOutcome::Own(input) => input,
                ForwardOutcome::SessionSet => return CommandOutcome::Nothing,
                ForwardOutcome::Refusal(why) => return CommandOutcome::Line(why),
                ForwardOutcome::Answer(answer) => return CommandOutcome::Answer(answer),
                ForwardOutcome::Relay(socket, first, hidden) => {
                    return CommandOutcome::Relay(socket, first, hidden);
                }
            };
        }
        if input.words.is_empty() {
            return CommandOutcome::Answer(CommandAnswer::Done);
        }
        if input.words.len() > WORD_COUNT_MAX {
            return CommandOutcome::Answer(CommandAnswer::error(format!(
                "Too many arguments. Commands must have at most {WORD_COUNT_MAX} arguments."
            )));
        }
        let Some(row) = find(self.commands(), &input.words) else {
            let help = help::unknown(self.commands(), &self.session, &input.words);
            return CommandOutcome::Unknown(help);
        };
        if !self.session.allows(row.restriction) {
            let mode = match row.restriction {
                RequiredMode::Expert => "expert",
                _ => "experimental",
            };
            return CommandOutcome::Answer(CommandAnswer::error(format!(
                "This command is restricted to {mode} mode only."
            )));
        }
        if self.session.level < row.level {
            return CommandOutcome::Answer(CommandAnswer::denied());
        }
        if is_memory_short() && (row.adds() || input.payload.is_some()) {
            return CommandOutcome::Answer(CommandAnswer::error(
                "Out of memory: nothing is added until there is some again.",
            ));
        }
        let commands = self.commands();
        let answer = (row.handler)(&mut CommandCall {
            args: &input.words[row.words.len()..],
            payload: input.payload,
            session: &mut self.session,
            shared: &self.shared,
            commands,
        });
        match answer {
            // Its prompt, or none, is the answer of a master; no empty line ends it.
            CommandAnswer::Done if self.is_prompt_of_master(row) => CommandOutcome::Nothing,
            CommandAnswer::Message(_, text) if self.is_prompt_of_master(row) => {
                CommandOutcome::Line(text)
            }
            _ => CommandOutcome::Answer(answer),
        }
    }

    fn is_prompt_of_master(&self, row: &Command) -> bool {
        self.shared.is_master() && row.words == ["prompt"]
    }

    /// Writes the answer to a command and the empty line that ends it.
    async fn answer(
        &mut self,
        answer: CommandAnswer,
        command: &str,
        is_unknown: bool,
    ) -> io::Result<()> {
        // The command may have switched the output format: its answer has the new one.
        let answer = wait_for_answer(answer).await;
        if self.session.is_json {
            self.answer_json(answer, command, is_unknown).await
        } else {
            self.answer_text(answer).await
        }
    }

    /// Relays bytes between the caller and a worker until one of them closes. The two directions do
    /// not wait for each other: a caller that sends much and reads late blocks only itself.
    async fn relay(
        &mut self,
        socket: OwnedFd,
        mut first: Vec<u8>,
        hidden: usize,
    ) -> io::Result<()> {
        self.flush().await?;
        first.extend_from_slice(&self.reader.take_rest());
        let worker = Stream::from_fd(socket).map_err(io::Error::other)?;
        let moved = Cell::new(Instant::now());
        let asks = async {
            pass((&self.stream, &worker), &first, 0, &moved).await?;
            // The rest of its answer still comes, even if it did not receive the whole text.
            let _ = worker.shutdown_write();
            std::future::pending().await
        };
        let idle = self.session.idle;
        let silence = async {
            while moved.get().elapsed() < idle {
                sleep(idle.saturating_sub(moved.get().elapsed())).await;
            }
        };
        select! {
            told = pass((&worker, &self.stream), &[], hidden, &moved) => told,
            gone = asks => gone,
            () = silence => Ok(()),
        }
    }

    async fn answer_text(&self, answer: CommandAnswer) -> io::Result<()> {
        match answer {
            CommandAnswer::Message(severity, text) => {
                // Settings of a session with the master are for the answers of its workers: the
                // master's own answers are not marked.
                let output = match self.shared.is_master() {
                    true => SeverityOutput::None,
                    false => self.session.severity,
                };
                let mark = severity.mark(output);
                let end = if text.is_empty() { "\n" } else { "" };
                self.write(&with_final_newline(format!("{mark}{text}{end}")))
                    .await
            }
            CommandAnswer::Report(text) => self.write(&with_final_newline(text)).await,
            CommandAnswer::Pieces(mut next) => {
                let mut text = String::with_capacity(WRITE_BYTES + 4096);
                let mut silent_count = 0;
                while next(&mut text) {
                    silent_count += 1;
                    if text.len() >= WRITE_BYTES {
                        self.write(&text).await?;
                        text.clear();
                    } else if silent_count < SILENT_PIECES_MAX {
                        continue;
                    }
                    silent_count = 0;
                    yield_now().await;
                }
                text.push('\n');
                self.write(&text).await
            }
            CommandAnswer::Batches(mut batches) => {
                self.flush().await?;
                while let Some(text) = batches.next().await {
                    self.send(&text).await?;
                }
                self.write("\n").await
            }
            CommandAnswer::Done | CommandAnswer::Pending(_) => self.write("\n").await,
        }
    }

    async fn answer_json(
        &self,
        answer: CommandAnswer,
        command: &str,
        is_unknown: bool,
    ) -> io::Result<()> {
        let (severity, field, text) = match answer {
            _ if is_unknown => (
                AnswerSeverity::Error,
                "message",
                "Unknown command.".to_owned(),
            ),
            CommandAnswer::Message(severity, text) => (severity, "message", text),
            CommandAnswer::Report(text) => (AnswerSeverity::Info, "report", text),
            CommandAnswer::Pieces(mut next) => {
                let mut text = json::begin(true, AnswerSeverity::Info, command, "report");
                let mut piece = String::new();
                let mut silent_count = 0;
                while next(&mut piece) {
                    escape_json(&piece, &mut text);
                    piece.clear();
                    silent_count += 1;
                    if text.len() >= WRITE_BYTES {
                        self.write(&text).await?;
                        text.clear();
                    } else if silent_count < SILENT_PIECES_MAX {
                        continue;
                    }
                    silent_count = 0;
                    yield_now().await;
                }
                escape_json(&piece, &mut text);
                text.push_str(json::END);
                return self.write(&text).await;
            }
            CommandAnswer::Batches(mut batches) => {
                let mut text = json::begin(true, AnswerSeverity::Info, command, "report");
                while let Some(batch) = batches.next().await {
                    escape_json(&batch, &mut text);
                    self.write(&text).await?;
                    self.flush().await?;
                    text.clear();
                }
                text.push_str(json::END);
                return self.write(&text).await;
            }
            CommandAnswer::Done | CommandAnswer::Pending(_) => {
                (AnswerSeverity::Info, "message", String::new())
            }
        };
        let mut line = json::begin(severity != AnswerSeverity::Error, severity, command, field);
        escape_json(&text, &mut line);
        line.push_str(json::END);
        self.write(&line).await
    }

    async fn prompt(&mut self) -> io::Result<()> {
        if self.session.mode != SessionMode::Prompt {
            return Ok(());
        }
        let who = master::prompt(&self.shared, &self.session);
        let age = if self.session.timed {
            crate::commands::process::age(&self.shared)
        } else {
            String::new()
        };
        self.write(&format!("{age}{who}> ")).await
    }

    /// Answers that a line is refused, or that no more lines are read.
    async fn refuse(&mut self, why: &str) -> io::Result<()> {
        self.answer(CommandAnswer::error(why), "", false).await
    }

    /// Writes to the caller. The end is sent with what follows it, or when the caller is waited for.
    async fn write(&self, text: &str) -> io::Result<()> {
        let length = {
            let mut unsent = self.unsent.borrow_mut();
            unsent.push_str(text);
            unsent.len()
        };
        match length >= WRITE_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Sends what was written.
    async fn flush(&self) -> io::Result<()> {
        let unsent = self.unsent.take();
        self.send(&unsent).await
    }

    /// Sends as fast as the caller reads; fails if it reads nothing for the idle timeout.
    async fn send(&self, text: &str) -> io::Result<()> {
        let bytes = bytes_of_text(text);
        let mut rest = &*bytes;
        while !rest.is_empty() {
            match self.stream.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    timeout(self.session.idle, self.stream.writable())
                        .await
                        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn close(self) {
        let _ = self.stream.shutdown_write();
        let mut bytes = [0; READ_BYTES];
        let mut drained = 0;
        while drained < DRAIN_BYTES_MAX {
            match self.stream.try_read(&mut bytes) {
                Ok(count) if count > 0 => drained += count,
                _ => break,
            }
        }
    }
}

/// Relays bytes in one direction until the sender ends its side or the receiver reads no more.
/// Sends `first` before them, and leaves out the first `hidden` empty lines. `moved` is the time of
/// the last transfer.
async fn pass(
    (from, to): (&Stream, &Stream),
    first: &[u8],
    mut hidden: usize,
    moved: &Cell<Instant>,
) -> io::Result<()> {
    let mut bytes = vec![0; READ_BYTES];
    let mut heard = to.write_all(first).await;
    while heard.is_ok() {
        moved.set(Instant::now());
        let count = from.read(&mut bytes).await?;
        if count == 0 {
            break;
        }
        moved.set(Instant::now());
        let empty = bytes[..count].iter().take(hidden);
        let empty = empty.take_while(|&&byte| byte == b'\n').count();
        hidden -= empty;
        heard = to.write_all(&bytes[empty..count]).await;
    }
    Ok(())
}

/// Waits until an answer is known.
async fn wait_for_answer(mut answer: CommandAnswer) -> CommandAnswer {
    while let CommandAnswer::Pending(future) = answer {
        answer = future.await;
    }
    answer
}

/// The text with a line end and the empty line that ends every answer.
fn with_final_newline(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push('\n');
    text
}

const LINE_TOO_LONG: &str = "The command line is too big for the buffer size. Please change \
                             tune.bufsize in the configuration to use a bigger command.\n";
const PAYLOAD_TOO_LONG: &str = "The payload is too big.";

/// Why a command was refused, for the log; `None` if it was carried out.
fn refusal_of(answer: &CommandAnswer) -> Option<&str> {
    match answer {
        CommandAnswer::Message(AnswerSeverity::Error, text) => Some(text),
        // Reports of changes of certificates, in HAProxy's words.
        CommandAnswer::Report(text) if text.ends_with("Failed!\n") => Some(text),
        CommandAnswer::Report(text) if text.starts_with("Can't ") => Some(text),
        CommandAnswer::Report(text) => text.strip_prefix("Success=0\n--\n"),
        _ => None,
    }
}
