//! Checks of the arguments of samples and converters that their types alone do not make.

use crate::args::{Arg, ArgValue};
use crate::conv::Converter;
use crate::conv::internal::{WHEN_CONDITIONS, when_needs_acl};
use crate::conv::mqtt;
use crate::conv::text::control_mask;
use crate::error::ExpressionError;
use crate::fetch::Fetch;
use crate::hex::unhex;
use crate::regex::Regex;
use crate::vars::VarName;

const TIME_UNITS: [&str; 3] = ["s", "ms", "us"];
const JSON_ENCODINGS: [&str; 5] = ["ascii", "utf8", "utf8s", "utf8p", "utf8ps"];

/// Refuses a unit that is none of `known`, or an empty one; an argument that is not there is the default.
fn unit(given: Option<&Arg>, known: &[&str]) -> Result<(), ExpressionError> {
    match given {
        Some(arg) if !arg.is_absent() && arg.text.is_empty() => {
            let known = known.join("', '");
            Err(refuse(&format!(
                "a time unit must be given: one of '{known}'"
            )))
        }
        given => one_of("time unit", given.map_or("", |arg| &arg.text), known),
    }
}

/// Refuses a word that is none of `known`; none at all is the default.
fn one_of(what: &str, word: &str, known: &[&str]) -> Result<(), ExpressionError> {
    if word.is_empty() || known.contains(&word) {
        return Ok(());
    }
    Err(ExpressionError::unknown(
        what,
        word,
        0..0,
        known.iter().copied(),
    ))
}

/// Checks that the types alone do not make.
pub(crate) fn check_fetch(row: &Fetch, args: &[Arg]) -> Result<(), ExpressionError> {
    let int = |position: usize| match args.get(position).map(|arg| &arg.value) {
        Some(ArgValue::Int(number)) => Some(*number),
        _ => None,
    };
    let text = |position: usize| args.get(position).map_or("", |arg| arg.text.as_str());
    match row.word {
        "hdr" | "req.hdr" | "req.fhdr" | "res.hdr" | "res.fhdr" | "shdr" | "hdr_ip" | "hdr_val"
        | "req.hdr_ip" | "req.hdr_val" | "res.hdr_ip" | "res.hdr_val" | "shdr_ip" | "shdr_val"
            if int(1).is_some_and(|number| number < -10) =>
        {
            Err(refuse("header occurrence must be >= -10"))
        }
        "capture.req.hdr" | "capture.res.hdr" if int(0).is_some_and(|number| number < 0) => {
            Err(refuse("a capture's number must not be negative"))
        }
        "date" => unit(args.get(1), &TIME_UNITS),
        "accept_date" | "request_date" => unit(args.first(), &TIME_UNITS),
        "bc_rtt" | "bc_rttvar" | "fc_rtt" | "fc_rttvar" => unit(args.first(), &["us", "ms"]),
        "query" => one_of("option", text(0), &["with_qm"]),
        "payload_lv" | "req.payload_lv" | "res.payload_lv" => {
            lengths_and_values(int(0), int(1), text(2))
        }
        "uuid" if int(0).is_some() => one_of("UUID version", text(0), &["4", "7"]),
        "payload" | "req.payload" | "res.payload" => match (int(0), int(1)) {
            (Some(offset), _) if offset < 0 => Err(refuse("negative offset")),
            (_, Some(length)) if length < 0 => Err(refuse("negative length")),
            _ => Ok(()),
        },
        "bool" => {
            let known = ["true", "false", "0", "1"];
            match known.iter().any(|one| text(0).eq_ignore_ascii_case(one)) {
                true => Ok(()),
                false => Err(ExpressionError::unknown("boolean", text(0), 0..0, known)),
            }
        }
        "bin" if text(0).is_empty() || unhex(text(0)).is_none() => {
            Err(refuse("an even number of hexadecimal digits must be given"))
        }
        _ => Ok(()),
    }
}

/// The `i` among the flags of `regsub` belongs to its expression.
pub(crate) fn ignore_case(args: &mut [Arg]) -> Result<(), ExpressionError> {
    let [regex, _, flags] = args else {
        return Ok(());
    };
    if flags.text.contains('i') {
        regex.value = ArgValue::Regex(Regex::new(&regex.text, true)?);
    }
    Ok(())
}

pub(crate) fn check_converter(row: &Converter, args: &[Arg]) -> Result<(), ExpressionError> {
    let int = |position: usize| match args.get(position).map(|arg| &arg.value) {
        Some(ArgValue::Int(number)) => Some(*number),
        _ => None,
    };
    let text = |position: usize| args.get(position).map_or("", |arg| arg.text.as_str());
    match row.word {
        "field" | "word" if int(0) == Some(0) => Err(refuse("index must not be 0")),
        "field" | "word" if text(1).is_empty() => Err(refuse("a delimiter must be given")),
        "add_item" if text(1).is_empty() && text(2).is_empty() => {
            Err(refuse("a variable or a suffix must be given"))
        }
        "be2dec" | "le2dec" if !matches!(int(1), Some(1..=8)) => {
            Err(refuse("the size must be 1 to 8 bytes"))
        }
        "be2dec" | "le2dec" | "be2hex" if !matches!(int(2), None | Some(0 | 1)) => {
            Err(refuse("the third argument must be 0 or 1"))
        }
        "be2hex" if !text(0).is_empty() && int(1).is_none() => {
            Err(refuse("a separator needs a size"))
        }
        "be2hex" if int(1).is_some_and(|size| size <= 0) => {
            Err(refuse("the size must be at least 1 byte"))
        }
        "has_ctl" if control_mask(text(0)).is_none() => Err(refuse(
            "invalid mask: a number of 33 bits, 'any' or 'http' is expected",
        )),
        "param" if args.get(1).is_some_and(|one| !one.is_absent()) && text(1).len() != 1 => {
            Err(refuse("the delimiter must be one character"))
        }
        "http_date" => unit(args.get(1), &TIME_UNITS),
        "bytes" => [0, 1]
            .into_iter()
            .try_for_each(|position| match text(position) {
                "" if position == 1 && args.get(1).is_some_and(|one| !one.is_absent()) => {
                    Err(refuse("the length must not be empty"))
                }
                "" => Ok(()),
                "0" if position == 1 => Err(refuse("the length must not be 0")),
                text if text.parse::<u32>().is_ok() => Ok(()),
                text => VarName::parse(text).map(|_| ()),
            }),
        "json" => one_of("input code type", text(0), &JSON_ENCODINGS),
        "aes_gcm_dec" | "aes_gcm_enc" => {
            one_of("number of bits", text(0), &["128", "192", "256"])?;
            cipher_lengths(args)
        }
        "mqtt_field_value" => mqtt::check(text(0), text(1)),
        "debug" if !matches!(text(1), "" | "buf0" | "stdout" | "stderr") => Err(refuse(
            "this sink doesn't exist: 'buf0', 'stdout' and 'stderr' do",
        )),
        "when" => match when_needs_acl(text(0)) {
            None => {
                let word = text(0).strip_prefix('!').unwrap_or(text(0));
                Err(ExpressionError::unknown(
                    "condition",
                    word,
                    0..0,
                    WHEN_CONDITIONS.map(|(known, _)| known),
                ))
            }
            Some(true) if text(1).is_empty() => Err(refuse("the name of an ACL must be given")),
            Some(_) => Ok(()),
        },
        "json_query" if text(0).is_empty() => Err(refuse("the path must not be empty")),
        "json_query" | "jwt_header_query" | "jwt_payload_query" => {
            one_of("type of output", text(1), &["int"])
        }
        "regsub" => match text(2).chars().find(|flag| !matches!(flag, 'g' | 'i')) {
            None => Ok(()),
            Some(flag) => Err(ExpressionError::unknown(
                "flag",
                &flag.to_string(),
                0..0,
                ["g", "i"],
            )),
        },
        "url_enc" => one_of("encoding type", text(0), &["query"]),
        "sha2" if int(0).is_some() => {
            one_of("number of bits", text(0), &["224", "256", "384", "512"])
        }
        _ => Ok(()),
    }
}

/// The offset and the size of a length, and the offset of what has this length: one with a sign counts from
/// the end of the length.
fn lengths_and_values(
    offset: Option<i64>,
    size: Option<i64>,
    shift: &str,
) -> Result<(), ExpressionError> {
    let (offset, size) = (offset.unwrap_or(0), size.unwrap_or(0));
    if offset < 0 {
        return Err(refuse("the offset of the length must not be negative"));
    }
    if size == 0 {
        return Err(refuse("the size of the length must not be 0"));
    }
    let digits = shift.strip_prefix(['+', '-']).unwrap_or(shift);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse("the offset of the value must be a number"));
    }
    let is_before = |end: i64| digits.parse::<i64>().is_ok_and(|back| back > end);
    if shift.starts_with('-') && offset.checked_add(size).is_some_and(is_before) {
        return Err(refuse("the value must not begin before the payload"));
    }
    Ok(())
}

/// The key and the nonce of AES-GCM where they stand in the configuration. HAProxy takes a key that is
/// too short, and nonces of any length.
fn cipher_lengths(args: &[Arg]) -> Result<(), ExpressionError> {
    /// The length that AES-GCM is specified for first, and that this converter has.
    const NONCE_BYTES: usize = 12;
    let bits = match args.first().map(|arg| &arg.value) {
        Some(ArgValue::Int(bits)) => usize::try_from(*bits).unwrap_or(0),
        _ => 0,
    };
    let length = |position: usize| match args.get(position).map(|arg| &arg.value) {
        Some(ArgValue::Bytes(bytes)) => Some(bytes.len()),
        _ => None,
    };
    if length(1).is_some_and(|length| length != NONCE_BYTES) {
        return Err(refuse("the nonce must have 12 bytes"));
    }
    if length(2).is_some_and(|length| length < bits / 8) {
        return Err(refuse("the key is too short"));
    }
    Ok(())
}

fn refuse(message: &str) -> ExpressionError {
    ExpressionError::new(message, 0..0)
}
