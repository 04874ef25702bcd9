//! `capture`: what the log keeps of headers and cookies.

use ballast_expr::Side;
use ballast_message::{Fields, cookies};
use ballast_model::{CaptureSlot, CookieCapture};

use crate::context::Context;
use crate::exchange::Exchange;

/// Captures from a request.
pub(crate) fn request(context: &Context<'_>, exchange: &mut Exchange) {
    let model = &context.frontend.model;
    let fields = exchange.request.fields();
    headers(
        &model.request_captures,
        fields,
        exchange.captures.slots_mut(Side::Client),
    );
    if let Some(wanted) = &model.cookie_capture {
        cookie(
            wanted,
            b"cookie",
            fields,
            &mut exchange.captures.request_cookie,
        );
    }
}

/// Captures from a response.
pub(crate) fn response(context: &Context<'_>, exchange: &mut Exchange) {
    let model = &context.frontend.model;
    let fields = exchange.response.fields();
    headers(
        &model.response_captures,
        fields,
        exchange.captures.slots_mut(Side::Server),
    );
    if let Some(wanted) = &model.cookie_capture {
        cookie(
            wanted,
            b"set-cookie",
            fields,
            &mut exchange.captures.response_cookie,
        );
    }
}

/// The last line of each header, as much of it as may be kept.
fn headers(wanted: &[CaptureSlot], fields: &Fields, slots: &mut Vec<Vec<u8>>) {
    if slots.len() < wanted.len() {
        slots.resize_with(wanted.len(), Vec::new);
    }
    for (capture, slot) in wanted.iter().zip(slots) {
        let Some(name) = &capture.header else {
            continue;
        };
        // Names are kept in lower case; the configuration's may be in any.
        let value = fields
            .iter()
            .rev()
            .find(|field| field.name.eq_ignore_ascii_case(name.as_bytes()))
            .map(|field| field.value);
        if let Some(value) = value {
            slot.clear();
            slot.extend_from_slice(&value[..value.len().min(capture.value_bytes_max as usize)]);
        }
    }
}

/// The first matching cookie, name and value, as much of it as may be kept.
fn cookie(wanted: &CookieCapture, header: &[u8], fields: &Fields, slot: &mut Vec<u8>) {
    let name = wanted.name.as_bytes();
    let sets = header == b"set-cookie";
    // In `Set-Cookie` only the first cookie is looked at.
    let of_line_max = if sets { 1 } else { usize::MAX };
    for field in fields.iter().filter(|field| field.name == header) {
        for pair in cookies(field.value, sets).take(of_line_max) {
            slot.clear();
            slot.extend_from_slice(pair.name);
            slot.push(b'=');
            slot.extend_from_slice(pair.value);
            // A configured name that ends with an equal sign is a whole name; any other is a
            // prefix.
            if slot.starts_with(name) {
                slot.truncate(wanted.value_bytes_max as usize);
                return;
            }
        }
    }
    slot.clear();
}
