//! The master process (`-W`, `-Ws`): it keeps the privileges and the listening sockets, and
//! watches one worker, which serves.
//!
//! It does nothing with connections; connections that come while there is no worker wait in the
//! kernel's queue. A worker that dies is followed by another, which is given the sockets and the
//! last snapshot. Reading the configuration again is the worker's own affair; where that needs a
//! new process, or a new program stands on the disk, another worker takes over and the old one
//! finishes what it has.
//!
//! ```text
//!              ready               asked to reload         in force, or refused
//!   starting ────────► idle ─────────────────► applying ──────────────────────► idle
//!      ▲                │ dies                     │ needs a process
//!      └────────────────┴──────────────────────────┴──► asking for a snapshot ──► starting
//! ```

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use ballast_cli::{Door, Limits as DeskLimits};
use ballast_handover::{Message, Outcome, Received, Sheet, pool};
use ballast_listen::open_bind;
use ballast_model::{Address, Bind, CliLevel, Global, SeverityOutput};
use ballast_net::notify_supervisor;
use ballast_net::{self as net, ChildEnd, Error, PassedSocket, Signal, inherit, steady_us};
use ballast_worker::sync::mpsc;
use ballast_worker::{Signals, Stream, block_on, select, sleep_until, spawn_service};

use crate::args::Options;
use crate::crew::{Crew, Member, Program, Role, WISH_COUNT_MAX, Wish, spawn_judge, spawn_worker};
use crate::process::{Herald, code_of, write_pid};
use crate::renewal::{Estate, Inheritance};
use crate::say;

/// The signals a master answers to.
const SIGNALS: [Signal; 9] = [
    Signal::Child,
    Signal::Hup,
    Signal::Int,
    Signal::Quit,
    Signal::Term,
    Signal::Ttin,
    Signal::Ttou,
    Signal::Usr1,
    Signal::Usr2,
];

/// Words of workers that may wait to be heard.
const HEARD_COUNT_MAX: usize = 64;

/// How long a worker has to start.
const START_PATIENCE: Duration = Duration::from_secs(300);

/// How long a worker has to write a snapshot for the next one.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(2);

/// How long answers have to reach who asked, before this process becomes another program.
const ANSWER_PATIENCE: Duration = Duration::from_millis(100);

/// A worker that served for so long did not die of its beginning.
const STEADY_AFTER: Duration = Duration::from_secs(10);

/// Between two tries to start a worker, at most.
const RESTART_DELAY_MAX: Duration = Duration::from_secs(30);

/// A worker that serves says something at least this often.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Watches a worker until it ends; answers the exit code.
pub(crate) fn run(
    options: &Options,
    global: &Global,
    herald: Herald,
    background: bool,
) -> Result<u8, u8> {
    if options.files.iter().any(|name| name == "-") {
        say::alert("-f -: a worker cannot read the standard input again; name a file.");
        return Err(1);
    }
    let mut doors = Vec::new();
    for address in &options.master_sockets {
        doors.push(door(address)?);
    }
    let pidfile = options.pidfile.clone().or_else(|| global.pidfile.clone());
    let start = Start {
        herald,
        background,
        pidfile,
        limits: DeskLimits::of(global),
        before: Inheritance {
            doors,
            started_us: steady_us(),
            background,
            ..Inheritance::default()
        },
        why: Why::First,
    };
    start.watch(options)
}

/// Goes on as the master that this process was before it became this program.
pub(crate) fn resume(options: &Options, before: Inheritance) -> Result<u8, u8> {
    say::notice("The master is a new program now.");
    let start = Start {
        herald: Herald::default(),
        background: before.background,
        pidfile: None,
        limits: DeskLimits::default(),
        before,
        why: Why::Reload,
    };
    start.watch(options)
}

/// How a watch begins.
struct Start {
    herald: Herald,
    background: bool,
    pidfile: Option<String>,
    limits: DeskLimits,
    before: Inheritance,
    why: Why,
}

impl Start {
    fn watch(self, options: &Options) -> Result<u8, u8> {
        let signals = Signals::open(&SIGNALS).map_err(|error| refuse(&error))?;
        let before = self.before;
        let (wish, wishes) = mpsc::channel(WISH_COUNT_MAX);
        let (ear, heard) = mpsc::channel(HEARD_COUNT_MAX);
        let crew = Crew::new(before.started_us, String::new(), wish);
        crew.roll().reloads = before.reloads;
        let watch = Watch {
            options,
            program: Program::own(),
            signals,
            crew: crew.clone(),
            ear,
            heard,
            wishes,
            herald: self.herald,
            background: self.background,
            pidfile: self.pidfile,
            sockets: before.sockets,
            snapshot: before.snapshot,
            doors: before.doors.clone(),
            stage: Stage::Idle,
            asking: Vec::new(),
            next: None,
            asked: None,
            over: None,
            deaths: 0,
            restart_at: None,
            watchdog: Watchdog::of_this_process(options),
        };
        let (members, why) = (before.members, self.why);
        let ended = block_on(async {
            ballast_cli::serve_master(std::sync::Arc::new(crew), before.doors, self.limits)?;
            watch.until_end(members, why).await
        });
        match ended {
            Ok(Ok(code)) => Ok(code),
            Ok(Err(error)) | Err(error) => Err(refuse(&error)),
        }
    }
}

/// Why a worker is started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Why {
    First,
    Restart,
    Reload,
}

/// What the master is at.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Idle,
    /// The worker reads its configuration again.
    Applying,
    /// The worker writes a snapshot for the next one.
    Asking(Instant),
    /// A worker starts.
    Starting(i32, Why, Instant),
    /// A new program judges the configuration.
    Judging(i32),
    /// This process becomes another program, once the answers are out.
    Becoming(Instant),
}

/// What a worker said; `None` when it will say nothing more.
#[derive(Debug)]
struct Heard {
    pid: i32,
    received: Option<Received>,
}

/// The master at its watch.
struct Watch<'o> {
    options: &'o Options,
    program: Program,
    signals: Signals,
    crew: Crew,
    ear: mpsc::Sender<Heard>,
    heard: mpsc::Receiver<Heard>,
    wishes: mpsc::Receiver<Wish>,
    herald: Herald,
    background: bool,
    pidfile: Option<String>,
    /// What is listened on: kept open, so that nobody is refused while there is no worker.
    sockets: Vec<PassedSocket>,
    /// What the worker said last of what it counts and believes. Never read here.
    snapshot: Option<Sheet>,
    doors: Vec<Door>,
    stage: Stage,
    /// Who waits for the reload that is under way.
    asking: Vec<Wish>,
    /// Who waits for the one after it; `Some` and empty when a signal asked.
    next: Option<Vec<Wish>>,
    /// The signal that asked for the end.
    asked: Option<Signal>,
    /// The exit code, once all is over.
    over: Option<u8>,
    /// Workers that died soon after they were started, in a row.
    deaths: u32,
    restart_at: Option<Instant>,
    watchdog: Option<Watchdog>,
}

impl Watch<'_> {
    /// Hands signals on and follows the workers, until all have ended.
    async fn until_end(mut self, members: Vec<Member>, why: Why) -> Result<u8, Error> {
        for member in members {
            self.listen_to(&member)?;
            self.crew.roll().members.push(member);
        }
        if self.crew.roll().in_role(Role::Current).is_some() {
            self.reap()?;
            self.ask_for_snapshot();
        } else {
            self.start_worker(why);
        }
        loop {
            if let Some(code) = self.over {
                return Ok(code);
            }
            let due = self.due();
            select! {
                signal = self.signals.next() => self.signal(signal?)?,
                Some(heard) = self.heard.recv() => self.hear(heard),
                Some(wish) = self.wishes.recv() => self.wish(Some(wish)),
                () = until(due) => self.on_time(),
            }
        }
    }

    fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        match signal {
            Signal::Child => self.reap()?,
            Signal::Term | Signal::Int | Signal::Usr1 => self.end(signal),
            Signal::Hup | Signal::Usr2 => self.wish(None),
            signal => {
                if let Some(pid) = self.current() {
                    // Gone already: its end is on its way.
                    let _ = net::kill(pid, signal);
                }
            }
        }
        Ok(())
    }

    fn reap(&mut self) -> Result<(), Error> {
        while let Some(end) = net::child_end(None, false)? {
            self.ended(&end);
        }
        Ok(())
    }

    fn current(&self) -> Option<i32> {
        let roll = self.crew.roll();
        roll.in_role(Role::Current).map(|member| member.pid)
    }

    /// The next moment at which something is to be done though nobody says so.
    fn due(&self) -> Option<Instant> {
        let of_stage = match self.stage {
            Stage::Idle | Stage::Applying | Stage::Judging(_) => None,
            Stage::Asking(until) | Stage::Starting(_, _, until) | Stage::Becoming(until) => {
                Some(until)
            }
        };
        let of_watchdog = self.watchdog.as_ref().map(|watchdog| watchdog.next);
        [of_stage, self.restart_at, of_watchdog]
            .into_iter()
            .flatten()
            .min()
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        if self.restart_at.is_some_and(|at| at <= now) {
            self.restart_at = None;
            if matches!(self.stage, Stage::Idle) && self.asked.is_none() {
                self.start_worker(Why::Restart);
            }
        }
        match self.stage {
            Stage::Asking(until) if until <= now => self.start_worker(Why::Reload),
            Stage::Starting(pid, why, until) if until <= now => {
                say::alert(&format!("The new worker ({pid}) does not get ready."));
                let _ = net::kill_outright(pid);
                self.stage = Stage::Starting(pid, why, now + START_PATIENCE);
            }
            Stage::Becoming(at) if at <= now => self.become_program(),
            _ => {}
        }
        if self.watchdog.as_ref().is_some_and(|dog| dog.next <= now) {
            self.feed_watchdog(now);
        }
    }

    /// The service manager hears that all is well, unless the worker has fallen silent.
    fn feed_watchdog(&mut self, now: Instant) {
        let silent = {
            let roll = self.crew.roll();
            let silence_us = u64::try_from(SILENCE_MAX.as_micros()).unwrap_or(u64::MAX);
            roll.in_role(Role::Current)
                .is_some_and(|one| steady_us().saturating_sub(one.heard_us) > silence_us)
        };
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.next = now + watchdog.period;
            if !silent {
                tell_supervisor(self.options, "WATCHDOG=1");
            }
        }
    }

    // ---- workers -------------------------------------------------------------------------

    /// Starts a worker and gives it what is held.
    fn start_worker(&mut self, why: Why) {
        match self.try_start(why) {
            Ok(pid) => {
                say::notice(&format!("New worker ({pid}) forked"));
                self.stage = Stage::Starting(pid, why, Instant::now() + START_PATIENCE);
            }
            Err(error) => {
                let text = format!("No worker can be started: {error}.");
                say::alert(&text);
                self.stage = Stage::Idle;
                match why {
                    Why::First => self.over = Some(1),
                    Why::Restart => self.restart_later(),
                    Why::Reload => self.finish(Err(text)),
                }
            }
        }
    }

    fn try_start(&mut self, why: Why) -> std::io::Result<i32> {
        let (pid, line) = spawn_worker()?;
        let born = self.crew.roll().reloads.all + u32::from(why == Why::Reload);
        let member = Member::new(pid, line, born);
        let sheet: Vec<_> = self.snapshot.iter().map(AsFd::as_fd).collect();
        let first = why == Why::First;
        let given = member
            .line
            .send_sockets(&self.sockets)
            .and_then(|()| member.line.send(&Message::Start { first }, &sheet));
        // A worker that is gone already is noticed by its end.
        if given.is_ok()
            && let Err(error) = self.listen_to(&member)
        {
            say::warn(&format!("{error}."));
        }
        self.crew.roll().members.push(member);
        Ok(pid)
    }

    /// Has what a worker says come to this watch.
    fn listen_to(&self, member: &Member) -> Result<(), Error> {
        let fail = |call| move |error| Error::new(call, "worker", error);
        let watched = member.line.as_fd().try_clone_to_owned();
        let watched = watched.map_err(fail("fcntl(F_DUPFD)"))?;
        net::set_non_blocking(&watched).map_err(fail("ioctl(FIONBIO)"))?;
        let stream = Stream::from_fd(watched)?;
        let (pid, line, ear) = (member.pid, member.line.clone(), self.ear.clone());
        spawn_service(async move {
            while stream.readable().await.is_ok() {
                let received = match line.receive() {
                    Ok(received) => received,
                    Err(error) if error.kind() == std::io::ErrorKind::InvalidData => continue,
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                        // Nothing more is there: this clears what the executor believes.
                        drop(stream.try_peek(&mut [0]));
                        continue;
                    }
                    Err(_) => None,
                };
                let silent = received.is_none();
                if ear.send(Heard { pid, received }).await.is_err() || silent {
                    return;
                }
            }
        });
        Ok(())
    }

    fn hear(&mut self, heard: Heard) {
        let Heard { pid, received } = heard;
        let Some(received) = received else {
            // Its end comes as a signal.
            return;
        };
        let role = {
            let mut roll = self.crew.roll();
            let Some(member) = roll.of(pid) else {
                return;
            };
            member.heard_us = steady_us();
            member.role
        };
        match received.message {
            Message::Sockets {
                begins,
                ends,
                records,
            } => {
                let sockets = pool(&records, received.fds);
                self.listens_on(pid, (begins, ends), sockets);
            }
            Message::Snapshot if role == Role::Current => {
                self.snapshot = received.fds.into_iter().next().map(Sheet::from_fd);
                if matches!(self.stage, Stage::Asking(_)) {
                    self.start_worker(Why::Reload);
                }
            }
            Message::Late if role == Role::Leaving => {
                let roll = self.crew.roll();
                if let Some(current) = roll.in_role(Role::Current) {
                    let sheet: Vec<_> = received.fds.iter().map(AsFd::as_fd).collect();
                    // A worker that is gone counts nothing.
                    let _ = current.line.send(&Message::Late, &sheet);
                }
            }
            Message::Ready(log) if role == Role::Starting => self.takes_over(pid, log),
            Message::Failed(log) if role == Role::Starting => {
                if let Some(member) = self.crew.roll().of(pid) {
                    member.failure = Some(log);
                }
            }
            Message::Reloaded(outcome, text) if matches!(self.stage, Stage::Applying) => {
                match outcome {
                    Outcome::Applied => self.finish(Ok(text)),
                    Outcome::Refused => self.finish(Err(text)),
                    Outcome::NeedsProcess => self.ask_for_snapshot(),
                }
            }
            _ => {}
        }
    }

    /// Notes what a worker listens on, once the list is whole.
    fn listens_on(&mut self, pid: i32, (begins, ends): (bool, bool), sockets: Vec<PassedSocket>) {
        let mut roll = self.crew.roll();
        let Some(member) = roll.of(pid) else {
            return;
        };
        if begins {
            member.coming.clear();
        }
        member.coming.extend(sockets);
        if !ends {
            return;
        }
        let whole = std::mem::take(&mut member.coming);
        match member.role {
            Role::Starting => member.sockets = Some(whole),
            Role::Current if self.asked.is_none() => self.sockets = whole,
            // It closes them one after the other, and others are to go on.
            Role::Current | Role::Leaving => {}
        }
    }

    /// A worker is ready: from now on it is the one that serves.
    fn takes_over(&mut self, pid: i32, log: String) {
        let Stage::Starting(starting, why, _) = self.stage else {
            return;
        };
        if starting != pid {
            return;
        }
        let mut former = Vec::new();
        {
            let mut roll = self.crew.roll();
            for member in &mut roll.members {
                if member.role == Role::Current {
                    member.role = Role::Leaving;
                    former.push(member.pid);
                } else if member.pid == pid {
                    member.role = Role::Current;
                    self.sockets = member.sockets.take().unwrap_or_default();
                }
            }
        }
        for pid in former {
            // It may have ended by itself.
            let _ = net::kill(pid, Signal::Usr1);
        }
        self.stage = Stage::Idle;
        match why {
            Why::First => self.begun(log),
            Why::Restart => {
                say::notice("The new worker serves.");
                tell_supervisor(self.options, "STATUS=Ready.");
                self.next_reload();
            }
            Why::Reload => self.finish(Ok(log)),
        }
    }

    /// The first worker serves.
    fn begun(&mut self, log: String) {
        say::notice("Loading success.");
        self.crew.roll().startup_log = say::take_startup_log() + &log;
        if let Some(path) = self.pidfile.take()
            && write_pid(&path).is_err()
        {
            self.end(Signal::Term);
            return;
        }
        let pid = std::process::id();
        tell_supervisor(
            self.options,
            &format!("READY=1\nSTATUS=Ready.\nMAINPID={pid}"),
        );
        if self.background && net::redirect_standard_to_null().is_err() {
            say::warn("[haproxy.main()] the terminal cannot be left.");
        }
        self.herald.ready();
        self.next_reload();
    }

    // ---- reloads -------------------------------------------------------------------------

    /// Somebody wants the configuration read again; one signal is one who wants no answer.
    fn wish(&mut self, wish: Option<Wish>) {
        self.next.get_or_insert_default().extend(wish);
        self.next_reload();
    }

    /// Begins the next reload, if one is wanted and nothing else is under way.
    fn next_reload(&mut self) {
        if !matches!(self.stage, Stage::Idle) || self.restart_at.is_some() {
            return;
        }
        let Some(asking) = self.next.take() else {
            return;
        };
        self.asking = asking;
        if self.asked.is_some() {
            return self.finish(Err("The process ends.\n".into()));
        }
        say::notice("Reloading the configuration.");
        tell_supervisor(
            self.options,
            &format!(
                "RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=Reloading Configuration.",
                steady_us()
            ),
        );
        if self.program.is_renewed() {
            return match spawn_judge(&self.program) {
                Ok(pid) => self.stage = Stage::Judging(pid),
                Err(error) => {
                    self.finish(Err(format!("The new program does not start: {error}.\n")));
                }
            };
        }
        let sent = {
            let roll = self.crew.roll();
            let current = roll.in_role(Role::Current);
            current.map(|current| current.line.send(&Message::Reload, &[]))
        };
        match sent {
            Some(Ok(())) => self.stage = Stage::Applying,
            Some(Err(error)) => self.finish(Err(format!("The worker is not reached: {error}.\n"))),
            None => self.start_worker(Why::Reload),
        }
    }

    /// Has the worker write a snapshot, for the one that is to follow it.
    fn ask_for_snapshot(&mut self) {
        let sent = {
            let roll = self.crew.roll();
            let current = roll.in_role(Role::Current);
            current.is_some_and(|one| one.line.send(&Message::Handover, &[]).is_ok())
        };
        if sent {
            self.stage = Stage::Asking(Instant::now() + SNAPSHOT_PATIENCE);
        } else {
            self.start_worker(Why::Reload);
        }
    }

    /// A reload is over: whoever asked is answered.
    fn finish(&mut self, outcome: Result<String, String>) {
        self.stage = Stage::Idle;
        {
            let mut roll = self.crew.roll();
            roll.reloads.all += 1;
            let log = match &outcome {
                Ok(log) => {
                    roll.reloads.failed = 0;
                    log
                }
                Err(log) => {
                    roll.reloads.failed += 1;
                    log
                }
            };
            roll.startup_log.clone_from(log);
        }
        if outcome.is_ok() {
            say::notice("Loading success.");
            tell_supervisor(self.options, "READY=1\nSTATUS=Ready.");
        } else {
            say::alert("Reload failed: what ran before goes on.");
            tell_supervisor(self.options, "READY=1\nSTATUS=Reload failed!");
        }
        self.answer(&outcome);
        self.next_reload();
    }

    fn answer(&mut self, outcome: &Result<String, String>) {
        for wish in self.asking.drain(..) {
            // Who does not wait any more need not be told.
            let _ = wish.send(outcome.clone());
        }
    }

    /// The new program found the configuration right, or not.
    fn judged(&mut self, end: &ChildEnd) {
        if end.status == Some(0) {
            self.answer(&Ok("The new program takes over.\n".into()));
            self.stage = Stage::Becoming(Instant::now() + ANSWER_PATIENCE);
        } else {
            let text = "The new program does not start, or refuses the configuration.\n";
            self.finish(Err(text.into()));
        }
    }

    fn become_program(&mut self) {
        let error = {
            let roll = self.crew.roll();
            let estate = Estate {
                roll: &roll,
                sockets: &self.sockets,
                doors: &self.doors,
                snapshot: self.snapshot.as_ref(),
                background: self.background,
            };
            estate.become_program(&self.program)
        };
        let text = format!("The new program cannot take over: {error}.\n");
        say::alert(text.trim_end());
        self.finish(Err(text));
    }

    // ---- ends ----------------------------------------------------------------------------

    fn end(&mut self, signal: Signal) {
        if self.asked.is_none() {
            say::warn("Exiting Master process...");
            tell_supervisor(self.options, "STOPPING=1\nSTATUS=Stopping.");
        }
        self.asked = Some(signal);
        // Ours are copies of the worker's: connections must not come to them for nothing.
        self.sockets.clear();
        self.restart_at = None;
        let pids: Vec<i32> = {
            let roll = self.crew.roll();
            roll.members.iter().map(|member| member.pid).collect()
        };
        for &pid in &pids {
            let _ = net::kill(pid, signal);
        }
        if pids.is_empty() {
            self.over = Some(0);
        }
    }

    fn ended(&mut self, end: &ChildEnd) {
        if matches!(self.stage, Stage::Judging(pid) if pid == end.pid) {
            return self.judged(end);
        }
        let (member, left) = {
            let mut roll = self.crew.roll();
            let place = roll.members.iter().position(|one| one.pid == end.pid);
            (
                place.map(|place| roll.members.remove(place)),
                roll.members.len(),
            )
        };
        let Some(member) = member else {
            return;
        };
        let code = code_of(end);
        match member.role {
            Role::Leaving => say::warn(&line_of_end("Former worker", end)),
            Role::Starting => self.start_failed(member, code),
            Role::Current => self.current_ended(&member, end),
        }
        if self.asked.is_some() && left == 0 && self.over.is_none() {
            let code = match self.asked {
                Some(Signal::Int) => code,
                _ => 0,
            };
            self.over = Some(code);
        }
        if let Some(code) = self.over
            && member_counts(self.asked)
        {
            say::warn(&format!("All workers exited. Exiting... ({code})"));
        }
    }

    fn start_failed(&mut self, member: Member, code: u8) {
        let Stage::Starting(pid, why, _) = self.stage else {
            return;
        };
        if pid != member.pid {
            return;
        }
        self.stage = Stage::Idle;
        match why {
            // It has said why.
            Why::First => self.over = Some(code.max(1)),
            _ if self.asked.is_some() => {}
            Why::Restart => self.restart_later(),
            Why::Reload => {
                let unsaid = || format!("The new worker ({pid}) ended with code {code}.\n");
                self.finish(Err(member.failure.unwrap_or_else(unsaid)));
            }
        }
    }

    /// What the end of the worker means, in HAProxy's words. A death is followed by a new worker.
    fn current_ended(&mut self, member: &Member, end: &ChildEnd) {
        let text = line_of_end("Current worker", end);
        let code = code_of(end);
        let by_signal = end.signal.and_then(Signal::from_number);
        let orderly = code == 0 || matches!(by_signal, Some(Signal::Term | Signal::Int));
        if code == 0 {
            say::warn(&text);
        } else {
            say::alert(&text);
        }
        if self.asked.is_some() {
            return;
        }
        if orderly {
            // Somebody asked it to end, past its master.
            return self.end(Signal::Term);
        }
        let lived_us = steady_us().saturating_sub(member.started_us);
        if u128::from(lived_us) >= STEADY_AFTER.as_micros() {
            self.deaths = 0;
        }
        tell_supervisor(self.options, "STATUS=The worker died. Starting another.");
        match self.stage {
            Stage::Idle => self.restart_later(),
            Stage::Applying | Stage::Asking(_) => {
                self.restart_later();
                self.finish(Err("The worker died.\n".into()));
            }
            // The one that starts takes over all the same.
            Stage::Starting(..) => {}
            // After that.
            Stage::Judging(_) | Stage::Becoming(_) => self.restart_later(),
        }
    }

    /// The first time at once, then later and later.
    fn restart_later(&mut self) {
        let delay = match self.deaths {
            0 => Duration::ZERO,
            deaths => Duration::from_secs(1 << (deaths - 1).min(5)).min(RESTART_DELAY_MAX),
        };
        self.deaths = self.deaths.saturating_add(1);
        self.restart_at = Some(Instant::now() + delay);
        if delay.is_zero() {
            say::warn("Starting another worker.");
        } else {
            say::warn(&format!(
                "Starting another worker in {} s.",
                delay.as_secs()
            ));
        }
    }
}

/// Whether the end is told: a first start that failed has said why itself.
fn member_counts(asked: Option<Signal>) -> bool {
    asked.is_some()
}

fn line_of_end(who: &str, end: &ChildEnd) -> String {
    let name = match end.signal {
        None => "Exit",
        Some(1) => "Hangup",
        Some(2) => "Interrupt",
        Some(3) => "Quit",
        Some(6) => "Aborted",
        Some(9) => "Killed",
        Some(11) => "Segmentation fault",
        Some(15) => "Terminated",
        Some(_) => "Signal",
    };
    let code = code_of(end);
    format!("{who} ({}) exited with code {code} ({name})", end.pid)
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What the service manager is told again and again (`WatchdogSec=`).
#[derive(Debug)]
struct Watchdog {
    period: Duration,
    next: Instant,
}

impl Watchdog {
    fn of_this_process(options: &Options) -> Option<Self> {
        if !options.notify {
            return None;
        }
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let own = u64::from(std::process::id());
        if number("WATCHDOG_PID").is_some_and(|pid| pid != own) {
            return None;
        }
        let whole = Duration::from_micros(number("WATCHDOG_USEC").filter(|&us| us > 0)?);
        Some(Self {
            period: whole / 2,
            next: Instant::now(),
        })
    }
}

/// `-S <address>[,<bind words>]`: opened with the rights of the master.
fn door(text: &str) -> Result<Door, u8> {
    let address = text.split(',').next().unwrap_or_default();
    let parsed = self::address(address)
        .ok_or_else(|| refuse(&format!("-S: '{address}' is no address to listen on")))?;
    let bind = Bind::new(parsed);
    let label = bind.address.to_string();
    let level = match text.split(',').skip_while(|&word| word != "level").nth(1) {
        Some("user") => CliLevel::User,
        Some("operator") => CliLevel::Operator,
        _ => CliLevel::Admin,
    };
    let opened = open_bind(&bind);
    if let Address::Fd(number) = bind.address {
        // No worker has a use for it.
        let _ = inherit::take(number);
    }
    match opened {
        Ok(socket) => Ok(Door {
            socket,
            label,
            level,
            severity: SeverityOutput::None,
            expose_listeners: false,
        }),
        Err(error) => {
            say::alert(&error.to_string());
            Err(1)
        }
    }
}

fn tell_supervisor(options: &Options, state: &str) {
    if options.notify
        && let Err(error) = notify_supervisor(state)
    {
        say::warn(&format!("the supervisor cannot be told: {error}."));
    }
}

fn refuse(error: &dyn std::fmt::Display) -> u8 {
    say::alert(&format!("[haproxy.main()] {error}."));
    1
}

/// Where a master's socket may be: `fd@N`, a path, an abstract name, an IP address and port.
pub(crate) fn address(text: &str) -> Option<Address> {
    if let Some(number) = text.strip_prefix("fd@") {
        return number.parse().ok().map(Address::Fd);
    }
    if let Some(name) = text.strip_prefix("abns@") {
        return Some(Address::Abstract(name.to_owned()));
    }
    if let Some(path) = text
        .strip_prefix("unix@")
        .or(text.starts_with('/').then_some(text))
    {
        return Some(Address::Unix(path.to_owned()));
    }
    let inet = ["ipv4@", "ipv6@"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix));
    inet.unwrap_or(text).parse().ok().map(Address::Inet)
}
