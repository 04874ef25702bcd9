//! The error pages that are built in.
//!
//! Status lines, fields and bodies equal HAProxy's default pages, so that a tool or a test
//! that recognises one recognises ours. `errorfile` and its siblings replace them.

/// One default page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Page {
    /// Status code.
    pub status: u16,
    /// Reason phrase.
    pub reason: &'static str,
    /// The sentence below the heading.
    sentence: &'static str,
    /// Whether the client's connection is always closed after it: after these errors it is not
    /// known where the next request begins.
    pub closes: bool,
}

const fn page(status: u16, reason: &'static str, sentence: &'static str, closes: bool) -> Page {
    Page {
        status,
        reason,
        sentence,
        closes,
    }
}

/// Every status that has a default page (configuration manual, section 1.3.1), in order.
const PAGES: [Page; 21] = [
    page(200, "OK", "Service ready.", false),
    page(
        400,
        "Bad request",
        "Your browser sent an invalid request.",
        true,
    ),
    page(
        401,
        "Unauthorized",
        "You need a valid user and password to access this content.",
        false,
    ),
    page(
        403,
        "Forbidden",
        "Request forbidden by administrative rules.",
        false,
    ),
    page(404, "Not Found", "The resource could not be found.", false),
    page(
        405,
        "Method Not Allowed",
        "A request was made of a resource using a request method not supported by that resource.",
        false,
    ),
    page(
        407,
        "Unauthorized",
        "You need a valid user and password to access this content.",
        false,
    ),
    page(
        408,
        "Request Time-out",
        "Your browser didn't send a complete request in time.",
        true,
    ),
    page(
        410,
        "Gone",
        "The resource is no longer available and will not be available again.",
        false,
    ),
    page(
        413,
        "Payload Too Large",
        "The request entity exceeds the maximum allowed.",
        false,
    ),
    page(
        414,
        "URI Too Long",
        "The URI provided was too long for the server to process.",
        false,
    ),
    page(
        421,
        "Misdirected Request",
        "Request sent to a non-authoritative server.",
        false,
    ),
    page(
        422,
        "Unprocessable Content",
        "The server cannot process the contained instructions.",
        false,
    ),
    page(425, "Too Early", "Your browser sent early data.", false),
    page(
        429,
        "Too Many Requests",
        "You have sent too many requests in a given amount of time.",
        false,
    ),
    page(
        431,
        "Request Header Fields Too Large",
        "Request Header Fields Too Large.",
        false,
    ),
    page(
        500,
        "Internal Server Error",
        "An internal server error occurred.",
        false,
    ),
    page(
        501,
        "Not Implemented",
        "The server does not support the functionality required to fulfill the request.",
        false,
    ),
    page(
        502,
        "Bad Gateway",
        "The server returned an invalid or incomplete response.",
        false,
    ),
    page(
        503,
        "Service Unavailable",
        "No server is available to handle this request.",
        false,
    ),
    page(
        504,
        "Gateway Time-out",
        "The server didn't respond in time.",
        false,
    ),
];

/// The default page of a status; the page of 500 for a status that has none.
pub(crate) fn default_page(status: u16) -> Page {
    match PAGES.binary_search_by_key(&status, |page| page.status) {
        Ok(at) => PAGES[at],
        Err(_) => PAGES[INTERNAL_ERROR],
    }
}

/// The index of the page of 500, which a test checks.
const INTERNAL_ERROR: usize = 16;

impl Page {
    /// Appends the body.
    pub(crate) fn append_body(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<html><body><h1>");
        out.extend_from_slice(itoa::Buffer::new().format(self.status).as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.reason.as_bytes());
        out.extend_from_slice(b"</h1>\n");
        out.extend_from_slice(self.sentence.as_bytes());
        out.extend_from_slice(b"\n</body></html>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_in_order_and_500_is_where_it_should_be() {
        assert!(PAGES.is_sorted_by_key(|page| page.status));
        assert_eq!(PAGES[INTERNAL_ERROR].status, 500);
        assert_eq!(default_page(599).status, 500);
        assert_eq!(default_page(503).reason, "Service Unavailable");
    }

    #[test]
    fn bodies_have_the_lengths_haproxy_announces() {
        for (status, length) in [
            (200, 58),
            (400, 90),
            (408, 110),
            (502, 107),
            (503, 107),
            (504, 92),
        ] {
            let mut body = Vec::new();
            default_page(status).append_body(&mut body);
            assert_eq!(body.len(), length, "{status}");
        }
    }
}
