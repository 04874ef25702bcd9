//! Real configurations, with the verdicts of HAProxy 2.6 with stand-ins for what is missing.
//!
//! The files are not part of the project; without them the test says so and passes.

use std::fs;
use std::path::{Path, PathBuf};

use ballast_config::{EmptyMachine, LoadedConfig, Options, StandInMachine, load};
use ballast_syntax::Severity;

/// The directory of the files, beside the checkout.
fn corpus() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if path.join("INDEX.tsv").is_file() {
        return Some(path);
    }
    eprintln!("SKIPPED: no corpus at {}", path.display());
    None
}

/// A row of the index: the file's number, whether HAProxy 2.6 accepted it, whether it uses words
/// removed since, and its first error.
struct Row {
    number: String,
    is_accepted: bool,
    is_removed: bool,
    error: String,
}

fn rows(corpus: &Path) -> Vec<Row> {
    let index = fs::read_to_string(corpus.join("INDEX.tsv")).expect("the index is there");
    let rows = index.lines().skip(1).map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        Row {
            number: columns[0].to_owned(),
            is_accepted: columns[5] == "ok",
            is_removed: columns[6] != "ok",
            error: columns[7].to_owned(),
        }
    });
    rows.collect()
}

fn judge(path: &Path) -> LoadedConfig {
    let bytes = fs::read(path).expect("the index names files that are there");
    let name = path
        .file_name()
        .expect("a file has a name")
        .to_string_lossy()
        .into_owned();
    load(
        vec![(name, bytes)],
        &StandInMachine(EmptyMachine),
        Options::default(),
    )
}

fn said(loaded: &LoadedConfig, least: Severity) -> Vec<String> {
    loaded
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity >= least)
        .map(|diagnostic| {
            let line = diagnostic
                .span
                .map_or(0, |span| loaded.sources.locate(span).line);
            format!("{line}: {}", diagnostic.message)
        })
        .collect()
}

#[test]
fn files_are_judged_as_haproxy_judges_them() {
    let Some(corpus) = corpus() else {
        return;
    };
    let mut wrong = Vec::new();
    let mut refused = Vec::new();
    let rows = rows(&corpus);
    for row in &rows {
        let loaded = judge(&corpus.join(format!("{}.cfg", row.number)));
        let alerts = said(&loaded, Severity::Alert);
        let warnings = said(&loaded, Severity::Warning);
        if row.is_accepted && !row.is_removed && !alerts.is_empty() {
            wrong.push(format!(
                "{} is accepted by HAProxy: {alerts:#?}",
                row.number
            ));
        }
        if !row.is_accepted {
            let first = warnings.first().map_or("", String::as_str);
            refused.push(format!(
                "{}\n   HAProxy: {}\n   here:    {first}",
                row.number, row.error
            ));
            // These are valid in newer versions: a newer fetch, and an address from the
            // environment, whose stand-in includes the port.
            let cured = ["unknown fetch method", "neither service port"];
            let is_cured = cured.iter().any(|what| row.error.contains(what));
            if warnings.is_empty() && !is_cured {
                wrong.push(format!(
                    "{} is refused by HAProxy: {}",
                    row.number, row.error
                ));
            }
        }
    }
    eprintln!(
        "{} files, {} refused by HAProxy:\n{}",
        rows.len(),
        refused.len(),
        refused.join("\n")
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Diagnostics about words that upgrading rewrites disappear.
#[test]
fn upgraded_files_have_fewer_errors() {
    let Some(corpus) = corpus() else {
        return;
    };
    let mut wrong = Vec::new();
    for row in rows(&corpus) {
        let path = corpus.join(format!("{}.cfg", row.number));
        let upgraded = ballast_config::upgrade("t.cfg", &fs::read(&path).unwrap());
        let files = vec![("t.cfg".to_owned(), upgraded.text.clone())];
        let loaded = load(files, &StandInMachine(EmptyMachine), Options::default());
        for diagnostic in &loaded.diagnostics {
            let is_ours = matches!(
                diagnostic.code,
                "refused-keyword" | "address-on-section" | "missing-final-newline"
            );
            let line = diagnostic
                .span
                .map_or(0, |span| loaded.sources.locate(span).line);
            let text = String::from_utf8_lossy(&upgraded.text);
            let source = text.lines().nth((line as usize).max(1) - 1).unwrap_or("");
            let is_left = upgraded.left.iter().any(|left| left.from == source);
            if is_ours && !is_left {
                wrong.push(format!("{}:{line}: {}", row.number, diagnostic.message));
            }
        }
        for left in &upgraded.left {
            eprintln!(
                "{}:{}: left: {} ({})",
                row.number, left.line, left.from, left.reason
            );
        }
        let again = ballast_config::upgrade("t.cfg", &upgraded.text);
        if !again.changes.is_empty() {
            wrong.push(format!(
                "{}: changed again: {:?}",
                row.number, again.changes
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Features that are to come: what keeps a file of the corpus from starting is one of these.
const TO_COME: &[&str] = &[
    "bandwidth limits",
    "compression",
    "DNS resolvers",
    "FastCGI",
    "filters",
    "Lua",
    "SPOE",
    "peers",
    "the cache",
];

/// A file that HAProxy accepts starts, with stand-ins for what this machine lacks, unless it needs
/// a feature that is to come.
#[test]
fn files_that_haproxy_accepts_start() {
    let Some(corpus) = corpus() else {
        return;
    };
    let (mut starting, mut wrong) = (0, Vec::new());
    let rows = rows(&corpus);
    let accepted = rows.iter().filter(|row| row.is_accepted && !row.is_removed);
    let (mut count, mut waiting) = (0, Vec::new());
    for row in accepted {
        count += 1;
        let loaded = judge(&corpus.join(format!("{}.cfg", row.number)));
        let words = loaded.unimplemented.iter();
        let needed: Vec<_> = words
            .map(|word| format!("{} ({})", word.word, word.feature))
            .collect();
        let is_to_come = |feature: &str| TO_COME.contains(&feature);
        if needed.is_empty() {
            starting += 1;
        } else if loaded
            .unimplemented
            .iter()
            .any(|word| !is_to_come(&word.feature))
        {
            wrong.push(format!("{}: {}", row.number, needed.join(", ")));
        } else {
            waiting.push(format!("{}: {}", row.number, needed.join(", ")));
        }
    }
    eprintln!(
        "{starting} of {count} start; the others wait:\n{}",
        waiting.join("\n")
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
