//! The features that samples, converters, actions and rule sets belong to which are not implemented yet.

/// The feature of words that came after HAProxy 3.2 and are not carried out.
pub(crate) const NEWER: &str = "the words of versions after 3.2";

/// Each feature with its words; `*` stands for any end of a word. Only words that are not implemented
/// are looked up: `src_*` means the counters, and not `src_port`.
const FEATURES: &[(&str, &[&str])] = &[
    (
        NEWER,
        &[
            "add-headers-bin",
            "aes_cbc_*",
            "del-headers-bin",
            "eth.*",
            "ip.*",
            "jwt_decrypt_*",
            "jwt_verify_cert",
            "reverse_dom",
            "set-headers-bin",
            "tcp.*",
        ],
    ),
    ("bandwidth limits", &["set-bandwidth-limit"]),
    ("compression", &["res.comp", "res.comp_algo"]),
    ("DNS resolvers", &["do-resolve"]),
    ("FastCGI", &["fcgi.*"]),
    ("Lua", &["lua.*", "use-service"]),
    ("QUIC", &["quic-initial*"]),
    ("SPOE", &["send-spoe-group", "spoe.*"]),
    ("the cache", &["cache-*", "res.cache_*"]),
    ("the rest of TLS", &["ssl_*"]),
];

/// The feature of a sample, a converter, an action or a rule set; empty for a word that is part of no
/// larger feature.
pub(crate) fn feature_of(word: &str) -> &'static str {
    let mut features = FEATURES.iter();
    let found = features.find(|(_, forms)| forms.iter().any(|form| fits(word, form)));
    found.map_or("", |(feature, _)| feature)
}

fn fits(word: &str, form: &str) -> bool {
    match form.strip_suffix('*') {
        Some(start) => word.starts_with(start),
        None => word == form,
    }
}

#[cfg(test)]
mod tests {
    use ballast_expr::AclSet;
    use ballast_rules::{Capability, ParseEnv, RuleSets, parse_rule};

    use super::*;

    /// The words that rules ask for and that are not implemented: of actions, and of whole rule sets.
    fn words_of_rules() -> Vec<&'static str> {
        let (acls, mut files) = (AclSet::new(), |_: &str| Ok(Vec::new()));
        let capability = Capability {
            frontend: true,
            backend: true,
        };
        let mut env = ParseEnv::new(&acls, &mut files, capability, "frontend 'f'");
        env.experimental = true;
        let mut sets = RuleSets::default();
        for row in ballast_rules::action_rows() {
            // An option of an action may not be implemented though the action is.
            for line in row
                .good
                .iter()
                .chain(&["do-log profile p", "use-service lua.x"])
            {
                let words: Vec<&str> = line.split(' ').collect();
                for set in row.rule_sets.iter() {
                    if let Ok(rule) = parse_rule(set, &words, &mut env) {
                        sets.of_mut(set).push(rule);
                    }
                }
            }
        }
        sets.unimplemented(&acls)
    }

    #[test]
    fn words_of_large_features_name_them() {
        assert_eq!(feature_of("lua.x"), "Lua");
        assert_eq!(feature_of("pause"), "");
        // A row of the table that no word needs is out of date.
        let fetches = ballast_expr::fetches().filter(|row| !row.is_implemented());
        let convs = ballast_expr::converters().filter(|row| !row.is_implemented());
        let words: Vec<&str> = fetches
            .map(|row| row.word)
            .chain(convs.map(|row| row.word))
            .chain(words_of_rules())
            .collect();
        for form in FEATURES.iter().flat_map(|(_, forms)| *forms) {
            assert!(words.iter().any(|word| fits(word, form)), "{form}");
        }
    }
}
