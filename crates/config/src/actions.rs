//! Keyword rows for the actions, derived from the catalogue of `ballast_rules`.

use std::sync::LazyLock;

use ballast_rules::{ActionRow, Capability, ParseEnv, RuleSet, parse_rule, rows};

use crate::feature::feature_of;
use crate::keyword::{Keyword, KeywordState, Prefixes, Sections};

/// One keyword for each action in each place that accepts it.
pub(crate) fn keywords() -> &'static [Keyword] {
    static KEYWORDS: LazyLock<Vec<Keyword>> = LazyLock::new(all);
    &KEYWORDS
}

fn all() -> Vec<Keyword> {
    let mut all = Vec::new();
    for row in rows() {
        for place in row.places.iter() {
            if place == RuleSet::Redirect {
                continue; // It has no word of its own there.
            }
            // The rows of a program live as long as it does, and so may their names.
            let word: &'static str =
                Box::leak(format!("{} {}", place.words(), row.word).into_boxed_str());
            all.push(Keyword {
                word,
                sections: Sections::RULES,
                state: state(place, row),
                args: row.args,
                help: row.help,
                good: "",
                bad: "",
                prefixes: Prefixes::None,
                http: place.is_http(),
                experimental: false,
            });
        }
    }
    all
}

/// Whether the action is implemented: an example of it that may stand there is carried out.
fn state(place: RuleSet, row: &ActionRow) -> KeywordState {
    if let Some(reason) = row.refusal() {
        return KeywordState::Refused {
            reason,
            instead: "",
        };
    }
    if !place.is_implemented() {
        return KeywordState::Unimplemented(feature_of(place.words()));
    }
    match row.good.iter().any(|good| is_carried_out(place, good)) {
        true => KeywordState::Honoured,
        false => KeywordState::Unimplemented(feature_of(row.word)),
    }
}

fn is_carried_out(place: RuleSet, example: &str) -> bool {
    let words: Vec<&str> = example.split(' ').collect();
    let acls = ballast_expr::AclSet::new();
    let mut files = |_: &str| Ok(Vec::new());
    let capability = Capability {
        frontend: true,
        backend: true,
    };
    let mut env = ParseEnv::new(&acls, &mut files, capability, "frontend 'f'");
    env.experimental = true;
    parse_rule(place, &words, &mut env).is_ok_and(|rule| rule.action.is_implemented())
}
