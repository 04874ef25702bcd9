//! Lists of certificates: the lines of a crt-list, `<crtfile> [\[options\]] [filters]` (manual, 5.1,
//! `crt-list`), and the options of `load` in a crt-store (12.7.1), which may stand in both.

use std::fmt;

use crate::names::NameFilters;
use crate::options::{TlsOptions, TlsVersion, VerifyMode, parse_alpn};

/// Files that are named for a certificate beside its own, instead of looked for by their ending.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct LoadOptions {
    /// `key`.
    pub key: Option<String>,
    /// `ocsp`.
    pub ocsp: Option<String>,
    /// `issuer`.
    pub issuer: Option<String>,
    /// `sctl`.
    pub sctl: Option<String>,
    /// `ocsp-update`.
    pub ocsp_update: Option<bool>,
}

impl LoadOptions {
    /// True when files are named: none is looked for then.
    #[must_use]
    pub fn names_files(&self) -> bool {
        [&self.key, &self.ocsp, &self.issuer, &self.sctl]
            .iter()
            .any(|file| file.is_some())
    }

    /// Takes one word with its value, if it is one of `load`.
    ///
    /// # Errors
    ///
    /// A value that is not allowed.
    pub fn take(&mut self, word: &str, value: &str) -> Result<bool, String> {
        let file = match word {
            "key" => &mut self.key,
            "ocsp" => &mut self.ocsp,
            "issuer" => &mut self.issuer,
            "sctl" => &mut self.sctl,
            "ocsp-update" => {
                self.ocsp_update = match value {
                    "on" => Some(true),
                    "off" => Some(false),
                    _ => {
                        return Err(format!(
                            "cannot parse 'ocsp-update' value '{value}', 'on' or 'off' is expected"
                        ));
                    }
                };
                return Ok(true);
            }
            _ => return Ok(false),
        };
        *file = Some(value.to_owned());
        Ok(true)
    }
}

/// One line of a crt-list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CrtListLine {
    /// Its number, from 1.
    pub number: usize,
    /// The file, or the name in a crt-store (`@store/name`).
    pub file: String,
    /// What it says of the handshake.
    pub options: TlsOptions,
    /// What it says of files.
    pub load: LoadOptions,
    /// Its filters; `None` where there is none: the certificate's own names apply.
    pub filters: Option<NameFilters>,
    /// The filters as written, for `show ssl crt-list`.
    pub filter_words: Vec<String>,
    /// The options as written, for `show ssl crt-list`.
    pub option_words: String,
    /// Something that has no effect, as text.
    pub warning: Option<&'static str>,
}

/// Why a crt-list cannot be used. The operator is at fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CrtListError {
    /// The number of the line, from 1.
    pub line: usize,
    /// Why.
    pub reason: String,
}

impl fmt::Display for CrtListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// Reads a crt-list. As in HAProxy a comment begins in the first column, and a last line without
/// its end is refused: the file may have been cut.
///
/// # Errors
///
/// [`CrtListError`], for the first line that cannot be read.
pub fn parse_crt_list(content: &[u8]) -> Result<Vec<CrtListLine>, CrtListError> {
    let mut lines = Vec::new();
    let count = content.split(|byte| *byte == b'\n').count();
    for (number, text) in (1..).zip(content.split(|byte| *byte == b'\n')) {
        let refuse = |reason: &str| CrtListError {
            line: number,
            reason: reason.to_owned(),
        };
        if number == count && !text.is_empty() {
            return Err(refuse(
                "the last line has no end: the file may have been truncated",
            ));
        }
        let text = std::str::from_utf8(text).map_err(|_| refuse("the line is no UTF-8"))?;
        if text.starts_with('#') || text.trim().is_empty() {
            continue;
        }
        let line = parse_crt_list_line(text).map_err(|reason| refuse(&reason))?;
        lines.push(CrtListLine { number, ..line });
    }
    Ok(lines)
}

/// Reads one line, as a file has it and as `add ssl crt-list` gets it.
///
/// # Errors
///
/// Why it cannot be read.
pub fn parse_crt_list_line(text: &str) -> Result<CrtListLine, String> {
    let (before, rest) = match text.split_once('[') {
        Some((before, rest)) => (before, Some(rest)),
        None => (text, None),
    };
    let (inside, after) = match rest.map(|rest| rest.split_once(']').unwrap_or((rest, ""))) {
        Some((inside, after)) => (inside, after),
        None => ("", ""),
    };
    if inside.contains('[') || after.contains('[') {
        return Err("too many '['".to_owned());
    }
    if before.contains(']') || after.contains(']') {
        return Err("too many ']'".to_owned());
    }
    let mut words = before.split_whitespace();
    let file = words
        .next()
        .ok_or("file must start with a cert")?
        .to_owned();
    // Filters before the options are left out, as HAProxy does.
    let filter_words = match rest {
        Some(_) => after.split_whitespace().map(str::to_owned).collect(),
        None => words.map(str::to_owned).collect(),
    };
    let mut line = CrtListLine {
        number: 1,
        file,
        options: TlsOptions::default(),
        load: LoadOptions::default(),
        filters: None,
        option_words: inside.split_whitespace().collect::<Vec<_>>().join(" "),
        warning: None,
        filter_words,
    };
    parse_options(&mut line, inside)?;
    if rest.is_some() && before.split_whitespace().count() > 1 {
        line.warning = Some("malformated line, filters can't be between filename and options!");
    }
    if !line.filter_words.is_empty() {
        let filters = NameFilters::of_names(line.filter_words.iter().map(|word| word.as_bytes()));
        let has_wildcard = filters.names.iter().any(|name| name.starts_with(b"*"));
        if !filters.excluded.is_empty() && !has_wildcard {
            line.warning = Some(
                "negative filters without a positive wildcard filter on the line won't do anything!",
            );
        }
        line.filters = Some(filters);
    }
    Ok(line)
}

fn parse_options(line: &mut CrtListLine, text: &str) -> Result<(), String> {
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let options = &mut line.options;
        match word {
            "allow-0rtt" => options.allow_0rtt = Some(true),
            "no-alpn" => options.alpn = Some(Vec::new()),
            "no-ca-names" => options.no_ca_names = Some(true),
            _ => {
                if !WORDS_WITH_VALUE.contains(&word) {
                    return Err(format!("unknown ssl keyword {word}"));
                }
                let value = words
                    .next()
                    .ok_or_else(|| format!("ssl args out of '[]' for {word}"))?;
                if !line.load.take(word, value)? {
                    set_option(options, word, value)?;
                }
            }
        }
    }
    Ok(())
}

/// The words that take a value; `crt` and `alias` are accepted and do nothing, as in HAProxy.
const WORDS_WITH_VALUE: [&str; 21] = [
    "alias",
    "alpn",
    "ca-file",
    "ca-verify-file",
    "ciphers",
    "ciphersuites",
    "client-sigalgs",
    "crl-file",
    "crt",
    "curves",
    "ecdhe",
    "issuer",
    "key",
    "npn",
    "ocsp",
    "ocsp-update",
    "sctl",
    "sigalgs",
    "ssl-max-ver",
    "ssl-min-ver",
    "verify",
];

fn set_option(options: &mut TlsOptions, word: &str, value: &str) -> Result<(), String> {
    let version = || {
        TlsVersion::named(value)
            .map(Some)
            .ok_or_else(|| format!("'{value}' : unknown ssl/tls version"))
    };
    let text = Some(value.to_owned());
    match word {
        "alpn" => options.alpn = Some(parse_alpn(value)?),
        "ca-file" => options.ca_file = text,
        "ca-verify-file" => options.ca_verify_file = text,
        "ciphers" => options.ciphers = text,
        "ciphersuites" => options.ciphersuites = text,
        "client-sigalgs" => options.client_sigalgs = text,
        "crl-file" => options.crl_file = text,
        "curves" => options.curves = text,
        "ecdhe" => options.ecdhe = text,
        "sigalgs" => options.sigalgs = text,
        "ssl-max-ver" => options.max_version = version()?,
        "ssl-min-ver" => options.min_version = version()?,
        "verify" => {
            options.verify = Some(match value {
                "none" => VerifyMode::None,
                "optional" => VerifyMode::Optional,
                "required" => VerifyMode::Required,
                _ => {
                    return Err(format!(
                        "'verify' : unknown verify method '{value}', only 'none', 'optional', and \
                         'required' are supported"
                    ));
                }
            });
        }
        // `npn` is gone from TLS; `crt` and `alias` mean something in a crt-store only.
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> CrtListLine {
        parse_crt_list_line(text).expect("a good line")
    }

    #[test]
    fn a_line_has_a_file_options_and_filters() {
        let told = line("a.pem [alpn h2,http/1.1 ssl-min-ver TLSv1.3 key k.pem] *.x.org !no.x.org");
        assert_eq!(told.file, "a.pem");
        assert_eq!(
            told.options.alpn,
            Some(vec!["h2".to_owned(), "http/1.1".to_owned()])
        );
        assert_eq!(told.options.min_version, Some(TlsVersion::Tls13));
        assert_eq!(told.load.key.as_deref(), Some("k.pem"));
        assert_eq!(told.filter_words, ["*.x.org", "!no.x.org"]);
        assert_eq!(told.warning, None);
        assert_eq!(line("a.pem").filters, None);
        assert_eq!(line("a.pem[no-alpn]x.org").options.alpn, Some(vec![]));
        assert_eq!(
            line("a.pem [alpn h2").options.alpn,
            Some(vec!["h2".to_owned()])
        );
        assert!(line("a.pem *").filters.expect("one").is_default);
        assert!(line("a.pem !x.org").warning.is_some());
        assert!(line("a.pem x.org [alpn h2]").warning.is_some());
    }

    #[test]
    fn what_is_wrong_is_told_in_haproxys_words() {
        for (text, reason) in [
            ("[alpn h2] a.pem", "file must start with a cert"),
            ("a.pem [alpn h2]]", "too many ']'"),
            ("a.pem [[alpn h2]", "too many '['"),
            ("a.pem [alpn]", "ssl args out of '[]' for alpn"),
            ("a.pem [strict-sni]", "unknown ssl keyword strict-sni"),
            ("a.pem [ssl-min-ver foo]", "'foo' : unknown ssl/tls version"),
            (
                "a.pem [ocsp-update foo]",
                "cannot parse 'ocsp-update' value 'foo', 'on' or 'off' is expected",
            ),
        ] {
            assert_eq!(parse_crt_list_line(text), Err(reason.to_owned()));
        }
    }

    #[test]
    fn a_file_has_comments_and_ends_with_a_line_end() {
        let lines = parse_crt_list(b"# c\n\n \t\na.pem # c\nb.pem\r\n").expect("good");
        let told: Vec<_> = lines
            .iter()
            .map(|line| (line.number, line.file.as_str()))
            .collect();
        assert_eq!(told, [(4, "a.pem"), (5, "b.pem")]);
        assert_eq!(lines[0].filter_words, ["#", "c"]);
        let error = parse_crt_list(b"a.pem\nb.pem").expect_err("cut");
        assert_eq!(error.line, 2);
    }
}
