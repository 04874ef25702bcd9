//! How `show errors` shows a message that was refused.
//!
//! The format is HAProxy's, with one difference: in place of the state of the parser it has the
//! rule that the message broke.
//! Source: management manual, section 9.3, "show errors"; the layout as observed.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_engine::InvalidMessage;
use ballast_net::local_time;

/// The maximum length of a line of the message, after escaping.
const LETTERS_MAX: usize = 70;

/// A point in time in the format of logs, with milliseconds.
pub(super) fn moment(at: SystemTime) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = local_time(i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    let month = MONTHS[usize::from(time.month.clamp(1, 12)) - 1];
    format!(
        "{:02}/{month}/{:04}:{:02}:{:02}:{:02}.{:03}",
        time.day,
        time.year,
        time.hour,
        time.minute,
        time.second,
        since.subsec_millis()
    )
}

/// Appends one message.
pub(super) fn write(invalid: &InvalidMessage, is_request: bool, into: &mut String) {
    let named = |one: &Option<(String, u32)>| {
        one.as_ref().map_or_else(
            || "<NONE> (#-1)".to_owned(),
            |(name, id)| format!("{name} (#{id})"),
        )
    };
    let frontend = named(&Some(invalid.frontend.clone()));
    let (backend, server) = (named(&invalid.backend), named(&invalid.server));
    let at = moment(invalid.at);
    let _ = if is_request {
        write!(
            into,
            " \n[{at}] frontend {frontend}: invalid request\n  backend {backend}, "
        )
    } else {
        write!(
            into,
            " \n[{at}] backend {backend}: invalid response\n  frontend {frontend}, "
        )
    };
    let source = invalid.source.map_or_else(
        || "unix".to_owned(),
        |source| format!("{}:{}", source.ip(), source.port()),
    );
    let size = invalid.buffer_bytes;
    let count = invalid.bytes.len();
    let _ = writeln!(
        into,
        "server {server}, event #{}, src {source}\n  \
         buffer starts at 0 (including 0 out), {} free,\n  \
         len {count}, wraps at {size}, error at position {}\n  \
         rule broken: {}\n  ",
        invalid.number,
        size.saturating_sub(count),
        invalid.position,
        invalid.rule,
    );
    dump(&invalid.bytes, into);
}

/// Writes the message in lines, broken at its own line ends; `+` marks the continuation of a line.
fn dump(bytes: &[u8], into: &mut String) {
    let mut at = 0;
    let mut goes_on = false;
    while at < bytes.len() {
        let mark = if goes_on { '+' } else { ' ' };
        let _ = write!(into, "  {at:05}{mark} ");
        goes_on = true;
        let mut letters = 0;
        while let Some(&byte) = bytes.get(at) {
            let shown = escaped(byte);
            letters += shown.len();
            if letters > LETTERS_MAX {
                break;
            }
            into.push_str(&shown);
            at += 1;
            if byte == b'\n' {
                goes_on = false;
                break;
            }
        }
        into.push('\n');
    }
}

fn escaped(byte: u8) -> String {
    match byte {
        b'\n' => "\\n".into(),
        b'\r' => "\\r".into(),
        b'\t' => "\\t".into(),
        0x1b => "\\e".into(),
        b'\\' => "\\\\".into(),
        b' '..=b'~' => char::from(byte).into(),
        _ => format!("\\x{byte:02X}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_cut_as_haproxy_cuts_it() {
        let mut bytes = b"GET /".to_vec();
        bytes.extend_from_slice(&[b'x'; 60]);
        bytes.extend_from_slice(b"\x1b\x00\t\\\x80yyy");
        bytes.extend_from_slice(&[b'z'; 140]);
        bytes.extend_from_slice(b"\x01abc\n\ndef\r\rg\r\n");
        let mut text = String::new();
        dump(&bytes, &mut text);
        let lines = [
            format!("  00000  GET /{}\\e", "x".repeat(60)),
            format!("  00066+ \\x00\\t\\\\\\x80yyy{}", "z".repeat(55)),
            format!("  00128+ {}", "z".repeat(70)),
            format!("  00198+ {}\\x01abc\\n", "z".repeat(15)),
            "  00218  \\n".to_owned(),
            "  00219  def\\r\\rg\\r\\n".to_owned(),
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    }
}
