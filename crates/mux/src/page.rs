//! Whole responses kept in files (`errorfile`).

use ballast_h1::{self as h1, H1Limits, HeadParse, HeadScan};
use ballast_message::{Method, Response};

/// Reads the head of a response kept in a file into `response`; where its body begins.
/// `None` when the bytes are no whole head.
pub fn read_page(bytes: &[u8], response: &mut Response) -> Option<usize> {
    let limits = H1Limits {
        head_bytes_max: bytes.len() + 1,
        ..H1Limits::default()
    };
    let mut scan = HeadScan::default();
    match h1::parse_response(bytes, &mut scan, &limits, Method::Get, response) {
        HeadParse::Complete(head) => Some(head.head_bytes),
        _ => None,
    }
}
