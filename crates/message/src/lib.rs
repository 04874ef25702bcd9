//! HTTP without a version: heads, fields, and the checks that apply to every version.
//!
//! Everything above the codecs (rules, expressions, the stream) reads messages only through this
//! crate, so that a rule written for HTTP/1 works for HTTP/2 unchanged. A codec fills a [`Request`]
//! or a [`Response`]; both keep all their bytes in one arena that is cleared and refilled for each
//! message, so that a connection in use allocates nothing.
//!
//! Field names are stored in lower case, whatever the case they were received in: HAProxy forwards,
//! logs and matches them so, and HTTP/2 requires it.

mod cases;
mod check;
mod connection;
mod cookie;
mod field_name;
mod fields;
mod host;
mod length;
mod limits;
mod method;
mod request;
mod response;
mod target;
mod values;
mod version;
mod words;

pub use cases::NameCases;
pub use check::{
    is_authority, is_field_name, is_field_value, is_field_value_lenient, is_host, is_target,
    is_target_lenient, is_token, is_token_byte, is_upgrade_protocol, parse_authority,
};
pub use connection::{
    ConnectionOptions, connection_options, is_http2_protocol, is_persistent, keep_only_trailers,
    remove_connection_options, remove_http2_upgrades, upgrade_protocol,
};
pub use cookie::{CookiePair, Cookies, cookie_pairs, cookies};
pub use field_name::FieldName;
pub use fields::{Field, FieldIter, FieldValues, Fields, NoRoom};
pub use host::{HostError, default_port, validate_host};
pub use length::{
    BodyLength, LengthError, TransferCoding, content_length, parse_content_length,
    request_body_length, response_body_length, transfer_coding,
};
pub use limits::HeadLimits;
pub use method::{Method, is_preface_method};
pub use request::Request;
pub use response::{Response, reason_phrase};
pub use target::{ReceivedTarget, TargetForm, url_host};
pub use values::{CommaValues, comma_values, trim_ows};
pub use version::Version;

#[cfg(test)]
mod tests;
