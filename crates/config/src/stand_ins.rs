//! Values for the variables that a file uses and nobody set, so that it can be judged away from its
//! machine.
//!
//! What fits depends on where a variable stands: a port, an address, a time, a name. Rather than
//! knowing that of every word, the file is read with one value after the other, and the first is
//! taken that nothing on the variable's lines complains of.

use std::cmp::Reverse;

use ballast_syntax::{Env, Severity};

use crate::load::{Loaded, load_in};
use crate::surroundings::Surroundings;

/// What is tried, in this order.
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

/// The one that is nothing but a name.
const NAME: &str = "stand-in";

/// Variables for which values are looked for: each is some ten readings of the files.
const VARIABLE_COUNT_MAX: usize = 100;

/// A variable that nobody set, and the lines (file, line) it stands on.
struct Variable {
    name: String,
    lines: Vec<(usize, u32)>,
}

/// The machine's environment; where there are stand-ins, with values for what `files` use and nobody
/// set. Gives what was stood in for, too.
pub(crate) fn environment(
    files: &[(String, Vec<u8>)],
    surroundings: &dyn Surroundings,
) -> (Env, Vec<String>) {
    let mut env = surroundings.environment();
    if surroundings.stand_in("environment").is_none() {
        return (env, Vec::new());
    }
    let unset = unset(files, &env);
    for variable in &unset {
        // Names without a value are left out by the search already.
        let _ = env.set(&variable.name, VALUES[0]);
    }
    for variable in unset.iter().take(VARIABLE_COUNT_MAX) {
        env = fitting(variable, env, files, surroundings);
    }
    let stubs = unset.iter().filter_map(|variable| {
        let value = env.value(&variable.name).unwrap_or_default();
        surroundings.stand_in(&format!(
            "environment variable '{}' ('{value}')",
            variable.name
        ))
    });
    let stubs = stubs.collect();
    (env, stubs)
}

/// The environment with the value that fits best.
fn fitting(
    variable: &Variable,
    env: Env,
    files: &[(String, Vec<u8>)],
    surroundings: &dyn Surroundings,
) -> Env {
    let mut best: Option<(Faults, Env)> = None;
    for value in VALUES {
        let mut tried = env.clone();
        if tried.set(&variable.name, value).is_err() {
            return env;
        }
        let loaded = load_in(files.to_vec(), surroundings, tried.clone());
        let faults = Faults::of(&loaded, variable, value);
        let is_whole = faults == Faults::default();
        if best.as_ref().is_none_or(|(fewest, _)| faults < *fewest) {
            best = Some((faults, tried));
        }
        if is_whole {
            break;
        }
    }
    best.map_or(env, |(_, env)| env)
}

/// What is wrong with a value; what is read further before it goes wrong is better.
#[derive(Default, Eq, Ord, PartialEq, PartialOrd)]
struct Faults {
    alerts: usize,
    first: Reverse<u32>,
    warnings: usize,
    stand_ins: usize,
}

impl Faults {
    fn of(loaded: &Loaded, variable: &Variable, value: &str) -> Self {
        let mut faults = Self::default();
        for said in &loaded.diagnostics {
            let Some(span) = said.span else {
                continue;
            };
            let line = (span.file.index(), loaded.sources.locate(span).line);
            if !variable.lines.contains(&line) {
                continue;
            }
            match said.severity {
                Severity::Alert => {
                    if faults.alerts == 0 {
                        faults.first = Reverse(span.start);
                    }
                    faults.alerts += 1;
                }
                Severity::Warning => faults.warnings += 1,
                _ => {}
            }
        }
        let stubs = loaded.stubs.iter();
        faults.stand_ins = stubs.filter(|stub| is_odd(stub, value)).count();
        faults
    }
}

/// Whether a stand-in was wanted for a value that is not of its kind: what is no address is taken
/// for a name, and any text for a file.
fn is_odd(stub: &str, value: &str) -> bool {
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

/// The names of the variables on a line; `${NAME-default}` has its own stand-in.
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
