//! What the log formats of a probe can ask for: the response, the bytes, the names.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_engine::{Backend, Server};
use ballast_expr::{
    BackendFacts, BodyFacts, Expr, Facts, LogFormat, ProcessFacts, Scratch, ServerFacts,
    SetCondition, Side, Time, Value, VarName, eval,
};
use ballast_message::Response;
use ballast_model::{CheckVariable, CheckVariableValue};

use super::controller::HealthController;
use super::random_number;
use super::variables::ProbeVariables;

/// The parts of a probe that expressions ask for.
#[derive(Clone, Copy)]
pub(super) struct ProbeParts<'a> {
    pub(super) controller: &'a HealthController,
    /// The name of this machine among load balancers.
    pub(super) node: &'a str,
    pub(super) backend: &'a Arc<Backend>,
    pub(super) server: &'a Arc<Server>,
    pub(super) variables: &'a ProbeVariables<'a>,
}

/// A probe, as log formats see it.
#[derive(Clone, Copy)]
pub(super) struct ProbeFacts<'a> {
    pub(super) probe: ProbeParts<'a>,
    pub(super) response: Option<&'a Response>,
    /// What was received: of the response's body, else of the connection.
    pub(super) data: &'a [u8],
    /// Whether the body is whole.
    pub(super) is_whole: bool,
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

    fn var(&self, name: &VarName) -> Option<Value<'_>> {
        self.probe.variables.value(name)
    }

    fn assign(&self, name: &VarName, value: Option<Value<'_>>) {
        self.probe.variables.assign(name, value);
    }

    fn response(&self) -> Option<&Response> {
        self.response
    }

    fn body(&self, sent_by: Side) -> Option<BodyFacts<'_>> {
        self.response.filter(|_| sent_by == Side::Server)?;
        Some(BodyFacts {
            bytes: self.data,
            announced_bytes: None,
            is_final: self.is_whole,
        })
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
        self.probe.node
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

    /// An expression, evaluated as a number, of which the lower 16 bits count.
    pub(super) fn number(&self, expr: &Expr) -> Option<u16> {
        let number = match eval(expr, self, &mut Scratch::new())? {
            Value::Int(number) => number,
            Value::Bool(flag) => i64::from(flag),
            Value::Ipv4(address) => i64::from(u32::from(address)),
            Value::Str(text) | Value::Bin(text) | Value::Meth(text) => leading_number(text),
            Value::Ipv6(_) => return None,
        };
        let [.., high, low] = number.to_be_bytes();
        Some(u16::from_be_bytes([high, low]))
    }

    /// Sets a variable.
    pub(super) fn set_variable(&self, variable: &CheckVariable) {
        let name = &variable.name;
        let mut scratch = Scratch::new();
        let mut text = Vec::new();
        let value = match &variable.value {
            CheckVariableValue::Expr(expr) => eval(expr, self, &mut scratch),
            CheckVariableValue::Format(format) => {
                format.render(self, &mut scratch, &mut text);
                Some(Value::Str(&text))
            }
        };
        // An expression without a value changes nothing.
        let Some(value) = value else { return };
        let may = |when: &SetCondition| when.holds(name, self.var(name), value);
        if variable.conditions.iter().all(may) {
            self.assign(name, Some(value));
        }
    }
}

/// The number that a text begins with; 0 when it begins with none.
fn leading_number(text: &[u8]) -> i64 {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_i64, |sum, digit| {
        sum.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'))
    });
    number.wrapping_mul(sign)
}
