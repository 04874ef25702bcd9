//! `option httpchk` and `http-check`: sends requests and judges responses, rule by rule.

use std::io;
use std::num::NonZeroU32;

use ballast_engine::H2Terms;
use ballast_health::{CheckOutcome, CheckStatus};
use ballast_message::{BodyLength, HeadLimits, Method, NoRoom, Response};
use ballast_model::{CheckConnect, CheckRule, HttpCheckSend, HttpProtocol, Tune};
use ballast_mux::{Limits, ReadError, ServerConnection, StreamSettings, WaitLimit, WriteError};

use super::expect::Expect;
use super::facts::ProbeFacts;
use super::probe_run::{ProbeFailure, ProbeRun};
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
    Expect(Box<Expect>),
}

impl HttpCheckScript {
    /// Adds what is implied: the request of a bare `option httpchk`, and that the last response
    /// must have a status from 200 to 399.
    pub(super) fn new(written: &[CheckRule], disable_on_404: bool, send_state: bool) -> Self {
        let mut rules: Vec<HttpCheckStep> = written
            .iter()
            .filter_map(|rule| {
                Some(match rule {
                    CheckRule::Comment(text) => HttpCheckStep::Comment(text.clone()),
                    CheckRule::Connect(connect) => HttpCheckStep::Connect(connect.clone()),
                    CheckRule::HttpSend(send) => HttpCheckStep::Send(send.clone()),
                    CheckRule::Expect(expect) => {
                        HttpCheckStep::Expect(Box::new(Expect::new(expect)))
                    }
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
                .position(|rule| matches!(rule, HttpCheckStep::Expect(_)))
                .unwrap_or(rules.len());
            rules.insert(index, HttpCheckStep::Send(HttpCheckSend::default()));
        }
        let last = rules
            .iter()
            .rposition(|rule| matches!(rule, HttpCheckStep::Send(_)));
        let judged = last.is_some_and(|last| {
            rules[last..]
                .iter()
                .any(|rule| matches!(rule, HttpCheckStep::Expect(_)))
        });
        if !judged {
            rules.push(HttpCheckStep::Expect(Box::new(Expect::good_status())));
        }
        Self {
            rules,
            disable_on_404,
            send_state,
        }
    }
}

/// Runs the rules.
pub(super) async fn run(script: &HttpCheckScript, probe: &ProbeRun<'_>) -> CheckOutcome {
    let mut conversation = HttpCheckRun::default();
    let mut comment = None;
    for (step, rule) in script.rules.iter().enumerate() {
        let is_last = step + 1 == script.rules.len();
        let taken = match rule {
            HttpCheckStep::Comment(text) => {
                comment = Some(text.as_str());
                Ok(None)
            }
            HttpCheckStep::Connect(connect) => conversation
                .connect(Some(connect), probe)
                .await
                .map(|()| None),
            HttpCheckStep::Send(send) => conversation
                .send(send, script.send_state, probe)
                .await
                .map(|()| None),
            HttpCheckStep::Expect(expect) => {
                let comment = expect.comment().or(comment);
                conversation
                    .expect(script, expect, comment, is_last, probe)
                    .await
            }
        };
        match taken {
            Ok(None) => {}
            Ok(Some(verdict)) => return verdict,
            Err(failure) => return probe.verdict(failure.status).with_info(failure.text),
        }
    }
    conversation.success(probe, None)
}

/// The connection, the request and the response so far.
#[derive(Default)]
struct HttpCheckRun {
    connection: Option<ServerConnection>,
    method: Method,
    response: Response,
    has_response: bool,
    body: Vec<u8>,
    body_ended: bool,
}

impl HttpCheckRun {
    async fn connect(
        &mut self,
        rule: Option<&CheckConnect>,
        probe: &ProbeRun<'_>,
    ) -> Result<(), ProbeFailure> {
        // The previous connection is closed first.
        self.hang_up();
        let transport = probe.open(rule).await?;
        let tune = &probe.controller.generation().config.global.tune;
        let limits = Limits {
            head_bytes_max: tune.buffer_bytes.saturating_sub(tune.rewrite_bytes) as usize,
            lenient: probe.backend.model.common.accept_invalid,
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
            probe,
            response: self.has_response.then_some(&self.response),
            data: &self.body,
        }
    }

    /// Receives the head of the response, unless it was received already.
    async fn receive_head(
        &mut self,
        expect: &Expect,
        probe: &ProbeRun<'_>,
    ) -> Result<(), ProbeFailure> {
        let Some(connection) = &mut self.connection else {
            return Err(ProbeFailure::no_answer());
        };
        let wait = WaitLimit::until(&probe.deadline, Some(probe.until()));
        while !self.has_response {
            self.response.clear();
            let mut source = connection.duplex().source;
            match source
                .response(&wait, self.method, &mut self.response)
                .await
            {
                Ok(answer) => self.has_response = !answer.interim,
                Err(error) => return Err(read_failure(&error, expect)),
            }
        }
        Ok(())
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
        match connection.duplex().source.piece(&wait).await {
            Ok(Some(piece)) => {
                self.body.extend_from_slice(piece);
                if self.body.len() >= bytes_max {
                    self.body.truncate(bytes_max);
                    self.body_ended = true;
                }
            }
            // An incomplete body is judged as far as it was received.
            Ok(None) | Err(ReadError::Closed | ReadError::Malformed(_)) => self.body_ended = true,
            Err(error) => return Err(read_failure(&error, expect)),
        }
        Ok(())
    }

    /// Judges the response; a verdict ends the check.
    async fn expect(
        &mut self,
        script: &HttpCheckScript,
        expect: &Expect,
        comment: Option<&str>,
        is_last: bool,
        probe: &ProbeRun<'_>,
    ) -> Result<Option<CheckOutcome>, ProbeFailure> {
        self.receive_head(expect, probe).await?;
        if script.disable_on_404 && self.response.status() == 404 {
            let verdict = probe.verdict(CheckStatus::L7Conditional);
            return Ok(Some(verdict.with_code(404)));
        }
        let (met, text) = match expect.match_head(&self.response) {
            Some(met) => {
                let reason = String::from_utf8_lossy(self.response.reason()).into_owned();
                (met, reason)
            }
            None => self.match_body(expect, comment, probe).await?,
        };
        if met {
            return Ok(is_last.then(|| self.success(probe, Some(expect))));
        }
        let by_head = expect.match_head(&self.response).is_some();
        let status = expect.error_status().unwrap_or(if by_head {
            CheckStatus::L7Status
        } else {
            CheckStatus::L7Response
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

    async fn match_body(
        &mut self,
        expect: &Expect,
        comment: Option<&str>,
        probe: &ProbeRun<'_>,
    ) -> Result<(bool, String), ProbeFailure> {
        loop {
            if self.body_ended && self.body.is_empty() {
                let text = "HTTP content check could not find a response body";
                return Ok((false, with_comment(text, comment)));
            }
            let judged = if self.body.is_empty() {
                None
            } else {
                expect.match_data(&self.body, self.body_ended, self.seen(probe))
            };
            match judged {
                Some(true) => return Ok((true, String::new())),
                Some(false) if expect.is_negated() => {
                    return Ok((
                        false,
                        with_comment("HTTP check matched unwanted content", comment),
                    ));
                }
                Some(false) => {
                    return Ok((
                        false,
                        with_comment("HTTP content check did not match", comment),
                    ));
                }
                None => self.receive_body(expect, probe).await?,
            }
        }
    }

    fn success(&self, probe: &ProbeRun<'_>, expect: Option<&Expect>) -> CheckOutcome {
        let Some(expect) = expect else {
            return probe.verdict(CheckStatus::L7Ok);
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

fn with_comment(text: &str, comment: Option<&str>) -> String {
    match comment {
        Some(comment) => format!("{text} comment: {comment}"),
        None => text.to_owned(),
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
