//! The part of a request that is the key: `balance uri`, `url_param`, `hdr(host) use_domain_only`.
//!
//! Source: configuration manual, `balance`; unclear cases were compared with HAProxy
//! (`tests/oracle.rs`, extraction).

/// Options of `balance uri`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UriKey {
    /// `depth <n>`: stop before the slash that begins directory level `n + 1`. 0: no limit.
    pub depth_max: u32,
    /// `len <n>`: look at no more than this many bytes. 0: no limit.
    pub len_bytes_max: usize,
    /// `path-only`: the key begins at the path; scheme and authority are skipped.
    pub path_only: bool,
    /// `whole`: the query string is part of the key.
    pub whole: bool,
}

/// The part of a request target that `balance uri` hashes.
///
/// `uri` is the target as it was received (origin form, absolute form, `*`). The key is empty
/// when `path-only` is asked of a target without a path.
#[must_use]
pub fn uri_key(uri: &[u8], options: UriKey) -> &[u8] {
    let start = if options.path_only {
        path_start(uri)
    } else {
        0
    };
    let from = uri.get(start..).unwrap_or_default();
    let window = match options.len_bytes_max {
        0 => from,
        limit => from.get(..limit).unwrap_or(from),
    };
    let mut slashes: u32 = 0;
    let end = window.iter().position(|&byte| match byte {
        b'/' => {
            slashes = slashes.saturating_add(1);
            options.depth_max != 0 && slashes > options.depth_max
        }
        b'?' => !options.whole,
        _ => false,
    });
    end.map_or(window, |end| window.get(..end).unwrap_or_default())
}

/// The value of parameter `name` in the query string of a request target (`balance url_param`).
///
/// Parameters are separated by `&` only. `None` when there is no query, no such parameter, or
/// the name is not followed by `=`. An empty value is a value.
#[must_use]
pub fn url_param<'a>(uri: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let query = uri.iter().position(|&byte| byte == b'?')?;
    named_value(uri.get(query + 1..)?, name)
}

/// The value of parameter `name` in a request body (`balance url_param <name> check_post`).
///
/// `body` is what has arrived of it (of the first chunk, when chunked); it is parsed as a query
/// string. White space ends the value. A value with any other byte that is not allowed in a token
/// (RFC 9110 section 5.6.2) is no key, because the body is then probably not a form.
#[must_use]
pub fn post_param<'a>(body: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = named_value(body, name)?;
    let is_token_byte =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let Some(end) = value.iter().position(|byte| !is_token_byte(byte)) else {
        return Some(value);
    };
    let (token, rest) = value.split_at(end);
    matches!(rest, [b' ' | b'\t' | b'\r' | b'\n', ..]).then_some(token)
}

/// The main domain label of a host name (`balance hdr(host) use_domain_only`): the text between the
/// last two dots, or before the last dot when there is only one. A name without a dot is the whole
/// key. A leading dot does not end a label, and a dot directly before the last dot does not begin
/// one.
#[must_use]
pub fn domain_only(host: &[u8]) -> &[u8] {
    let last_dot = |part: &[u8]| part.iter().rposition(|&byte| byte == b'.');
    let Some(last @ 1..) = last_dot(host) else {
        return host;
    };
    let start = last_dot(&host[..last - 1]).map_or(0, |dot| dot + 1);
    &host[start..last]
}

fn named_value<'a>(mut params: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    loop {
        let end = params
            .iter()
            .position(|&byte| byte == b'&')
            .unwrap_or(params.len());
        let (one, rest) = params.split_at(end);
        if let Some(value) = one
            .strip_prefix(name)
            .and_then(|tail| tail.strip_prefix(b"="))
        {
            return Some(value);
        }
        params = rest.get(1..)?;
    }
}

/// Offset of the path in a request target; its end when it has none.
fn path_start(uri: &[u8]) -> usize {
    if uri.first() == Some(&b'/') {
        return 0;
    }
    let scheme = uri.windows(3).position(|three| three == b"://");
    let path = scheme.and_then(|scheme| {
        let authority = scheme + 3;
        let slash = uri
            .get(authority..)?
            .iter()
            .position(|&byte| byte == b'/')?;
        Some(authority + slash)
    });
    path.unwrap_or(uri.len())
}
