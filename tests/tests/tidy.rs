//! Checks of the source that the compiler does not make: sizes, paths, links, places.
//!
//! Every test reports all offenders at once. The rules are in CONTRIBUTING.md.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ballast_tests::repository;
use regex::Regex;

/// A longer source file must be split. Tables have the mark below.
const FILE_LINES_MAX: usize = 800;
/// The mark of a Rust file that is a table, with a reason, in its first lines.
const TABLE_MARK: &str = "// tidy: table";
/// In how many first lines the mark may be.
const MARK_LINES_MAX: usize = 30;
/// ARCHITECTURE.md is a map: it can be read in one sitting.
const ARCHITECTURE_LINES_MAX: usize = 300;
/// A crate with less than this in `src/` is empty.
const ROOM_LINES_MIN: usize = 20;

/// A committed (or about to be committed) text file.
struct Text {
    path: String,
    content: String,
}

impl Text {
    fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|given| given == extension)
    }

    /// True for test code: packages of tests, `tests/` directories, `tests.rs` files.
    fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| part == "tests" || part.ends_with("tests.rs"))
    }

    /// The numbered lines that `is_wrong`, as `path:line: text`.
    fn lines_where(&self, is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
        (1..)
            .zip(self.content.lines())
            .filter(|(_, line)| is_wrong(line))
            .map(|(number, line)| format!("{}:{number}: {}", self.path, line.trim()))
            .collect()
    }
}

/// All text files that git tracks or would add.
fn texts() -> Vec<Text> {
    let listing = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(repository())
        .output()
        .expect("git is installed");
    assert!(listing.status.success(), "this is a git checkout");
    let names = String::from_utf8(listing.stdout).expect("file names are UTF-8");
    let texts: Vec<Text> = names
        .split('\0')
        .filter(|name| !name.is_empty())
        .filter_map(|name| {
            // Binary and deleted files are not texts.
            let content = fs::read_to_string(repository().join(name)).ok()?;
            Some(Text {
                path: name.to_owned(),
                content,
            })
        })
        .collect();
    assert!(texts.len() > 50, "git names the files of the project");
    texts
}

fn rust_files() -> Vec<Text> {
    texts()
        .into_iter()
        .filter(|text| text.has_extension("rs"))
        .collect()
}

fn assert_none(rule: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{rule}:\n{}", offenders.join("\n"));
}

#[test]
fn files_can_be_read_whole() {
    let long: Vec<String> = rust_files()
        .iter()
        .filter(|text| {
            !text
                .content
                .lines()
                .take(MARK_LINES_MAX)
                .any(|l| l.starts_with(TABLE_MARK))
        })
        .map(|text| (text.content.lines().count(), &text.path))
        .filter(|(lines, _)| *lines > FILE_LINES_MAX)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    assert_none(
        "files over 800 lines (split them; a table says `// tidy: table, because ...` at its head)",
        &long,
    );
}

#[test]
fn the_map_stays_a_map() {
    let map = fs::read_to_string(repository().join("ARCHITECTURE.md")).expect("the map is there");
    let lines = map.lines().count();
    assert!(
        lines < ARCHITECTURE_LINES_MAX,
        "ARCHITECTURE.md has {lines} lines"
    );
}

#[test]
fn every_file_has_a_head() {
    let headless: Vec<String> = rust_files()
        .iter()
        // The tests of a module are beside it, and test it.
        .filter(|text| !text.is_test())
        .filter(|text| {
            let first = text.content.lines().find(|line| !line.trim().is_empty());
            !first.is_some_and(|line| line.starts_with("//") || line.starts_with("#!"))
        })
        .map(|text| text.path.clone())
        .collect();
    assert_none(
        "files that do not begin by saying why they exist",
        &headless,
    );
}

#[test]
fn nothing_is_left_for_later() {
    // Written in two parts, so that this file does not match itself.
    let later = Regex::new(&["to", "do!|FIX", "ME|TO", "DO|XX", "X:|unimple", "mented!"].concat())
        .expect("the pattern is right");
    let marks: Vec<String> = rust_files()
        .iter()
        .flat_map(|text| text.lines_where(|line| later.is_match(line)))
        .collect();
    assert_none("work left for later belongs in an issue", &marks);
}

#[test]
fn ignored_tests_say_why() {
    let bare = ["#[ig", "nore]"].concat();
    let marks: Vec<String> = rust_files()
        .iter()
        .flat_map(|text| text.lines_where(|line| line.contains(&bare)))
        .collect();
    assert_none("ignored tests without a reason", &marks);
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let here = Regex::new(&["(^|[^\\w.])/(wo", "rk/(main|shared)|ro", "ot/)"].concat())
        .expect("the pattern is right");
    let paths: Vec<String> = texts()
        .iter()
        .flat_map(|text| text.lines_where(|line| here.is_match(line)))
        .collect();
    assert_none("paths of somebody's machine", &paths);
}

#[test]
fn only_tests_look_beside_the_checkout() {
    let beside = ["../sha", "red"].concat();
    let found: Vec<String> = texts()
        .iter()
        .filter(|text| !text.is_test())
        .flat_map(|text| text.lines_where(|line| line.contains(&beside)))
        .collect();
    assert_none("files that need something outside the project", &found);
}

#[test]
fn unsafe_lives_in_one_room() {
    let unsafe_code = Regex::new(r"\bunsafe\s*(\{|fn\b|impl\b|extern\b|trait\b)").expect("right");
    let found: Vec<String> = rust_files()
        .iter()
        .filter(|text| !text.path.starts_with("crates/net/"))
        .filter(|text| text.path != "tests/tests/tidy.rs")
        .flat_map(|text| text.lines_where(|line| unsafe_code.is_match(line)))
        .collect();
    assert_none("unsafe outside crates/net", &found);
}

/// Crates whose results depend only on their arguments, so that a test can replay any sequence.
const PURE_ROOMS: &[&str] = &[
    "balance", "config", "edit", "expr", "h1", "h2", "health", "message", "model", "rules",
    "stick", "syntax", "tls", "topology", "wire",
];

#[test]
fn pure_rooms_touch_nothing() {
    let world = Regex::new(
        r"\b(std::(fs|process|thread)\b|(Instant|SystemTime)::now\b|Tcp(Stream|Listener)\b|UdpSocket\b)",
    )
    .expect("the pattern is right");
    let found: Vec<String> = rust_files()
        .iter()
        .filter(|text| !text.is_test())
        .filter(|text| {
            let room = text
                .path
                .strip_prefix("crates/")
                .and_then(|path| path.split('/').next());
            room.is_some_and(|room| PURE_ROOMS.contains(&room))
        })
        .flat_map(|text| text.lines_where(|line| world.is_match(line)))
        .collect();
    assert_none("a clock, a file or a socket in a room that decides", &found);
}

#[test]
fn every_package_takes_the_lints_of_the_workspace() {
    let without: Vec<String> = texts()
        .iter()
        .filter(|text| text.path.ends_with("/Cargo.toml") && !text.path.starts_with("fuzz/"))
        // The only crate with unsafe code has its own lint settings, with the reason.
        .filter(|text| text.path != "crates/net/Cargo.toml")
        .filter(|text| !text.content.contains("[lints]\nworkspace = true"))
        .map(|text| text.path.clone())
        .collect();
    assert_none("packages without `[lints] workspace = true`", &without);
}

#[test]
fn no_room_is_empty() {
    let sources = rust_files();
    let rooms: BTreeSet<&str> = sources
        .iter()
        .filter_map(|text| text.path.split_once("/src/").map(|(room, _)| room))
        .collect();
    let empty: Vec<String> = rooms
        .into_iter()
        .filter(|room| {
            let lines: usize = sources
                .iter()
                .filter(|text| text.path.starts_with(&format!("{room}/src/")))
                .map(|text| text.content.lines().count())
                .sum();
            lines < ROOM_LINES_MIN
        })
        .map(str::to_owned)
        .collect();
    assert_none(
        "rooms without furniture: a crate is born with its first real lines",
        &empty,
    );
}

#[test]
fn every_fuzz_target_is_built_and_seeded() {
    let targets = fs::read_dir(repository().join("fuzz/fuzz_targets")).expect("targets are there");
    let targets: Vec<_> = targets.flatten().map(|file| file.path()).collect();
    assert!(
        !targets.is_empty(),
        "there are targets in fuzz/fuzz_targets"
    );
    let mut wrong = Vec::new();
    for file in targets {
        // Where Cargo looks for programs: a link to fuzz_targets.
        let file_name = file.file_name().unwrap_or_default();
        if !repository().join("fuzz/src/bin").join(file_name).is_file() {
            wrong.push(format!("{}: not in fuzz/src/bin", file.display()));
        }
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let seeds = fs::read_dir(repository().join("fuzz/seeds").join(&name));
        if seeds.map_or(0, Iterator::count) == 0 {
            wrong.push(format!("{name}: no seeds in fuzz/seeds/{name}/"));
        }
    }
    assert_none("fuzz targets that nobody would run well", &wrong);
}

#[test]
fn scripts_can_be_run() {
    let shut: Vec<String> = texts()
        .iter()
        .filter(|text| text.content.starts_with("#!") && !text.has_extension("rs"))
        .filter(|text| {
            fs::metadata(repository().join(&text.path))
                .is_ok_and(|data| data.permissions().mode() & 0o111 == 0)
        })
        .map(|text| text.path.clone())
        .collect();
    assert_none("scripts without a run bit", &shut);
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let link = Regex::new(r"\[[^\]]*\]\(([^)\s]+)\)").expect("the pattern is right");
    let mut broken = Vec::new();
    for text in texts().iter().filter(|text| text.has_extension("md")) {
        for target in link
            .captures_iter(&prose(&text.content))
            .map(|found| found[1].to_owned())
        {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() {
                repository().join(&text.path)
            } else {
                parent(&text.path).join(file)
            };
            if !path.exists() || !(anchor.is_empty() || anchors(&path).contains(anchor)) {
                broken.push(format!("{}: {target}", text.path));
            }
        }
    }
    assert_none("links to nowhere", &broken);
}

#[test]
fn names_of_files_in_the_documents_are_true() {
    // `crates/...`, `tests/...` etc. between backquotes, when they name one file.
    let named = Regex::new(
        r"`((?:crates|bin|tests|fuzz|bench|docs|examples|scripts|\.ci)/[\w./-]*\.?[\w-]+/?)`",
    )
    .expect("the pattern is right");
    let mut missing = Vec::new();
    for text in texts().iter().filter(|text| text.has_extension("md")) {
        for name in named
            .captures_iter(&text.content)
            .map(|found| found[1].to_owned())
        {
            // The results of a run do not exist before the run.
            let is_made = ["bench/results", "fuzz/corpus", "fuzz/artifacts"];
            let is_pattern = name.contains("NAME");
            if !is_pattern
                && !is_made.iter().any(|made| name.starts_with(made))
                && !repository().join(&name).exists()
            {
                missing.push(format!("{}: {name}", text.path));
            }
        }
    }
    assert_none("documents that name files which are not there", &missing);
}

fn parent(path: &str) -> PathBuf {
    repository().join(Path::new(path).parent().unwrap_or(Path::new("")))
}

/// The document without its fenced blocks, where brackets are not links.
fn prose(document: &str) -> String {
    let mut is_fenced = false;
    let kept = document.lines().filter(|line| {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            return false;
        }
        !is_fenced
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// The anchors of a document's headings: lower case, hyphens for spaces, no punctuation.
fn anchors(path: &Path) -> BTreeSet<String> {
    let document = fs::read_to_string(path).unwrap_or_default();
    prose(&document)
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .map(|heading| {
            heading
                .trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}
