//! The codec against a table measured on HAProxy 3.2, and against random input.

mod body;
mod chance;
mod heads;
mod table;

use ballast_message::{Method, Request, Response};

use crate::{H1Limits, HeadParse, HeadScan, RequestHead, ResponseHead};

pub(super) fn request(bytes: &[u8], limits: &H1Limits) -> (HeadParse<RequestHead>, Request) {
    let mut request = Request::default();
    let parse = crate::parse_request(bytes, &mut HeadScan::default(), limits, &mut request);
    (parse, request)
}

pub(super) fn response(bytes: &[u8], method: Method) -> (HeadParse<ResponseHead>, Response) {
    let mut response = Response::default();
    let mut scan = HeadScan::default();
    let limits = H1Limits::default();
    let parse = crate::parse_response(bytes, &mut scan, &limits, method, &mut response);
    (parse, response)
}
