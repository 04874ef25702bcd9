//! Patterns and subjects full of delimiters, for each way to compare them.

use std::path::Path;

use ballast_expr::Regex;

use super::constructs::{self, CONSTRUCTS};

/// What is compared, as an expression.
pub(crate) const SUBJECT: &str = "req.fhdr(x-s),url_dec";

/// Texts that `str`, `beg`, `end`, `sub`, `dir` and `dom` compare with.
const TEXTS: &[&str] = &[
    "/",
    "?",
    ".",
    ":",
    "//",
    "/?",
    "?/",
    "#",
    "&",
    "=",
    ";",
    " ",
    " a",
    "a ",
    "a b",
    "a",
    "A",
    "aB",
    "ab",
    "b",
    "/a",
    "a/",
    "/a/",
    "//a//",
    "?a",
    "a?",
    "?a?",
    "/?a?/",
    "a?b",
    "a/b",
    "a//b",
    "a/?b",
    ".a",
    "a.",
    ".a.",
    "a.b",
    ":a",
    "a:",
    "a:b",
    "#a",
    "a#",
    "a&b",
    "&a",
    "a=b",
    "a=",
    ";a",
    "a;b",
    "./a",
    "../a",
    "a..b",
    ".:/?a?/:.",
    "é",
    "\t",
    "a\tb",
    "%2F",
    "a\\b",
    "\\",
    "*",
    "aa",
    "aaa",
    "a/a",
    "a?a",
    "a.a",
];

/// The same for `len` and `int`.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "5",
    "10",
    "00",
    "01",
    "0:2",
    "1:",
    ":2",
    "2-4",
    "-3",
    ":-1",
    "3-",
    "65536",
    "9223372036854775807",
];

/// Numbers that are none, and ranges that have none.
const NO_NUMBERS: &[&str] = &[
    "2:1",
    "-5:-1",
    ":",
    "-",
    "x",
    "1x",
    "+1",
    " 1",
    "1:2:3",
    "0x10",
    "9223372036854775808",
    "1.65536",
    "1..2",
    "1.2.3",
];

/// The same for `ip`.
const NETWORKS: &[&str] = &[
    "10.0.0.1",
    "10.0.0.0/8",
    "10.0.0.0/255.0.0.0",
    "10.0.0.0/255.0.255.0",
    "0.0.0.0/0",
    "::/0",
    "::1",
    "2001:db8::/32",
    "::ffff:10.0.0.1",
    "::ffff:10.0.0.0/104",
    "2002:a00:1::",
    "10.0.0.1/32",
    "10.0.0.1/0",
    "::1/128",
    "::10.0.0.1",
];

/// Addresses that stand in a configuration only: fewer numbers than four, and octal ones.
const SHORT_ADDRESSES: &[&str] = &[
    "10/8",
    "10.1",
    "10.1/16",
    "1",
    "16777217",
    "10.1.300",
    "010.0.0.1",
    "08.1.1.1",
];

/// Addresses that are none.
const NO_NETWORKS: &[&str] = &[
    "10.0.0.256",
    "1.2.3.4.5",
    "[::1]",
    "::1/129",
    "10.0.0.0/33",
    "10.0.0.1:80",
    " 10.0.0.1",
    "10.0.0.1 ",
    "10.0.0.0/",
    "/8",
    "1.2.",
    "010.0.0.256",
    "0x10.1",
];

/// The same for `bin`.
const BYTES: &[&str] = &[
    "61", "6162", "2f", "2F612f", "00", "4142", "C3A9", "c3a9", "20", "3f",
];

/// What is not made of such bytes.
const NO_BYTES: &[&str] = &["6", "xx", "0x61", "61 62", "612", "\t61"];

/// The same for `reg`.
const EXPRESSIONS: &[&str] = &[
    "^a",
    "a$",
    "^$",
    "^.$",
    ".",
    "a.b",
    "[/?]a[/?]",
    "^/a/?$",
    "\\?a",
    "(a|b)/(a|b)",
    "^[^/]*$",
    "a{2}",
    "\\ba\\b",
    "\\Ba",
    "\\.a",
    "a#",
    "[[:punct:]]$",
    "[[:blank:]]",
    "\\s",
    "^\\S+$",
    "A",
    "(?i)A",
    "a\\/b",
    "é",
    "^..$",
    "\\w$",
    "^\\W",
    "x*",
    "^(a)(/)?",
    "[[:<:]]a",
    "a[[:>:]]",
    "a?b",
    "^\\d+$",
    "a+$",
    "(?<![/?])a",
    "a(?=[/?])",
];

/// Subjects of every list.
const SUBJECTS: &[&str] = &[
    "",
    "0",
    "1",
    "2",
    "3",
    "5",
    "10",
    "-1",
    "-3",
    "01",
    "65536",
    "9223372036854775807",
    "10.0.0.1",
    "10.1.2.3",
    "::1",
    "::ffff:10.0.0.1",
    "2001:db8::5",
    "2002:a00:1::",
    "10.0.0.256",
    "1.2",
    "a",
    "A",
    "ab",
    "aB",
    "AB",
    "b",
    "/a",
    "a/",
    "/a/",
    "a?",
    "?a",
    "/a?",
    "?a/",
    "/A?x",
    "a b",
    " a",
    "a ",
    "a.b",
    "a:b",
    "a&b",
    "a=b",
    "a;b",
    "a#b",
    "x/a/b",
    "x?a?b",
    "x/a?b",
    "x.a.b",
    "/x/ab",
    "/ab?a",
    "ab/a",
    "aa/a",
    "aaa",
    "aa",
    "/aa/a/",
    "é",
    "/é/",
    "a\t",
    "a\tb",
    "a\\b",
    "//",
    "??",
    "a//b",
    "a?/b",
    "\n",
    "a\n",
    "a/\n",
    "a%2Fb",
    "\u{1}a",
    "/a/b?a/b",
    "a?a.b",
];

/// Numbers that are the same in each run.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) const fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn text(&mut self, most: usize) -> String {
        const ALPHABET: &[u8] = b"aabAB//??..::#&=; -";
        let length = self.below(most) + 1;
        (0..length)
            .map(|_| char::from(ALPHABET[self.below(ALPHABET.len())]))
            .collect()
    }
}

/// Subjects: the list, and made ones.
pub(crate) fn subjects(draw: &mut Draw, made: usize) -> Vec<String> {
    let listed = SUBJECTS.iter().chain(constructs::SUBJECTS);
    let listed = listed.map(|text| (*text).to_owned());
    listed.chain((0..made).map(|_| draw.text(9))).collect()
}

/// A subject as the request carries it.
pub(crate) fn escaped(subject: &str) -> String {
    subject.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The patterns of a method that can stand anywhere, and those for a line of the configuration only.
fn patterns(method: &str) -> (Vec<&'static str>, Vec<&'static str>) {
    match method {
        "len" | "int" => (NUMBERS.to_vec(), NO_NUMBERS.to_vec()),
        "ip" => (NETWORKS.to_vec(), [SHORT_ADDRESSES, NO_NETWORKS].concat()),
        "bin" => (BYTES.to_vec(), NO_BYTES.to_vec()),
        "reg" => (EXPRESSIONS.to_vec(), CONSTRUCTS.to_vec()),
        "dir" | "dom" => {
            // HAProxy compares patterns of nothing else with what stands behind the sample.
            let has_word = |text: &&&str| text.contains(|c| !"/?.:".contains(c));
            (TEXTS.iter().filter(has_word).copied().collect(), Vec::new())
        }
        _ => (TEXTS.to_vec(), Vec::new()),
    }
}

/// Those that fit a line of a file and a word of a command as they are.
fn plain_patterns(method: &str) -> Vec<&'static str> {
    let mut plain = patterns(method).0;
    plain.retain(|text| !text.contains([' ', '\t', '#', '\\', ';']));
    plain
}

const METHODS: [&str; 11] = [
    "str", "beg", "end", "sub", "dir", "dom", "len", "reg", "int", "ip", "bin",
];

/// Conditions, as their words between braces: each pattern alone, with its case and without.
pub(crate) fn single_patterns() -> Vec<Vec<String>> {
    let mut cases = Vec::new();
    for method in METHODS {
        let (anywhere, in_lines) = patterns(method);
        let folding: &[Option<&str>] = &[None, Some("-i")];
        let anywhere = anywhere.into_iter().map(|pattern| (pattern, folding));
        let in_lines = in_lines.into_iter().map(|pattern| (pattern, &folding[..1]));
        for (pattern, flags) in anywhere.chain(in_lines) {
            for flag in flags.iter().copied() {
                let mut words = vec![SUBJECT, "-m", method];
                words.extend(flag);
                words.extend(["--", pattern]);
                cases.push(words.into_iter().map(str::to_owned).collect());
            }
        }
    }
    for method in ["found", "bool"] {
        cases.push([SUBJECT, "-m", method].map(str::to_owned).to_vec());
    }
    cases
}

/// A file of patterns: the lines it begins with, and those that are added while the program runs.
pub(crate) struct PatternFile {
    pub(crate) path: String,
    pub(crate) method: &'static str,
    pub(crate) added: Vec<String>,
}

impl PatternFile {
    /// The words of conditions that read it.
    pub(crate) fn conditions(&self) -> [Vec<String>; 2] {
        let plain = [SUBJECT, "-m", self.method, "-f", &self.path].map(str::to_owned);
        let folding = [SUBJECT, "-m", self.method, "-i", "-f", &self.path].map(str::to_owned);
        [plain.to_vec(), folding.to_vec()]
    }
}

/// Lists for `-f`, each of a few patterns that both programs take.
pub(crate) fn pattern_files(dir: &Path, draw: &mut Draw) -> Vec<PatternFile> {
    let mut files = Vec::new();
    for method in METHODS {
        let good = plain_patterns(method);
        for number in 0..6 {
            let count = if number == 5 { 40 } else { 3 };
            let mut pick = |count: usize| -> Vec<String> {
                (0..count)
                    .map(|_| good[draw.below(good.len())].to_owned())
                    .collect()
            };
            let (lines, added) = (pick(count), pick(2));
            let path = dir
                .join(format!("{method}{number}.list"))
                .display()
                .to_string();
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
            files.push(PatternFile {
                path,
                method,
                added,
            });
        }
    }
    files
}

/// A map, the converter that reads it, and what is added while the program runs.
pub(crate) struct MapFile {
    pub(crate) path: String,
    pub(crate) converter: String,
    pub(crate) added: Vec<(String, String)>,
}

/// Maps for every `map_*` converter.
pub(crate) fn map_files(dir: &Path, draw: &mut Draw) -> Vec<MapFile> {
    let mut files = Vec::new();
    for method in METHODS {
        if matches!(method, "len" | "bin") {
            continue;
        }
        let good = plain_patterns(method);
        for kind in ["", "_int", "_ip", "_key"] {
            for number in 0..3 {
                let value = |at: usize| match kind {
                    "_int" => format!("{at}"),
                    "_ip" => format!("192.0.2.{at}"),
                    _ => format!("v{at}"),
                };
                let count = if number == 2 { 30 } else { 4 };
                let mut pair = |at: usize| (good[draw.below(good.len())].to_owned(), value(at));
                let lines: Vec<String> = (0..count)
                    .map(&mut pair)
                    .map(|(key, value)| format!("{key} {value}\n"))
                    .collect();
                let added = (100..102).map(&mut pair).collect();
                let path = dir
                    .join(format!("{method}{kind}{number}.map"))
                    .display()
                    .to_string();
                std::fs::write(&path, lines.concat()).unwrap();
                let default = match (kind, number) {
                    ("", 0) => ",none",
                    ("_int", 0) => ",7",
                    ("_ip", 0) => ",192.0.2.250",
                    _ => "",
                };
                let converter = format!("map_{method}{kind}({path}{default})");
                files.push(MapFile {
                    path,
                    converter,
                    added,
                });
            }
        }
    }
    files.extend(group_files(dir));
    files
}

/// Of a group that is repeated, and took nothing the last time, the linear engine reports what it
/// took before.
const LAST_TIME_EMPTY: [&str; 5] = ["(a*)*", "(a*)+", "(a*)*b", "(a|b*)*c", "(a|)+b"];

/// A map for each construct that fits a line of a file: its value tells the groups.
fn group_files(dir: &Path) -> Vec<MapFile> {
    let fitting = CONSTRUCTS
        .iter()
        .filter(|text| !text.contains([' ', '#']) && Regex::new(text, false).is_ok())
        .filter(|text| !LAST_TIME_EMPTY.contains(text));
    let files = fitting.enumerate().map(|(number, construct)| {
        let path = dir.join(format!("groups{number}.map"));
        std::fs::write(&path, format!("{construct} [\\0;\\1;\\2;\\3]\n")).unwrap();
        let path = path.display().to_string();
        MapFile {
            converter: format!("map_regm({path}),hex"),
            path,
            added: Vec::new(),
        }
    });
    files.collect()
}
