//! Parses the words of a line into a rule.

use ballast_expr::{Condition, Error, LinkSlot, MisplacedAcl, Phase, nearest};

use crate::action::{Action, row, rows_of};
use crate::args::Args;
use crate::parse_env::ParseEnv;
use crate::row::{ActionRow, ArgsParser};
use crate::rule::Rule;
use crate::ruleset::RuleSet;

/// Parses the words that follow those of the place (`http-request`, `tcp-request content`,
/// `redirect` ...): the action, its arguments, and the condition.
///
/// # Errors
/// With the word, counted from the action's, and the byte range that is wrong; when all words are
/// missing, at word 0.
pub fn parse_rule(place: RuleSet, words: &[&str], env: &mut ParseEnv<'_>) -> Result<Rule, Error> {
    let row = find(place, words, env)?;
    let captures_before = (env.request_captures, env.new_captures.len());
    let parsed = parse_with(row, place, words, env);
    if parsed.is_err() {
        env.request_captures = captures_before.0;
        env.new_captures.truncate(captures_before.1);
    }
    parsed.map_err(|error| within(error, words))
}

fn parse_with(
    row: &'static ActionRow,
    place: RuleSet,
    words: &[&str],
    env: &mut ParseEnv<'_>,
) -> Result<Rule, Error> {
    let title = env.title;
    let mut args = Args::new(words, place, env);
    let action =
        parse_action(row, &mut args).map_err(|error| in_rule(error, place, words, title))?;
    let (at, rest) = (args.at(), args.rest());
    let condition = match rest.first() {
        None => None,
        Some(&("if" | "unless")) => {
            let condition = Condition::parse(rest, env.acls).map_err(|error| Error {
                message: format!(
                    "error detected while parsing an '{}' condition : {}",
                    name(place, words),
                    error.message
                ),
                word: error.word + at,
                ..error
            })?;
            let never = condition.never_matches();
            env.warnings
                .extend(never.map(|text| Error::new(text, 0..rest[0].len()).in_word(at)));
            warn_misplaced(&condition, place, at, rest, env);
            Some(condition)
        }
        Some(other) => {
            let hint = nearest(other, ["if", "unless"]).or_else(|| nearest(other, hints(row)));
            let message = format!(
                "'{}' expects either 'if' or 'unless' followed by a condition but found '{other}'",
                name(place, words),
            );
            return Err(Error::new(message, 0..other.len())
                .in_word(at)
                .with_hint(hint));
        }
    };
    Ok(Rule {
        action,
        condition,
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        place: LinkSlot::empty(),
    })
}

/// Reads the action of `row`.
fn parse_action(row: &'static ActionRow, args: &mut Args<'_, '_, '_>) -> Result<Action, Error> {
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

/// The row of the action, which must be allowed in the place.
fn find(place: RuleSet, words: &[&str], env: &ParseEnv<'_>) -> Result<&'static ActionRow, Error> {
    if place == RuleSet::Redirect {
        return row("redirect").ok_or_else(|| Error::new("no row for 'redirect'", 0..0));
    }
    let word = words.first().copied().unwrap_or_default();
    let whole = 0..word.len();
    match row(word) {
        Some(row) if row.places.has(place) => Ok(row),
        Some(row) => Err(Error::new(
            format!(
                "'{}' is not allowed in '{place}' rules in {}; it may be used in: {}",
                row.word, env.title, row.places
            ),
            whole,
        )),
        None => {
            let all: Vec<String> = rows_of(place).map(ActionRow::shown_word).collect();
            let got = if word.is_empty() {
                "'' (missing argument)".to_owned()
            } else {
                format!("'{word}'")
            };
            let hint = nearest(
                word.split('(').next().unwrap_or_default(),
                rows_of(place).map(|row| row.word),
            );
            Err(Error::new(
                format!("'{place}' expects {}, but got {got}", all.join(", ")),
                whole,
            )
            .with_hint(hint))
        }
    }
}

/// `http-request deny`, or `redirect` alone.
fn name(place: RuleSet, words: &[&str]) -> String {
    match words.first() {
        Some(word) if place != RuleSet::Redirect => format!("{place} {word}"),
        _ => place.to_string(),
    }
}

fn in_rule(error: Error, place: RuleSet, words: &[&str], title: &str) -> Error {
    Error {
        message: format!(
            "error detected in {title} while parsing '{}' rule : {}",
            name(place, words),
            error.message
        ),
        ..error
    }
}

/// Limits the word and the range to what exists.
fn within(mut error: Error, words: &[&str]) -> Error {
    let Some(last) = words.len().checked_sub(1) else {
        return Error {
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

/// Warns about ACLs that can never match in this place, as HAProxy does.
fn warn_misplaced(
    condition: &Condition,
    place: RuleSet,
    at: usize,
    words: &[&str],
    env: &mut ParseEnv<'_>,
) {
    let phases = place.phases(env.capability);
    let mut found: Option<Vec<MisplacedAcl>> = None;
    for phase in Phase::ALL.iter().filter(|phase| phases.has(**phase)) {
        let here = condition.misplaced(*phase, env.acls);
        // A `listen` evaluates its rules in two places: an ACL that works in one of them is fine.
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
        env.warnings.push(Error::new(message, range).in_word(word));
    }
}
