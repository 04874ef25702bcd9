//! `tests/haproxy-repairs.toml`: every row says what it must, and the tests that it names exist.

use std::fs;

use ballast_tests::repository;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Repairs {
    family: Vec<Family>,
    repair: Vec<Repair>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    name: String,
    count: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Repair {
    version: String,
    #[serde(default = "one")]
    count: u32,
    about: String,
    state: String,
    test: Option<String>,
    why: Option<String>,
}

fn one() -> u32 {
    1
}

/// What is wrong with the name of a test.
fn fault_of_test(test: &str) -> Option<String> {
    let (file, function) = match test.split_once("::") {
        Some((file, function)) => (file, Some(function)),
        None => (test, None),
    };
    let path = match (
        file.strip_prefix("conformance/"),
        file.strip_prefix("tests/"),
    ) {
        (Some(script), _) => repository().join(format!("tests/conformance/{script}.vtc")),
        (None, Some(file)) => repository().join("tests/tests").join(file),
        (None, None) => repository().join(file),
    };
    if !path.exists() {
        return Some(format!("{test} does not exist"));
    }
    let function = function?;
    let text = fs::read_to_string(&path).unwrap_or_default();
    (!text.contains(&format!("fn {function}("))).then(|| format!("{file} has no {function}"))
}

#[test]
fn each_repair_has_a_reason_or_a_test_that_exists() {
    let text = fs::read_to_string(repository().join("tests/haproxy-repairs.toml")).unwrap();
    let repairs: Repairs = toml::from_str(&text).unwrap();
    let mut faults = Vec::new();
    for family in &repairs.family {
        if family.name.is_empty() || family.count == 0 {
            faults.push(format!(
                "a family without a name or a count: '{}'",
                family.name
            ));
        }
    }
    for repair in &repairs.repair {
        let Repair {
            version,
            count,
            about,
            state,
            test,
            why,
        } = repair;
        let has_reason = why.as_ref().is_some_and(|why| !why.is_empty());
        let is_complete = match state.as_str() {
            "right" | "near" | "mended" => test.is_some(),
            "differs" | "not so" => has_reason,
            "open" => test.is_none(),
            _ => false,
        };
        if !is_complete || !version.starts_with("3.2.") || *count == 0 || about.is_empty() {
            faults.push(format!("{version} {about}: '{state}' says too little"));
        }
        faults.extend(test.as_deref().and_then(fault_of_test));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
