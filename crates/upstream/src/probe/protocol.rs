//! Checks that speak a few steps of a protocol; the steps are in `ballast_wire`.

use std::time::{SystemTime, UNIX_EPOCH};

use ballast_expr::bytes_of_text;
use ballast_health::{CheckOutcome, CheckStatus};
use ballast_model::ProtocolCheck;
use ballast_transport::Transport;
use ballast_wire::check::{
    self, CheckStep, Expectation, MysqlLogin, REPLY_BYTES_MAX, ReplyFailure, ReplyVerdict,
};

use super::probe_run::{ProbeEnd, ProbeFailure, ProbeRun};

/// Runs the steps.
pub(super) async fn run(check: &ProtocolCheck, probe: &ProbeRun<'_>) -> CheckOutcome {
    // For a server that does not speak TLS, the check fails on layer 6.
    let is_tls = *check == ProtocolCheck::SslHello;
    // As in HAProxy; a database may refuse a host whose connections were broken off too often.
    let end = match check {
        ProtocolCheck::Mysql { .. } | ProtocolCheck::Pgsql { .. } | ProtocolCheck::Smtp { .. } => {
            ProbeEnd::Order
        }
        ProtocolCheck::Ldap
        | ProtocolCheck::Redis
        | ProtocolCheck::Spop
        | ProtocolCheck::SslHello => ProbeEnd::Reset,
    };
    let outcome = run_dialog(&steps(check, probe), probe, is_tls, end).await;
    let mut verdict = match outcome {
        Ok((code, text)) => {
            let status = if is_tls {
                CheckStatus::L6Ok
            } else {
                CheckStatus::L7Ok
            };
            with(probe.verdict(status), code, text)
        }
        Err(StepError::Connection(failure)) => {
            let status = match failure.status {
                CheckStatus::L7Timeout if is_tls => CheckStatus::L6Timeout,
                other => other,
            };
            probe.verdict(status).with_info(failure.text)
        }
        Err(StepError::Failed(status, code, text)) => with(probe.verdict(status), code, text),
    };
    if verdict.status.has_code() && verdict.code.is_none() {
        verdict.code = Some(0);
    }
    verdict
}

fn steps(check: &ProtocolCheck, probe: &ProbeRun<'_>) -> Vec<CheckStep> {
    match check {
        ProtocolCheck::Ldap => check::ldap(),
        ProtocolCheck::Mysql { user, before_41 } => {
            let dialect = if *before_41 {
                MysqlLogin::Pre41
            } else {
                MysqlLogin::Post41
            };
            let user = user.as_deref().map(bytes_of_text);
            check::mysql(user.as_deref().map(|user| (user, dialect)))
        }
        ProtocolCheck::Pgsql { user } => check::pgsql(&bytes_of_text(user)),
        ProtocolCheck::Redis => check::redis(),
        ProtocolCheck::Smtp { hello } => {
            let hello = hello.as_ref();
            let hello = hello.map(|(hello, domain)| (hello.as_str(), bytes_of_text(domain)));
            check::smtp(hello.as_ref().map(|(hello, domain)| (*hello, &**domain)))
        }
        ProtocolCheck::Spop => {
            let generation = probe.controller.generation();
            let buffer_bytes = generation.config.global.tune.buffer_bytes;
            // Frames have their length before them, and are read whole.
            check::spop(buffer_bytes.saturating_sub(4))
        }
        ProtocolCheck::SslHello => {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            check::ssl_hello(u32::try_from(now.as_secs()).unwrap_or(u32::MAX))
        }
    }
}

/// Why the steps end early.
enum StepError {
    /// The connection failed.
    Connection(ProbeFailure),
    /// The reply is not the expected one: the status, its code and its text.
    Failed(CheckStatus, Option<u32>, String),
}

impl From<ProbeFailure> for StepError {
    fn from(failure: ProbeFailure) -> Self {
        Self::Connection(failure)
    }
}

type CodeAndText = (Option<u32>, String);

async fn run_dialog(
    steps: &[CheckStep],
    probe: &ProbeRun<'_>,
    is_tls: bool,
    end: ProbeEnd,
) -> Result<CodeAndText, StepError> {
    let transport = probe.open(None, end).await?;
    let mut received = Vec::new();
    let mut shown = (None, String::new());
    for (index, step) in steps.iter().enumerate() {
        match step {
            CheckStep::Send(bytes) => {
                // What a server says before it is asked is no answer.
                received.clear();
                probe.send(&transport, bytes).await?;
            }
            CheckStep::Expect(expectation) => {
                let replies = &mut received;
                let outcome = expect(*expectation, &transport, replies, probe, is_tls).await;
                shown = outcome.map_err(|error| match error {
                    StepError::Failed(status, code, text) if received.is_empty() => {
                        let text = empty_text(*expectation, index).unwrap_or(text);
                        StepError::Failed(status, code, text)
                    }
                    error => error,
                })?;
            }
        }
    }
    Ok(shown)
}

/// The text for a server that closes without a reply at a step, where its protocol has no other.
/// The steps are counted from 1, and the connection is the first one of a check of MySQL, of which the
/// greeting is told so only.
fn empty_text(expectation: Expectation, index: usize) -> Option<String> {
    let step = match expectation {
        Expectation::MysqlPacket if index < 2 => index + 2,
        Expectation::SpopHello { .. } => index + 2,
        Expectation::SslHello => index + 1,
        _ => return None,
    };
    Some(format!("TCPCHK got an empty response at step {step}"))
}

async fn expect(
    expectation: Expectation,
    transport: &Transport,
    received: &mut Vec<u8>,
    probe: &ProbeRun<'_>,
    is_tls: bool,
) -> Result<CodeAndText, StepError> {
    let mut ended = false;
    loop {
        match expectation.parse_reply(received, ended) {
            ReplyVerdict::Undecided => {}
            ReplyVerdict::Pass { bytes, code, text } => {
                let shown = (code, String::from_utf8_lossy(text).into_owned());
                received.drain(..bytes.min(received.len()));
                return Ok(shown);
            }
            ReplyVerdict::Fail { kind, code, text } => {
                let status = match kind {
                    ReplyFailure::InvalidResponse if is_tls => CheckStatus::L6Response,
                    ReplyFailure::InvalidResponse => CheckStatus::L7Response,
                    ReplyFailure::WrongStatus => CheckStatus::L7Status,
                };
                let text = String::from_utf8_lossy(text).into_owned();
                return Err(StepError::Failed(status, code, text));
            }
        }
        ended = !probe
            .receive_to_end(transport, received, REPLY_BYTES_MAX)
            .await?;
    }
}

fn with(mut verdict: CheckOutcome, code: Option<u32>, text: String) -> CheckOutcome {
    verdict.code = code.and_then(|code| u16::try_from(code).ok());
    verdict.with_info(text)
}
