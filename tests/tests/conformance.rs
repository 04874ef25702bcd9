//! The two lists of the VTC scripts, read once more by a reader that knows all of TOML. The scripts
//! themselves are run by `tests/conformance/run`, which `make test` calls.

use std::collections::BTreeMap;
use std::fs;

use ballast_tests::repository;

#[test]
fn the_lists_of_deviations_and_gaps_are_toml() {
    for list in ["deviations.toml", "gaps.toml"] {
        let path = repository().join("tests/conformance").join(list);
        let text = fs::read_to_string(&path).expect("the list is there");
        let rows: BTreeMap<String, String> =
            toml::from_str(&text).expect("each row is `script = \"reason\"`");
        let count = format!("({} today)", rows.len());
        let readme = fs::read_to_string(repository().join("README.md")).expect("it is there");
        let mut named = readme
            .lines()
            .filter(|line| line.contains(&format!("/{list})")));
        assert!(
            named.any(|line| line.contains(&count)),
            "README.md tells how many rows {list} has: {count}"
        );
        for (script, reason) in rows {
            let file = repository().join(format!("tests/conformance/{script}.vtc"));
            assert!(file.is_file(), "{list} names {script}: no such script");
            assert!(reason.len() >= 8, "{list}: {script} needs a reason");
        }
    }
}
