//! Actions about waiting and retrying: `set-timeout`, `pause`, `wait-for-*`, `set-retries`,
//! `disable-l7-retry`, `set-priority-*`.

use ballast_expr::{Error, Needs};

use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::row::ActionRow;
use crate::ruleset::{RuleSet, RuleSetFlags};
use crate::stage::{ActionOutcome, Stage};
use crate::units::{parse_delay, parse_size};

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::unimplemented(
        "set-timeout",
        RuleSetFlags::of(&[RuleSet::HttpRequest, RuleSet::HttpResponse]),
        "{ client | connect | queue | server | tarpit | tunnel } { <timeout> | <expr> }",
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
    ActionRow::unimplemented(
        "pause",
        RuleSetFlags::of(&[RuleSet::HttpRequest, RuleSet::HttpResponse]),
        "{ <timeout> | <expr> }",
        "wait before the next rule",
        delay_or_expr,
    )
    .needs(Needs::TIME)
    .examples(
        &["pause 10ms", "pause rand(100)"],
        &["pause", "pause never"],
    ),
    ActionRow::unimplemented(
        "wait-for-body",
        RuleSetFlags::of(&[RuleSet::HttpRequest, RuleSet::HttpResponse]),
        "time <time> [ at-least <bytes> ]",
        "wait for the body before the next rule",
        wait_for_body,
    )
    .needs(Needs::REQUEST_BODY.and(Needs::TIME))
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
        RuleSetFlags::of(&[RuleSet::HttpRequest]),
        "",
        "wait for the end of the handshake before the next rule, where early data came",
        |_| boxed(Ok(WaitForHandshake)),
    )
    .needs(Needs::HANDSHAKE)
    .examples(&["wait-for-handshake"], &["wait-for-handshake now"]),
    ActionRow::unimplemented(
        "disable-l7-retry",
        RuleSetFlags::of(&[RuleSet::HttpRequest]),
        "",
        "never send this request twice",
        |_| Ok(()),
    )
    .examples(
        &["disable-l7-retry unless METH_GET"],
        &["disable-l7-retry now"],
    ),
    ActionRow::unimplemented(
        "set-retries",
        RuleSetFlags::of(&[RuleSet::TcpContent, RuleSet::HttpRequest]),
        "{ <int> | <expr> }",
        "set how often a connection is tried again",
        |args| {
            if args.peek().is_some_and(|word| word.parse::<u8>().is_ok()) {
                args.next();
                return Ok(());
            }
            args.expr().map(drop)
        },
    )
    .examples(
        &["set-retries 3", "set-retries var(txn.n)"],
        &["set-retries"],
    ),
    ActionRow::unimplemented(
        "set-priority-class",
        RuleSetFlags::of(&[RuleSet::TcpContent, RuleSet::HttpRequest]),
        "<expr>",
        "set the class in the queue",
        |args| args.expr().map(drop),
    )
    .examples(&["set-priority-class int(5)"], &["set-priority-class"]),
    ActionRow::unimplemented(
        "set-priority-offset",
        RuleSetFlags::of(&[RuleSet::TcpContent, RuleSet::HttpRequest]),
        "<expr>",
        "set the place in the queue, in milliseconds",
        |args| args.expr().map(drop),
    )
    .examples(&["set-priority-offset int(5)"], &["set-priority-offset"]),
];

/// `wait-for-handshake`.
#[derive(Clone, Debug, PartialEq)]
struct WaitForHandshake;

impl Perform for WaitForHandshake {
    fn perform(&self, stage: &mut Stage<'_>) -> ActionOutcome {
        if stage.waited {
            ActionOutcome::Next
        } else {
            ActionOutcome::Wait(Needs::HANDSHAKE, None)
        }
    }
}

fn set_timeout(args: &mut Args<'_, '_, '_>) -> Result<(), Error> {
    const EXPECTS_TWO: &str = "expects exactly 2 arguments";
    let which = args.text(EXPECTS_TWO)?;
    if !matches!(
        which,
        "client" | "connect" | "queue" | "server" | "tarpit" | "tunnel"
    ) {
        let hint = ballast_expr::nearest(which, ["client", "server", "tunnel"]);
        return Err(args
            .error_before(format!(
                "'set-timeout' rule supports 'client'/'connect'/'queue'/'server'/'tarpit'/'tunnel' \
                 (got '{which}')"
            ))
            .with_hint(hint));
    }
    let capability = args.env.capability;
    let lacking = match which {
        "client" if !capability.frontend => Some("frontend"),
        "connect" | "queue" | "server" | "tunnel" if !capability.backend => Some("backend"),
        _ => None,
    };
    if let Some(lacking) = lacking {
        let title = args.env.title;
        return Err(args.error_before(format!("{title} has no {lacking} capability")));
    }
    if args.is_at_end() {
        return Err(args.error(EXPECTS_TWO));
    }
    if args
        .peek()
        .is_some_and(|text| parse_delay(text).is_ok_and(|time| time.is_zero()))
    {
        return Err(args.error(format!(
            "null value is not valid for a 'set-timeout {which}' rule"
        )));
    }
    delay_or_expr(args)
}

fn delay_or_expr(args: &mut Args<'_, '_, '_>) -> Result<(), Error> {
    let text = args.peek().unwrap_or_default();
    match parse_delay(text) {
        Ok(_) => {
            args.next();
            Ok(())
        }
        Err(error) if text.starts_with(|c: char| c.is_ascii_digit()) => {
            Err(error.in_word(args.at()))
        }
        Err(_) => args.expr().map(drop),
    }
}

fn wait_for_body(args: &mut Args<'_, '_, '_>) -> Result<(), Error> {
    let mut timed = false;
    loop {
        let word = args.peek().unwrap_or_default();
        if !matches!(word, "time" | "at-least") {
            break;
        }
        args.next();
        let text = args.text(&format!("missing argument for '{word}'"))?;
        let at = args.at() - 1;
        if word == "time" {
            timed = true;
            parse_delay(text).map(|_| ())
        } else {
            parse_size(text).map(|_| ())
        }
        .map_err(|error| error.in_word(at))?;
    }
    if timed {
        Ok(())
    } else {
        Err(args.error("expects time <time> [ at-least <bytes> ]"))
    }
}
