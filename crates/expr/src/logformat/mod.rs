//! Log formats: text with aliases (`%ci`) and expressions (`%[src]`), manual 8.2.6.

mod alias;
mod encode;
mod line_bytes;
mod numbers;
mod plan;
mod render;
#[cfg(test)]
mod tests;

pub use alias::{ALIASES, Alias, AliasId, alias};

use std::fmt;

use crate::acl::Linker;
use crate::error::ExpressionError;
use crate::expr::{Expr, ExpressionReference};
use crate::needs::Needs;
use crate::phase::{Phase, Phases};
use plan::Step;

/// HAProxy's line in HTTP mode without `option httplog` (manual 8.2.1).
pub const DEFAULT_HTTP_LOG_FORMAT: &str = "Connect from %ci:%cp to %fi:%fp (%f/HTTP)";
/// HAProxy's line in TCP mode without `option tcplog` (manual 8.2.1).
pub const DEFAULT_TCP_LOG_FORMAT: &str = "Connect from %ci:%cp to %fi:%fp (%f/TCP)";
/// `option tcplog` (manual 8.2.2).
pub const TCP_LOG_FORMAT: &str =
    "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq";
/// `option httplog` (manual 8.2.3).
pub const HTTP_LOG_FORMAT: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS \
     %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r";
/// `option httplog clf`.
pub const CLF_HTTP_LOG_FORMAT: &str = "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft \
     %b %s %TR %Tw %Tc %Tr %Ta %tsc %ac %fc %bc %sc %rc %sq %bq %CC %CS %hrl %hsl";
/// `option tcplog clf` (3.1).
pub const CLF_TCP_LOG_FORMAT: &str = "%{+Q}o %{-Q}ci - - [%T] \"TCP \" 000 %B \"\" \"\" %cp %ms %ft \
     %b %s %Th %Tw %Tc %Tt %U %ts-- %ac %fc %bc %sc %rc %sq %bq \"\" \"\" ";
/// `option httpslog` (manual 8.2.4).
pub const HTTPS_LOG_FORMAT: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS \
     %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r \
     %[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] \
     %[ssl_fc_sni]/%sslv/%sslc";

/// What a format is for: it decides how samples are escaped and blanks treated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Usage {
    /// Headers, URIs and other strings of rules: control characters become `%XX`.
    Http,
    /// `log-format`, `log-format-sd`, `error-log-format`: runs of blanks are one, what is empty
    /// is `-`.
    Log,
    /// Plain text for bodies, TCP rules, checks and variables.
    Text,
    /// `unique-id-format`: as for headers, runs of blanks are one.
    UniqueId,
}

/// How items are written.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Flags {
    /// `Q`: between double quotes.
    pub quote: bool,
    /// `X`: in hexadecimal.
    pub hex: bool,
    /// `E`: `"`, `\` and `]` are escaped.
    pub escape: bool,
    /// `bin`: bytes as they are.
    pub bin: bool,
    /// `json`: in JSON; a whole line is an object of its named items.
    pub json: bool,
    /// `utf8`: what is valid UTF-8 stands in JSON as it is.
    pub utf8: bool,
    /// `cbor`: in CBOR, written in hexadecimal; a whole line is a map of its named items.
    pub cbor: bool,
}

/// The type that an item is encoded as.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ItemType {
    /// `bool`.
    Bool,
    /// `sint`.
    Int,
    /// `str`.
    Str,
}

impl ItemType {
    fn parse(text: &str) -> Option<ItemType> {
        match text {
            "bool" => Some(ItemType::Bool),
            "sint" => Some(ItemType::Int),
            "str" => Some(ItemType::Str),
            _ => None,
        }
    }
}

/// The samples of a log line that are known at the end of the exchange only.
const SAMPLES_OF_THE_END: [&str; 6] = [
    "bytes_in",
    "bytes_out",
    "fc.timer.total",
    "res.timer.data",
    "txn.timer.total",
    "txn.timer.user",
];

/// One piece of a format.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Text.
    Literal(String),
    /// One or more blanks of a format that merges them.
    Blank,
    /// `%alias`.
    Alias {
        /// Its row.
        alias: &'static Alias,
        /// How it is written.
        flags: Flags,
        /// `%(name)`.
        name: Option<String>,
        /// `%(name:type)`.
        cast: Option<ItemType>,
    },
    /// `%[expr]`.
    Sample {
        /// The expression.
        expr: Box<Expr>,
        /// How it is written.
        flags: Flags,
        /// `%(name)`.
        name: Option<String>,
        /// `%(name:type)`.
        cast: Option<ItemType>,
    },
}

/// A parsed format.
#[derive(Clone, Debug, PartialEq)]
pub struct LogFormat {
    /// The text as written.
    pub source: String,
    /// What it is for.
    pub usage: Usage,
    /// Its pieces.
    pub items: Vec<Item>,
    /// Encoding of the whole line (`%{+json}o`, `%{+cbor}o`, `%{+bin}o`).
    pub global: Flags,
    /// How it is written where the whole line is not encoded.
    steps: Vec<Step>,
}

impl LogFormat {
    /// Parses `text`.
    ///
    /// # Errors
    /// With the byte range at fault.
    pub fn parse(text: &str, usage: Usage) -> Result<LogFormat, ExpressionError> {
        let mut parser = Parser {
            text,
            usage,
            items: Vec::new(),
            flags: Flags::default(),
        };
        parser.run()?;
        let Parser { items, flags, .. } = parser;
        Ok(LogFormat {
            source: text.to_owned(),
            usage,
            steps: plan::steps(usage, &items),
            items,
            global: flags,
        })
    }

    /// A format of a text that is not parsed: all of it stands for itself.
    pub fn literal(text: &str, usage: Usage) -> LogFormat {
        let items = vec![Item::Literal(text.to_owned())];
        LogFormat {
            source: text.to_owned(),
            usage,
            steps: plan::steps(usage, &items),
            items,
            global: Flags::default(),
        }
    }

    /// The text when nothing in it varies.
    pub fn as_literal(&self) -> Option<&str> {
        match self.items.as_slice() {
            [] => Some(""),
            [Item::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The bytes it always writes when nothing in it varies.
    pub fn as_literal_bytes(&self) -> Option<&[u8]> {
        match &*self.steps {
            [] => Some(b""),
            [Step::Text(bytes)] => Some(bytes),
            [Step::Byte(byte)] => Some(std::slice::from_ref(byte)),
            _ => None,
        }
    }

    /// The expressions in it.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.items.iter().filter_map(|item| match item {
            Item::Sample { expr, .. } => Some(&**expr),
            _ => None,
        })
    }

    /// The aliases in it.
    pub fn aliases(&self) -> impl Iterator<Item = &'static Alias> {
        self.items.iter().filter_map(|item| match item {
            Item::Alias { alias, .. } => Some(*alias),
            _ => None,
        })
    }

    /// Words parsed but not evaluated yet.
    pub fn unimplemented(&self) -> Vec<&'static str> {
        self.exprs().flat_map(Expr::unimplemented).collect()
    }

    /// The samples that are raw bytes, which an HTTP proxy does not keep.
    pub fn raw_samples(&self) -> impl Iterator<Item = &'static str> {
        let raw = |expr: &&Expr| expr.fetch.needs.intersects(Needs::RAW_BYTES);
        self.exprs().filter(raw).map(|expr| expr.fetch.word)
    }

    /// What the expressions name elsewhere.
    pub fn references(&self) -> Vec<ExpressionReference> {
        self.exprs().flat_map(Expr::references).collect()
    }

    /// Where every expression of the format may be evaluated.
    pub fn phases(&self) -> Phases {
        self.exprs()
            .fold(Phases::ALWAYS, |sum, expr| sum & expr.phases())
    }

    /// What must be there for the whole of it to be written.
    pub fn needs(&self) -> Needs {
        self.items.iter().fold(Needs::NONE, |sum, item| match item {
            Item::Alias { alias, .. } => sum | alias.needs,
            Item::Sample { expr, .. } => sum | expr.needs(),
            Item::Literal(_) | Item::Blank => sum,
        })
    }

    /// Whether it tells of the end of the exchange: a line that does is not written before.
    pub fn tells_of_the_end(&self) -> bool {
        self.aliases().any(|alias| alias.tells_of_the_end())
            || self
                .exprs()
                .any(|expr| SAMPLES_OF_THE_END.contains(&expr.fetch.word))
    }

    /// Whether every expression may be evaluated at `phase`.
    ///
    /// # Errors
    /// Naming the first that may not.
    pub fn available(&self, phase: Phase) -> Result<(), ExpressionError> {
        self.exprs().try_for_each(|expr| expr.available(phase))
    }

    /// Joins the expressions to the map files they name.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.items.iter_mut().try_for_each(|item| match item {
            Item::Sample { expr, .. } => expr.link(linker),
            _ => Ok(()),
        })
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

struct Parser<'t> {
    text: &'t str,
    usage: Usage,
    items: Vec<Item>,
    flags: Flags,
}

impl Parser<'_> {
    fn merges_blanks(&self) -> bool {
        matches!(self.usage, Usage::Log | Usage::UniqueId)
    }

    fn literal(&mut self, text: &str) {
        match self.items.last_mut() {
            Some(Item::Literal(before)) => before.push_str(text),
            _ => self.items.push(Item::Literal(text.to_owned())),
        }
    }

    fn run(&mut self) -> Result<(), ExpressionError> {
        let text = self.text;
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            match c {
                '%' if text[at + 1..].starts_with('%') => {
                    self.literal("%");
                    at += 2;
                }
                '%' => at = self.item(at)?,
                ' ' if self.merges_blanks() => {
                    if self.items.last() != Some(&Item::Blank) {
                        self.items.push(Item::Blank);
                    }
                    at += 1;
                }
                c => {
                    self.literal(&text[at..at + c.len_utf8()]);
                    at += c.len_utf8();
                }
            }
        }
        Ok(())
    }

    /// Parses what starts with the percent sign at `start`; gives where it ends.
    fn item(&mut self, start: usize) -> Result<usize, ExpressionError> {
        let text = self.text;
        let mut at = start + 1;
        let mut flags = self.flags;
        let mut name = None;
        let mut cast = None;
        loop {
            match text[at..].chars().next() {
                // The name stands first.
                Some('(') if at == start + 1 => {
                    let end = closing(text, at, ')')?;
                    let inside = &text[at + 1..end];
                    let (label, kind) = inside.split_once(':').unwrap_or((inside, ""));
                    cast = ItemType::parse(kind);
                    if cast.is_none() && !kind.is_empty() {
                        let range = at + 1 + label.len() + 1..end;
                        return Err(ExpressionError::unknown(
                            "type",
                            kind,
                            range,
                            ["str", "sint", "bool"],
                        ));
                    }
                    check_name(label).map_err(|error| ExpressionError {
                        range: at + 1 + error.range.start..at + 1 + error.range.end,
                        ..error
                    })?;
                    name = (!label.is_empty()).then(|| label.to_owned());
                    at = end + 1;
                }
                Some('{') => {
                    let end = closing(text, at, '}')?;
                    set_flags(&mut flags, &text[at + 1..end], at + 1)?;
                    at = end + 1;
                }
                Some('[') => {
                    let (expr, end) = Expr::parse_prefix(text, at + 1)?;
                    if !text[end..].starts_with(']') {
                        return Err(ExpressionError::new(
                            "expected ']' after the sample expression",
                            end..(end + 1).min(text.len()).max(end),
                        ));
                    }
                    self.items.push(Item::Sample {
                        expr: Box::new(expr),
                        flags,
                        name,
                        cast,
                    });
                    return Ok(end + 1);
                }
                Some(c) if c.is_ascii_alphabetic() => {
                    return self.alias_at(start, at, flags, (name, cast));
                }
                _ => {
                    let end = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
                    return Err(ExpressionError::new(
                        "missing alias or expression after '%' (a percent sign itself is '%%')",
                        start..end,
                    ));
                }
            }
        }
    }

    fn alias_at(
        &mut self,
        start: usize,
        at: usize,
        flags: Flags,
        (name, cast): (Option<String>, Option<ItemType>),
    ) -> Result<usize, ExpressionError> {
        let rest = &self.text.as_bytes()[at..];
        let end = at
            + rest
                .iter()
                .position(|b| !b.is_ascii_alphanumeric())
                .unwrap_or(rest.len());
        let word = &self.text[at..end];
        match alias(word) {
            Some(Alias {
                id: AliasId::Options,
                ..
            }) => self.flags = flags,
            Some(alias) => self.items.push(Item::Alias {
                alias,
                flags,
                name,
                cast,
            }),
            None => {
                let known = ALIASES.iter().map(|row| row.word);
                let error = ExpressionError::unknown("format alias", word, start..end, known);
                let message = format!("{} (a percent sign itself is '%%')", error.message);
                return Err(ExpressionError { message, ..error });
            }
        }
        Ok(end)
    }
}

/// A name is made of letters, digits, `_` and `-`.
fn check_name(name: &str) -> Result<(), ExpressionError> {
    let bad = name.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')));
    match bad {
        None => Ok(()),
        Some(at) => {
            let wide = name[at..].chars().next().map_or(1, char::len_utf8);
            let message = format!("invalid character in custom name '{name}'");
            Err(ExpressionError::new(message, at..at + wide))
        }
    }
}

fn closing(text: &str, at: usize, close: char) -> Result<usize, ExpressionError> {
    match text[at..].find(close) {
        Some(end) => Ok(at + end),
        None => Err(ExpressionError::new(
            format!("missing '{close}'"),
            at..text.len(),
        )),
    }
}

fn set_flags(flags: &mut Flags, text: &str, at: usize) -> Result<(), ExpressionError> {
    let mut from = at;
    for part in text.split(',') {
        let range = from..from + part.len();
        from += part.len() + 1;
        let (on, name) = match part.as_bytes().first() {
            Some(b'+') => (true, &part[1..]),
            Some(b'-') => (false, &part[1..]),
            Some(_) => (true, part),
            None => continue,
        };
        match name {
            "Q" => flags.quote = on,
            "X" => flags.hex = on,
            "E" => flags.escape = on,
            "bin" => flags.bin = on,
            "json" => flags.json = on,
            "utf8" => flags.utf8 = on,
            "cbor" => flags.cbor = on,
            _ => {
                let known = ["Q", "X", "E", "bin", "json", "utf8", "cbor"];
                return Err(ExpressionError::unknown("flag", name, range, known));
            }
        }
    }
    Ok(())
}
