//! `track-sc*`, `sc-*`: sticky counters.

use ballast_expr::{Error, Needs};

use crate::args::Args;
use crate::reference::Reference;
use crate::row::ActionRow;
use crate::ruleset::{RuleSet, RuleSetFlags};

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::unimplemented(
        "track-sc",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
        ]),
        "<n> <key> [ table <table> ]",
        "follow a key's entry in a stick table",
        track,
    )
    .needs(Needs::TABLE)
    .prefix()
    .examples(
        &["track-sc0 src", "track-sc1 src,ipmask(24) table t if TRUE"],
        &[
            "track-sc0",
            "track-sc9 src",
            "track-scx src",
            "track-sc0 src table",
        ],
    ),
    ActionRow::unimplemented(
        "sc-add-gpc",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
            RuleSet::HttpAfterResponse,
        ]),
        "(<idx>,<sc-id>) { <int> | <expr> }",
        "add to a general purpose counter",
        |args| counter(args, "sc-add-gpc", 2, true),
    )
    .needs(Needs::TABLE)
    .parens()
    .examples(
        &["sc-add-gpc(0,1) 5"],
        &["sc-add-gpc(0,9) 5", "sc-add-gpc(0,0)"],
    ),
    ActionRow::unimplemented(
        "sc-inc-gpc",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
            RuleSet::HttpAfterResponse,
        ]),
        "(<idx>,<sc-id>)",
        "increment a general purpose counter",
        |args| counter(args, "sc-inc-gpc", 2, false),
    )
    .needs(Needs::TABLE)
    .parens()
    .examples(
        &["sc-inc-gpc(0,1)"],
        &["sc-inc-gpc(0,9)", "sc-inc-gpc(0)", "sc-inc-gpc"],
    ),
    ActionRow::unimplemented(
        "sc-inc-gpc0",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
            RuleSet::HttpAfterResponse,
        ]),
        "(<sc-id>)",
        "increment the first general purpose counter",
        |args| counter(args, "sc-inc-gpc0", 1, false),
    )
    .needs(Needs::TABLE)
    .parens()
    .examples(
        &["sc-inc-gpc0(1)", "sc-inc-gpc0"],
        &["sc-inc-gpc0(9)", "sc-inc-gpc0(a)"],
    ),
    ActionRow::unimplemented(
        "sc-inc-gpc1",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
            RuleSet::HttpAfterResponse,
        ]),
        "(<sc-id>)",
        "increment the second general purpose counter",
        |args| counter(args, "sc-inc-gpc1", 1, false),
    )
    .needs(Needs::TABLE)
    .parens()
    .examples(&["sc-inc-gpc1(1)"], &["sc-inc-gpc1(9)"]),
    ActionRow::unimplemented(
        "sc-set-gpt",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
            RuleSet::HttpAfterResponse,
        ]),
        "(<idx>,<sc-id>) { <int> | <expr> }",
        "set a general purpose tag",
        |args| counter(args, "sc-set-gpt", 2, true),
    )
    .needs(Needs::TABLE)
    .parens()
    .examples(
        &["sc-set-gpt(0,1) 5", "sc-set-gpt(0,0) rand"],
        &["sc-set-gpt(0) 5"],
    ),
    ActionRow::unimplemented(
        "sc-set-gpt0",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
            RuleSet::HttpAfterResponse,
        ]),
        "(<sc-id>) { <int> | <expr> }",
        "set the first general purpose tag",
        |args| counter(args, "sc-set-gpt0", 1, true),
    )
    .needs(Needs::TABLE)
    .parens()
    .examples(
        &["sc-set-gpt0(1) 5"],
        &["sc-set-gpt0(9) 5", "sc-set-gpt0(1) nothing"],
    ),
];

fn track(args: &mut Args<'_, '_, '_>) -> Result<(), Error> {
    const WORDS: [&str; 3] = ["track-sc0", "track-sc1", "track-sc2"];
    let head = args.head();
    let digits = &head["track-sc".len()..];
    let max = args.env.stick_counters.saturating_sub(1);
    let wrong = |message| Error::new(message, "track-sc".len()..head.len());
    let number = match digits {
        // HAProxy reads a missing number as the first counter.
        "" => 0,
        _ => digits
            .parse::<u32>()
            .map_err(|_| wrong(format!("Wrong track-sc number '{digits}'")))?,
    };
    if number > max {
        return Err(wrong(format!(
            "{number} track-sc number exceeding {max} (tune.stick-counters - 1) value"
        )));
    }
    if let Some(word) = usize::try_from(number)
        .ok()
        .and_then(|number| WORDS.get(number))
    {
        args.named(word);
    }
    args.expr()?;
    let mut table = None;
    if args.take("table") {
        table = Some(args.text("missing table name")?.to_owned());
    }
    args.refer_to(Reference::Table(table));
    Ok(())
}

fn counter(
    args: &mut Args<'_, '_, '_>,
    word: &'static str,
    numbers: usize,
    valued: bool,
) -> Result<(), Error> {
    if numbers == 2 || args.head() != word {
        let expects = if numbers == 2 {
            "<idx>,<sc-id>"
        } else {
            "<sc-id>"
        };
        let all = args.paren_args(&format!("{word}({expects})"))?;
        if all.len() != numbers {
            return Err(Error::new(
                format!("expects {word}({expects})"),
                0..args.head().len(),
            ));
        }
        let max = args.env.stick_counters.saturating_sub(1);
        for (place, (text, at)) in all.iter().enumerate() {
            let id = text.parse::<u32>().map_err(|_| {
                Error::new(
                    format!("invalid stick table track ID. Expects {word}({expects})"),
                    *at..at + text.len(),
                )
            })?;
            if place + 1 == numbers && id > max {
                return Err(Error::new(
                    format!("invalid stick table track ID. The max allowed ID is {max}"),
                    *at..at + text.len(),
                ));
            }
        }
    }
    if valued {
        match args.peek().map(str::parse::<i64>) {
            Some(Ok(_)) => {
                args.next();
            }
            Some(Err(_)) if !args.is_at_end() => drop(args.expr()?),
            _ => return Err(args.error(format!("'{word}' expects an integer or an expression"))),
        }
    }
    Ok(())
}
