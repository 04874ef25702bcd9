//! Words as a line of a configuration file would have them.

use ballast_syntax::parse_str;

/// Words as a line of a file would have them.
pub fn quoted_line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// A word as a file would have to write it.
pub(crate) fn quoted(word: &str) -> String {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"._-:/@,%[]()+={}!*&|<>^~?".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    let mut quoted = String::from("'");
    for part in word.split('\'') {
        quoted.push_str(part);
        quoted.push_str("'\\''");
    }
    quoted.truncate(quoted.len() - 3);
    quoted
}

/// The words of a `server` line after its first word, as [`quoted_line`] writes it.
pub fn words_of(line: &str) -> Vec<String> {
    let document = parse_str("", &format!("server {line}"));
    let mut lines = document.lines();
    let words = lines.next().map(|line| {
        let words = 1..line.words.len();
        words.map(|at| line.text(at).to_owned()).collect()
    });
    words.unwrap_or_default()
}
