//! The conditions of `.if`, `.elif` and `-cc`.
//!
//! ```text
//! condition = "" | any
//! any       = all { "||" all }
//! all       = term { "&&" term }
//! term      = { "!" } ( integer | "(" any ")" | predicate [ "(" arguments ")" ] )
//! ```
//!
//! A condition is always parsed completely, and refused when it is malformed, even where the result
//! is already known.
//!
//! Source: HAProxy configuration manual, section 2.4.

use std::fmt;
use std::ops::Range;

use crate::lexer::{LineVariables, is_space, lex};
use crate::{
    CONDITION_DEPTH_MAX, Diagnostic, Env, HaproxyVersion, LINE_BYTES_MAX, ProgramFacts, Severity,
    SourceMap, SslVersion,
};

/// Why a condition is malformed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConditionError {
    /// The message.
    pub message: String,
    /// The byte range in the condition.
    pub at: Range<usize>,
    /// The predicate that was probably meant.
    pub suggestion: Option<&'static str>,
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConditionError {}

impl ConditionError {
    fn new(message: impl Into<String>, at: Range<usize>) -> Self {
        Self {
            message: message.into(),
            at,
            suggestion: None,
        }
    }
}

/// A predicate: its word, its arguments, its function.
pub struct Predicate {
    /// The word.
    pub word: &'static str,
    /// The names of its arguments, all required unless `is_lenient`.
    pub arguments: &'static [&'static str],
    /// Whether arguments may be missing, which makes them empty.
    pub is_lenient: bool,
    /// Its function.
    pub help: &'static str,
    holds: fn(&[String], &Env, &dyn ProgramFacts) -> Result<bool, String>,
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Predicate({})", self.word)
    }
}

/// All predicates, sorted by word.
pub const PREDICATES: &[Predicate] = &[
    Predicate {
        word: "awslc_api_atleast",
        arguments: &["number"],
        is_lenient: false,
        help: "the AWS-LC API is that old or newer",
        holds: |args, _, facts| {
            Ok(facts
                .awslc_api()
                .zip(awslc(args)?.into())
                .is_some_and(|(has, asked)| has >= asked))
        },
    },
    Predicate {
        word: "awslc_api_before",
        arguments: &["number"],
        is_lenient: false,
        help: "the AWS-LC API is older",
        holds: |args, _, facts| {
            Ok(facts
                .awslc_api()
                .zip(awslc(args)?.into())
                .is_some_and(|(has, asked)| has < asked))
        },
    },
    Predicate {
        word: "defined",
        arguments: &["name"],
        is_lenient: true,
        help: "the environment variable exists, even empty",
        holds: |args, env, _| Ok(env.is_defined(&args[0])),
    },
    Predicate {
        word: "enabled",
        arguments: &["option"],
        is_lenient: true,
        help: "the option is enabled at run time",
        holds: |args, _, facts| Ok(facts.is_enabled(&args[0])),
    },
    Predicate {
        word: "feature",
        arguments: &["name"],
        is_lenient: true,
        help: "the feature is built in, as -vv lists it",
        holds: |args, _, facts| Ok(facts.has_feature(&args[0])),
    },
    Predicate {
        word: "openssl_version_atleast",
        arguments: &["version"],
        is_lenient: false,
        help: "OpenSSL is used, in that version or a newer one",
        holds: |args, _, facts| {
            let asked = openssl(args)?;
            Ok(facts
                .openssl_version()
                .is_some_and(|version| version >= asked))
        },
    },
    Predicate {
        word: "openssl_version_before",
        arguments: &["version"],
        is_lenient: false,
        help: "OpenSSL is used, in an older version",
        holds: |args, _, facts| {
            let asked = openssl(args)?;
            Ok(facts
                .openssl_version()
                .is_some_and(|version| version < asked))
        },
    },
    Predicate {
        word: "ssllib_name_startswith",
        arguments: &["name"],
        is_lenient: true,
        help: "the name of the TLS library starts so",
        holds: |args, _, facts| {
            Ok(facts
                .ssl_library()
                .is_some_and(|name| name.starts_with(&args[0])))
        },
    },
    Predicate {
        word: "streq",
        arguments: &["string", "string"],
        is_lenient: false,
        help: "the strings are equal",
        holds: |args, _, _| Ok(args[0] == args[1]),
    },
    Predicate {
        word: "strneq",
        arguments: &["string", "string"],
        is_lenient: false,
        help: "the strings differ",
        holds: |args, _, _| Ok(args[0] != args[1]),
    },
    Predicate {
        word: "strstr",
        arguments: &["string", "substring"],
        is_lenient: false,
        help: "the second string is somewhere in the first",
        holds: |args, _, _| Ok(args[0].contains(&args[1])),
    },
    Predicate {
        word: "version_atleast",
        arguments: &["version"],
        is_lenient: true,
        help: "the HAProxy version spoken is that one or a newer one",
        holds: |args, _, facts| Ok(facts.version() >= HaproxyVersion::parse(&args[0])),
    },
    Predicate {
        word: "version_before",
        arguments: &["version"],
        is_lenient: true,
        help: "the HAProxy version spoken is older",
        holds: |args, _, facts| Ok(facts.version() < HaproxyVersion::parse(&args[0])),
    },
];

fn openssl(args: &[String]) -> Result<SslVersion, String> {
    SslVersion::parse(&args[0]).ok_or_else(|| format!("'{}' is no OpenSSL version", args[0]))
}

fn awslc(args: &[String]) -> Result<u64, String> {
    args[0]
        .parse()
        .map_err(|_| format!("'{}' is no AWS-LC API number", args[0]))
}

/// Evaluates a condition in which quotes and variables are already resolved.
///
/// # Errors
///
/// When the condition is malformed.
pub fn evaluate(text: &str, env: &Env, facts: &dyn ProgramFacts) -> Result<bool, ConditionError> {
    let mut reader = ConditionReader {
        text,
        at: 0,
        depth: 0,
        env,
        facts,
    };
    reader.skip_spaces();
    if reader.rest().is_empty() {
        return Ok(false);
    }
    let holds = reader.any()?;
    reader.skip_spaces();
    match reader.rest().chars().next() {
        None => Ok(holds),
        Some(found) => {
            let at = reader.at..reader.at + found.len_utf8();
            Err(ConditionError::new(
                format!("unexpected character '{found}' after the condition"),
                at,
            ))
        }
    }
}

/// Evaluates a condition in the form of `haproxy -cc`: the words are first resolved like those of a
/// line.
///
/// # Errors
///
/// When the line or the condition is malformed. The diagnostic has no span; a note shows the
/// condition.
pub fn evaluate_condition(
    text: &str,
    env: &Env,
    facts: &dyn ProgramFacts,
) -> Result<bool, Diagnostic> {
    if text.len() > LINE_BYTES_MAX {
        let message = format!("the condition is over {LINE_BYTES_MAX} bytes");
        return Err(Diagnostic::alert("line-too-long", message));
    }
    let mut sources = SourceMap::new();
    let file = sources
        .add("", Vec::new())
        .expect("an empty file is within the bounds");
    let around = LineVariables {
        env,
        file_name: "",
        line: 1,
        section: "",
    };
    let lexed = lex(text.as_bytes(), file, 0, &around);
    let shown = format!("in the condition: {text}");
    let mut found = lexed.diagnostics.into_iter();
    if let Some(mut alert) = found.find(|found| found.severity == Severity::Alert) {
        alert.span = None;
        return Err(alert.note(shown));
    }
    let words: Vec<&str> = lexed.words.iter().map(crate::Word::text).collect();
    evaluate(&words.join(" "), env, facts).map_err(|error| diagnostic(&error).note(shown))
}

/// The diagnostic for a malformed condition, without a span.
pub(crate) fn diagnostic(error: &ConditionError) -> Diagnostic {
    let diagnostic = Diagnostic::alert("bad-condition", error.message.clone());
    match error.suggestion {
        Some(word) => diagnostic.help(format!("did you mean '{word}'?")),
        None => diagnostic,
    }
}

struct ConditionReader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    env: &'a Env,
    facts: &'a dyn ProgramFacts,
}

impl<'a> ConditionReader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at += self
            .rest()
            .bytes()
            .take_while(|&byte| is_space(byte))
            .count();
    }

    /// Skips spaces, and `word` if it follows.
    fn take(&mut self, word: &str) -> bool {
        self.skip_spaces();
        let is_there = self.rest().starts_with(word);
        self.at += if is_there { word.len() } else { 0 };
        is_there
    }

    fn any(&mut self) -> Result<bool, ConditionError> {
        let mut holds = self.all()?;
        while self.take("||") {
            holds |= self.all()?;
        }
        Ok(holds)
    }

    fn all(&mut self) -> Result<bool, ConditionError> {
        let mut holds = self.term()?;
        while self.take("&&") {
            holds &= self.term()?;
        }
        Ok(holds)
    }

    fn term(&mut self) -> Result<bool, ConditionError> {
        let mut negated = false;
        while self.take("!") {
            negated = !negated;
        }
        let start = self.at;
        let holds = if self.take("(") {
            self.parenthesis(start)?
        } else if let Some(integer) = self.integer() {
            integer
        } else {
            self.predicate()?
        };
        Ok(holds != negated)
    }

    fn parenthesis(&mut self, start: usize) -> Result<bool, ConditionError> {
        self.depth += 1;
        if self.depth > CONDITION_DEPTH_MAX {
            let message = format!("more than {CONDITION_DEPTH_MAX} nested parentheses");
            return Err(ConditionError::new(message, start..start + 1));
        }
        let holds = self.any()?;
        self.depth -= 1;
        if !self.take(")") {
            return Err(ConditionError::new("'(' is never closed", start..start + 1));
        }
        Ok(holds)
    }

    /// An integer, decimal or hexadecimal: true unless zero.
    fn integer(&mut self) -> Option<bool> {
        let signed = self.rest();
        let unsigned = signed.strip_prefix(['-', '+']).unwrap_or(signed);
        let hex = unsigned
            .strip_prefix("0x")
            .or_else(|| unsigned.strip_prefix("0X"));
        let is_hex = |c: char| c.is_ascii_hexdigit();
        let (digits, rest) = match hex.filter(|hex| hex.starts_with(is_hex)) {
            Some(hex) => (hex, hex.trim_start_matches(is_hex)),
            None => (
                unsigned,
                unsigned.trim_start_matches(|c: char| c.is_ascii_digit()),
            ),
        };
        let digits = &digits[..digits.len() - rest.len()];
        if digits.is_empty() {
            return None;
        }
        self.at = self.text.len() - rest.len();
        Some(digits.bytes().any(|digit| digit != b'0'))
    }

    fn predicate(&mut self) -> Result<bool, ConditionError> {
        let start = self.at;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word =
            &self.rest()[..self.rest().len() - self.rest().trim_start_matches(is_word).len()];
        let Ok(index) = PREDICATES.binary_search_by(|row| row.word.cmp(word)) else {
            return Err(self.no_predicate(word));
        };
        let predicate = &PREDICATES[index];
        self.at += word.len();
        let mut arguments = match self.rest().starts_with('(') {
            true => self.arguments(predicate)?,
            false => Vec::new(),
        };
        let (wanted, given) = (predicate.arguments.len(), arguments.len());
        let at = start..self.at;
        if given < wanted && !predicate.is_lenient {
            let message = format!("'{word}' wants {wanted} argument(s), has {given}");
            return Err(ConditionError::new(message, at));
        }
        arguments.resize(wanted, String::new());
        (predicate.holds)(&arguments, self.env, self.facts)
            .map_err(|message| ConditionError::new(format!("{message} (in '{word}')"), at))
    }

    fn no_predicate(&self, word: &str) -> ConditionError {
        let end = match word.is_empty() {
            true => self.at + self.rest().chars().next().map_or(0, char::len_utf8),
            false => self.at + word.len(),
        };
        let message = match &self.text[self.at..end] {
            "" => "the condition ends where an operand is expected".to_owned(),
            found => format!("expected a number, a predicate or '(', found '{found}'"),
        };
        let distance = |row: &Predicate| {
            strsim::damerau_levenshtein(&row.word.to_lowercase(), &word.to_lowercase())
        };
        let near = PREDICATES
            .iter()
            .filter(|_| word.len() < 40)
            .min_by_key(|row| distance(row));
        let suggestion = near.filter(|row| distance(row) <= 2).map(|row| row.word);
        ConditionError {
            message,
            at: self.at..end,
            suggestion,
        }
    }

    /// The arguments from `(` to `)`: a second level of quotes and escapes, separated by commas.
    fn arguments(&mut self, predicate: &Predicate) -> Result<Vec<String>, ConditionError> {
        let start = self.at;
        self.at += 1;
        let mut arguments = Vec::new();
        loop {
            let at = self.at;
            let (argument, end) = self.argument()?;
            arguments.push(argument);
            let count = arguments.len();
            if count > predicate.arguments.len() {
                let message = format!("too many arguments for '{}'", predicate.word);
                return Err(ConditionError::new(message, at..self.at));
            }
            match end {
                Some(')') => break,
                Some(_) => {}
                None => return Err(ConditionError::new("'(' is never closed", start..start + 1)),
            }
        }
        // `f()` has no argument, and not an empty one.
        if arguments.len() == 1 && &self.text[start..self.at] == "()" {
            arguments.clear();
        }
        Ok(arguments)
    }

    /// One argument and the character that ended it. Spaces belong to it, those after a comma too: `streq(a, a)`
    /// is false.
    fn argument(&mut self) -> Result<(String, Option<char>), ConditionError> {
        let mut argument = String::new();
        let mut quote: Option<(char, usize)> = None;
        let mut chars = self.rest().char_indices().peekable();
        let base = self.at;
        while let Some((index, c)) = chars.next() {
            self.at = base + index + c.len_utf8();
            match (c, quote) {
                (',' | ')', None) => return Ok((argument, Some(c))),
                ('"' | '\'', None) => quote = Some((c, base + index)),
                ('"' | '\'', Some((open, _))) if open == c => quote = None,
                ('\\', None | Some(('"', _))) => {
                    let means = chars.peek().and_then(|&(_, next)| escaped(next));
                    argument.push(means.unwrap_or('\\'));
                    if means.is_some() {
                        let _ = chars.next();
                        self.at += 1;
                    }
                }
                _ => argument.push(c),
            }
        }
        match quote {
            Some((open, at)) => Err(ConditionError::new(
                format!("quote {open} is never closed"),
                at..at + 1,
            )),
            None => Ok((argument, None)),
        }
    }
}

/// The meaning of a backslash and `c` in an argument; `#`, `$` and `x` have no special meaning
/// there.
fn escaped(c: char) -> Option<char> {
    Some(match c {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        ' ' | '"' | '\'' | '\\' => c,
        _ => return None,
    })
}

#[cfg(test)]
#[path = "condition_tests.rs"]
mod tests;
