//! Cookies, which HTTP/2 may split into many fields (RFC 9113 section 8.2.3).

use super::HeadScratch;

impl HeadScratch {
    /// Adds a `cookie` field to those before it.
    pub(crate) fn join_cookie(&mut self, value: &[u8], is_first: bool) {
        if !is_first {
            self.cookies.extend_from_slice(b"; ");
        }
        self.cookies.extend_from_slice(value);
    }
}
