//! Stand-ins for environment variables that a file uses but that are not set, so that it can be
//! checked on another machine.
//!
//! Which value fits depends on the place of a variable: a port, an address, a time, a name. Instead
//! of knowing that for every word, the file is read with one candidate after the other, and the
//! first one is used for which no line with the variable has an error.

use std::cmp::Reverse;
use std::sync::Arc;

use ballast_expr::Store;
use ballast_syntax::{Env, Severity};
use ballast_tls::shared_store::FormerStore;

use crate::lower::{LoadedConfig, load_with};
use crate::machine::Machine;

/// The candidates, in this order.
const VALUES: &[&str] = &[
    "1",
    "10s",
    "127.0.0.1",
    "127.0.0.1:1",
    "/stand-in",
    "http",
    "local0",
    "info",
    "roundrobin",
    "on",
    NAME,
];

/// The candidate that is only valid as a name.
const NAME: &str = "stand-in";

/// The maximum number of variables for which values are searched: each costs about ten readings of
/// the files.
const VARIABLE_COUNT_MAX: usize = 100;

/// A variable that is not set, and the lines (file, line) that use it.
struct Variable {
    name: String,
    lines: Vec<(usize, u32)>,
}

/// The machine's environment; if stand-ins are allowed, with values for the variables that `files`
/// use and that are not set. Also returns those variables.
pub(crate) fn environment(
    files: &[(String, Vec<u8>)],
    machine: &dyn Machine,
) -> (Env, Vec<String>) {
    let mut env = machine.environment();
    if machine.stand_in("environment").is_none() {
        return (env, Vec::new());
    }
    let unset = unset(files, &env);
    for variable in &unset {
        // Names without a value were left out by the search already.
        let _ = env.set(&variable.name, VALUES[0]);
    }
    for variable in unset.iter().take(VARIABLE_COUNT_MAX) {
        env = with_best_value(variable, env, files, machine);
    }
    let stand_ins = unset.iter().filter_map(|variable| {
        let value = env.value(&variable.name).unwrap_or_default();
        machine.stand_in(&format!(
            "environment variable '{}' ('{value}')",
            variable.name
        ))
    });
    let stand_ins = stand_ins.collect();
    (env, stand_ins)
}

/// The environment with the candidate that fits best.
fn with_best_value(
    variable: &Variable,
    env: Env,
    files: &[(String, Vec<u8>)],
    machine: &dyn Machine,
) -> Env {
    let mut best: Option<(CandidateErrors, Env)> = None;
    for value in VALUES {
        let mut tried = env.clone();
        if tried.set(&variable.name, value).is_err() {
            return env;
        }
        let store = Arc::new(Store::new());
        let files = files.to_vec();
        let loaded = load_with(
            (store, FormerStore::default()),
            files,
            machine,
            (tried.clone(), Vec::new()),
        );
        let errors = CandidateErrors::of(&loaded, variable, value);
        let is_whole = errors == CandidateErrors::default();
        if best.as_ref().is_none_or(|(fewest, _)| errors < *fewest) {
            best = Some((errors, tried));
        }
        if is_whole {
            break;
        }
    }
    best.map_or(env, |(_, env)| env)
}

/// The errors with a candidate; the candidate whose first error comes later in the file is better.
#[derive(Default, Eq, Ord, PartialEq, PartialOrd)]
struct CandidateErrors {
    alerts: usize,
    first: Reverse<u32>,
    warnings: usize,
    stand_ins: usize,
}

impl CandidateErrors {
    fn of(loaded: &LoadedConfig, variable: &Variable, value: &str) -> Self {
        let mut errors = Self::default();
        for diagnostic in &loaded.diagnostics {
            let Some(span) = diagnostic.span else {
                continue;
            };
            let line = (span.file.index(), loaded.sources.locate(span).line);
            if !variable.lines.contains(&line) {
                continue;
            }
            match diagnostic.severity {
                Severity::Alert => {
                    if errors.alerts == 0 {
                        errors.first = Reverse(span.start);
                    }
                    errors.alerts += 1;
                }
                Severity::Warning => errors.warnings += 1,
                _ => {}
            }
        }
        let stand_ins = loaded.stand_ins.iter();
        errors.stand_ins = stand_ins
            .filter(|stub| is_of_wrong_type(stub, value))
            .count();
        errors
    }
}

/// Whether a stand-in was needed for a value of the wrong type: text that is not an address is read
/// as a name, and any text as a file.
fn is_of_wrong_type(stub: &str, value: &str) -> bool {
    let Some((kind, text)) = stub.split_once(" '") else {
        return false;
    };
    let fits = match kind {
        "file" => value.starts_with('/'),
        "user" | "group" => value == NAME,
        _ => false,
    };
    text.starts_with(value) && !fits
}

/// The variables that the files use and that neither the environment nor a line sets.
fn unset(files: &[(String, Vec<u8>)], env: &Env) -> Vec<Variable> {
    let mut found: Vec<Variable> = Vec::new();
    let texts: Vec<_> = files
        .iter()
        .map(|(_, bytes)| String::from_utf8_lossy(bytes))
        .collect();
    let is_set = |name: &str| {
        ["setenv", "presetenv"].iter().any(|word| {
            let line = format!("{word} {name} ");
            texts.iter().any(|text| text.contains(&line))
        })
    };
    for (file, text) in texts.iter().enumerate() {
        for (line, number) in text.lines().zip(1..) {
            for name in names(line) {
                if let Some(known) = found.iter_mut().find(|known| known.name == name) {
                    known.lines.push((file, number));
                } else if !env.is_defined(name) && !is_set(name) {
                    found.push(Variable {
                        name: name.to_owned(),
                        lines: vec![(file, number)],
                    });
                }
            }
        }
    }
    found
}

/// The names of the variables on a line; `${NAME-default}` needs no stand-in.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split('$').skip(1).filter_map(|piece| {
        let rest = piece.strip_prefix('{').unwrap_or(piece);
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        (is_name && !after.starts_with('-')).then_some(name)
    })
}
