//! One line: which removed directive it is, and its replacement.

use ballast_syntax::{Document, LineKind, Section, SectionKind, SourceLine};

use super::headers::{deny_condition, header_line, header_pattern, request_line, value_pattern};
use super::{FileFacts, Rewrite, quote};

/// The result for a line; `None` when it can stay.
pub(super) fn rewrite(
    document: &Document,
    section: &Section,
    line: &SourceLine,
    facts: &FileFacts,
) -> Option<Rewrite> {
    if line.kind == LineKind::Header {
        return header(document, section, line);
    }
    match facts.kind {
        SectionKind::Global => global(document, line, facts),
        SectionKind::Defaults
        | SectionKind::Frontend
        | SectionKind::Backend
        | SectionKind::Listen => {
            let words = LineWords { document, line };
            rewrite_renamed(&words)
                .or_else(|| options(&words))
                .or_else(|| rewrite_edited(&words))
                .or_else(|| removed_directive(&words, facts))
        }
        _ => None,
    }
}

/// The words of a line, as written and resolved.
struct LineWords<'d> {
    document: &'d Document,
    line: &'d SourceLine,
}

impl LineWords<'_> {
    fn text(&self, index: usize) -> &str {
        self.line.text(index)
    }

    fn len(&self) -> usize {
        self.line.words.len()
    }

    /// The words from `index` on as they were written, a space before each.
    fn rest(&self, index: usize) -> String {
        let words = self.line.words.get(index..).unwrap_or_default();
        let mut out = String::new();
        for word in words {
            out.push(' ');
            out.push_str(&self.document.sources.text(word.span()));
        }
        out
    }
}

fn one(text: String, reason: &str) -> Option<Rewrite> {
    Some(Rewrite::Lines(vec![text], reason.to_owned()))
}

fn none(reason: &str) -> Option<Rewrite> {
    Some(Rewrite::Lines(Vec::new(), reason.to_owned()))
}

fn cannot_rewrite(reason: &str) -> Option<Rewrite> {
    Some(Rewrite::Left(reason.to_owned()))
}

/// `listen name 10.0.0.1:80`: the address moves to a line of its own.
fn header(document: &Document, section: &Section, line: &SourceLine) -> Option<Rewrite> {
    if !matches!(
        section.kind,
        SectionKind::Frontend | SectionKind::Listen | SectionKind::Backend
    ) || section.from().is_some()
    {
        return None;
    }
    let words = LineWords { document, line };
    if words.len() != 3 || !words.text(2).contains([':', '/', '*', '@']) {
        return None;
    }
    let head = format!(
        "{}{}",
        words.text(0),
        words.rest(1).replace(&words.rest(2), "")
    );
    let head = if head.split_whitespace().count() == 2 {
        head
    } else {
        format!("{} {}", words.text(0), quote::word(words.text(1)))
    };
    let reason = "since HAProxy 1.9 addresses stand on 'bind' lines only".to_owned();
    let bind = format!("bind{}", words.rest(2));
    Some(Rewrite::Lines(vec![head, bind], reason))
}

fn global(document: &Document, line: &SourceLine, facts: &FileFacts) -> Option<Rewrite> {
    let words = LineWords { document, line };
    match words.text(0) {
        "nbproc" if facts.has_threads || words.text(1) == "1" => {
            none("there is one process, and threads are used by themselves")
        }
        "nbproc" => one(
            format!("nbthread{}", words.rest(1)),
            "there is one process; threads took the place of processes in HAProxy 2.5",
        ),
        "debug" => none("the debug mode is chosen on the command line, by -d"),
        "tune.zlib.memlevel" | "tune.zlib.windowsize" => {
            none("the compression library that it tunes is not used")
        }
        "nosepoll" => none("this way to wait for sockets went with HAProxy 1.6"),
        "stats" if matches!(words.text(1), "bind-process" | "bind-proc") => {
            none("there is one process")
        }
        "group" | "user" | "uid" | "gid" if words.len() > 2 => None,
        _ => None,
    }
}

/// Keywords that were renamed.
fn rewrite_renamed(words: &LineWords<'_>) -> Option<Rewrite> {
    let since = "since HAProxy 2.1 timeouts are 'timeout' lines";
    match words.text(0) {
        "contimeout" => one(format!("timeout connect{}", words.rest(1)), since),
        "clitimeout" => one(format!("timeout client{}", words.rest(1)), since),
        "srvtimeout" => one(format!("timeout server{}", words.rest(1)), since),
        "redispatch" => one(
            format!("option redispatch{}", words.rest(1)),
            "since HAProxy 2.1 it is an option",
        ),
        "block" => one(
            format!("http-request deny{}", words.rest(1)),
            "since HAProxy 2.1 refusing is an 'http-request' rule",
        ),
        "dispatch" => one(
            format!("server dispatch{}", words.rest(1)),
            "'dispatch' was removed in HAProxy 3.3; a server does the same",
        ),
        "transparent" => one(
            "option transparent".to_owned(),
            "since HAProxy 3.3 it is an option",
        ),
        "mode" if words.text(1) == "health" => Some(Rewrite::Lines(
            vec![
                "mode http".to_owned(),
                "http-request return status 200".to_owned(),
            ],
            "'mode health' is gone; a rule answers as it did".to_owned(),
        )),
        "monitor-net" => one(
            format!(
                "http-request return status 200 if {{ src{} }}",
                words.rest(1)
            ),
            "'monitor-net' is gone; a rule answers as it did, in 'mode http'",
        ),
        _ => None,
    }
}

/// Options that were removed.
fn options(words: &LineWords<'_>) -> Option<Rewrite> {
    let negated = words.text(0) == "no";
    let at = usize::from(negated);
    if words.text(at) != "option" {
        return None;
    }
    match words.text(at + 1) {
        "forceclose" if negated => none("'option forceclose' is gone since HAProxy 2.0"),
        "forceclose" => one(
            "option httpclose".to_owned(),
            "'option forceclose' is gone since HAProxy 2.0; 'httpclose' closes both sides",
        ),
        "http-tunnel" => none("'option http-tunnel' is gone since HAProxy 2.1 and was not needed"),
        "http-use-htx" => none("there is one way to handle HTTP since HAProxy 2.1"),
        "httpchk" if !negated => hidden_headers(words),
        "http_proxy" if negated => none("'option http_proxy' is gone since HAProxy 2.5"),
        "http_proxy" => cannot_rewrite("it needs rules: http-request do-resolve and set-dst"),
        _ => None,
    }
}

/// `option httpchk <method> <uri> <version>` whose version hides headers, and maybe a body, behind a line end.
fn hidden_headers(words: &LineWords<'_>) -> Option<Rewrite> {
    let (version, hidden) = words.text(4).split_once("\r\n")?;
    if hidden.is_empty() || words.len() > 5 {
        return None;
    }
    let why = "what stands behind the version is no list of headers";
    let (heads, body) = hidden.split_once("\r\n\r\n").unwrap_or((hidden, ""));
    let mut send = format!("http-check send ver {}", quote::word(version));
    for line in heads.split("\r\n").filter(|line| !line.is_empty()) {
        let Some((name, value)) = header_line(line) else {
            return cannot_rewrite(why);
        };
        send.push_str(&format!(" hdr {name} {}", quote::format(&value)));
    }
    if !body.is_empty() {
        // Control characters have no place in a word of a rule.
        if body.chars().any(char::is_control) {
            return cannot_rewrite(why);
        }
        send.push_str(&format!(" body {}", quote::word(body)));
    }
    let check = words.line.words[..4]
        .iter()
        .map(|word| words.document.sources.text(word.span()).into_owned())
        .collect::<Vec<_>>();
    Some(Rewrite::Lines(
        vec![check.join(" "), send],
        "since HAProxy 2.2 'http-check send' has the headers of a check".to_owned(),
    ))
}

/// `process` of a `bind` line, the old notation for its threads.
fn bind_process(words: &LineWords<'_>) -> Option<Rewrite> {
    let at = (2..words.len()).find(|at| words.text(*at) == "process")?;
    let (_, threads) = words.text(at + 1).split_once('/').unwrap_or_default();
    let mut text = "bind".to_owned();
    for (index, word) in words.line.words.iter().enumerate().skip(1) {
        match index {
            _ if index == at && !threads.is_empty() => text.push_str(" thread"),
            _ if index == at + 1 && !threads.is_empty() => {
                text.push(' ');
                text.push_str(&quote::word(threads));
            }
            _ if index == at || index == at + 1 => {}
            _ => {
                text.push(' ');
                text.push_str(&words.document.sources.text(word.span()));
            }
        }
    }
    one(
        text,
        "since HAProxy 2.5 there is one process; 'thread' names threads",
    )
}

/// Lines that edited the text of heads.
fn rewrite_edited(words: &LineWords<'_>) -> Option<Rewrite> {
    let word = words.text(0);
    let since = "since HAProxy 2.1 heads are changed by rules on headers";
    let why = "its pattern is not one on a single header or on the path";
    let is_response = word.starts_with("rsp");
    let set = if is_response {
        "http-response"
    } else {
        "http-request"
    };
    let base = word
        .strip_prefix("req")
        .or_else(|| word.strip_prefix("rsp"))?;
    let (base, ignore_case) = match base {
        "iallow" | "idel" | "ideny" | "ipass" | "irep" | "itarpit" | "isetbe" => (&base[1..], true),
        "add" | "allow" | "del" | "deny" | "pass" | "rep" | "tarpit" | "setbe" => (base, false),
        _ => return None,
    };
    let pattern = words.text(1);
    match base {
        "add" => match header_line(pattern) {
            Some((name, value)) => one(
                format!(
                    "{set} add-header {name} {}{}",
                    quote::format(&value),
                    words.rest(2)
                ),
                since,
            ),
            None => cannot_rewrite("what it adds is no header"),
        },
        "pass" => cannot_rewrite(
            "no rule lets a request off those that follow: give them the opposite condition, then remove it",
        ),
        "del" => match header_pattern(pattern) {
            Some(header) if is_any(&header.value) => one(
                format!("{set} del-header {}{}", header.name, words.rest(2)),
                since,
            ),
            _ => cannot_rewrite(why),
        },
        "rep" => match rewrite_replacement(words, set, is_response, ignore_case) {
            Some(text) => one(text, since),
            None => cannot_rewrite(why),
        },
        "allow" | "deny" | "tarpit" if !is_response => match deny_condition(pattern, ignore_case) {
            Some(condition) => {
                rewrite_conditional(words, &format!("http-request {base}"), &condition, 2, since)
            }
            None => cannot_rewrite(why),
        },
        "deny" => match header_pattern(pattern) {
            Some(header) => {
                let value = value_pattern(&header.value, ignore_case);
                let condition = format!("{{ res.fhdr({}) -m reg {value} }}", header.name);
                rewrite_conditional(words, "http-response deny", &condition, 2, since)
            }
            None => cannot_rewrite(why),
        },
        "setbe" => match deny_condition(pattern, ignore_case) {
            Some(condition) => {
                let rule = format!("use_backend {}", quote::word(words.text(2)));
                rewrite_conditional(words, &rule, &condition, 3, since)
            }
            None => cannot_rewrite(why),
        },
        _ => cannot_rewrite(why),
    }
}

fn is_any(value: &str) -> bool {
    matches!(value, "" | ".*" | ".*$" | "*" | ".")
}

/// A rule with a condition, combined with the one of the old line.
fn rewrite_conditional(
    words: &LineWords<'_>,
    rule: &str,
    condition: &str,
    at: usize,
    reason: &str,
) -> Option<Rewrite> {
    match words.text(at) {
        "" => one(format!("{rule} if {condition}"), reason),
        "if" if !words.line.words[at..]
            .iter()
            .any(|word| matches!(word.text(), "or" | "||")) =>
        {
            one(
                format!("{rule} if {condition}{}", words.rest(at + 1)),
                reason,
            )
        }
        _ => cannot_rewrite("two conditions cannot be made one here"),
    }
}

/// `reqrep` and `rsprep`.
fn rewrite_replacement(
    words: &LineWords<'_>,
    set: &str,
    is_response: bool,
    ignore_case: bool,
) -> Option<String> {
    let (pattern, replacement) = (words.text(1), words.text(2));
    if let (Some(header), Some((name, value))) = (header_pattern(pattern), header_line(replacement))
    {
        if !header.name.eq_ignore_ascii_case(&name) {
            return None;
        }
        return Some(format!(
            "{set} replace-header {name} {} {}{}",
            value_pattern(&header.value, ignore_case),
            quote::format(&value),
            words.rest(3)
        ));
    }
    if is_response {
        return None;
    }
    let (from, to) = request_line(pattern, replacement, ignore_case)?;
    Some(format!(
        "http-request replace-pathq {from} {to}{}",
        words.rest(3)
    ))
}

/// Directives without a direct replacement.
fn removed_directive(words: &LineWords<'_>, facts: &FileFacts) -> Option<Rewrite> {
    match words.text(0) {
        "grace" => none("'grace' stands in the global section since HAProxy 2.5"),
        "bind-process" => none("there is one process"),
        "bind" => bind_process(words),
        "appsession" if facts.has_table => {
            cannot_rewrite("the section has a stick-table of its own")
        }
        "appsession" => appsession(words),
        _ => None,
    }
}

/// `appsession <cookie> len <length> timeout <time>`: a table of the cookie's values.
fn appsession(words: &LineWords<'_>) -> Option<Rewrite> {
    let cookie = words.text(1);
    let value_of = |name: &str| {
        let at = (2..words.len()).find(|at| words.text(*at) == name)?;
        Some(words.text(at + 1).to_owned())
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if cookie.is_empty() || !cookie.chars().all(is_name) {
        return cannot_rewrite("its cookie has no plain name");
    }
    let length = value_of("len").unwrap_or_else(|| "52".to_owned());
    let timeout = value_of("timeout").unwrap_or_else(|| "3h".to_owned());
    Some(Rewrite::Lines(
        vec![
            format!("stick-table type string len {length} size 1m expire {timeout}"),
            format!("stick store-response res.cook({cookie})"),
            format!("stick match req.cook({cookie})"),
        ],
        "'appsession' is gone since HAProxy 1.6; a stick table remembers the cookie's values"
            .to_owned(),
    ))
}
