//! Keyword rows for the actions, derived from the catalogue of `ballast_rules`.

use std::sync::LazyLock;

use ballast_rules::{ActionRow, Capability, ParseEnv, RuleSetKind, action_rows, parse_rule};

use crate::feature::feature_of;
use crate::keyword::{Keyword, KeywordState, Prefixes, Sections};

/// One keyword for each action in each rule set that accepts it.
pub(crate) fn keywords() -> &'static [Keyword] {
    static KEYWORDS: LazyLock<Vec<Keyword>> = LazyLock::new(all);
    &KEYWORDS
}

fn all() -> Vec<Keyword> {
    let mut all = Vec::new();
    for row in action_rows() {
        for rule_set in row.rule_sets.iter() {
            if rule_set == RuleSetKind::Redirect {
                continue; // It has no word of its own there.
            }
            // The rows of a program live as long as it does, and so may their names.
            let word: &'static str =
                Box::leak(format!("{} {}", rule_set.words(), row.word).into_boxed_str());
            all.push(Keyword {
                word,
                sections: Sections::RULES,
                state: state(rule_set, row),
                args: row.args,
                help: row.help,
                good: "",
                bad: "",
                prefixes: Prefixes::None,
                http: rule_set.is_http(),
                experimental: false,
            });
        }
    }
    all
}

/// Whether the action is implemented: an example of it that may stand there is carried out.
fn state(rule_set: RuleSetKind, row: &ActionRow) -> KeywordState {
    if let Some(reason) = row.refusal() {
        return KeywordState::Refused {
            reason,
            instead: "",
        };
    }
    if !rule_set.is_implemented() {
        return KeywordState::Unimplemented(feature_of(rule_set.words()));
    }
    match row.good.iter().any(|good| is_carried_out(rule_set, good)) {
        true => KeywordState::Honoured,
        false => KeywordState::Unimplemented(feature_of(row.word)),
    }
}

fn is_carried_out(rule_set: RuleSetKind, example: &str) -> bool {
    let words: Vec<&str> = example.split(' ').collect();
    let acls = ballast_expr::AclSet::new();
    let mut files = |_: &str| Ok(Vec::new());
    let capability = Capability {
        frontend: true,
        backend: true,
    };
    let mut env = ParseEnv::new(&acls, &mut files, capability, "frontend 'f'");
    env.experimental = true;
    parse_rule(rule_set, &words, &mut env).is_ok_and(|rule| rule.action.is_implemented())
}
