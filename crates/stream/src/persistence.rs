//! The persistence cookie: read on the way in, written on the way out.
//!
//! The source is the manual's "cookie" (configuration manual, section 4.2) and what HAProxy was
//! seen to answer. What happened is logged as two letters, the third and fourth of the termination
//! state.

use std::time::Duration;

use ballast_expr::bytes_of_text;
use ballast_message::{CookiePair, Fields, NoRoom, cookie_pairs};
use ballast_model::{CookieMode, CookiePersistence};

/// How the client's cookie was judged: the third letter of the termination state.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum ClientCookie {
    /// `N`: there was none.
    #[default]
    None,
    /// `I`: it names no server.
    Invalid,
    /// `D`: it names a server that is down.
    Down,
    /// `V`: it names a server that was used.
    Valid,
    /// `E`: it is older than `maxidle`.
    Expired,
    /// `O`: it was first given longer ago than `maxlife`.
    Old,
    /// `U`: it names a server, and a rule chose another way.
    Unused,
}

/// What was done to the server's cookie: the fourth letter of the termination state.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum ServerCookie {
    /// `N`: none came, none was added.
    #[default]
    None,
    /// `P`: the server's own was left alone.
    Provided,
    /// `I`: one was inserted.
    Inserted,
    /// `U`: one was inserted to refresh its dates.
    Updated,
    /// `R`: the server's was rewritten or prefixed.
    Rewritten,
    /// `D`: the server's was deleted.
    Deleted,
}

impl ClientCookie {
    /// The letter of the termination state.
    pub(crate) fn letter(self) -> u8 {
        match self {
            Self::None => b'N',
            Self::Invalid => b'I',
            Self::Down => b'D',
            Self::Valid => b'V',
            Self::Expired => b'E',
            Self::Old => b'O',
            Self::Unused => b'U',
        }
    }
}

impl ServerCookie {
    /// The letter of the termination state.
    pub(crate) fn letter(self) -> u8 {
        match self {
            Self::None => b'N',
            Self::Provided => b'P',
            Self::Inserted => b'I',
            Self::Updated => b'U',
            Self::Rewritten => b'R',
            Self::Deleted => b'D',
        }
    }
}

/// Separates a server's name from the application's own value in `prefix` mode.
const PREFIX_DELIMITER: u8 = b'~';
/// Separates a server's name from the dates of `maxidle` and `maxlife`.
const DATE_DELIMITER: u8 = b'|';

/// The client's persistence cookie, parsed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ReceivedCookie<'a> {
    /// The part that names a server.
    pub server: &'a [u8],
    /// When the client was last seen, in seconds of the wall clock.
    last_seen: Option<u64>,
    /// When the cookie was first given, in seconds of the wall clock.
    first_given: Option<u64>,
}

/// The persistence cookies of a request, in order: a browser may have several, of other paths or
/// domains.
pub(crate) fn received_cookies<'c, 'f>(
    cookie: &'c CookiePersistence,
    fields: &'f Fields,
) -> impl Iterator<Item = ReceivedCookie<'f>> + use<'c, 'f> {
    fields
        .iter()
        .filter(|field| field.name == b"cookie")
        .flat_map(|field| cookie_pairs(field.value))
        .filter(|pair| is_ours(pair, cookie))
        .map(|pair| parse_value(cookie, pair.value))
}

fn parse_value<'a>(cookie: &CookiePersistence, value: &'a [u8]) -> ReceivedCookie<'a> {
    let whole = ReceivedCookie {
        server: value,
        last_seen: None,
        first_given: None,
    };
    match cookie.mode {
        CookieMode::Prefix => match value.iter().position(|&byte| byte == PREFIX_DELIMITER) {
            Some(end) => ReceivedCookie {
                server: &value[..end],
                ..whole
            },
            None => whole,
        },
        _ => {
            let mut parts = value.split(|&byte| byte == DATE_DELIMITER);
            let server = parts.next().unwrap_or(value);
            let mut date = || parts.next().and_then(decode_date);
            ReceivedCookie {
                server,
                last_seen: date(),
                first_given: date(),
            }
        }
    }
}

impl ReceivedCookie<'_> {
    /// Whether the dates still allow the cookie at `now` (seconds of the wall clock). One that is both is old.
    pub(crate) fn check_age(
        &self,
        cookie: &CookiePersistence,
        now: u64,
    ) -> Result<(), ClientCookie> {
        if let (Some(limit), Some(given)) = (cookie.life_max, self.first_given)
            && outside(given, limit, now)
        {
            return Err(ClientCookie::Old);
        }
        if let (Some(limit), Some(seen)) = (cookie.idle_max, self.last_seen)
            && outside(seen, limit, now)
        {
            return Err(ClientCookie::Expired);
        }
        Ok(())
    }

    /// When the cookie was first given, in seconds of the wall clock.
    pub(crate) fn first_given(&self) -> Option<u64> {
        self.first_given
    }

    /// Whether it lacks a date that the configuration now asks for, carries dates that it has to
    /// refresh, or some that it does not ask for.
    pub(crate) fn needs_refresh(&self, cookie: &CookiePersistence) -> bool {
        let has_dates = self.last_seen.is_some() || self.first_given.is_some();
        match cookie.life_max {
            _ if cookie.idle_max.is_some() => true,
            Some(_) => self.first_given.is_none(),
            None => has_dates,
        }
    }
}

/// Whether `date` is more than `limit` before `now`, or more than a day ahead of our clock.
fn outside(date: u64, limit: Duration, now: u64) -> bool {
    const CLOCK_SKEW_SECONDS: u64 = 86_400;
    date + limit.as_secs() < now || date > now + CLOCK_SKEW_SECONDS
}

/// Removes the cookie from the request (`indirect`), or the prefix from its value (`prefix`).
/// `kept` is memory to write in.
///
/// # Errors
/// None in practice: values only shrink. [`NoRoom`] is passed on all the same.
pub(crate) fn hide_from_server(
    cookie: &CookiePersistence,
    fields: &mut Fields,
    kept: &mut Vec<u8>,
) -> Result<(), NoRoom> {
    let strip = cookie.mode == CookieMode::Prefix;
    let hide = cookie.indirect && cookie.mode == CookieMode::Insert;
    if !strip && !hide {
        return Ok(());
    }
    let mut at = 0;
    while let Some(field) = fields.field(at) {
        if field.name != b"cookie" || !cookie_pairs(field.value).any(|pair| is_ours(&pair, cookie))
        {
            at += 1;
            continue;
        }
        without_our_part(cookie, strip, field.value, kept);
        if kept.is_empty() {
            fields.remove_at(at);
        } else {
            fields.replace_value(at, kept)?;
            at += 1;
        }
    }
    Ok(())
}

/// Writes a `Cookie` value without our part of it. Everything else stays as it is, separators
/// included.
fn without_our_part(cookie: &CookiePersistence, strip: bool, value: &[u8], kept: &mut Vec<u8>) {
    kept.clear();
    if strip {
        without_prefixes(cookie, value, kept);
    } else {
        without_pairs(cookie, value, kept);
    }
}

fn without_prefixes(cookie: &CookiePersistence, value: &[u8], kept: &mut Vec<u8>) {
    for pair in cookie_pairs(value) {
        let prefix = pair.value.iter().position(|&byte| byte == PREFIX_DELIMITER);
        match prefix {
            Some(end) if is_ours(&pair, cookie) => {
                let start = pair.raw.len() - pair.raw.trim_ascii_start().len();
                kept.extend_from_slice(&pair.raw[..start]);
                kept.extend_from_slice(pair.name);
                kept.push(b'=');
                kept.extend_from_slice(&pair.value[end + 1..]);
                kept.extend_from_slice(&pair.raw[pair.raw.trim_ascii_end().len()..]);
            }
            _ => kept.extend_from_slice(pair.raw),
        }
        kept.extend(pair.separator);
    }
}

/// The attributes that follow a cookie (`$Path`, RFC 2965) are removed with it, and `$Version`
/// with the last cookie.
fn without_pairs(cookie: &CookiePersistence, value: &[u8], kept: &mut Vec<u8>) {
    let (mut begun, mut after_ours, mut separator) = (false, false, None);
    let mut speaks_of_cookies = false;
    for pair in cookie_pairs(value) {
        let of_others = pair.name.first() == Some(&b'$');
        let ours = is_ours(&pair, cookie) || (after_ours && of_others);
        if !ours {
            speaks_of_cookies |= !of_others;
            kept.extend(separator.filter(|_| begun));
            if after_ours && begun {
                kept.push(b' ');
            }
            kept.extend_from_slice(match after_ours {
                true => pair.raw.trim_ascii_start(),
                false => pair.raw,
            });
            begun = true;
        }
        (after_ours, separator) = (ours, pair.separator);
    }
    let length = match speaks_of_cookies {
        true => kept.trim_ascii_end().len(),
        false => 0,
    };
    kept.truncate(length);
}

/// What decides which cookie a response gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CookieEdit<'a> {
    /// The server's cookie value; `None` when it has none.
    pub server: Option<&'a [u8]>,
    /// Whether the request stayed with the server of its cookie or of a rule: the client needs no new
    /// cookie. That of the last connection alone is forgotten with the connection.
    pub keeps_server: bool,
    /// Whether the client's cookie has dates to refresh.
    pub refresh: bool,
    /// When the client's cookie was first given, in seconds of the wall clock.
    pub first_given: Option<u64>,
    /// Whether the request was a POST.
    pub post: bool,
    /// Whether a shared cache could keep the response, where `nocache` asks for that.
    pub may_be_kept: bool,
    /// Seconds of the wall clock.
    pub now: u64,
}

/// Writes the persistence cookie into a response.
///
/// # Errors
/// [`NoRoom`] when the head would grow beyond its limit; the response is then not to be sent.
pub(crate) fn write_cookie(
    cookie: &CookiePersistence,
    edit: &CookieEdit<'_>,
    fields: &mut Fields,
) -> Result<ServerCookie, NoRoom> {
    let mut done = rewrite_servers_own(cookie, edit, fields)?;
    if cookie.mode != CookieMode::Insert
        || (cookie.postonly && !edit.post)
        || (cookie.preserve && done == ServerCookie::Provided)
    {
        return Ok(done);
    }
    let known = edit.keeps_server;
    if known && !edit.refresh {
        return Ok(done);
    }
    fields.add(b"set-cookie", &set_cookie(cookie, edit))?;
    done = if known {
        ServerCookie::Updated
    } else {
        ServerCookie::Inserted
    };
    if cookie.nocache && edit.may_be_kept {
        fields.add(b"cache-control", b"private")?;
    }
    Ok(done)
}

fn rewrite_servers_own(
    cookie: &CookiePersistence,
    edit: &CookieEdit<'_>,
    fields: &mut Fields,
) -> Result<ServerCookie, NoRoom> {
    let mut done = ServerCookie::None;
    let mut at = 0;
    while let Some(field) = fields.field(at) {
        let ours = field.name == b"set-cookie"
            && cookie_pairs(field.value)
                .next()
                .is_some_and(|pair| is_ours(&pair, cookie));
        if !ours {
            at += 1;
            continue;
        }
        let is_hidden = cookie.indirect && edit.keeps_server;
        match (cookie.mode, edit.server) {
            (CookieMode::Insert | CookieMode::Prefix, _)
                if !cookie.preserve && (cookie.mode == CookieMode::Insert || is_hidden) =>
            {
                fields.remove_at(at);
                done = ServerCookie::Deleted;
                continue;
            }
            (CookieMode::Rewrite | CookieMode::Prefix, Some(server)) => {
                let value = rewritten(cookie.mode, server, field.value);
                fields.replace_value(at, &value)?;
                done = ServerCookie::Rewritten;
            }
            _ => done = ServerCookie::Provided,
        }
        at += 1;
    }
    Ok(done)
}

/// `NAME=value; attributes` with the server's name in place of, or before, the value.
fn rewritten(mode: CookieMode, server: &[u8], value: &[u8]) -> Vec<u8> {
    let Some(first) = cookie_pairs(value).next() else {
        return value.to_vec();
    };
    let rest = first.raw.trim_ascii_end().len();
    let mut out = Vec::with_capacity(value.len() + server.len() + 1);
    out.extend_from_slice(first.name);
    out.push(b'=');
    out.extend_from_slice(server);
    if mode == CookieMode::Prefix {
        out.push(PREFIX_DELIMITER);
        out.extend_from_slice(first.value);
    }
    out.extend_from_slice(&value[rest..]);
    out
}

/// The value of `Set-Cookie`. For a server without a cookie value it has the client delete its
/// cookie.
fn set_cookie(cookie: &CookiePersistence, edit: &CookieEdit<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(&bytes_of_text(&cookie.name));
    out.push(b'=');
    match edit.server {
        Some(server) => out.extend_from_slice(server),
        None => out.extend_from_slice(b"; Expires=Thu, 01-Jan-1970 00:00:01 GMT"),
    }
    let has_dates = cookie.idle_max.is_some() || cookie.life_max.is_some();
    if edit.server.is_some() && has_dates {
        out.push(DATE_DELIMITER);
        encode_date(edit.now, &mut out);
        if cookie.life_max.is_some() {
            out.push(DATE_DELIMITER);
            encode_date(edit.first_given.unwrap_or(edit.now), &mut out);
        }
    }
    out.extend_from_slice(b"; path=/");
    for domain in &cookie.domains {
        out.extend_from_slice(b"; domain=");
        out.extend_from_slice(&bytes_of_text(domain));
    }
    if cookie.httponly {
        out.extend_from_slice(b"; HttpOnly");
    }
    if cookie.secure {
        out.extend_from_slice(b"; Secure");
    }
    for attribute in &cookie.attributes {
        out.extend_from_slice(b"; ");
        out.extend_from_slice(&bytes_of_text(attribute));
    }
    out
}

// === dates ===

/// Dates are five base64 digits of the wall clock in units of four seconds.
const DATE_UNIT_SECONDS: u64 = 4;
const DATE_DIGITS: usize = 5;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode_date(seconds: u64, out: &mut Vec<u8>) {
    let units = seconds.div_ceil(DATE_UNIT_SECONDS);
    for digit in (0..DATE_DIGITS).rev() {
        #[expect(clippy::cast_possible_truncation, reason = "six bits fit every usize")]
        out.push(DIGITS[(units >> (6 * digit)) as usize & 0x3f]);
    }
}

fn decode_date(digits: &[u8]) -> Option<u64> {
    let digits = digits.get(..DATE_DIGITS)?;
    let mut units = 0_u64;
    for digit in digits {
        let value = DIGITS.iter().position(|known| known == digit)?;
        units = units << 6 | value as u64;
    }
    (units > 0).then_some(units * DATE_UNIT_SECONDS)
}

fn is_ours(pair: &CookiePair<'_>, cookie: &CookiePersistence) -> bool {
    pair.is_named && pair.name == &*bytes_of_text(&cookie.name)
}

#[cfg(test)]
mod tests;
