//! Parses the words of a line into a rule.

use ballast_expr::{Condition, ExpressionError, LinkSlot, MisplacedAcl, Phase, nearest};

use crate::action::{Action, action_rows_of, row};
use crate::args::Args;
use crate::parse_env::ParseEnv;
use crate::row::{ActionRow, ArgsParser};
use crate::rule::Rule;
use crate::rule_set_kind::RuleSetKind;

/// Parses the words that follow those of the rule set (`http-request`, `tcp-request content`,
/// `redirect` ...): the action, its arguments, and the condition.
///
/// # Errors
/// With the word, counted from the action's, and the byte range that is wrong; when all words are
/// missing, at word 0.
pub fn parse_rule(
    rule_set: RuleSetKind,
    words: &[&str],
    env: &mut ParseEnv<'_>,
) -> Result<Rule, ExpressionError> {
    let row = find(rule_set, words, env)?;
    let captures_before = (env.request_captures, env.new_captures.len());
    let parsed = parse_with(row, rule_set, words, env);
    if parsed.is_err() {
        env.request_captures = captures_before.0;
        env.new_captures.truncate(captures_before.1);
    }
    parsed.map_err(|error| within(error, words))
}

fn parse_with(
    row: &'static ActionRow,
    rule_set: RuleSetKind,
    words: &[&str],
    env: &mut ParseEnv<'_>,
) -> Result<Rule, ExpressionError> {
    let title = env.title;
    let mut args = Args::new(words, rule_set, env);
    let action =
        parse_action(row, &mut args).map_err(|error| in_rule(error, rule_set, words, title))?;
    let (at, rest) = (args.at(), args.rest());
    let condition = match rest.first() {
        None => None,
        Some(&("if" | "unless")) => {
            let condition = Condition::parse(rest, env.acls).map_err(|error| ExpressionError {
                message: format!(
                    "error detected while parsing an '{}' condition : {}",
                    name(rule_set, words),
                    error.message
                ),
                word: error.word + at,
                ..error
            })?;
            let never = condition.never_matches();
            env.warnings
                .extend(never.map(|text| ExpressionError::new(text, 0..rest[0].len()).in_word(at)));
            warn_misplaced(&condition, rule_set, at, rest, env);
            Some(condition)
        }
        Some(other) => {
            let hint = nearest(other, ["if", "unless"]).or_else(|| nearest(other, hints(row)));
            let message = format!(
                "'{}' expects either 'if' or 'unless' followed by a condition but found '{other}'",
                name(rule_set, words),
            );
            return Err(ExpressionError::new(message, 0..other.len())
                .in_word(at)
                .with_hint(hint));
        }
    };
    Ok(Rule {
        action,
        condition,
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        config_line: LinkSlot::empty(),
    })
}

/// Reads the action of `row`.
fn parse_action(
    row: &'static ActionRow,
    args: &mut Args<'_, '_, '_>,
) -> Result<Action, ExpressionError> {
    args.begin(row.word, row.needs);
    let action = match row.parse {
        ArgsParser::Implemented(parse) => parse(args)?,
        ArgsParser::Unimplemented(check) => {
            args.begin_unimplemented();
            check(args)?;
            args.finish_unimplemented()
        }
        ArgsParser::Refused(reason) => {
            return Err(args.error_before(format!("'{}' {reason}", row.word)));
        }
    };
    Ok(Action::new(row, action, args.requirements()))
}

/// The words in a row's own usage, for suggestions.
fn hints(row: &ActionRow) -> impl Iterator<Item = &'static str> {
    row.args
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
        .filter(|word| word.len() > 2)
}

/// The row of the action, which must be allowed in the rule set.
fn find(
    rule_set: RuleSetKind,
    words: &[&str],
    env: &ParseEnv<'_>,
) -> Result<&'static ActionRow, ExpressionError> {
    if rule_set == RuleSetKind::Redirect {
        return row("redirect").ok_or_else(|| ExpressionError::new("no row for 'redirect'", 0..0));
    }
    let word = words.first().copied().unwrap_or_default();
    let whole = 0..word.len();
    match row(word) {
        Some(row) if row.rule_sets.has(rule_set) => Ok(row),
        Some(row) => Err(ExpressionError::new(
            format!(
                "'{}' is not allowed in '{rule_set}' rules in {}; it may be used in: {}",
                row.word, env.title, row.rule_sets
            ),
            whole,
        )),
        None => {
            let all: Vec<String> = action_rows_of(rule_set)
                .map(ActionRow::shown_word)
                .collect();
            let got = if word.is_empty() {
                "'' (missing argument)".to_owned()
            } else {
                format!("'{word}'")
            };
            let hint = nearest(
                word.split('(').next().unwrap_or_default(),
                action_rows_of(rule_set).map(|row| row.word),
            );
            Err(ExpressionError::new(
                format!("'{rule_set}' expects {}, but got {got}", all.join(", ")),
                whole,
            )
            .with_hint(hint))
        }
    }
}

/// `http-request deny`, or `redirect` alone.
fn name(rule_set: RuleSetKind, words: &[&str]) -> String {
    match words.first() {
        Some(word) if rule_set != RuleSetKind::Redirect => format!("{rule_set} {word}"),
        _ => rule_set.to_string(),
    }
}

fn in_rule(
    error: ExpressionError,
    rule_set: RuleSetKind,
    words: &[&str],
    title: &str,
) -> ExpressionError {
    ExpressionError {
        message: format!(
            "error detected in {title} while parsing '{}' rule : {}",
            name(rule_set, words),
            error.message
        ),
        ..error
    }
}

/// Limits the word and the range to what exists.
fn within(mut error: ExpressionError, words: &[&str]) -> ExpressionError {
    let Some(last) = words.len().checked_sub(1) else {
        return ExpressionError {
            word: 0,
            range: 0..0,
            ..error
        };
    };
    if error.word > last {
        error.word = last;
        error.range = 0..words[last].len();
    }
    error.range.end = error.range.end.min(words[error.word].len());
    error.range.start = error.range.start.min(error.range.end);
    error
}

/// Warns about ACLs that can never match in this rule set, as HAProxy does.
fn warn_misplaced(
    condition: &Condition,
    rule_set: RuleSetKind,
    at: usize,
    words: &[&str],
    env: &mut ParseEnv<'_>,
) {
    let phases = rule_set.phases(env.capability);
    let mut found: Option<Vec<MisplacedAcl>> = None;
    for phase in Phase::ALL.iter().filter(|phase| phases.has(**phase)) {
        let here = condition.misplaced(*phase, env.acls);
        // A `listen` evaluates its rules in two phases: an ACL that works in one of them is fine.
        found = Some(match found {
            None => here,
            Some(mut before) => {
                before.retain(|one| here.iter().any(|other| other.acl == one.acl));
                before
            }
        });
    }
    for one in found.unwrap_or_default() {
        let named = words
            .iter()
            .position(|word| word.trim_start_matches('!') == one.acl);
        let message = match (named, one.never) {
            (None, _) => format!(
                "anonymous acl will never match because it uses keyword '{}' which is \
                 incompatible with '{}'",
                one.fetch,
                one.phase.text()
            ),
            (Some(_), true) => format!(
                "acl '{}' will never match because it only involves keywords that are \
                 incompatible with '{}'",
                one.acl,
                one.phase.text()
            ),
            (Some(_), false) => format!(
                "acl '{}' involves keywords '{}' which is incompatible with '{}'",
                one.acl,
                one.fetch,
                one.phase.text()
            ),
        };
        let word = at + named.unwrap_or(0);
        let range = 0..words.get(word - at).map_or(0, |word| word.len());
        env.warnings
            .push(ExpressionError::new(message, range).in_word(word));
    }
}
