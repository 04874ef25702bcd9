//! What every list of fields must keep to (RFC 9113 sections 8.2 and 8.3).

use ballast_message::{
    Fields, LengthError, comma_values, is_field_value_lenient, is_token_byte, parse_content_length,
    trim_ows,
};

use crate::error::HeadError;

/// The fields that are treated in a way of their own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FieldKind {
    /// Of the connection: not allowed (section 8.2.2).
    Connection,
    ContentLength,
    Cookie,
    Expect,
    Host,
    Te,
    Other,
}

impl FieldKind {
    #[inline]
    pub(crate) fn of(name: &[u8]) -> FieldKind {
        match name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => FieldKind::Connection,
            b"content-length" => FieldKind::ContentLength,
            b"cookie" => FieldKind::Cookie,
            b"expect" => FieldKind::Expect,
            b"host" => FieldKind::Host,
            b"te" => FieldKind::Te,
            _ => FieldKind::Other,
        }
    }
}

/// Checks a field that is no pseudo-field, and returns its value without white space around it, as
/// HAProxy does (section 8.2.1 lets us refuse it instead).
#[inline]
pub(crate) fn check_field<'v>(name: &[u8], value: &'v [u8]) -> Result<&'v [u8], HeadError> {
    let is_valid = |byte: &u8| is_token_byte(*byte) && !byte.is_ascii_uppercase();
    if name.is_empty() || !name.iter().all(is_valid) {
        return Err(HeadError::FieldNameInvalid);
    }
    if !is_field_value_lenient(value) {
        return Err(HeadError::FieldValueInvalid);
    }
    Ok(trim_ows(value))
}

/// `te` may be `trailers` and nothing else (section 8.2.2).
pub(crate) fn check_te(value: &[u8]) -> Result<(), HeadError> {
    if value == b"trailers" {
        Ok(())
    } else {
        Err(HeadError::TeInvalid)
    }
}

/// The `content-length` of a message: all that were received must be equal, in lists too (RFC 9110
/// section 8.6).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeclaredLength {
    pub(crate) bytes: Option<u64>,
}

impl DeclaredLength {
    /// Takes the value of a field.
    pub(crate) fn note(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if let Some(bytes) = parse_content_length(value) {
            return self.agree(bytes);
        }
        for member in comma_values(value) {
            let bytes = parse_content_length(member)
                .ok_or(HeadError::Length(LengthError::ContentLengthInvalid))?;
            self.agree(bytes)?;
        }
        Ok(())
    }

    fn agree(&mut self, bytes: u64) -> Result<(), HeadError> {
        match self.bytes.replace(bytes) {
            Some(other) if other != bytes => {
                Err(HeadError::Length(LengthError::ContentLengthsDiffer))
            }
            _ => Ok(()),
        }
    }
}

/// What a list of fields says in all, with what is dropped of it: an index of one byte may stand for
/// kilobytes, and looking at them costs time even when nothing is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListBytes(usize);

impl ListBytes {
    /// Counts a field.
    ///
    /// # Errors
    /// [`HeadError::TooLong`] when the list says more than `bytes_max`.
    #[inline]
    pub(crate) fn count(
        &mut self,
        name: &[u8],
        value: &[u8],
        bytes_max: usize,
    ) -> Result<(), HeadError> {
        self.0 += name.len() + value.len();
        if self.0 > bytes_max {
            return Err(HeadError::TooLong);
        }
        Ok(())
    }
}

/// Appends a field within the limits.
#[inline]
pub(crate) fn append(
    fields: &mut Fields,
    bytes_max: usize,
    name: &[u8],
    value: &[u8],
) -> Result<(), HeadError> {
    let bytes = fields.wire_bytes() + name.len() + value.len();
    if bytes > bytes_max || fields.append_received(name, value).is_err() {
        return Err(HeadError::TooLong);
    }
    Ok(())
}

/// Appends `content-length` as one number, however it was written.
pub(crate) fn append_length(
    fields: &mut Fields,
    bytes_max: usize,
    bytes: u64,
) -> Result<(), HeadError> {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = bytes;
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    append(fields, bytes_max, b"content-length", &digits[at..])
}
