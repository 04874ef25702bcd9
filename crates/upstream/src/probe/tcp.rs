//! `tcp-check`: sends bytes and judges the response, rule by rule.

use ballast_expr::VarName;
use ballast_health::{CheckOutcome, CheckStatus};
use ballast_model::{CheckConnect, CheckPayload, CheckPort, CheckRule, CheckSend, CheckVariable};
use ballast_transport::Transport;

use super::expect::{Expect, unhex};
use super::facts::ProbeFacts;
use super::probe_run::{ProbeEnd, ProbeFailure, ProbeRun, connected};

/// The compiled rules of a backend.
pub(super) struct TcpCheckScript {
    rules: Vec<TcpCheckStep>,
}

enum TcpCheckStep {
    Comment(String),
    Connect(CheckConnect),
    Send(CheckSend),
    Expect(Box<Expect>),
    SetVar(CheckVariable),
    UnsetVar(VarName),
    /// Rules of HTTP checks do not occur here and are skipped.
    Foreign,
}

/// The text that is shown for a check that passed.
const PASSED: &str = "(tcp-check)";

impl TcpCheckScript {
    pub(super) fn new(rules: &[CheckRule]) -> Self {
        let ready = |rule: &CheckRule| match rule {
            CheckRule::Comment(text) => TcpCheckStep::Comment(text.clone()),
            CheckRule::Connect(connect) => TcpCheckStep::Connect(connect.clone()),
            CheckRule::Send(send) => TcpCheckStep::Send(send.clone()),
            CheckRule::Expect(expect) => TcpCheckStep::Expect(Box::new(Expect::new(expect))),
            CheckRule::SetVar(variable) => TcpCheckStep::SetVar(variable.clone()),
            CheckRule::UnsetVar(name) => TcpCheckStep::UnsetVar(name.clone()),
            CheckRule::HttpSend(_) => TcpCheckStep::Foreign,
        };
        Self {
            rules: rules.iter().map(ready).collect(),
        }
    }

    /// The comment that is reported for a step: its own, or that of the last `comment` rule that only
    /// rules of its kind follow.
    fn comment(&self, step: usize) -> Option<&str> {
        let own = match &self.rules[step] {
            TcpCheckStep::Comment(text) => Some(text.as_str()),
            TcpCheckStep::Connect(connect) => connect.comment.as_deref(),
            TcpCheckStep::Send(send) => send.comment.as_deref(),
            TcpCheckStep::Expect(expect) => expect.comment(),
            TcpCheckStep::SetVar(_) | TcpCheckStep::UnsetVar(_) | TcpCheckStep::Foreign => None,
        };
        own.or_else(|| {
            let kind = std::mem::discriminant(&self.rules[step]);
            let mut before = self.rules[..step].iter().rev();
            match before.find(|rule| std::mem::discriminant(*rule) != kind) {
                Some(TcpCheckStep::Comment(text)) => Some(text.as_str()),
                _ => None,
            }
        })
    }

    /// Describes the rule at which a check failed.
    fn step_description(&self, step: usize) -> String {
        let what = match &self.rules[step] {
            TcpCheckStep::Connect(CheckConnect {
                port: Some(CheckPort::Fixed(port)),
                ..
            }) => format!("connect port {port}"),
            TcpCheckStep::Connect(_) => "connect".to_owned(),
            TcpCheckStep::Send(_) => "send".to_owned(),
            TcpCheckStep::Expect(expect) => format!("expect {}", expect.subject_words()),
            TcpCheckStep::SetVar(_) | TcpCheckStep::UnsetVar(_) => "action".to_owned(),
            TcpCheckStep::Comment(_) | TcpCheckStep::Foreign => "comment".to_owned(),
        };
        let comment = match self.comment(step) {
            Some(comment) => format!(" comment: '{comment}'"),
            None => String::new(),
        };
        format!(" at step {} of tcp-check ({what}){comment}", step + 1)
    }
}

/// How the connection is called that the rules do not open.
pub(super) const INITIAL_STEP: &str = " at initial connection step of tcp-check";

/// Runs the rules.
pub(super) async fn run(script: &TcpCheckScript, run: &mut ProbeRun<'_>) -> CheckOutcome {
    let begins_itself = script
        .rules
        .iter()
        .find(|rule| {
            use TcpCheckStep::{Comment, SetVar, UnsetVar};
            !matches!(rule, Comment(_) | SetVar(_) | UnsetVar(_))
        })
        .is_some_and(|rule| matches!(rule, TcpCheckStep::Connect(_)));
    let mut conversation = TcpCheckRun::default();
    if !begins_itself {
        match run.open(None, ProbeEnd::Reset).await {
            Ok(transport) => conversation.transport = Some(transport),
            Err(failure) => return failed(run, failure, INITIAL_STEP),
        }
    }
    for step in 0..script.rules.len() {
        run.variables.end_step();
        match conversation.take(script, step, run).await {
            Ok(None) => {}
            Ok(Some(verdict)) => return verdict,
            Err(failure) => return failed(run, failure, &script.step_description(step)),
        }
    }
    let probe = &*run;
    let seen = ProbeFacts {
        probe: probe.parts(),
        response: None,
        data: &conversation.received,
        is_whole: false,
    };
    let (status, text) = match script.rules.last() {
        Some(TcpCheckStep::Expect(expect)) => (
            expect.ok_status(),
            expect.on_success().map(|format| seen.text(format)),
        ),
        _ if conversation.spoke => (CheckStatus::L7Ok, None),
        _ => {
            let transport = conversation.transport.as_ref();
            (transport.map_or(CheckStatus::L4Ok, connected), None)
        }
    };
    let mut verdict = probe.verdict(status);
    if let Some(TcpCheckStep::Expect(expect)) = script.rules.last() {
        verdict.code = expect.code().and_then(|code| seen.number(code));
    }
    with_code(verdict).with_info(text.unwrap_or_else(|| PASSED.to_owned()))
}

/// The outcome of a check whose connection failed at a step.
fn failed(probe: &ProbeRun<'_>, failure: ProbeFailure, step_description: &str) -> CheckOutcome {
    let text = format!("{}{step_description}", failure.text);
    with_code(probe.verdict(failure.status)).with_info(text)
}

/// A status of this layer always shows a code.
fn with_code(mut verdict: CheckOutcome) -> CheckOutcome {
    if verdict.status.has_code() && verdict.code.is_none() {
        verdict.code = Some(0);
    }
    verdict
}

/// The connection, and the bytes received since the last send.
#[derive(Default)]
struct TcpCheckRun {
    transport: Option<Transport>,
    received: Vec<u8>,
    ended: bool,
    spoke: bool,
}

impl TcpCheckRun {
    /// Performs one rule; a verdict ends the check.
    async fn take(
        &mut self,
        script: &TcpCheckScript,
        step: usize,
        probe: &ProbeRun<'_>,
    ) -> Result<Option<CheckOutcome>, ProbeFailure> {
        match &script.rules[step] {
            TcpCheckStep::Comment(_) | TcpCheckStep::Foreign => Ok(None),
            TcpCheckStep::Connect(rule) => {
                // The previous connection is closed first.
                *self = Self {
                    spoke: self.spoke,
                    ..Self::default()
                };
                self.transport = Some(probe.open(Some(rule), ProbeEnd::Reset).await?);
                Ok(None)
            }
            TcpCheckStep::Send(send) => {
                self.spoke = true;
                let Some(bytes) = payload(&send.payload, self.seen(probe)) else {
                    let text = "tcp-check send : failed to build log-format string at step";
                    let verdict = probe.verdict(CheckStatus::L7Response);
                    return Ok(Some(verdict.with_info(format!("{text} {}", step + 1))));
                };
                self.received.clear();
                let transport = self.transport()?;
                probe.send(transport, &bytes).await?;
                Ok(None)
            }
            TcpCheckStep::SetVar(variable) => {
                self.seen(probe).set_variable(variable);
                Ok(None)
            }
            TcpCheckStep::UnsetVar(name) => {
                probe.variables.assign(name, None);
                Ok(None)
            }
            TcpCheckStep::Expect(expect) => {
                self.spoke = true;
                self.expect(script, step, expect, probe).await
            }
        }
    }

    fn seen<'s>(&'s self, probe: &'s ProbeRun<'s>) -> ProbeFacts<'s> {
        ProbeFacts {
            probe: probe.parts(),
            response: None,
            data: &self.received,
            is_whole: false,
        }
    }

    fn transport(&self) -> Result<&Transport, ProbeFailure> {
        self.transport.as_ref().ok_or_else(|| ProbeFailure {
            status: CheckStatus::SocketError,
            text: "No connection".to_owned(),
        })
    }

    async fn expect(
        &mut self,
        script: &TcpCheckScript,
        step: usize,
        expect: &Expect,
        probe: &ProbeRun<'_>,
    ) -> Result<Option<CheckOutcome>, ProbeFailure> {
        let bytes_max = probe
            .controller
            .generation()
            .config
            .global
            .tune
            .buffer_bytes as usize;
        loop {
            let full = self.received.len() >= bytes_max;
            if self.ended && self.received.is_empty() {
                if expect.is_negated() {
                    return Ok(None);
                }
                let text = format!("TCPCHK got an empty response at step {}", step + 1);
                return Ok(Some(self.miss(script, step, expect, text, probe)));
            }
            let seen = self.seen(probe);
            let judged = if self.received.is_empty() {
                Ok(None)
            } else {
                expect.match_data(&self.received, self.ended || full, seen)
            };
            match judged {
                Ok(Some(true)) => return Ok(None),
                Ok(Some(false)) => {
                    let how = if expect.is_negated() {
                        "matched unwanted"
                    } else {
                        "did not match"
                    };
                    let what = expect.content_words();
                    let text = format!("TCPCHK {how} content {what} at step {}", step + 1);
                    return Ok(Some(self.miss(script, step, expect, text, probe)));
                }
                Ok(None) => {}
                Err(text) => {
                    let info = match script.comment(step) {
                        Some(comment) => format!("{text} comment: {comment}"),
                        None => text.to_owned(),
                    };
                    let verdict = probe.verdict(CheckStatus::L7Response);
                    return Ok(Some(verdict.with_info(info)));
                }
            }
            let transport = self.transport.as_ref().ok_or_else(|| ProbeFailure {
                status: CheckStatus::SocketError,
                text: "No connection".to_owned(),
            })?;
            match probe
                .receive_to_end(transport, &mut self.received, bytes_max)
                .await
            {
                Ok(more) => self.ended = !more,
                Err(failure) if failure.status == CheckStatus::L7Timeout => {
                    return Err(ProbeFailure::timeout(expect.timeout_status()));
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    fn miss(
        &self,
        script: &TcpCheckScript,
        step: usize,
        expect: &Expect,
        text: String,
        probe: &ProbeRun<'_>,
    ) -> CheckOutcome {
        let seen = self.seen(probe);
        let info = match (expect.on_error(), script.comment(step)) {
            (Some(format), _) => seen.text(format),
            (None, Some(comment)) => format!("{text} comment: {comment}"),
            (None, None) => text,
        };
        let status = expect.error_status().unwrap_or(CheckStatus::L7Response);
        let mut verdict = probe.verdict(status).with_info(info);
        if status.has_code() {
            verdict.code = expect.code().and_then(|code| seen.number(code));
        }
        with_code(verdict)
    }
}

/// The bytes to send; `None` for text that is to be hexadecimal and is not.
fn payload(payload: &CheckPayload, seen: ProbeFacts<'_>) -> Option<Vec<u8>> {
    match payload {
        CheckPayload::Bytes(bytes) => Some(bytes.clone()),
        CheckPayload::Format(format) => Some(seen.bytes(format)),
        CheckPayload::HexFormat(format) => unhex(&seen.bytes(format)),
    }
}
