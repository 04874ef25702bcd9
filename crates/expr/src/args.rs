//! Arguments of fetches and converters: their types, their quoting, their values.
//!
//! Quoting inside parentheses is the second level of manual 2.2: the words arrive here with the
//! first level (that of the line) already removed.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::base64::unbase64;
use crate::byte_text::{bytes_of_text, is_text};
use crate::error::ExpressionError;
use crate::fix_message;
use crate::links::LinkedAcl;
use crate::mask::{mask4, mask6};
use crate::message_digest::MessageDigest;
use crate::pattern::Handle;
use crate::protobuf::{self, ProtobufNumber};
use crate::public_key::{JwtAlgorithm, LinkedKeys};
use crate::regex::Regex;
use crate::set_condition::SetCondition;
use crate::slot::LinkSlot;
use crate::vars::VarName;

/// The type of an argument.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ArgKind {
    /// The name of an ACL, after a `!` where it must not hold.
    Acl,
    /// An address of either family (the default of a `map_*_ip`).
    Address,
    /// Bytes in base 64, or the name of a variable that holds them so.
    Base64OrVar,
    /// The name of a backend; none means the current one.
    Backend,
    /// A token of distcc: four bytes.
    DistccToken,
    /// How a distinguished name is written: `rfc2253`, or nothing.
    DnFormat,
    /// The name of a map file.
    File,
    /// A tag of FIX: its number, or its name.
    FixTag,
    /// The name of a frontend; none means the current one.
    Frontend,
    /// A signed integer.
    Int,
    /// A signed integer or the name of a variable.
    IntOrVar,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// An algorithm of web tokens, or the name of a variable that holds it.
    JwtAlgorithmOrVar,
    /// A secret or the path of a public key, or the name of a variable that holds it.
    JwtKeyOrVar,
    /// An IPv4 mask: dotted or a bit count.
    Mask4,
    /// An IPv6 mask: address form or a bit count.
    Mask6,
    /// OpenSSL's name of a message digest.
    MessageDigest,
    /// A type of values in PROXY headers: its number, or its name.
    ProxyValueType,
    /// A path of protocol buffers field numbers, dotted.
    ProtobufField,
    /// The type of a number in protocol buffers.
    ProtobufType,
    /// A regular expression.
    Regex,
    /// `[backend/]server`.
    Server,
    /// A condition of `set-var`.
    SetCondition,
    /// The name of a stick table; none means the current one.
    Table,
    /// Any text.
    Text,
    /// The name of a user list.
    Userlist,
    /// The name of a variable, scope first.
    Var,
}

/// How many arguments of which types a word takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ArgSpec {
    /// How many must be given.
    pub required: usize,
    /// The types, in order; its length is how many may be given.
    pub kinds: &'static [ArgKind],
}

/// A word without arguments.
pub(crate) const NO_ARGS: ArgSpec = ArgSpec {
    required: 0,
    kinds: &[],
};

/// Up to twelve ACL names (`acl()`).
pub(crate) const ACL_NAMES: ArgSpec = ArgSpec {
    required: 1,
    kinds: &[ArgKind::Acl; 12],
};

pub(crate) const fn args(required: usize, kinds: &'static [ArgKind]) -> ArgSpec {
    ArgSpec { required, kinds }
}

/// What an argument means.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgValue {
    /// Left out.
    Absent,
    /// An ACL by name, found when linking; `!` before the name wants it not to hold.
    Acl(LinkSlot<Arc<dyn LinkedAcl>>),
    /// An integer.
    Int(i64),
    /// Text.
    Text,
    /// Bytes that stand in base 64.
    Bytes(Box<[u8]>),
    /// A message digest.
    MessageDigest(MessageDigest),
    /// An algorithm of web tokens.
    JwtAlgorithm(JwtAlgorithm),
    /// A secret or the path of a public key; or the variable that holds it.
    JwtKey {
        /// The variable, where it is one.
        variable: Option<VarName>,
        /// The public keys that it may mean.
        keys: LinkedKeys,
    },
    /// A condition of `set-var`.
    SetCondition(SetCondition),
    /// The numbers of a field within fields.
    ProtobufPath(Box<[u64]>),
    /// How a field is read as a number.
    ProtobufNumber(ProtobufNumber),
    /// An address.
    Ip(IpAddr),
    /// An IPv4 mask.
    Mask4(u32),
    /// An IPv6 mask.
    Mask6(u128),
    /// A regular expression.
    Regex(Regex),
    /// A variable.
    Var(VarName),
    /// A map file, looked up through its handle once linked.
    Map(LinkSlot<Arc<Handle>>),
    /// A backend by name; empty means the current one.
    Backend,
    /// A frontend by name; empty means the current one.
    Frontend,
    /// A server; no backend means the current one.
    Server {
        /// The backend's name, when given.
        backend: Option<String>,
        /// The server's name.
        server: String,
    },
    /// A stick table by name; where it is empty, linking fills in the name of the proxy.
    Table(LinkSlot<Arc<str>>),
    /// A user list by name.
    Userlist,
}

/// One argument: its text after unquoting and what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// The text after unquoting.
    pub text: String,
    /// What it means.
    pub value: ArgValue,
}

impl Arg {
    pub(crate) fn absent() -> Arg {
        Arg {
            text: String::new(),
            value: ArgValue::Absent,
        }
    }

    /// Whether the argument was left out.
    pub fn is_absent(&self) -> bool {
        self.value == ArgValue::Absent
    }
}

/// A raw argument cut out of the text between parentheses.
pub(crate) struct RawArg {
    pub(crate) text: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl RawArg {
    /// One of no characters, at `at`.
    pub(crate) fn empty(at: usize) -> RawArg {
        RawArg {
            text: String::new(),
            start: at,
            end: at,
        }
    }
}

/// Cuts `text`, which starts right after the opening parenthesis, into arguments; gives them
/// and the offset of the closing parenthesis.
pub(crate) fn cut(text: &str, at: usize) -> Result<(Vec<RawArg>, usize), ExpressionError> {
    let bytes = text.as_bytes();
    let mut raw = Vec::new();
    let mut word: Vec<u8> = Vec::new();
    let (mut squote, mut dquote) = (false, false);
    let mut start = at;
    let mut i = at;
    loop {
        let Some(&byte) = bytes.get(i) else {
            let what = if squote || dquote {
                "unmatched quote"
            } else {
                "missing ')'"
            };
            return Err(ExpressionError::new(
                format!("{what} in arguments"),
                at.min(text.len())..text.len(),
            ));
        };
        let quoted = squote || dquote;
        match byte {
            b'\'' if !dquote => squote = !squote,
            b'"' if !squote => dquote = !dquote,
            b'\\' if !squote => {
                let escaped = match bytes.get(i + 1) {
                    Some(b'n') => Some(b'\n'),
                    Some(b'r') => Some(b'\r'),
                    Some(b't') => Some(b'\t'),
                    Some(&next @ (b'\\' | b'"')) => Some(next),
                    // A comma is none of them: it ends the argument.
                    Some(&next) if !dquote && matches!(next, b' ' | b'\'') => Some(next),
                    _ => None,
                };
                match escaped {
                    Some(real) => {
                        word.push(real);
                        i += 1;
                    }
                    None => word.push(b'\\'),
                }
            }
            b',' | b')' if !quoted => {
                raw.push(RawArg {
                    text: String::from_utf8_lossy(&word).into_owned(),
                    start,
                    end: i,
                });
                word.clear();
                if byte == b')' {
                    break;
                }
                start = i + 1;
            }
            _ => word.push(byte),
        }
        i += 1;
    }
    if raw.len() == 1 && raw[0].start == raw[0].end {
        raw.clear();
    }
    Ok((raw, i))
}

/// Gives the arguments their meaning. `whole` is the range of the word itself, for errors that
/// concern no single argument.
pub(crate) fn resolve(
    word: &str,
    spec: ArgSpec,
    mut raw: Vec<RawArg>,
    whole: std::ops::Range<usize>,
) -> Result<Vec<Arg>, ExpressionError> {
    if raw.len() > spec.kinds.len() {
        let extra = &raw[spec.kinds.len()];
        let message = match spec.kinds.len() {
            0 => format!("'{word}' takes no argument"),
            max => format!(
                "'{word}' takes at most {max} argument(s), {} given",
                raw.len()
            ),
        };
        return Err(ExpressionError::new(
            message,
            extra.start..extra.end.max(extra.start),
        ));
    }
    if raw.is_empty() && spec.required > 0 && spec.kinds[0] == ArgKind::Text {
        // No text at all is an empty text.
        raw.push(RawArg::empty(whole.end));
    }
    if raw.len() < spec.required && !(raw.is_empty() && by_default(spec)) {
        let message = format!(
            "missing argument(s) (got {}, expected {}), type '{}' expected for '{word}'",
            raw.len(),
            spec.required,
            kind_text(spec.kinds[raw.len()]),
        );
        return Err(ExpressionError::new(message, whole));
    }
    let mut all = Vec::with_capacity(spec.kinds.len());
    for (position, kind) in spec.kinds.iter().enumerate() {
        match raw.get(position) {
            None => all.push(if by_default(spec) && position < spec.required {
                Arg {
                    text: String::new(),
                    value: value_of(*kind, "")?,
                }
            } else {
                Arg::absent()
            }),
            Some(one) => {
                let range = one.start..one.end;
                let optional = position >= spec.required || (*kind == ArgKind::Var && position > 0);
                let may_be_empty =
                    matches!(kind, ArgKind::DnFormat | ArgKind::Table | ArgKind::Text);
                if one.text.is_empty() && matches!(word, "field" | "word") && position == 2 {
                    // An empty count is 0: all that follows.
                    all.push(Arg {
                        text: String::new(),
                        value: ArgValue::Int(0),
                    });
                    continue;
                }
                if one.text.is_empty() && optional && !may_be_empty {
                    if position + 1 < raw.len() && !kind.is_text_to_haproxy() {
                        let message = format!(
                            "argument {} of '{word}' is empty: none may follow it",
                            position + 1
                        );
                        return Err(ExpressionError::new(message, range));
                    }
                    all.push(Arg::absent());
                    continue;
                }
                let value = value_of(*kind, &one.text).map_err(|error| ExpressionError {
                    message: format!(
                        "invalid argument {} of '{word}': {}",
                        position + 1,
                        error.message
                    ),
                    range,
                    ..error
                })?;
                all.push(Arg {
                    text: one.text.clone(),
                    value,
                });
            }
        }
    }
    Ok(all)
}

impl ArgKind {
    /// Whether HAProxy takes the argument for a text first, and looks at what it means later: such a one
    /// may be empty where others follow.
    fn is_text_to_haproxy(self) -> bool {
        !matches!(
            self,
            ArgKind::Int
                | ArgKind::Ipv4
                | ArgKind::Ipv6
                | ArgKind::Mask4
                | ArgKind::Mask6
                | ArgKind::Backend
                | ArgKind::Frontend
                | ArgKind::Userlist
        )
    }
}

/// Words whose one required argument has a natural default: the current proxy or table.
fn by_default(spec: ArgSpec) -> bool {
    spec.required == 1
        && matches!(
            spec.kinds[0],
            ArgKind::Backend | ArgKind::Frontend | ArgKind::Table
        )
}

fn kind_text(kind: ArgKind) -> &'static str {
    match kind {
        ArgKind::Acl => "ACL",
        ArgKind::Address => "address",
        ArgKind::Backend => "backend",
        ArgKind::Base64OrVar => "bytes in base 64 or variable",
        ArgKind::DistccToken => "token of 4 characters",
        ArgKind::DnFormat => "format of distinguished names",
        ArgKind::File => "file",
        ArgKind::FixTag => "FIX tag",
        ArgKind::Frontend => "frontend",
        ArgKind::Int | ArgKind::IntOrVar => "integer",
        ArgKind::Ipv4 => "IPv4 address",
        ArgKind::Ipv6 => "IPv6 address",
        ArgKind::JwtAlgorithmOrVar => "algorithm of web tokens or variable",
        ArgKind::JwtKeyOrVar => "secret, path of a public key or variable",
        ArgKind::Mask4 => "IPv4 mask",
        ArgKind::Mask6 => "IPv6 mask",
        ArgKind::MessageDigest => "message digest of OpenSSL",
        ArgKind::ProtobufField => "Protocol buffers field number",
        ArgKind::ProtobufType => "type of a number in Protocol buffers",
        ArgKind::ProxyValueType => "type of a value of a PROXY header",
        ArgKind::Regex => "regex",
        ArgKind::Server => "server",
        ArgKind::SetCondition => "condition of set-var",
        ArgKind::Table => "table",
        ArgKind::Text => "string",
        ArgKind::Userlist => "user list",
        ArgKind::Var => "variable",
    }
}

fn value_of(kind: ArgKind, text: &str) -> Result<ArgValue, ExpressionError> {
    let refuse = || {
        ExpressionError::new(
            format!("failed to parse '{text}' as type '{}'", kind_text(kind)),
            0..text.len(),
        )
    };
    if let Some(value) = named_value(kind, text)? {
        return Ok(value);
    }
    Ok(match kind {
        ArgKind::Acl => ArgValue::Acl(LinkSlot::empty()),
        ArgKind::Int => ArgValue::Int(text.parse().map_err(|_| refuse())?),
        ArgKind::IntOrVar => match text.parse() {
            Ok(number) => ArgValue::Int(number),
            Err(_) => ArgValue::Var(VarName::parse(text).map_err(|error| ExpressionError {
                message: format!("'{text}' is no integer, and no variable: {}", error.message),
                ..error
            })?),
        },
        ArgKind::DistccToken if text.len() != 4 => return Err(refuse()),
        ArgKind::Text if !is_text(text) => ArgValue::Bytes(bytes_of_text(text).into()),
        ArgKind::DistccToken | ArgKind::Text => ArgValue::Text,
        ArgKind::Address => ArgValue::Ip(text.parse().map_err(|_| refuse())?),
        ArgKind::Ipv4 => ArgValue::Ip(IpAddr::V4(text.parse::<Ipv4Addr>().map_err(|_| refuse())?)),
        ArgKind::Ipv6 => ArgValue::Ip(IpAddr::V6(text.parse::<Ipv6Addr>().map_err(|_| refuse())?)),
        ArgKind::Mask4 => ArgValue::Mask4(mask4(text).ok_or_else(refuse)?),
        ArgKind::Mask6 => ArgValue::Mask6(mask6(text).ok_or_else(refuse)?),
        ArgKind::Regex => ArgValue::Regex(Regex::new(text, false)?),
        ArgKind::Var => ArgValue::Var(VarName::parse(text)?),
        ArgKind::File if text.is_empty() => {
            return Err(ExpressionError::new("a map needs the name of a file", 0..0));
        }
        ArgKind::File => ArgValue::Map(LinkSlot::empty()),
        ArgKind::Backend => ArgValue::Backend,
        ArgKind::Frontend => ArgValue::Frontend,
        ArgKind::Table => ArgValue::Table(LinkSlot::empty()),
        ArgKind::Server | ArgKind::Userlist if text.is_empty() => return Err(refuse()),
        ArgKind::Userlist => ArgValue::Userlist,
        ArgKind::Server => match text.split_once('/') {
            Some((backend, server)) => ArgValue::Server {
                backend: Some(backend.to_owned()),
                server: server.to_owned(),
            },
            None => ArgValue::Server {
                backend: None,
                server: text.to_owned(),
            },
        },
        ArgKind::ProtobufField => {
            ArgValue::ProtobufPath(protobuf::parse_path(text).ok_or_else(refuse)?)
        }
        ArgKind::Base64OrVar => match VarName::parse(text) {
            Ok(name) => ArgValue::Var(name),
            Err(_) => {
                let mut bytes = Vec::new();
                unbase64(text.as_bytes(), &mut bytes, false).ok_or_else(refuse)?;
                ArgValue::Bytes(bytes.into())
            }
        },
        // These were read as names.
        ArgKind::DnFormat
        | ArgKind::FixTag
        | ArgKind::JwtAlgorithmOrVar
        | ArgKind::MessageDigest
        | ArgKind::ProtobufType
        | ArgKind::ProxyValueType
        | ArgKind::SetCondition => return Err(refuse()),
        ArgKind::JwtKeyOrVar => {
            let variable = VarName::parse(text).ok();
            let path = variable.is_none().then_some(text);
            ArgValue::JwtKey {
                keys: LinkedKeys::unlinked(path),
                variable,
            }
        }
    })
}

/// The value of an argument that is one of some names; `None` for other types.
fn named_value(kind: ArgKind, text: &str) -> Result<Option<ArgValue>, ExpressionError> {
    let unknown = |known: &[&str]| {
        ExpressionError::unknown(kind_text(kind), text, 0..text.len(), known.iter().copied())
    };
    Ok(Some(match kind {
        ArgKind::DnFormat if !matches!(text, "" | "rfc2253") => {
            return Err(unknown(&["rfc2253"]));
        }
        ArgKind::DnFormat => ArgValue::Text,
        ArgKind::ProxyValueType => {
            let number = proxy_value_type(text);
            let names = PROXY_VALUE_TYPES.map(|(name, _)| name);
            ArgValue::Int(i64::from(number.ok_or_else(|| unknown(&names))?))
        }
        ArgKind::ProtobufType => {
            let number = ProtobufNumber::parse(text);
            ArgValue::ProtobufNumber(number.ok_or_else(|| unknown(&ProtobufNumber::WORDS))?)
        }
        ArgKind::FixTag => {
            let number = fix_message::tag_number(text);
            let names = fix_message::TAG_NAMES.map(|(name, _)| name);
            ArgValue::Int(number.ok_or_else(|| unknown(&names))?)
        }
        ArgKind::MessageDigest => {
            let digest = MessageDigest::parse(text);
            let names: Vec<&str> = MessageDigest::words().collect();
            ArgValue::MessageDigest(digest.ok_or_else(|| unknown(&names))?)
        }
        ArgKind::JwtAlgorithmOrVar => match VarName::parse(text) {
            Ok(name) => ArgValue::Var(name),
            Err(_) => {
                let algorithm = JwtAlgorithm::parse(text.as_bytes());
                ArgValue::JwtAlgorithm(algorithm.ok_or_else(|| unknown(&JwtAlgorithm::WORDS))?)
            }
        },
        ArgKind::SetCondition => {
            let words = SetCondition::WORDS.map(|(word, _)| word);
            ArgValue::SetCondition(SetCondition::parse(text).ok_or_else(|| unknown(&words))?)
        }
        _ => return Ok(None),
    }))
}

/// Types of values in PROXY headers that have a name.
const PROXY_VALUE_TYPES: [(&str, u8); 12] = [
    ("ALPN", 0x01),
    ("AUTHORITY", 0x02),
    ("CRC32C", 0x03),
    ("NOOP", 0x04),
    ("UNIQUE_ID", 0x05),
    ("SSL", 0x20),
    ("SSL_VERSION", 0x21),
    ("SSL_CN", 0x22),
    ("SSL_CIPHER", 0x23),
    ("SSL_SIG_ALG", 0x24),
    ("SSL_KEY_ALG", 0x25),
    ("NETNS", 0x30),
];

/// The number of a type of values in PROXY headers, which is written as in C, or by its name (manual
/// 7.3.3, "fc_pp_tlv").
fn proxy_value_type(text: &str) -> Option<u8> {
    let named = PROXY_VALUE_TYPES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text));
    if let Some((_, number)) = named {
        return Some(*number);
    }
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match (
        digits,
        text.strip_prefix('0').filter(|rest| !rest.is_empty()),
    ) {
        (Some(digits), _) => u8::from_str_radix(digits, 16).ok(),
        (None, Some(digits)) => u8::from_str_radix(digits, 8).ok(),
        (None, None) => text.parse().ok(),
    }
}

/// Writes arguments so that they parse back to the same ones.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, args: &[Arg]) -> fmt::Result {
    let Some(last) = args.iter().rposition(|arg| !arg.is_absent()) else {
        return Ok(());
    };
    if last == 0 && args[0].text.is_empty() {
        // Nothing between parentheses means no argument at all.
        return f.write_str("(\"\")");
    }
    f.write_str("(")?;
    for (position, arg) in args[..=last].iter().enumerate() {
        if position > 0 {
            f.write_str(",")?;
        }
        if arg
            .text
            .contains(['\'', '"', '\\', ',', '(', ')', ' ', '\n', '\r', '\t'])
        {
            // Double quotes and backslashes are the only bytes escaped within double quotes.
            write!(
                f,
                "\"{}\"",
                arg.text.replace('\\', "\\\\").replace('"', "\\\"")
            )?;
        } else {
            f.write_str(&arg.text)?;
        }
    }
    f.write_str(")")
}

/// The integer argument at `position`, when given.
pub(crate) fn int_arg(args: &[Arg], position: usize) -> Option<i64> {
    match args.get(position).map(|arg| &arg.value) {
        Some(ArgValue::Int(number)) => Some(*number),
        _ => None,
    }
}

/// The name of the table that the argument at `position` names; `None` when it was left out.
pub(crate) fn table_arg(args: &[Arg], position: usize) -> Option<&str> {
    let arg = args.get(position)?;
    match &arg.value {
        ArgValue::Table(own) => Some(match own.filled() {
            Some(own) if arg.text.is_empty() => own,
            _ => &arg.text,
        }),
        _ => None,
    }
}

/// The bytes of the text at `position`; empty when it was left out.
pub(crate) fn bytes_arg(args: &[Arg], position: usize) -> &[u8] {
    args.get(position).map_or(b"", |arg| match &arg.value {
        ArgValue::Bytes(bytes) => bytes,
        _ => arg.text.as_bytes(),
    })
}

/// The text of the argument at `position`; empty when it was left out.
pub(crate) fn text_arg(args: &[Arg], position: usize) -> &str {
    args.get(position).map_or("", |arg| arg.text.as_str())
}
