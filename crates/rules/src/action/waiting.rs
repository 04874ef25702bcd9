//! Actions about waiting and retrying: `set-timeout`, `pause`, `wait-for-*`, `set-retries`,
//! `disable-l7-retry`.

use std::time::Duration;

use ballast_expr::{Expr, ExpressionError, Linker, Needs};

use crate::args::Args;
use crate::perform::{ParsedAction, Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::setting::{ExchangeSetting, SettableTimeout};
use crate::units::{DELAY_MS_MAX, parse_delay, parse_size, warning_of_delay};

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "set-timeout",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest, RuleSetKind::HttpResponse]),
        "{ client | connect | queue | server | tunnel } { <timeout> | <expr> }",
        "set a timeout of this exchange",
        set_timeout,
    )
    .examples(
        &["set-timeout server 5s", "set-timeout tunnel rand"],
        &[
            "set-timeout server",
            "set-timeout server 0",
            "set-timeout check 5s",
            "set-timeout",
        ],
    ),
    ActionRow::new(
        "pause",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest, RuleSetKind::HttpResponse]),
        "{ <timeout> | <expr> }",
        "wait before the next rule",
        pause,
    )
    .needs(Needs::TIME)
    .examples(
        &["pause 10ms", "pause rand(100)"],
        &["pause", "pause never", "pause 0", "pause -1"],
    ),
    ActionRow::new(
        "wait-for-body",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest, RuleSetKind::HttpResponse]),
        "time <time> [ at-least <bytes> ]",
        "wait for the body before the next rule",
        |args| boxed(wait_for_body(args)),
    )
    .needs(Needs::AWAITED_BODY.and(Needs::TIME))
    .examples(
        &["wait-for-body time 1s at-least 1k if TRUE"],
        &[
            "wait-for-body",
            "wait-for-body time",
            "wait-for-body at-least 1k",
            "wait-for-body time x",
        ],
    ),
    ActionRow::new(
        "wait-for-handshake",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        "",
        "wait for the end of the handshake before the next rule, where early data came",
        |_| boxed(Ok(WaitForHandshake)),
    )
    .needs(Needs::HANDSHAKE)
    .examples(&["wait-for-handshake"], &["wait-for-handshake now"]),
    ActionRow::new(
        "disable-l7-retry",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        "",
        "never send this request twice",
        |_| boxed(Ok(DisableL7Retry)),
    )
    .examples(
        &["disable-l7-retry unless METH_GET"],
        &["disable-l7-retry now"],
    ),
    ActionRow::new(
        "set-retries",
        RuleSetFlags::of(&[RuleSetKind::TcpContent, RuleSetKind::HttpRequest]),
        "{ <int> | <expr> }",
        "set how often a connection is tried again",
        set_retries,
    )
    .examples(
        &["set-retries 3", "set-retries var(txn.n)"],
        &["set-retries", "set-retries 101", "set-retries -1"],
    ),
];

/// `wait-for-handshake`.
#[derive(Clone, Debug, PartialEq)]
struct WaitForHandshake;

impl Perform for WaitForHandshake {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        if run_state.action_has_waited {
            ActionOutcome::Next
        } else {
            ActionOutcome::Wait(Needs::HANDSHAKE, None)
        }
    }
}

/// A time, or what gives it in milliseconds.
#[derive(Clone, Debug, PartialEq)]
enum Delay {
    Fixed(Duration),
    Of(Expr),
}

impl Delay {
    fn parse(args: &mut Args<'_, '_, '_>) -> Result<Delay, ExpressionError> {
        let text = args.peek().unwrap_or_default();
        match parse_delay(text) {
            Ok(time) if time.is_zero() => Err(args.error(format!(
                "null value is not valid for a '{}' rule",
                args.head()
            ))),
            Ok(time) => {
                let warning = warning_of_delay(text);
                args.next();
                warning.into_iter().for_each(|text| args.warn(text));
                Ok(Delay::Fixed(time))
            }
            Err(error) if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                Err(error.in_word(args.at()))
            }
            Err(_) => args.expr().map(Delay::Of),
        }
    }

    /// The time; `None` where the expression has no value, or none above zero.
    fn time(&self, run_state: &mut RunState<'_>) -> Option<Duration> {
        match self {
            Delay::Fixed(time) => Some(*time),
            Delay::Of(expr) => {
                let ms = u64::try_from(run_state.integer(expr)?).ok()?;
                let ms = ms.min(DELAY_MS_MAX);
                (ms > 0).then(|| Duration::from_millis(ms))
            }
        }
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        match self {
            Delay::Fixed(_) => Ok(()),
            Delay::Of(expr) => expr.link(linker),
        }
    }
}

/// `set-timeout`.
#[derive(Clone, Debug, PartialEq)]
struct SetTimeout {
    which: SettableTimeout,
    time: Delay,
}

fn set_timeout(args: &mut Args<'_, '_, '_>) -> ParsedAction {
    const EXPECTS_TWO: &str = "expects exactly 2 arguments";
    const KNOWN: [(&str, SettableTimeout); 5] = [
        ("client", SettableTimeout::Client),
        ("connect", SettableTimeout::Connect),
        ("queue", SettableTimeout::Queue),
        ("server", SettableTimeout::Server),
        ("tunnel", SettableTimeout::Tunnel),
    ];
    let word = args.text(EXPECTS_TWO)?;
    let Some((_, which)) = KNOWN.into_iter().find(|(known, _)| *known == word) else {
        return Err(args.unknown("timeout", KNOWN.map(|(known, _)| known)));
    };
    let capability = args.env.capability;
    let lacking = match which {
        SettableTimeout::Client => (!capability.frontend).then_some("frontend"),
        _ => (!capability.backend).then_some("backend"),
    };
    if let Some(lacking) = lacking {
        let title = args.env.title;
        return Err(args.error_before(format!("{title} has no {lacking} capability")));
    }
    if args.is_at_end() {
        return Err(args.error(EXPECTS_TWO));
    }
    let time = Delay::parse(args)?;
    boxed(Ok(SetTimeout { which, time }))
}

impl Perform for SetTimeout {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        if let Some(time) = self.time.time(run_state) {
            let setting = ExchangeSetting::Timeout(self.which, time);
            run_state.transaction.set(setting);
        }
        ActionOutcome::Next
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.time.link(linker)
    }
}

/// `pause`.
#[derive(Clone, Debug, PartialEq)]
struct Pause(Delay);

fn pause(args: &mut Args<'_, '_, '_>) -> ParsedAction {
    if args.is_at_end() {
        return Err(args.error("expects exactly 1 argument (a delay or an expression)"));
    }
    boxed(Delay::parse(args).map(Pause))
}

impl Perform for Pause {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        if run_state.action_has_waited {
            return ActionOutcome::Next;
        }
        match self.0.time(run_state) {
            Some(time) => ActionOutcome::Wait(Needs::TIME, Some(time)),
            None => ActionOutcome::Next,
        }
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.0.link(linker)
    }
}

/// `disable-l7-retry`.
#[derive(Clone, Debug, PartialEq)]
struct DisableL7Retry;

impl Perform for DisableL7Retry {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        run_state.transaction.set(ExchangeSetting::DisableL7Retry);
        ActionOutcome::Next
    }
}

/// `set-retries`.
#[derive(Clone, Debug, PartialEq)]
enum SetRetries {
    Fixed(u32),
    Of(Expr),
}

/// The most retries that a rule sets.
const RETRY_COUNT_MAX: u32 = 100;

fn set_retries(args: &mut Args<'_, '_, '_>) -> ParsedAction {
    if !args.env.capability.backend {
        let title = args.env.title;
        return Err(args.error(format!("{title} has no backend capability")));
    }
    const EXPECTS: &str = "expects an expression or an integer between 0 and 100";
    let Some(word) = args.peek().filter(|_| !args.is_at_end()) else {
        return Err(args.error(EXPECTS));
    };
    match word.parse::<i64>() {
        Ok(count) => {
            let count = u32::try_from(count).ok();
            let count = count.filter(|count| *count <= RETRY_COUNT_MAX);
            let count = count.ok_or_else(|| args.error(EXPECTS))?;
            args.next();
            boxed(Ok(SetRetries::Fixed(count)))
        }
        Err(_) => boxed(args.expr().map(SetRetries::Of)),
    }
}

impl Perform for SetRetries {
    /// A value that is no number of retries sets nothing.
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        let count = match self {
            SetRetries::Fixed(count) => Some(*count),
            SetRetries::Of(expr) => {
                let value = run_state.integer(expr).map(u32::try_from);
                value.and_then(Result::ok)
            }
        };
        if let Some(count) = count.filter(|count| *count <= RETRY_COUNT_MAX) {
            run_state
                .transaction
                .set(ExchangeSetting::RetryCountMax(count));
        }
        ActionOutcome::Next
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        match self {
            SetRetries::Fixed(_) => Ok(()),
            SetRetries::Of(expr) => expr.link(linker),
        }
    }
}

/// `wait-for-body`.
#[derive(Clone, Debug, PartialEq)]
struct WaitForBody {
    /// For how long; without limit if `None`.
    time: Option<Duration>,
    /// For how many bytes; for all of it if 0.
    bytes_min: u64,
}

fn wait_for_body(args: &mut Args<'_, '_, '_>) -> Result<WaitForBody, ExpressionError> {
    let (mut time, mut bytes_min) = (None, 0);
    loop {
        let word = args.peek().unwrap_or_default();
        if !matches!(word, "time" | "at-least") {
            break;
        }
        args.next();
        let text = args.text(&format!("missing argument for '{word}'"))?;
        let at = args.at() - 1;
        if word == "time" {
            time = Some(parse_delay(text).map_err(|error| error.in_word(at))?);
            warning_of_delay(text)
                .into_iter()
                .for_each(|text| args.warn(text));
        } else {
            bytes_min = parse_size(text).map_err(|error| error.in_word(at))?;
        }
    }
    let Some(time) = time else {
        return Err(args.error("expects time <time> [ at-least <bytes> ]"));
    };
    Ok(WaitForBody {
        time: Some(time).filter(|time| !time.is_zero()),
        bytes_min,
    })
}

impl Perform for WaitForBody {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        if run_state.action_has_waited {
            ActionOutcome::Next
        } else {
            ActionOutcome::WaitForBody(self.bytes_min, self.time)
        }
    }
}
