//! Properties of every row.

use ballast_syntax::Severity;

use crate::keyword::{Keyword, KeywordState, Sections};
use crate::{EmptyMachine, LoadedConfig, Options, StandInMachine, load};

/// Loads a text on a machine where everything missing has a stand-in.
pub(crate) fn load_with_stand_ins(text: &str) -> LoadedConfig {
    let files = vec![("t.cfg".to_owned(), text.as_bytes().to_vec())];
    load(files, &StandInMachine(EmptyMachine), Options::default())
}

/// The messages of a severity.
pub(crate) fn messages(loaded: &LoadedConfig, severity: Severity) -> Vec<String> {
    loaded
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == severity)
        .map(|diagnostic| diagnostic.message.clone())
        .collect()
}

/// Objects that the examples of frontends refer to.
const OTHERS: &str = "backend b\n mode http\n timeout server 1s\n timeout connect 1s\n \
                      server s1 192.0.2.1:80\nhttp-errors site\n errorfile 503 /dev/null\nbackend t\n mode http\n";

/// Objects that the examples of backends refer to.
const GROUPS: &str = "http-errors site\n errorfile 503 /dev/null\nmailers m\n \
                      mailer a 192.0.2.1:25\nfcgi-app app\n docroot /srv\nbackend t\n";

/// Lines without which a keyword has no effect.
fn companions(word: &str) -> &'static str {
    match word.split(' ').next() {
        Some("http-check") => " option httpchk\n",
        Some("stick") => " stick-table type ip size 1k\n",
        Some("tcp-check") => " option tcp-check\n",
        Some("tfo") => " retry-on conn-failure empty-response response-timeout\n",
        Some("external-check") => " option external-check\n external-check command /bin/true\n",
        _ if word == "option external-check" => " external-check command /bin/true\n",
        _ if word.contains("log") => " log 192.0.2.1 local0\n",
        _ => "",
    }
}

/// A whole configuration around one line, in the first place where the keyword is allowed, and the
/// number of that line.
fn around(keyword: &Keyword, line: &str) -> (String, u32) {
    let mode = " mode http\n";
    let timeouts = " timeout client 1s\n timeout server 1s\n timeout connect 1s\n";
    let has = |section| keyword.sections.has(section);
    if has(Sections::BIND) {
        (
            format!("frontend f\n mode http\n{timeouts} bind :80 {line}\n"),
            6,
        )
    } else if has(Sections::SERVER) {
        (
            format!(
                "backend b\n mode http\n{timeouts} server other 192.0.2.9:80 check\n server s 192.0.2.1:80 {line}\n{}resolvers dns\nhealthcheck hc\n",
                companions(keyword.word)
            ),
            7,
        )
    } else if has(Sections::STATS_SOCKET) {
        (format!("global\n stats socket /run/s.sock {line}\n"), 2)
    } else if has(Sections::CRT_LOAD) {
        (format!("crt-store x\n load crt a.pem {line}\n"), 2)
    } else if has(Sections::BACKEND) {
        (
            format!(
                "backend b\n{mode}{timeouts} {line}\n{} server s1 192.0.2.1:80\n{GROUPS}",
                companions(keyword.word)
            ),
            6,
        )
    } else if has(Sections::FRONTEND) {
        (
            format!(
                "frontend f\n{mode}{timeouts} bind :80\n {line}\n{}{OTHERS}",
                companions(keyword.word)
            ),
            7,
        )
    } else if has(Sections::DEFAULTS) {
        (format!("defaults\n{mode}{timeouts} {line}\n"), 6)
    } else {
        let section = keyword.sections.words().next().unwrap_or("global");
        if keyword.experimental {
            let text = format!("global\n expose-experimental-directives\n {line}\n");
            return (text, 3);
        }
        let name = match section {
            "global" | "traces" | "namespace_list" => "",
            _ => " x",
        };
        (format!("{section}{name}\n {line}\n"), 2)
    }
}

fn said_at(loaded: &LoadedConfig, number: u32) -> Vec<String> {
    loaded
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity >= Severity::Warning)
        // An example may be of an old name, or come after a line with its word.
        .filter(|diagnostic| !matches!(diagnostic.code, "deprecated" | "said-twice"))
        .filter(|diagnostic| {
            diagnostic
                .span
                .is_some_and(|span| loaded.sources.locate(span).line == number)
        })
        .map(|diagnostic| diagnostic.message.clone())
        .collect()
}

/// Every row's good example is accepted in each of its places, and its bad one is not.
#[test]
fn examples_of_rows_are_true() {
    let mut wrong = Vec::new();
    for keyword in crate::keywords() {
        if keyword.sections == Sections::CRT_LIST
            || keyword.sections == Sections::RULES
            || keyword.sections == Sections::SAMPLES
            || keyword.sections == Sections::CONVERTERS
            || keyword.sections == Sections::PROGRAM
        {
            // Lines of another file, lines of a removed section, which are not parsed, and rows of
            // other catalogues, which test their own examples.
            continue;
        }
        let good = if keyword.good.is_empty() {
            keyword.word
        } else {
            keyword.good
        };
        let (text, number) = around(&keyword, good);
        let said = said_at(&load_with_stand_ins(&text), number);
        match keyword.state {
            KeywordState::Refused { .. } if said.is_empty() => {
                wrong.push(format!("refused but accepted: {good}"));
            }
            KeywordState::Refused { .. } => {}
            _ if !said.is_empty() => wrong.push(format!("{good}: {said:?}")),
            _ => {}
        }
        if !keyword.bad.is_empty() {
            let (text, number) = around(&keyword, keyword.bad);
            if said_at(&load_with_stand_ins(&text), number).is_empty() {
                wrong.push(format!("accepted: {}", keyword.bad));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// No word is two rows of one place.
#[test]
fn rows_are_unique() {
    let keywords = crate::keywords();
    for (at, one) in keywords.iter().enumerate() {
        for other in &keywords[at + 1..] {
            assert!(
                one.word != other.word || !one.sections.has(other.sections),
                "'{}' has two rows for {}",
                one.word,
                other.sections
            );
        }
    }
}

#[test]
fn the_counters_that_rules_may_track_are_those_the_text_has_by_then() {
    let section = "frontend f\n mode http\n timeout client 1s\n bind :80\n \
                   http-request track-sc5 src table t\n\
                   backend t\n stick-table type ip size 1k\n";
    let counters = "global\n tune.stick-counters 6\n";
    let alerts = |text: String| messages(&load_with_stand_ins(&text), Severity::Alert);
    assert_eq!(alerts(format!("{counters}{section}")), [""; 0]);
    for text in [section.to_owned(), format!("{section}{counters}")] {
        let said = alerts(text);
        assert!(
            said[0].contains("5 track-sc number exceeding 2"),
            "{said:?}"
        );
    }
}

#[test]
fn peers_are_refused_where_there_is_another() {
    let text = |members: &str| format!("global\n localpeer a\npeers p\n{members}");
    let unimplemented = |members: &str| load_with_stand_ins(&text(members)).unimplemented.len();
    assert_eq!(unimplemented(" peer a 192.0.2.1:1\n"), 0);
    assert_eq!(unimplemented(" bind 192.0.2.1:1\n server a\n"), 0);
    assert_eq!(unimplemented(""), 0);
    let table = " table t type ip size 1k\n";
    assert_eq!(unimplemented(&format!(" peer a 192.0.2.1:1\n{table}")), 0);
    assert!(unimplemented(" peer a 192.0.2.1:1\n peer b 192.0.2.2:1\n") > 0);
    let said = messages(
        &load_with_stand_ins(&text(" peer b 192.0.2.2:1\n")),
        Severity::Warning,
    );
    assert!(said[0].contains("no peer named 'a'"), "{said:?}");
}
