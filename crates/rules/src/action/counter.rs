//! `track-sc*`, `sc-*`: sticky counters.

use ballast_expr::Error;

use super::{Action, Unserved};
use crate::args::Args;
use crate::reference::Reference;
use crate::row::Row;

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "track-sc",
        ".XXX.XX.",
        "<n> <key> [ table <table> ]",
        "follow a key's entry in a stick table",
        track,
    )
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
    Row::new(
        "sc-add-gpc",
        ".XXXXXXX",
        "(<idx>,<sc-id>) { <int> | <expr> }",
        "add to a general purpose counter",
        |args| counter(args, "sc-add-gpc", 2, true),
    )
    .parens()
    .examples(
        &["sc-add-gpc(0,1) 5"],
        &["sc-add-gpc(0,9) 5", "sc-add-gpc(0,0)"],
    ),
    Row::new(
        "sc-inc-gpc",
        ".XXXXXXX",
        "(<idx>,<sc-id>)",
        "increment a general purpose counter",
        |args| counter(args, "sc-inc-gpc", 2, false),
    )
    .parens()
    .examples(
        &["sc-inc-gpc(0,1)"],
        &["sc-inc-gpc(0,9)", "sc-inc-gpc(0)", "sc-inc-gpc"],
    ),
    Row::new(
        "sc-inc-gpc0",
        ".XXXXXXX",
        "(<sc-id>)",
        "increment the first general purpose counter",
        |args| counter(args, "sc-inc-gpc0", 1, false),
    )
    .parens()
    .examples(
        &["sc-inc-gpc0(1)", "sc-inc-gpc0"],
        &["sc-inc-gpc0(9)", "sc-inc-gpc0(a)"],
    ),
    Row::new(
        "sc-inc-gpc1",
        ".XXXXXXX",
        "(<sc-id>)",
        "increment the second general purpose counter",
        |args| counter(args, "sc-inc-gpc1", 1, false),
    )
    .parens()
    .examples(&["sc-inc-gpc1(1)"], &["sc-inc-gpc1(9)"]),
    Row::new(
        "sc-set-gpt",
        ".XXXXXXX",
        "(<idx>,<sc-id>) { <int> | <expr> }",
        "set a general purpose tag",
        |args| counter(args, "sc-set-gpt", 2, true),
    )
    .parens()
    .examples(
        &["sc-set-gpt(0,1) 5", "sc-set-gpt(0,0) rand"],
        &["sc-set-gpt(0) 5"],
    ),
    Row::new(
        "sc-set-gpt0",
        ".XXXXXXX",
        "(<sc-id>) { <int> | <expr> }",
        "set the first general purpose tag",
        |args| counter(args, "sc-set-gpt0", 1, true),
    )
    .parens()
    .examples(
        &["sc-set-gpt0(1) 5"],
        &["sc-set-gpt0(9) 5", "sc-set-gpt0(1) nothing"],
    ),
];

fn track(args: &mut Args<'_, '_, '_>) -> Result<Action, Error> {
    const WORDS: [&str; 3] = ["track-sc0", "track-sc1", "track-sc2"];
    let head = args.head();
    let digits = &head["track-sc".len()..];
    let max = args.env.stick_counters.saturating_sub(1);
    let wrong = |message| Error::new(message, "track-sc".len()..head.len());
    let number = match digits {
        // HAProxy takes a missing number for the first counter.
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
    let word = usize::try_from(number)
        .ok()
        .and_then(|number| WORDS.get(number));
    let expr = args.expr()?;
    let mut table = None;
    if args.take("table") {
        table = Some(args.text("missing table name")?.to_owned());
    }
    Unserved::of(word.copied().unwrap_or("track-sc"))
        .expr(expr)
        .names(Reference::Table(table))
        .done()
}

fn counter(
    args: &mut Args<'_, '_, '_>,
    word: &'static str,
    numbers: usize,
    valued: bool,
) -> Result<Action, Error> {
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
    let mut unserved = Unserved::of(word);
    if valued {
        match args.peek().map(str::parse::<i64>) {
            Some(Ok(_)) => {
                args.next();
            }
            Some(Err(_)) if !args.ends() => unserved = unserved.expr(args.expr()?),
            _ => return Err(args.error(format!("'{word}' expects an integer or an expression"))),
        }
    }
    unserved.done()
}
