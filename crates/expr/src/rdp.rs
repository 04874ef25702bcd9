//! The cookie in the first message of an RDP client (MS-RDPBCGR, section 2.2.1.1).

/// The heads of TPKT and X.224.
const HEAD_BYTES: usize = 11;
const LABEL: &[u8] = b"Cookie:";

/// The value of the cookie of that name, in any case of letters; of any cookie if the name is empty.
///
/// # Errors
/// There is none; true where more bytes may bring one.
pub(crate) fn find_cookie<'d>(data: &'d [u8], name: &str) -> Result<&'d [u8], bool> {
    let line = data.get(HEAD_BYTES..).ok_or(true)?;
    if line.len() <= LABEL.len() {
        return Err(true);
    }
    let (label, rest) = line.split_at(LABEL.len());
    if !label.eq_ignore_ascii_case(LABEL) {
        return Err(false);
    }
    let start = rest.iter().position(|byte| *byte != b' ').ok_or(true)?;
    let cookie = &rest[start..];
    if !name.is_empty() {
        let next = *cookie.get(name.len()).ok_or(true)?;
        let found = &cookie[..name.len()];
        if next != b'=' || !found.eq_ignore_ascii_case(name.as_bytes()) {
            return Err(false);
        }
    }
    let end = memchr::memchr(b'\r', cookie).ok_or(true)?;
    if *cookie.get(end + 1).ok_or(true)? != b'\n' {
        return Err(false);
    }
    let equals = memchr::memchr(b'=', &cookie[..end]).ok_or(false)?;
    Ok(&cookie[equals + 1..end])
}

/// The value of the cookie of that name in the first bytes of an RDP client, in any case of letters
/// (`balance rdp-cookie`, `persist rdp-cookie`).
pub fn rdp_cookie<'d>(data: &'d [u8], name: &str) -> Option<&'d [u8]> {
    find_cookie(data, name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_found_by_its_name() {
        let message = b"\x03\0\0\x2c\x27\xe0\0\0\0\0\0Cookie: mstshash=abc\r\nrest";
        assert_eq!(rdp_cookie(message, "MSTShash"), Some(&b"abc"[..]));
        assert_eq!(rdp_cookie(message, ""), Some(&b"abc"[..]));
        assert_eq!(rdp_cookie(message, "msts"), None);
        for cut in 0..message.len() - 5 {
            assert_eq!(find_cookie(&message[..cut], "mstshash"), Err(true), "{cut}");
        }
        assert_eq!(rdp_cookie(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", ""), None);
    }
}
