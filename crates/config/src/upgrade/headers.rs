//! `reqadd`, `rsprep` and related directives, which edited the text of heads, rewritten as rules on
//! headers.
//!
//! Source: HAProxy 1.8 configuration manual, section 6, for their meaning.

use super::quote;

/// A pattern on a header line: `^Name:\ value`, split.
pub(super) struct HeaderPattern {
    /// The header's name.
    pub(super) name: String,
    /// The rest of the pattern, for the value, without leading spaces; empty when any value
    /// matches.
    pub(super) value: String,
}

/// Parses a pattern that matches a single header by name.
pub(super) fn header_pattern(pattern: &str) -> Option<HeaderPattern> {
    let rest = pattern.strip_prefix('^')?;
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))
        .unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    if name.is_empty() {
        return None;
    }
    let value = match rest.strip_prefix(':') {
        Some(value) => value,
        // `^Server.*` deletes Server; no other known header begins with it.
        None if rest.is_empty() || rest == ".*" || rest == ".*$" => "",
        None => return None,
    };
    let value = value
        .strip_prefix("[ ]*")
        .or_else(|| value.strip_prefix("[[:space:]]*"))
        .unwrap_or(value);
    let value = value
        .trim_start_matches("\\s*")
        .trim_start_matches(' ')
        .trim_start_matches("* ")
        .trim_start();
    Some(HeaderPattern {
        name: name.to_owned(),
        value: value.to_owned(),
    })
}

/// `Name: value`, split.
pub(super) fn header_line(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    Some((name.to_owned(), value.trim().to_owned()))
}

/// A pattern for the value of a header, anchored like the one for the whole line.
pub(super) fn value_pattern(value: &str, ignore_case: bool) -> String {
    let value = if value.is_empty() { ".*" } else { value };
    let anchor = if value.starts_with('^') { "" } else { "^" };
    let case = if ignore_case && has_letters(value) {
        "(?i)"
    } else {
        ""
    };
    quote::word(&format!("{case}{anchor}{value}"))
}

fn has_letters(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().any(|c| {
        let is_letter = c.is_ascii_alphabetic() && !escaped;
        escaped = c == '\\' && !escaped;
        is_letter
    })
}

/// Converts a pattern and a replacement for request lines to ones for paths with queries.
///
/// Known forms: the method is the first group, alone before the path on both sides: `^([^\ :]*)\
/// /a/(.*)` and `\1\ /b/\2`.
pub(super) fn request_line(
    pattern: &str,
    replacement: &str,
    ignore_case: bool,
) -> Option<(String, String)> {
    const METHODS: &[&str] = &[
        "^([^ :]*) ",
        "^([^ ]*) ",
        "^([^ :]+) ",
        "^([^ ]+) ",
        "^([^ :]*)\\ ",
        "^([^ ]*)\\ ",
        "^([^\\ :]*)\\ ",
        "^([^\\ ]*)\\ ",
        "^([^\\ :]+)\\ ",
        "^([^:\\ ]*)\\ ",
        "^([^: ]*) ",
        "^(.*) ",
        "^([A-Z]*) ",
        "^([A-Z]+) ",
        "^(\\w+) ",
    ];
    // The slash of the path may be in the group of the method: `^([^\ ]*\ /)a(.*)` and `\1\2`.
    const WITH_SLASH: &[&str] = &["^([^ ]* /)", "^([^ :]* /)", "^([^ ]+ /)", "^([^: ]* /)"];
    let with_slash = WITH_SLASH
        .iter()
        .find_map(|head| pattern.strip_prefix(head));
    let (rest, to) = match with_slash {
        Some(rest) => (
            format!("/{rest}"),
            format!("/{}", replacement.strip_prefix("\\1")?),
        ),
        None => {
            let rest = METHODS.iter().find_map(|head| pattern.strip_prefix(head))?;
            (
                rest.to_owned(),
                replacement.strip_prefix("\\1 ")?.to_owned(),
            )
        }
    };
    let (rest, to) = (rest.as_str(), to.as_str());
    // The part for the version is removed: it does not belong to the path.
    let (rest, to, groups_of_version) = cut_version(rest, to)?;
    if rest.contains(' ') || to.contains(' ') {
        return None;
    }
    let to = renumber(&to, groups_of_version)?;
    let case = if ignore_case && has_letters(&rest) {
        "(?i)"
    } else {
        ""
    };
    let anchor = if rest.starts_with('^') { "" } else { "^" };
    Some((
        quote::word(&format!("{case}{anchor}{rest}")),
        quote::format(&to),
    ))
}

/// Removes endings like ` HTTP/1.1` from pattern and replacement; returns the number of the group
/// that contained the version, 0 if there was none.
fn cut_version(rest: &str, to: &str) -> Option<(String, String, usize)> {
    for tail in [
        " (.*)",
        " (.*)$",
        " (HTTP/.*)",
        " (HTTP/.*)$",
        " (HTTP/1\\.[01])",
    ] {
        let Some(path) = rest.strip_suffix(tail) else {
            continue;
        };
        let group = path.matches('(').count() - path.matches("\\(").count() + 2;
        let to = to.strip_suffix(&format!(" \\{group}"))?;
        return Some((format!("{path}$"), to.to_owned(), group));
    }
    Some((rest.to_owned(), to.to_owned(), 0))
}

/// Group numbers decrease by one: the method is not included. A replacement that uses the method or
/// the version elsewhere cannot be converted.
fn renumber(to: &str, version: usize) -> Option<String> {
    let mut out = String::new();
    let mut chars = to.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some(digit @ '0'..='9') => {
                let number = digit.to_digit(10)? as usize;
                if number < 2 || number == version {
                    return None;
                }
                out.push('\\');
                out.push_str(&(number - 1).to_string());
            }
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    Some(out)
}

/// A condition that holds when a pattern of a `reqdeny`-like line matches.
pub(super) fn deny_condition(pattern: &str, ignore_case: bool) -> Option<String> {
    let flag = if ignore_case { "-i " } else { "" };
    if let Some(header) = header_pattern(pattern) {
        let value = if header.value.is_empty() {
            return Some(format!("{{ req.hdr({}) -m found }}", header.name));
        } else {
            quote::word(&format!("^{}", header.value.trim_start_matches('^')))
        };
        return Some(format!(
            "{{ req.fhdr({}) {flag}-m reg {value} }}",
            header.name
        ));
    }
    const METHODS: &[&str] = &["^[^ :]* ", "^[^ ]* ", "^[^:]* ", "^[^:]*\\ ", "^[A-Z]* "];
    let path = METHODS.iter().find_map(|head| pattern.strip_prefix(head))?;
    if path.contains(' ') {
        return None;
    }
    let anchor = if path.starts_with(['^', '.']) {
        ""
    } else {
        "^"
    };
    Some(format!(
        "{{ path {flag}-m reg {} }}",
        quote::word(&format!("{anchor}{path}"))
    ))
}
