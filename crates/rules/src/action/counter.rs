//! `track-sc*`, `sc-*`: sticky counters.

use std::sync::Arc;

use ballast_expr::{
    Expr, ExpressionError, LinkSlot, Linker, Needs, SampleKind, Value, key_of, kind_of_keys,
};
use ballast_stick::DataType;

use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::reference::RuleReference;
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::transaction::EntryChange;

/// Where the entry of a counter may be changed.
const CHANGE_PLACES: RuleSetFlags = RuleSetFlags::of(&[
    RuleSetKind::TcpConnection,
    RuleSetKind::TcpSession,
    RuleSetKind::TcpContent,
    RuleSetKind::TcpResponse,
    RuleSetKind::HttpRequest,
    RuleSetKind::HttpResponse,
    RuleSetKind::HttpAfterResponse,
]);

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "track-sc",
        RuleSetFlags::of(&[
            RuleSetKind::TcpConnection,
            RuleSetKind::TcpSession,
            RuleSetKind::TcpContent,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
        ]),
        "<n> <key> [ table <table> ]",
        "follow a key's entry in a stick table",
        |args| boxed(track(args)),
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
    ActionRow::new(
        "sc-add-gpc",
        CHANGE_PLACES,
        "(<idx>,<sc-id>) { <int> | <expr> }",
        "add to a general purpose counter",
        |args| boxed(change(args, "sc-add-gpc", ChangeKind::Add, DataType::Gpc)),
    )
    .needs(Needs::TABLE)
    .parens()
    .examples(
        &["sc-add-gpc(0,1) 5", "sc-add-gpc(0,1) src,length if TRUE"],
        &[
            "sc-add-gpc(0,9) 5",
            "sc-add-gpc(0) 5",
            "sc-add-gpc(0,0) nothing",
        ],
    ),
    ActionRow::new(
        "sc-inc-gpc",
        CHANGE_PLACES,
        "(<idx>,<sc-id>)",
        "increment a general purpose counter",
        |args| {
            boxed(change(
                args,
                "sc-inc-gpc",
                ChangeKind::Increment,
                DataType::Gpc,
            ))
        },
    )
    .needs(Needs::TABLE)
    .parens()
    .examples(
        &["sc-inc-gpc(0,1)"],
        &["sc-inc-gpc(0,9)", "sc-inc-gpc(0)", "sc-inc-gpc"],
    ),
    ActionRow::new(
        "sc-inc-gpc0",
        CHANGE_PLACES,
        "(<sc-id>)",
        "increment the first general purpose counter",
        |args| {
            boxed(change(
                args,
                "sc-inc-gpc0",
                ChangeKind::Increment,
                DataType::Gpc0,
            ))
        },
    )
    .needs(Needs::TABLE)
    .parens()
    .examples(
        &["sc-inc-gpc0(1)", "sc-inc-gpc0"],
        &["sc-inc-gpc0(9)", "sc-inc-gpc0(a)"],
    ),
    ActionRow::new(
        "sc-inc-gpc1",
        CHANGE_PLACES,
        "(<sc-id>)",
        "increment the second general purpose counter",
        |args| {
            boxed(change(
                args,
                "sc-inc-gpc1",
                ChangeKind::Increment,
                DataType::Gpc1,
            ))
        },
    )
    .needs(Needs::TABLE)
    .parens()
    .examples(&["sc-inc-gpc1(1)"], &["sc-inc-gpc1(9)"]),
    ActionRow::new(
        "sc-set-gpt",
        CHANGE_PLACES,
        "(<idx>,<sc-id>) { <int> | <expr> }",
        "set a general purpose tag",
        |args| boxed(change(args, "sc-set-gpt", ChangeKind::Set, DataType::Gpt)),
    )
    .needs(Needs::TABLE)
    .parens()
    .examples(
        &["sc-set-gpt(0,1) 5", "sc-set-gpt(0,0) rand"],
        &["sc-set-gpt(0) 5"],
    ),
    ActionRow::new(
        "sc-set-gpt0",
        CHANGE_PLACES,
        "(<sc-id>) { <int> | <expr> }",
        "set the first general purpose tag",
        |args| boxed(change(args, "sc-set-gpt0", ChangeKind::Set, DataType::Gpt0)),
    )
    .needs(Needs::TABLE)
    .parens()
    .examples(
        &["sc-set-gpt0(1) 5"],
        &["sc-set-gpt0(9) 5", "sc-set-gpt0(1) nothing"],
    ),
];

/// `track-sc<n>`.
#[derive(Clone, Debug, PartialEq)]
struct Track {
    number: u32,
    key: Expr,
    /// Empty where it is the proxy's own, whose name linking fills in.
    table: String,
    own_table: LinkSlot<Arc<str>>,
}

fn track(args: &mut Args<'_, '_, '_>) -> Result<Track, ExpressionError> {
    const WORDS: [&str; 3] = ["track-sc0", "track-sc1", "track-sc2"];
    let head = args.head();
    let digits = &head["track-sc".len()..];
    let max = args.env.stick_counters.saturating_sub(1);
    let wrong = |message| ExpressionError::new(message, "track-sc".len()..head.len());
    let number = match digits {
        // HAProxy reads a missing number as the first counter.
        "" => 0,
        _ => digits
            .parse::<u32>()
            .map_err(|_| wrong(format!("Wrong track-sc number '{digits}'")))?,
    };
    if number >= args.env.stick_counters {
        return Err(wrong(format!(
            "{number} track-sc number exceeding {max} (tune.stick-counters-1) value"
        )));
    }
    if let Some(word) = usize::try_from(number)
        .ok()
        .and_then(|number| WORDS.get(number))
    {
        args.set_word(word);
    }
    let key = args.expr()?;
    let mut table = None;
    if args.take("table") {
        table = Some(args.text("missing table name")?.to_owned());
    }
    args.refer_to(RuleReference::Table {
        name: table.clone(),
        rule: head.to_owned(),
        key: key.kind,
    });
    Ok(Track {
        number,
        key,
        table: table.unwrap_or_default(),
        own_table: LinkSlot::empty(),
    })
}

impl Perform for Track {
    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        if self.table.is_empty() {
            self.own_table.fill(linker.store.own_table());
        }
        self.key.link(linker)
    }

    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        let table = match self.own_table.filled() {
            Some(own) if self.table.is_empty() => own,
            _ => self.table.as_str(),
        };
        let (mut kind, mut is_tracked) = (None, false);
        run_state.transaction.with_facts(&mut |facts| {
            is_tracked = facts.tracked(self.number).is_some();
            kind = facts
                .table(table)
                .map(|table| kind_of_keys(table.key_type()));
        });
        let Some(kind) = kind.filter(|_| !is_tracked) else {
            return ActionOutcome::Next;
        };
        let key = match run_state.evaluate_as_or_wait(&self.key, kind) {
            Ok(Some(key)) => key,
            // A key without a value is not tracked.
            Ok(None) => return ActionOutcome::Next,
            Err(needs) => return ActionOutcome::NotYet(needs),
        };
        let key = key_of(key.value(run_state.workspace));
        run_state.transaction.track(self.number, table, key);
        ActionOutcome::Next
    }
}

/// `sc-add-gpc`, `sc-inc-*`, `sc-set-gpt*`.
#[derive(Clone, Debug, PartialEq)]
struct ChangeCounter {
    number: u32,
    kind: ChangeKind,
    data: DataType,
    element: u16,
    value: ChangeValue,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ChangeKind {
    Add,
    Increment,
    Set,
}

#[derive(Clone, Debug, PartialEq)]
enum ChangeValue {
    Number(u32),
    Expr(Box<Expr>),
}

fn change(
    args: &mut Args<'_, '_, '_>,
    word: &'static str,
    kind: ChangeKind,
    data: DataType,
) -> Result<ChangeCounter, ExpressionError> {
    let is_array = matches!(data, DataType::Gpc | DataType::Gpt);
    let (element, number) = numbers(args, word, is_array)?;
    let value = match (kind, args.peek()) {
        (ChangeKind::Increment, _) => ChangeValue::Number(1),
        // HAProxy reads a missing number as 0.
        (_, None) => ChangeValue::Number(0),
        (_, Some(text)) => match text.parse::<i64>() {
            Ok(value) => {
                args.next();
                ChangeValue::Number(low_bits(value))
            }
            Err(_) => ChangeValue::Expr(Box::new(args.expr()?)),
        },
    };
    Ok(ChangeCounter {
        number,
        kind,
        data,
        element,
        value,
    })
}

/// The numbers between the parentheses: the element of an array, and the counter.
fn numbers(
    args: &Args<'_, '_, '_>,
    word: &'static str,
    is_array: bool,
) -> Result<(u16, u32), ExpressionError> {
    if !is_array && args.head() == word {
        return Ok((0, 0));
    }
    let expects = match is_array {
        true => "<idx>,<sc-id>",
        false => "<sc-id>",
    };
    let all = args.paren_args(&format!("{word}({expects})"))?;
    if all.len() != 1 + usize::from(is_array) {
        return Err(ExpressionError::new(
            format!("expects {word}({expects})"),
            0..args.head().len(),
        ));
    }
    let max = args.env.stick_counters.saturating_sub(1);
    let (mut element, mut number) = (0, 0);
    for (index, (text, at)) in all.iter().enumerate() {
        let range = *at..at + text.len();
        let value = text.parse::<u32>().map_err(|_| {
            let message = format!("invalid stick table track ID. Expects {word}({expects})");
            ExpressionError::new(message, range.clone())
        })?;
        if index + 1 < all.len() {
            // An index that no array has.
            element = u16::try_from(value).unwrap_or(u16::MAX);
            continue;
        }
        if value >= args.env.stick_counters {
            let message = format!(
                "invalid stick table track ID. The max allowed ID is {max} (tune.stick-counters)."
            );
            return Err(ExpressionError::new(message, range));
        }
        number = value;
    }
    Ok((element, number))
}

/// The lower 32 bits, as HAProxy stores a number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the lower bits are meant"
)]
const fn low_bits(value: i64) -> u32 {
    value as u32
}

impl Perform for ChangeCounter {
    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        match &mut self.value {
            ChangeValue::Expr(expr) => expr.link(linker),
            ChangeValue::Number(_) => Ok(()),
        }
    }

    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        let amount = match &self.value {
            ChangeValue::Number(value) => *value,
            ChangeValue::Expr(expr) => match run_state.evaluate_as(expr, SampleKind::Int) {
                Some(held) => match held.value(run_state.workspace) {
                    Value::Int(value) => low_bits(value),
                    _ => return ActionOutcome::Next,
                },
                // An expression without a value changes nothing.
                None => return ActionOutcome::Next,
            },
        };
        let (data, element) = (self.data, self.element);
        let change = match self.kind {
            ChangeKind::Add | ChangeKind::Increment => EntryChange::Add {
                data,
                element,
                amount,
            },
            ChangeKind::Set => EntryChange::Set {
                data,
                element,
                value: amount,
            },
        };
        run_state.transaction.change_tracked(self.number, change);
        ActionOutcome::Next
    }
}
