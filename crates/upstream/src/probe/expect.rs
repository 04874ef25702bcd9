//! `expect`: what a response must contain, or must not (configuration manual, "http-check expect"
//! and "tcp-check expect").

use ballast_expr::{Expr, LogFormat, Regex, bytes_of_text};
use ballast_health::CheckStatus;
use ballast_message::{Response, comma_values};
use ballast_model::{CheckExpect, ExpectOutcome, ExpectSubject, HeaderPattern, HeaderPatternText};

use super::facts::ProbeFacts;

/// A compiled `expect` rule.
pub(super) struct Expect {
    model: CheckExpect,
    regex: Option<Regex>,
    name: Option<Regex>,
    value: Option<Regex>,
}

/// The text for a format that gives nothing to look for.
const EMPTY_FORMAT: &str = "log-format string evaluated to an empty string";
/// The text for a format that gives no hexadecimal.
const NOT_HEXADECIMAL: &str = "Failed to parse hexastring resulting of eval of a log-format string";

impl Expect {
    /// Patterns and expressions that do not parse were refused with the configuration; if one gets
    /// here anyway, it matches nothing.
    pub(super) fn new(model: &CheckExpect) -> Self {
        let pattern = |text: &String, fold| Regex::new(text, fold).ok();
        let (mut regex, mut name_regex, mut value_regex) = (None, None, None);
        match &model.subject {
            ExpectSubject::StatusRegex(text) | ExpectSubject::Regex(text) => {
                regex = pattern(text, false);
            }
            // Hexadecimal digits above 9 may be written in either case.
            ExpectSubject::BinaryRegex(text) => regex = pattern(text, true),
            ExpectSubject::Header { name, value, .. } => {
                name_regex = regex_text(name).and_then(|text| pattern(text, true));
                let value = value.as_ref().and_then(regex_text);
                value_regex = value.and_then(|text| pattern(text, false));
            }
            _ => {}
        }
        Self {
            regex,
            name: name_regex,
            value: value_regex,
            model: model.clone(),
        }
    }

    /// A status from 200 to 399.
    pub(super) fn good_status() -> Self {
        Self::new(&good_status())
    }

    /// Whether a rule is [`Self::good_status`], which is implied where no rule says another.
    pub(super) fn is_good_status(model: &CheckExpect) -> bool {
        *model == good_status()
    }

    pub(super) fn comment(&self) -> Option<&str> {
        self.model.comment.as_deref()
    }

    pub(super) fn on_success(&self) -> Option<&LogFormat> {
        self.model.on_success.as_ref()
    }

    pub(super) fn on_error(&self) -> Option<&LogFormat> {
        self.model.on_error.as_ref()
    }

    pub(super) fn code(&self) -> Option<&Expr> {
        self.model.status_code.as_ref()
    }

    pub(super) fn is_negated(&self) -> bool {
        self.model.negated
    }

    /// `ok-status`, else `L7OK`.
    pub(super) fn ok_status(&self) -> CheckStatus {
        status_of_outcome(self.model.ok.as_ref()).unwrap_or(CheckStatus::L7Ok)
    }

    /// `error-status`.
    pub(super) fn error_status(&self) -> Option<CheckStatus> {
        status_of_outcome(self.model.error.as_ref())
    }

    /// `tout-status`, else `L7TOUT`.
    pub(super) fn timeout_status(&self) -> CheckStatus {
        status_of_outcome(self.model.timeout.as_ref()).unwrap_or(CheckStatus::L7Timeout)
    }

    /// The verdict on the head of the response, where the head decides; `None` where the body does.
    ///
    /// # Errors
    /// The text for a format that gives nothing to look for.
    pub(super) fn match_head(
        &self,
        response: &Response,
        seen: ProbeFacts<'_>,
    ) -> Result<Option<bool>, &'static str> {
        let status = response.status();
        let found = match &self.model.subject {
            ExpectSubject::Status(ranges) => ranges
                .iter()
                .any(|(low, high)| (*low..=*high).contains(&status)),
            ExpectSubject::StatusRegex(_) => self.matches(status.to_string().as_bytes()),
            ExpectSubject::Header { full, name, value } => {
                let name = sought(name, seen)?.to_ascii_lowercase();
                let value = value
                    .as_ref()
                    .map(|value| sought(value, seen))
                    .transpose()?;
                self.has_header(response, *full, &name, value.as_deref())
            }
            _ => return Ok(None),
        };
        Ok(Some(found != self.model.negated))
    }

    /// The verdict on the bytes received so far; `None` when more bytes are needed.
    ///
    /// # Errors
    /// The text for a format that gives nothing to look for.
    pub(super) fn match_data(
        &self,
        data: &[u8],
        ended: bool,
        seen: ProbeFacts<'_>,
    ) -> Result<Option<bool>, &'static str> {
        let least = usize::try_from(self.model.receive_bytes_min).unwrap_or(0);
        let least = match &self.model.subject {
            ExpectSubject::Text(text) | ExpectSubject::Binary(text) => least.max(text.len()),
            _ => least,
        };
        if !ended && data.len() < least {
            return Ok(None);
        }
        let found = self.finds(data, seen)?;
        // Without `min-recv`, only the end of the connection proves that something is absent.
        if !found && !ended && self.model.receive_bytes_min < 0 {
            return Ok(None);
        }
        Ok(Some(found != self.model.negated))
    }

    fn finds(&self, data: &[u8], seen: ProbeFacts<'_>) -> Result<bool, &'static str> {
        Ok(match &self.model.subject {
            ExpectSubject::Text(text) | ExpectSubject::Binary(text) => holds(data, text),
            ExpectSubject::Regex(_) => self.matches(data),
            ExpectSubject::BinaryRegex(_) => self.matches(&hex(data)),
            ExpectSubject::TextFormat(format) => holds(data, &rendered(format, seen)?),
            ExpectSubject::BinaryFormat(format) => {
                let bytes = unhex(&rendered(format, seen)?).ok_or(NOT_HEXADECIMAL)?;
                holds(data, &bytes)
            }
            ExpectSubject::Status(_)
            | ExpectSubject::StatusRegex(_)
            | ExpectSubject::Header { .. } => false,
        })
    }

    fn matches(&self, subject: &[u8]) -> bool {
        self.regex
            .as_ref()
            .is_some_and(|regex| regex.is_match(subject))
    }

    fn has_header(
        &self,
        response: &Response,
        full: bool,
        name: &[u8],
        value: Option<&[u8]>,
    ) -> bool {
        let ExpectSubject::Header {
            name: name_pattern,
            value: value_pattern,
            ..
        } = &self.model.subject
        else {
            return false;
        };
        let value_is = |found: &[u8]| match (value_pattern, value) {
            (Some(pattern), Some(value)) => like(pattern.method, value, self.value.as_ref(), found),
            _ => true,
        };
        response.fields().iter().any(|field| {
            let named = like(name_pattern.method, name, self.name.as_ref(), field.name);
            named
                && if full {
                    value_is(field.value)
                } else {
                    comma_values(field.value).any(value_is)
                }
        })
    }

    /// What is looked for, in the words of messages about TCP checks: `expect <this>`.
    pub(super) fn subject_words(&self) -> String {
        match &self.model.subject {
            ExpectSubject::Text(text) => format!("string '{}'", String::from_utf8_lossy(text)),
            ExpectSubject::Binary(bytes) => {
                format!("binary '{}'", String::from_utf8_lossy(&hex(bytes)))
            }
            ExpectSubject::Regex(_) => "regex".to_owned(),
            ExpectSubject::BinaryRegex(_) => "binary regex".to_owned(),
            ExpectSubject::TextFormat(_) => "log-format string".to_owned(),
            ExpectSubject::BinaryFormat(_) => "log-format binary".to_owned(),
            ExpectSubject::Status(_) => "HTTP status codes".to_owned(),
            ExpectSubject::StatusRegex(_) => "HTTP status regex".to_owned(),
            ExpectSubject::Header { .. } => "HTTP header pattern".to_owned(),
        }
    }

    /// The same, as `TCPCHK did not match content <this>` has it.
    pub(super) fn content_words(&self) -> String {
        match &self.model.subject {
            ExpectSubject::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
            ExpectSubject::Binary(_) => "(binary)".to_owned(),
            _ => format!("({})", self.subject_words()),
        }
    }
}

fn good_status() -> CheckExpect {
    CheckExpect {
        negated: false,
        subject: ExpectSubject::Status(vec![(200, 399)]),
        receive_bytes_min: -1,
        ok: None,
        error: None,
        timeout: None,
        on_success: None,
        on_error: None,
        status_code: None,
        comment: None,
    }
}

/// The text of a pattern that is a regular expression.
fn regex_text(pattern: &HeaderPattern) -> Option<&String> {
    match &pattern.text {
        HeaderPatternText::Literal(text) if pattern.method == "reg" => Some(text),
        _ => None,
    }
}

/// What a pattern of a header looks for.
fn sought(pattern: &HeaderPattern, seen: ProbeFacts<'_>) -> Result<Vec<u8>, &'static str> {
    match &pattern.text {
        HeaderPatternText::Literal(text) => Ok(bytes_of_text(text).into_owned()),
        HeaderPatternText::Format(format) => rendered(format, seen),
    }
}

/// What a format gives, which must be something.
fn rendered(format: &LogFormat, seen: ProbeFacts<'_>) -> Result<Vec<u8>, &'static str> {
    Some(seen.bytes(format))
        .filter(|bytes| !bytes.is_empty())
        .ok_or(EMPTY_FORMAT)
}

fn status_of_outcome(outcome: Option<&ExpectOutcome>) -> Option<CheckStatus> {
    let word = &outcome?.0;
    CheckStatus::ALL
        .iter()
        .copied()
        .find(|status| status.word().eq_ignore_ascii_case(word))
}

fn like(method: &str, pattern: &[u8], regex: Option<&Regex>, subject: &[u8]) -> bool {
    match method {
        "beg" => subject.starts_with(pattern),
        "end" => subject.ends_with(pattern),
        "sub" => holds(subject, pattern),
        "reg" => regex.is_some_and(|regex| regex.is_match(subject)),
        _ => subject == pattern,
    }
}

fn holds(data: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || data.windows(wanted.len()).any(|window| window == wanted)
}

fn hex(data: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    data.iter()
        .flat_map(|byte| {
            [
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]
        })
        .collect()
}

/// The bytes that hexadecimal digits stand for; `None` if the text is not hexadecimal.
pub(super) fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16);
    digits
        .chunks(2)
        .map(|pair| u8::try_from(value(pair[0])? << 4 | value(pair[1])?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_there_and_back() {
        assert_eq!(hex(b"\x00\xffA"), b"00FF41");
        assert_eq!(unhex(b"00fF41"), Some(b"\x00\xffA".to_vec()));
        assert_eq!(unhex(b"0"), None);
        assert_eq!(unhex(b"zz"), None);
    }

    #[test]
    fn statuses_by_their_words() {
        let status = |word: &str| status_of_outcome(Some(&ExpectOutcome(word.to_owned())));
        assert_eq!(status("L7OKC"), Some(CheckStatus::L7Conditional));
        assert_eq!(status("L6TOUT"), Some(CheckStatus::L6Timeout));
        assert_eq!(status("L9"), None);
    }
}
