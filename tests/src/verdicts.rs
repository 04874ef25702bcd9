//! What a program says of the lines of a configuration that it checks.

use std::collections::BTreeMap;

use crate::Program;

/// What a program says of a line.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Verdict {
    /// Nothing.
    Taken,
    /// A warning.
    Warned,
    /// An error: the configuration is not accepted.
    Refused,
}

/// What a program says of a whole configuration.
#[derive(Clone, Debug)]
pub struct Verdicts {
    /// Whether it is accepted.
    pub is_accepted: bool,
    /// The lines that something is said of, by number, with the worst that is said and its text.
    pub lines: BTreeMap<usize, (Verdict, String)>,
    /// Errors and warnings that name no line.
    pub others: Vec<String>,
}

impl Program {
    /// Checks a configuration given as text, and cuts what is said into lines.
    ///
    /// # Panics
    ///
    /// As [`Program::check`].
    #[must_use]
    pub fn verdicts(&self, configuration: &str) -> Verdicts {
        let result = self.check(configuration);
        let mut verdicts = Verdicts {
            is_accepted: result.status.success(),
            lines: BTreeMap::new(),
            others: Vec::new(),
        };
        for said in result.stderr.lines().chain(result.stdout.lines()) {
            let verdict = if said.starts_with("[ALERT]") {
                Verdict::Refused
            } else if said.starts_with("[WARNING]") {
                Verdict::Warned
            } else {
                continue;
            };
            // HAProxy names the line at which it stops after many errors.
            if said.contains("too many fatal errors") {
                continue;
            }
            let number = said
                .split_once("haproxy.cfg:")
                .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next())
                .and_then(|digits| digits.parse().ok());
            let Some(number) = number else {
                verdicts.others.push(said.to_owned());
                continue;
            };
            let entry = verdicts.lines.entry(number);
            let worst = entry.or_insert_with(|| (verdict, said.to_owned()));
            if verdict > worst.0 {
                *worst = (verdict, said.to_owned());
            }
        }
        verdicts
    }
}
