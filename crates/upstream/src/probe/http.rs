//! `option httpchk` and `http-check`: sends requests and judges responses, rule by rule.

use std::io;
use std::num::NonZeroU32;

use ballast_engine::H2Terms;
use ballast_expr::VarName;
use ballast_health::{CheckOutcome, CheckStatus};
use ballast_message::{BodyLength, HeadLimits, Method, NoRoom, Response};
use ballast_model::{CheckConnect, CheckRule, CheckVariable, HttpCheckSend, HttpProtocol, Tune};
use ballast_mux::{Limits, ReadError, ServerConnection, StreamSettings, WaitLimit, WriteError};

use super::expect::Expect;
use super::facts::ProbeFacts;
use super::probe_run::{ProbeEnd, ProbeFailure, ProbeRun};
use super::request::{request, state_of};
use crate::connect::carrying_streams;

/// The compiled rules of a backend.
pub(super) struct HttpCheckScript {
    rules: Vec<HttpCheckStep>,
    disable_on_404: bool,
    send_state: bool,
}

enum HttpCheckStep {
    Comment(String),
    Connect(CheckConnect),
    Send(HttpCheckSend),
    SetVar(CheckVariable),
    UnsetVar(VarName),
    Expect {
        expect: Box<Expect>,
        /// Its number, as texts have it.
        number: usize,
    },
}

impl HttpCheckScript {
    /// Adds what is implied: the request of a bare `option httpchk`, and that the last response
    /// must have a status from 200 to 399.
    pub(super) fn new(written: &[CheckRule], disable_on_404: bool, send_state: bool) -> Self {
        let mut rules: Vec<HttpCheckStep> = written
            .iter()
            .enumerate()
            .filter_map(|(index, rule)| {
                Some(match rule {
                    CheckRule::Comment(text) => HttpCheckStep::Comment(text.clone()),
                    CheckRule::Connect(connect) => HttpCheckStep::Connect(connect.clone()),
                    CheckRule::HttpSend(send) => HttpCheckStep::Send(send.clone()),
                    CheckRule::SetVar(variable) => HttpCheckStep::SetVar(variable.clone()),
                    CheckRule::UnsetVar(name) => HttpCheckStep::UnsetVar(name.clone()),
                    CheckRule::Expect(expect) => HttpCheckStep::Expect {
                        expect: Box::new(Expect::new(expect)),
                        number: number_of(written, index),
                    },
                    // Rules of TCP checks do not occur here.
                    CheckRule::Send(_) => return None,
                })
            })
            .collect();
        if !rules
            .iter()
            .any(|rule| matches!(rule, HttpCheckStep::Send(_)))
        {
            let index = rules
                .iter()
                .position(|rule| matches!(rule, HttpCheckStep::Expect { .. }))
                .unwrap_or(rules.len());
            rules.insert(index, HttpCheckStep::Send(HttpCheckSend::default()));
        }
        let last = rules
            .iter()
            .rposition(|rule| matches!(rule, HttpCheckStep::Send(_)));
        let judged = last.is_some_and(|last| {
            rules[last..]
                .iter()
                .any(|rule| matches!(rule, HttpCheckStep::Expect { .. }))
        });
        if !judged {
            rules.push(HttpCheckStep::Expect {
                expect: Box::new(Expect::good_status()),
                number: number_of(written, written.len()),
            });
        }
        Self {
            rules,
            disable_on_404,
            send_state,
        }
    }
}

/// The number of a rule in texts. They begin with 1 and, where a rule says a request, with the first
/// of those; an implied request has no number of its own, but an implied rule counts it.
fn number_of(written: &[CheckRule], index: usize) -> usize {
    let request = written
        .iter()
        .enumerate()
        .find_map(|(place, rule)| match rule {
            CheckRule::HttpSend(send) => Some((place, send.implied)),
            _ => None,
        });
    let is_implied = match written.get(index) {
        Some(CheckRule::Expect(expect)) => Expect::is_good_status(expect),
        _ => true,
    };
    match request {
        Some((place, false)) => index.saturating_sub(place) + 1,
        _ if is_implied => 2,
        Some((place, true)) if place < index => index,
        _ => index + 1,
    }
}

/// Runs the rules.
pub(super) async fn run(script: &HttpCheckScript, run: &mut ProbeRun<'_>) -> CheckOutcome {
    let mut conversation = HttpCheckRun::default();
    let mut comment = None;
    for (step, rule) in script.rules.iter().enumerate() {
        run.variables.end_step();
        let probe = &*run;
        let is_last = step + 1 == script.rules.len();
        let taken = match rule {
            HttpCheckStep::Comment(text) => {
                comment = Some(text.as_str());
                Ok(None)
            }
            HttpCheckStep::Connect(connect) => {
                comment = None;
                let connecting = conversation.connect(Some(connect), probe);
                connecting.await.map(|()| None)
            }
            HttpCheckStep::Send(send) => {
                comment = None;
                let sending = conversation.send(send, script.send_state, probe);
                sending.await.map(|()| None)
            }
            HttpCheckStep::SetVar(variable) => {
                comment = None;
                conversation.seen(probe).set_variable(variable);
                Ok(None)
            }
            HttpCheckStep::UnsetVar(name) => {
                comment = None;
                probe.variables.assign(name, None);
                Ok(None)
            }
            HttpCheckStep::Expect { expect, number } => {
                let rule = Judge {
                    expect,
                    number: *number,
                    comment: expect.comment().or(comment),
                };
                conversation.expect(script, &rule, is_last, probe).await
            }
        };
        match taken {
            Ok(None) => {}
            Ok(Some(verdict)) => return verdict,
            Err(failure) => return probe.verdict(failure.status).with_info(failure.text),
        }
    }
    conversation.success(run, None)
}

/// An `expect` rule in its place.
struct Judge<'a> {
    expect: &'a Expect,
    /// Its number, as texts have it.
    number: usize,
    /// Its own comment, or the one right before it.
    comment: Option<&'a str>,
}

impl Judge<'_> {
    fn with_comment(&self, text: &str) -> String {
        match self.comment {
            Some(comment) => format!("{text} comment: {comment}"),
            None => text.to_owned(),
        }
    }

    /// The text for a head without a reason that does not match, and for a body whose chunks, or
    /// trailers, cannot be read.
    fn mismatch_text(&self) -> String {
        let content = match self.expect.content_words().as_str() {
            // No blank here.
            "(HTTP status codes)" => "(status codes)".to_owned(),
            "(HTTP status regex)" => " (regex)".to_owned(),
            "(HTTP header pattern)" => " (header pattern)".to_owned(),
            other => format!(" {other}"),
        };
        let number = self.number;
        self.with_comment(&format!(
            "TCPCHK did not match content{content} at step {number}"
        ))
    }
}

/// The connection, the request and the response so far.
#[derive(Default)]
struct HttpCheckRun {
    connection: Option<ServerConnection>,
    method: Method,
    response: Response,
    has_response: bool,
    /// Whether heads come before the body: the response so far is an interim one.
    is_interim: bool,
    body: Vec<u8>,
    body_ended: bool,
    /// Whether the body so far breaks the protocol.
    is_malformed: bool,
}

impl HttpCheckRun {
    async fn connect(
        &mut self,
        rule: Option<&CheckConnect>,
        probe: &ProbeRun<'_>,
    ) -> Result<(), ProbeFailure> {
        // The previous connection is closed first.
        self.hang_up();
        let transport = probe.open(rule, ProbeEnd::Reset).await?;
        let tune = &probe.controller.generation().config.global.tune;
        let limits = Limits {
            head_bytes_max: tune.buffer_bytes.saturating_sub(tune.rewrite_bytes) as usize,
            lenient: probe.backend.model.common.accept_invalid_responses,
            ..Limits::default()
        };
        let mut connection = match probe.protocol(rule) {
            HttpProtocol::Http1 => ServerConnection::new(transport, limits),
            HttpProtocol::Http2 => carrying_streams(
                transport,
                (stream_settings(tune), limits),
                &[],
                &probe.backend.state.h2,
            ),
        };
        connection.set_output_format(probe.backend.connecting.name_cases.as_ref(), false);
        self.connection = Some(connection);
        Ok(())
    }

    /// Closes the connection. One that carries streams is carried by a task, which ends then.
    fn hang_up(&mut self) {
        let connection = self.connection.take();
        if let Some(streams) = connection.as_ref().and_then(ServerConnection::streams) {
            streams.end();
        }
    }

    async fn send(
        &mut self,
        send: &HttpCheckSend,
        send_state: bool,
        probe: &ProbeRun<'_>,
    ) -> Result<(), ProbeFailure> {
        if self.connection.is_none() {
            self.connect(None, probe).await?;
        }
        let body = {
            let seen = self.seen(probe);
            match (&send.body_format, &send.body) {
                (Some(format), _) => Some(seen.bytes(format)),
                (None, body) => body.clone(),
            }
        };
        let state = send_state.then(|| state_of(probe));
        let request = request(send, body.as_deref(), state.as_deref(), self.seen(probe));
        let request = request.map_err(|NoRoom| ProbeFailure {
            status: CheckStatus::SocketError,
            text: "The request is too long".to_owned(),
        })?;
        self.method = request.method();
        self.has_response = false;
        self.body.clear();
        self.body_ended = false;
        self.is_malformed = false;
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        let wait = WaitLimit::until(&probe.deadline, Some(probe.until()));
        let length = match &body {
            Some(body) => BodyLength::Known(body.len() as u64),
            None => BodyLength::None,
        };
        // A stream that is open was answered.
        connection.end_exchange();
        connection.begin_request(&request, length, None);
        let mut sink = connection.duplex().sink;
        let sent = async {
            if let Some(body) = &body {
                sink.body(&wait, body).await?;
            }
            sink.end_body(&wait, None).await
        };
        sent.await.map_err(|error| match error {
            WriteError::TimedOut => ProbeFailure::timeout(CheckStatus::L7Timeout),
            WriteError::Broken(error) => ProbeFailure::broken(&error),
        })
    }

    fn seen<'a>(&'a self, probe: &'a ProbeRun<'a>) -> ProbeFacts<'a> {
        ProbeFacts {
            probe: probe.parts(),
            response: self.has_response.then_some(&self.response),
            data: &self.body,
            is_whole: self.body_ended,
        }
    }

    /// Receives the head of the response, unless it was received already. An interim response is an
    /// answer, too.
    async fn receive_head(
        &mut self,
        expect: &Expect,
        probe: &ProbeRun<'_>,
    ) -> Result<(), ProbeFailure> {
        let Some(connection) = &mut self.connection else {
            return Err(ProbeFailure::no_answer());
        };
        if self.has_response {
            return Ok(());
        }
        let wait = WaitLimit::until(&probe.deadline, Some(probe.until()));
        self.response.clear();
        let mut source = connection.duplex().source;
        let answer = source
            .response(&wait, self.method, &mut self.response)
            .await
            .map_err(|error| read_failure(&error, expect))?;
        self.has_response = true;
        self.is_interim = answer.interim;
        Ok(())
    }

    /// Whether what was received breaks the protocol, as far as it was received.
    fn is_malformed(&mut self) -> bool {
        let has_body = self.has_response && !self.is_interim && !self.body_ended;
        if let Some(connection) = self.connection.as_mut().filter(|_| has_body) {
            let checked = connection.duplex().source.check_ahead();
            self.is_malformed |= matches!(checked, Err(ReadError::Malformed(_)));
        }
        self.is_malformed
    }

    /// Receives more of the body.
    async fn receive_body(
        &mut self,
        expect: &Expect,
        probe: &ProbeRun<'_>,
    ) -> Result<(), ProbeFailure> {
        let bytes_max = probe
            .controller
            .generation()
            .config
            .global
            .tune
            .buffer_bytes as usize;
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        let wait = WaitLimit::until(&probe.deadline, Some(probe.until()));
        let mut source = connection.duplex().source;
        let received = if self.is_interim {
            // The body is that of the final response; the status stays that of the first one.
            let mut next = Response::default();
            let answer = source.response(&wait, self.method, &mut next).await;
            answer.map(|answer| {
                self.is_interim = answer.interim;
                &[][..]
            })
        } else {
            let piece = source.piece(&wait).await;
            piece.map(|piece| {
                self.body_ended = piece.is_none();
                piece.unwrap_or_default()
            })
        };
        match received {
            Ok(piece) => {
                self.body.extend_from_slice(piece);
                if self.body.len() >= bytes_max {
                    self.body.truncate(bytes_max);
                    self.body_ended = true;
                }
            }
            Err(ReadError::Malformed(_)) => self.is_malformed = true,
            // An incomplete body is judged as far as it was received.
            Err(ReadError::Closed) => self.body_ended = true,
            Err(error) => return Err(read_failure(&error, expect)),
        }
        Ok(())
    }

    /// Judges the response; a verdict ends the check.
    async fn expect(
        &mut self,
        script: &HttpCheckScript,
        rule: &Judge<'_>,
        is_last: bool,
        probe: &ProbeRun<'_>,
    ) -> Result<Option<CheckOutcome>, ProbeFailure> {
        let expect = rule.expect;
        self.receive_head(expect, probe).await?;
        if self.is_malformed() {
            return Ok(Some(self.malformed(rule, probe)));
        }
        if script.disable_on_404 && self.response.status() == 404 {
            let verdict = probe.verdict(CheckStatus::L7Conditional);
            return Ok(Some(verdict.with_code(404)));
        }
        let by_head = match expect.match_head(&self.response, self.seen(probe)) {
            Ok(by_head) => by_head,
            Err(text) => return Ok(Some(not_judged(text, rule, probe))),
        };
        let (met, text) = match by_head {
            Some(met) => {
                let text = match self.response.reason() {
                    [] => rule.mismatch_text(),
                    reason => rule.with_comment(&String::from_utf8_lossy(reason)),
                };
                (met, text)
            }
            None => {
                let judged = self.match_body(rule, probe).await?;
                if self.is_malformed {
                    return Ok(Some(self.malformed(rule, probe)));
                }
                match judged {
                    Ok(judged) => judged,
                    Err(text) => return Ok(Some(not_judged(text, rule, probe))),
                }
            }
        };
        if met {
            return Ok(is_last.then(|| self.success(probe, Some(expect))));
        }
        let status = expect.error_status().unwrap_or(match by_head {
            Some(_) => CheckStatus::L7Status,
            None => CheckStatus::L7Response,
        });
        let info = match expect.on_error() {
            Some(format) => self.seen(probe).text(format),
            None => text,
        };
        Ok(Some(
            self.with_code(probe.verdict(status), expect, probe)
                .with_info(info),
        ))
    }

    /// The verdict on a response whose body cannot be read, whatever the rule looks for.
    fn malformed(&self, rule: &Judge<'_>, probe: &ProbeRun<'_>) -> CheckOutcome {
        let info = match rule.expect.on_error() {
            Some(format) => self.seen(probe).text(format),
            None => rule.mismatch_text(),
        };
        probe.verdict(CheckStatus::L7Response).with_info(info)
    }

    /// Whether the rule is met, and the text for one that is not; `Err` for a format that gives nothing
    /// to look for.
    async fn match_body(
        &mut self,
        rule: &Judge<'_>,
        probe: &ProbeRun<'_>,
    ) -> Result<Result<(bool, String), &'static str>, ProbeFailure> {
        let expect = rule.expect;
        loop {
            if self.is_malformed() {
                return Ok(Ok((false, String::new())));
            }
            if self.body_ended && self.body.is_empty() {
                let text = "HTTP content check could not find a response body";
                return Ok(Ok((false, rule.with_comment(text))));
            }
            let judged = match self.body.is_empty() {
                true => Ok(None),
                false => expect.match_data(&self.body, self.body_ended, self.seen(probe)),
            };
            let text = match judged {
                Ok(Some(true)) => return Ok(Ok((true, String::new()))),
                Ok(Some(false)) if expect.is_negated() => "HTTP check matched unwanted content",
                Ok(Some(false)) => "HTTP content check did not match",
                Ok(None) => {
                    self.receive_body(expect, probe).await?;
                    continue;
                }
                Err(text) => return Ok(Err(text)),
            };
            return Ok(Ok((false, rule.with_comment(text))));
        }
    }

    fn success(&self, probe: &ProbeRun<'_>, expect: Option<&Expect>) -> CheckOutcome {
        let Some(expect) = expect else {
            return probe.verdict(CheckStatus::L7Ok).with_code(0);
        };
        let verdict = self.with_code(probe.verdict(expect.ok_status()), expect, probe);
        match expect.on_success() {
            Some(format) => verdict.with_info(self.seen(probe).text(format)),
            None => verdict,
        }
    }

    /// Statuses of this layer show a code: the response's, or that of `status-code`.
    fn with_code(
        &self,
        mut verdict: CheckOutcome,
        expect: &Expect,
        probe: &ProbeRun<'_>,
    ) -> CheckOutcome {
        if verdict.status.has_code() {
            let said = expect.code().and_then(|code| self.seen(probe).number(code));
            verdict.code = said.or(Some(self.response.status()));
        }
        verdict
    }
}

/// The verdict of a rule whose format gives nothing to look for; `on-error` and `error-status` say
/// nothing of it.
fn not_judged(text: &str, rule: &Judge<'_>, probe: &ProbeRun<'_>) -> CheckOutcome {
    let info = rule.with_comment(text);
    probe.verdict(CheckStatus::L7Response).with_info(info)
}

impl Drop for HttpCheckRun {
    fn drop(&mut self) {
        self.hang_up();
    }
}

/// What a connection of HTTP/2 is held to.
fn stream_settings(tune: &Tune) -> StreamSettings {
    let terms = H2Terms::for_servers(tune);
    StreamSettings {
        h2: terms.settings,
        glitch_count_max: terms.glitch_count_max.map_or(0, NonZeroU32::get),
        heads: HeadLimits {
            field_count_max: u32::from(tune.header_count_max),
            head_bytes_max: tune.buffer_bytes,
        },
        idle_ping: None,
    }
}

fn read_failure(error: &ReadError, expect: &Expect) -> ProbeFailure {
    match error {
        ReadError::TimedOut => ProbeFailure::timeout(expect.timeout_status()),
        ReadError::Closed | ReadError::Malformed(_) => ProbeFailure::no_answer(),
        // A stream was refused, or what carries it broke the protocol.
        ReadError::Broken(error) if error.kind() == io::ErrorKind::InvalidData => {
            ProbeFailure::no_answer()
        }
        ReadError::Broken(error) => ProbeFailure::broken(error),
    }
}
