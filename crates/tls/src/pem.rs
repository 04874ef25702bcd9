//! PEM files: sections of base64 between a BEGIN and an END line (RFC 7468, and the older form with
//! headers of RFC 1421, which marks encrypted keys).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// One section.
#[derive(Clone, Eq, PartialEq)]
pub struct PemSection<'t> {
    /// What it is: `CERTIFICATE`, `PRIVATE KEY` ...
    pub label: &'t str,
    /// The line of its BEGIN, from 1.
    pub line: usize,
    /// The content, decoded.
    pub der: Vec<u8>,
    /// True for the older form of an encrypted key (`Proc-Type: 4,ENCRYPTED`).
    pub is_encrypted: bool,
}

/// The content may be a key, so only its length is shown.
impl fmt::Debug for PemSection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at line {}, {} bytes",
            self.label,
            self.line,
            self.der.len()
        )
    }
}

/// Why a PEM file cannot be read. The operator is at fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PemError {
    /// A BEGIN line whose END is missing, or is another one's.
    Unfinished {
        /// The line of BEGIN, from 1.
        line: usize,
        /// What was begun.
        label: String,
    },
    /// The content is not base64.
    Base64 {
        /// The line of BEGIN, from 1.
        line: usize,
        /// What was begun.
        label: String,
    },
}

impl fmt::Display for PemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfinished { line, label } => {
                write!(
                    f,
                    "the section '{label}' that begins at line {line} has no END line"
                )
            }
            Self::Base64 { line, label } => {
                write!(
                    f,
                    "the section '{label}' that begins at line {line} is not base64"
                )
            }
        }
    }
}

/// Reads all sections of a file. Text outside of sections is a comment. Bytes that are no UTF-8
/// are allowed in comments only.
///
/// # Errors
///
/// [`PemError`], for the first section that cannot be read.
pub fn read_pem(content: &[u8]) -> Result<Vec<PemSection<'_>>, PemError> {
    // Editors put a byte order mark before UTF-8, and OpenSSL reads over it.
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let mut sections = Vec::new();
    let mut lines = (1..).zip(content.split(|byte| *byte == b'\n'));
    while let Some((line, text)) = lines.next() {
        let Some(label) = label_of(text, BEGIN) else {
            continue;
        };
        let unfinished = || PemError::Unfinished {
            line,
            label: label.to_owned(),
        };
        let mut base64 = Vec::new();
        let mut is_encrypted = false;
        loop {
            let (_, text) = lines.next().ok_or_else(unfinished)?;
            if let Some(end) = label_of(text, END) {
                if end != label {
                    return Err(unfinished());
                }
                break;
            }
            if label_of(text, BEGIN).is_some() {
                return Err(unfinished());
            }
            let text = without_end(text).trim_ascii_start();
            // A header: no character of base64 is a colon.
            if text.contains(&b':') {
                is_encrypted |= text.ends_with(b"ENCRYPTED");
                continue;
            }
            base64.extend(text.iter().filter(|byte| !matches!(byte, b' ' | b'\t')));
        }
        let der = if is_encrypted {
            Vec::new()
        } else {
            STANDARD.decode(&base64).map_err(|_| PemError::Base64 {
                line,
                label: label.to_owned(),
            })?
        };
        sections.push(PemSection {
            label,
            line,
            der,
            is_encrypted,
        });
    }
    Ok(sections)
}

/// Reads base64; white space in it does not count. `None`: it is none.
#[must_use]
pub fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let letters: Vec<u8> = text
        .iter()
        .copied()
        .filter(|letter| !letter.is_ascii_whitespace())
        .collect();
    STANDARD.decode(letters).ok()
}

/// Writes base64, in one line.
#[must_use]
pub fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Characters of a line of PEM.
const LINE: usize = 64;

/// Writes a section.
#[must_use]
pub fn write_pem(label: &str, der: &[u8]) -> String {
    let mut text = format!("{BEGIN}{label}{DASHES}\n");
    let base64 = STANDARD.encode(der);
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(LINE.min(rest.len()));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str(END);
    text.push_str(label);
    text.push_str(DASHES);
    text.push('\n');
    text
}

/// A line without the spaces and control characters at its end, which OpenSSL reads over.
fn without_end(line: &[u8]) -> &[u8] {
    let length = line.iter().rposition(|byte| *byte > b' ');
    &line[..length.map_or(0, |last| last + 1)]
}

/// The label of a BEGIN or END line.
fn label_of<'t>(line: &'t [u8], start: &str) -> Option<&'t str> {
    let line = std::str::from_utf8(without_end(line)).ok()?;
    line.strip_prefix(start)?.strip_suffix(DASHES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_with_comments_around_them() {
        let text = b"Bag: \xff\n-----BEGIN A-----\r\nAQID\r\nBA==\r\n-----END A-----\n\
            subject=x\n-----BEGIN B C-----\nAA==\n-----END B C-----";
        let sections = read_pem(text).expect("whole");
        let told: Vec<(&str, usize, &[u8])> = sections
            .iter()
            .map(|s| (s.label, s.line, &s.der[..]))
            .collect();
        assert_eq!(told, [("A", 2, &[1, 2, 3, 4][..]), ("B C", 7, &[0])]);
        assert!(read_pem(b"nothing\n").expect("no section").is_empty());
    }

    #[test]
    fn spaces_and_control_characters_do_not_count() {
        let text = b"-----BEGIN A-----\x0b\r\n A Q\tID\x0c \nBA==\0\n-----END A----- \t\n";
        let sections = read_pem(text).expect("whole");
        assert_eq!(sections[0].der, [1, 2, 3, 4]);
    }

    #[test]
    fn what_is_broken_is_named_with_its_line() {
        for (text, reason) in [
            (
                "\n-----BEGIN A-----\nAA==\n",
                "the section 'A' that begins at line 2 has no END line",
            ),
            (
                "-----BEGIN A-----\n-----END B-----\n",
                "the section 'A' that begins at line 1 has no END line",
            ),
            (
                "-----BEGIN A-----\nA!\n-----END A-----",
                "the section 'A' that begins at line 1 is not base64",
            ),
        ] {
            assert_eq!(
                read_pem(text.as_bytes()).map_err(|e| e.to_string()),
                Err(reason.into())
            );
        }
    }

    #[test]
    fn an_encrypted_key_of_the_older_form_is_marked() {
        let text = b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
            DEK-Info: AES-128-CBC,00\n\nAA==\n-----END RSA PRIVATE KEY-----\n";
        let sections = read_pem(text).expect("whole");
        assert!(sections[0].is_encrypted && sections[0].der.is_empty());
    }
}
