//! What the log formats of a probe can ask for: the response, the bytes, the names.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_expr::{
    BackendFacts, Expr, Facts, LogFormat, ProcessFacts, Scratch, ServerFacts, Side, Time, Value,
    eval,
};
use ballast_message::Response;

use super::probe_run::ProbeRun;
use super::random_number;

/// A probe, as log formats see it.
#[derive(Clone, Copy)]
pub(super) struct ProbeFacts<'a> {
    pub(super) probe: &'a ProbeRun<'a>,
    pub(super) response: Option<&'a Response>,
    pub(super) data: &'a [u8],
}

impl Facts for ProbeFacts<'_> {
    fn now(&self) -> Time {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Time {
            secs: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
            micros: now.subsec_micros(),
        }
    }

    fn random(&self) -> u64 {
        random_number()
    }

    fn process(&self) -> &dyn ProcessFacts {
        self
    }

    fn response(&self) -> Option<&Response> {
        self.response
    }

    fn side(&self) -> Side {
        Side::Server
    }

    fn data(&self, sent_by: Side) -> Option<&[u8]> {
        (sent_by == Side::Server).then_some(self.data)
    }

    fn backend(&self) -> Option<&dyn BackendFacts> {
        Some(&**self.probe.backend)
    }

    fn server(&self) -> Option<&dyn ServerFacts> {
        Some(&**self.probe.server)
    }
}

impl ProcessFacts for ProbeFacts<'_> {
    fn hostname(&self) -> &str {
        &self.probe.node
    }

    fn env(&self, name: &str) -> Option<Arc<[u8]>> {
        self.probe.controller.environment_variable(name)
    }

    fn utc_offset_secs(&self, secs: i64) -> i32 {
        ballast_net::local_time(secs).utc_offset_s
    }

    fn pid(&self) -> i64 {
        i64::from(std::process::id())
    }
}

impl ProbeFacts<'_> {
    /// A format, rendered as bytes.
    pub(super) fn bytes(&self, format: &LogFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        format.render(self, &mut Scratch::new(), &mut bytes);
        bytes
    }

    /// A format, rendered as text.
    pub(super) fn text(&self, format: &LogFormat) -> String {
        String::from_utf8_lossy(&self.bytes(format)).into_owned()
    }

    /// An expression, evaluated as a number.
    pub(super) fn number(&self, expr: &Expr) -> Option<u16> {
        match eval(expr, self, &mut Scratch::new())? {
            Value::Int(number) => u16::try_from(number).ok(),
            Value::Str(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
            _ => None,
        }
    }
}
