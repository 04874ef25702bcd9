//! The VTC scripts on both programs: HAProxy says whether a script is true, Ballast whether we are.
//!
//! `tests/conformance/run` does the work and can be called by hand; here it is part of
//! `cargo test`, and its two lists are read once more by a reader that knows all of TOML.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use ballast_tests::{Program, repository};

#[test]
fn every_script_says_of_both_programs_what_it_should() {
    let mut wrong = Vec::new();
    for program in Program::both() {
        let run = Command::new(repository().join("tests/conformance/run"))
            .arg("--program")
            .arg(program.path())
            .output()
            .expect("the runner starts");
        println!("{}", String::from_utf8_lossy(&run.stdout));
        if !run.status.success() {
            let table = String::from_utf8_lossy(&run.stdout).into_owned();
            let errors = String::from_utf8_lossy(&run.stderr).into_owned();
            wrong.push(format!("{}:\n{table}{errors}", program.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_lists_of_deviations_and_gaps_are_toml() {
    for list in ["deviations.toml", "gaps.toml"] {
        let path = repository().join("tests/conformance").join(list);
        let text = fs::read_to_string(&path).expect("the list is there");
        let rows: BTreeMap<String, String> =
            toml::from_str(&text).expect("each row is `script = \"reason\"`");
        for (script, reason) in rows {
            let file = repository().join(format!("tests/conformance/{script}.vtc"));
            assert!(file.is_file(), "{list} names {script}: no such script");
            assert!(reason.len() >= 8, "{list}: {script} needs a reason");
        }
    }
}
