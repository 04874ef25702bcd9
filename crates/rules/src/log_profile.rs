//! When lines are logged, and how they are built then: steps, and profiles of log targets.
//!
//! Source: HAProxy configuration manual, sections 4.2 ("log-steps") and 8.3.5.

use std::sync::Arc;

use ballast_expr::{LogFormat, Needs};

use crate::rule_set_kind::RuleSetKind;

/// A step at which a line may be logged.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LogStep {
    /// The connection was accepted.
    Accept,
    /// The request was received.
    Request,
    /// The connection to the server was made.
    Connect,
    /// The response was received.
    Response,
    /// The exchange has ended.
    Close,
    /// `do-log` in `quic-initial`.
    QuicInitial,
    /// `do-log` in `http-request`.
    HttpRequest,
    /// `do-log` in `http-response`.
    HttpResponse,
    /// `do-log` in `http-after-response`.
    HttpAfterResponse,
    /// `do-log` in `tcp-request connection`.
    TcpConnection,
    /// `do-log` in `tcp-request session`.
    TcpSession,
    /// `do-log` in `tcp-request content`.
    TcpContent,
    /// `do-log` in `tcp-response content`.
    TcpResponse,
}

/// How many steps there are.
const STEP_COUNT: usize = LogStep::ALL.len();

impl LogStep {
    /// All steps, in the order of their numbers.
    pub const ALL: [LogStep; 13] = [
        LogStep::Accept,
        LogStep::Request,
        LogStep::Connect,
        LogStep::Response,
        LogStep::Close,
        LogStep::QuicInitial,
        LogStep::HttpRequest,
        LogStep::HttpResponse,
        LogStep::HttpAfterResponse,
        LogStep::TcpConnection,
        LogStep::TcpSession,
        LogStep::TcpContent,
        LogStep::TcpResponse,
    ];

    /// The word of the step in `log-steps` and `log-profile`.
    pub const fn word(self) -> &'static str {
        match self {
            LogStep::Accept => "accept",
            LogStep::Request => "request",
            LogStep::Connect => "connect",
            LogStep::Response => "response",
            LogStep::Close => "close",
            LogStep::QuicInitial => "quic-init",
            LogStep::HttpRequest => "http-req",
            LogStep::HttpResponse => "http-res",
            LogStep::HttpAfterResponse => "http-after-res",
            LogStep::TcpConnection => "tcp-req-conn",
            LogStep::TcpSession => "tcp-req-sess",
            LogStep::TcpContent => "tcp-req-cont",
            LogStep::TcpResponse => "tcp-res-cont",
        }
    }

    /// The step of that word.
    pub fn of_word(word: &str) -> Option<LogStep> {
        Self::ALL.into_iter().find(|step| step.word() == word)
    }

    /// The step of a `do-log` rule.
    pub(crate) const fn of_rule(rule_set: RuleSetKind) -> LogStep {
        match rule_set {
            RuleSetKind::QuicInitial => LogStep::QuicInitial,
            RuleSetKind::TcpConnection => LogStep::TcpConnection,
            RuleSetKind::TcpSession => LogStep::TcpSession,
            RuleSetKind::TcpContent => LogStep::TcpContent,
            RuleSetKind::TcpResponse => LogStep::TcpResponse,
            RuleSetKind::HttpRequest | RuleSetKind::Redirect => LogStep::HttpRequest,
            RuleSetKind::HttpResponse => LogStep::HttpResponse,
            RuleSetKind::HttpAfterResponse => LogStep::HttpAfterResponse,
        }
    }
}

/// Why a line is logged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogOrigin {
    /// A step of the exchange, or a `do-log` rule.
    Step(LogStep),
    /// The session failed before there was a request.
    SessionError,
    /// The connection was refused in a handshake.
    SessionKilled,
}

impl LogOrigin {
    /// The text of `%OG` (manual, section 8.2.6).
    pub const fn text(self) -> &'static str {
        match self {
            LogOrigin::SessionError => "sess_error",
            LogOrigin::SessionKilled => "sess_killed",
            LogOrigin::Step(step) => match step {
                LogStep::Accept => "txn_accept",
                LogStep::Request => "txn_request",
                LogStep::Connect => "txn_connect",
                LogStep::Response => "txn_response",
                LogStep::Close => "txn_close",
                step => step.word(),
            },
        }
    }
}

/// A set of steps (`log-steps`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LogSteps(u16);

impl LogSteps {
    /// Every step.
    pub const ALL: LogSteps = LogSteps((1 << STEP_COUNT) - 1);

    /// Adds a step.
    pub fn insert(&mut self, step: LogStep) {
        self.0 |= 1 << step as u16;
    }

    /// Whether the step is in it.
    pub const fn has(self, step: LogStep) -> bool {
        self.0 & (1 << step as u16) != 0
    }
}

/// What a `log-profile` section says of the lines of a log target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogProfile {
    /// Its name.
    pub name: String,
    /// `log-tag`: replaces that of the proxy.
    pub tag: Option<String>,
    steps: [Option<Box<StepLine>>; STEP_COUNT],
    error: Option<Box<StepLine>>,
    any: Option<Box<StepLine>>,
}

/// What a profile says of one step (`on`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepLine {
    /// `drop`: nothing is logged.
    pub is_dropped: bool,
    /// `format`: replaces `log-format` and `error-log-format`.
    pub format: Option<LogFormat>,
    /// `sd`: replaces `log-format-sd`.
    pub structured_data: Option<LogFormat>,
}

/// The step of an `on` line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProfileStep {
    /// One step.
    Step(LogStep),
    /// Sessions that fail before there is a request.
    Error,
    /// All that no other line names.
    Any,
}

impl ProfileStep {
    /// The step of that word.
    pub fn of_word(word: &str) -> Option<ProfileStep> {
        match word {
            "error" => Some(ProfileStep::Error),
            "any" => Some(ProfileStep::Any),
            word => LogStep::of_word(word).map(ProfileStep::Step),
        }
    }
}

impl LogProfile {
    /// A profile that changes nothing.
    pub fn named(name: &str) -> LogProfile {
        LogProfile {
            name: name.to_owned(),
            ..LogProfile::default()
        }
    }

    /// What is said of a step, to be changed. There is something from then on: `any` does not count
    /// for the step any more.
    pub fn line_mut(&mut self, step: ProfileStep) -> &mut StepLine {
        let line = match step {
            ProfileStep::Step(step) => &mut self.steps[step as usize],
            ProfileStep::Error => &mut self.error,
            ProfileStep::Any => &mut self.any,
        };
        line.get_or_insert_default()
    }

    /// What is said of a line of that origin; `None` when the profile changes nothing of it.
    pub fn line(&self, origin: LogOrigin) -> Option<&StepLine> {
        let line = match origin {
            LogOrigin::Step(step) => &self.steps[step as usize],
            LogOrigin::SessionError | LogOrigin::SessionKilled => &self.error,
        };
        line.as_ref().or(self.any.as_ref()).map(|line| &**line)
    }

    /// Every format of it, to be linked.
    pub fn formats_mut(&mut self) -> impl Iterator<Item = &mut LogFormat> {
        let lines = self
            .steps
            .iter_mut()
            .chain([&mut self.error, &mut self.any]);
        lines.flatten().flat_map(|line| {
            let StepLine {
                is_dropped: _,
                format,
                structured_data,
            } = &mut **line;
            format.iter_mut().chain(structured_data.iter_mut())
        })
    }

    /// What must be there for its formats to be written.
    pub fn needs(&self) -> Needs {
        let lines = self.steps.iter().chain([&self.error, &self.any]).flatten();
        let formats = lines.flat_map(|line| line.format.iter().chain(&line.structured_data));
        formats.fold(Needs::NONE, |all, format| all | format.needs())
    }
}

/// Returns the profile of a name.
pub(crate) type Profiles<'a> = dyn FnMut(&str) -> Option<Arc<LogProfile>> + 'a;

#[cfg(test)]
mod tests {
    use ballast_expr::Usage;

    use super::*;

    fn text(line: Option<&StepLine>) -> Option<&str> {
        line?.format.as_ref()?.as_literal()
    }

    #[test]
    fn the_line_of_a_step_goes_before_that_of_all() {
        let mut profile = LogProfile::named("p");
        let format = |text: &str| LogFormat::parse(text, Usage::Log).ok();
        let request = LogOrigin::Step(LogStep::Request);
        assert!(profile.line(request).is_none());
        profile.line_mut(ProfileStep::Any).format = format("any");
        profile.line_mut(ProfileStep::Error).format = format("error");
        profile
            .line_mut(ProfileStep::Step(LogStep::Close))
            .is_dropped = true;
        assert_eq!(text(profile.line(request)), Some("any"));
        assert_eq!(text(profile.line(LogOrigin::SessionError)), Some("error"));
        let close = profile.line(LogOrigin::Step(LogStep::Close));
        assert!(close.is_some_and(|line| line.is_dropped && line.format.is_none()));
        assert_eq!(profile.formats_mut().count(), 2);
    }

    #[test]
    fn words_of_steps_are_read_back() {
        for step in LogStep::ALL {
            assert_eq!(LogStep::of_word(step.word()), Some(step));
            assert!(LogSteps::ALL.has(step));
            assert!(!LogSteps::default().has(step));
        }
        let mut steps = LogSteps::default();
        steps.insert(LogStep::TcpResponse);
        steps.insert(LogStep::Accept);
        let known = LogStep::ALL.into_iter().filter(|step| steps.has(*step));
        assert_eq!(
            known.map(LogStep::word).collect::<Vec<_>>(),
            ["accept", "tcp-res-cont"]
        );
        assert_eq!(LogStep::of_word("any"), None);
        assert_eq!(ProfileStep::of_word("any"), Some(ProfileStep::Any));
        assert_eq!(LogOrigin::Step(LogStep::Close).text(), "txn_close");
        assert_eq!(LogOrigin::Step(LogStep::HttpRequest).text(), "http-req");
    }
}
