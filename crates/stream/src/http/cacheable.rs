//! What a shared cache on the way could keep, with a cookie, and give to others: `option checkcache`
//! and `cookie ... nocache` ask.
//!
//! The manual lists what may pass (configuration manual, "option checkcache"). HAProxy was seen to
//! let pass, too, what no cache would keep by itself: a response that says neither how long it
//! stays fresh nor how to validate it (RFC 9111, section 3).

use ballast_message::{Method, Response, trim_ows};

/// Whether the response sets a cookie.
pub(super) fn sets_cookie(response: &Response) -> bool {
    let fields = response.fields();
    fields.contains(b"set-cookie") || fields.contains(b"set-cookie2")
}

/// Whether a shared cache could keep the response, and a cookie with it.
pub(super) fn may_be_kept(method: Method, response: &Response) -> bool {
    let (status, fields) = (response.status(), response.fields());
    let by_method = matches!(
        method,
        Method::Get | Method::Head | Method::Options | Method::Trace
    );
    let by_status = matches!(
        status,
        200 | 203 | 204 | 206 | 300 | 301 | 404 | 405 | 410 | 414 | 501
    );
    let mut may_be = by_method && by_status;
    let mut says_how_long = ["expires", "etag", "last-modified"]
        .iter()
        .any(|name| fields.contains(name.as_bytes()));
    for value in fields.find(b"pragma") {
        let first = value.split(|byte| *byte == b',').next();
        if first.is_some_and(|first| trim_ows(first).eq_ignore_ascii_case(b"no-cache")) {
            may_be = false;
        }
    }
    for directive in fields.values(b"cache-control") {
        if forbids(directive) {
            may_be = false;
        } else if directive.eq_ignore_ascii_case(b"public") {
            may_be = true;
        } else if begins(directive, b"max-age=") || begins(directive, b"s-maxage=") {
            says_how_long = true;
        }
    }
    may_be && says_how_long
}

fn forbids(directive: &[u8]) -> bool {
    const WORDS: [&[u8]; 6] = [
        b"private",
        b"no-cache",
        b"no-store",
        b"max-age=0",
        b"s-maxage=0",
        b"no-cache=\"set-cookie\"",
    ];
    WORDS
        .iter()
        .any(|word| directive.eq_ignore_ascii_case(word))
        || begins(directive, b"no-cache=\"set-cookie,")
}

fn begins(directive: &[u8], with: &[u8]) -> bool {
    directive
        .get(..with.len())
        .is_some_and(|beginning| beginning.eq_ignore_ascii_case(with))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ballast_message::HeadLimits;

    /// A response of these fields, each `name: value`.
    fn leaks(method: Method, status: u16, fields: &[&str]) -> bool {
        let mut response = Response::new(HeadLimits::default());
        response.set_status(status).unwrap();
        for field in fields {
            let (name, value) = field.split_once(": ").unwrap();
            let all = response.fields_mut();
            all.add(name.as_bytes(), value.as_bytes()).unwrap();
        }
        sets_cookie(&response) && may_be_kept(method, &response)
    }

    /// Each as HAProxy 2.6 was seen to judge it.
    #[test]
    fn fields_say_whether_a_cache_may_keep_a_cookie() {
        let passes: [&[&str]; 17] = [
            &[],
            &["cache-control: public"],
            &["etag: x", "pragma: no-cache"],
            &["pragma: no-cache", "cache-control: max-age=10"],
            &["etag: x", "cache-control: private"],
            &["etag: x", "cache-control: foo, PRIVATE"],
            &["etag: x", "cache-control: public, private"],
            &["etag: x", "cache-control: no-store"],
            &["etag: x", "cache-control: no-cache"],
            &["etag: x", "cache-control: no-cache=\"set-cookie\""],
            &["etag: x", "cache-control: no-cache=\"set-cookie, foo\""],
            &["expires: 0", "cache-control: max-age=0"],
            &["etag: x", "cache-control: s-maxage=0"],
            &["cache-control: max-age=10", "cache-control: private"],
            &["cache-control: max-age=10, no-cache=\"set-cookie\""],
            &["cache-control: s-maxage=0"],
            &["pragma: foo"],
        ];
        for fields in passes {
            let all = [&["set-cookie: a=b"], fields].concat();
            assert!(!leaks(Method::Get, 200, &all), "{fields:?}");
        }
        let blocked: [&[&str]; 15] = [
            &["etag: x"],
            &["expires: 0"],
            &["last-modified: x"],
            &["cache-control: max-age=10"],
            &["cache-control: max-age=00"],
            &["cache-control: s-maxage=10"],
            &["cache-control: public, max-age=10"],
            &["etag: x", "cache-control: private, public"],
            &["etag: x", "cache-control: privatefoo"],
            &["etag: x", "cache-control: private=\"x\""],
            &["etag: x", "cache-control: no-cache=\"x\""],
            &["etag: x", "cache-control: no-cache=\"foo, set-cookie\""],
            &["etag: x", "cache-control: foo"],
            &["etag: x", "pragma: x, no-cache"],
            &["etag: x", "pragma: foo"],
        ];
        for fields in blocked {
            let all = [&["set-cookie: a=b"], fields].concat();
            assert!(leaks(Method::Get, 200, &all), "{fields:?}");
        }
    }

    #[test]
    fn method_and_status_say_it_too() {
        let (kept, public) = (
            ["set-cookie2: a=b", "etag: x"],
            ["set-cookie: a=b", "etag: x", "cache-control: public"],
        );
        assert!(!leaks(Method::Get, 200, &["etag: x"]), "no cookie");
        for method in [Method::Get, Method::Head, Method::Options, Method::Trace] {
            assert!(leaks(method, 200, &kept), "{method:?}");
        }
        for method in [Method::Post, Method::Put, Method::Delete] {
            assert!(!leaks(method, 200, &kept), "{method:?}");
            assert!(leaks(method, 200, &public), "{method:?}");
        }
        for status in [203, 204, 206, 300, 301, 404, 405, 410, 414, 501] {
            assert!(leaks(Method::Get, status, &kept), "{status}");
        }
        for status in [201, 302, 304, 400, 500] {
            assert!(!leaks(Method::Get, status, &kept), "{status}");
            assert!(leaks(Method::Get, status, &public), "{status}");
        }
    }
}
