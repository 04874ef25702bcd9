//! Trailers (RFC 9113 section 8.1).

use ballast_message::Fields;

use super::rules::{self, FieldKind};
use crate::error::{H2Error, HeadError};
use crate::hpack::FieldSink;

/// Fills trailers from the fields of a header block.
pub(crate) struct TrailerBuilder<'a> {
    fields: &'a mut Fields,
    bytes_max: usize,
    error: Option<HeadError>,
}

impl<'a> TrailerBuilder<'a> {
    /// Begins trailers: `fields` are cleared.
    pub(crate) fn new(fields: &'a mut Fields, bytes_max: usize) -> TrailerBuilder<'a> {
        fields.clear();
        TrailerBuilder {
            fields,
            bytes_max,
            error: None,
        }
    }

    /// Ends the trailers.
    ///
    /// # Errors
    /// [`H2Error::Head`]: an error of the stream. The fields are cleared.
    pub(crate) fn finish(self) -> Result<(), H2Error> {
        match self.error {
            None => Ok(()),
            Some(error) => {
                self.fields.clear();
                Err(H2Error::Head(error))
            }
        }
    }

    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        if name.first() == Some(&b':') {
            return Err(HeadError::PseudoFieldLate);
        }
        let value = rules::check_field(name, value)?;
        match FieldKind::of(name) {
            FieldKind::Connection => Err(HeadError::ConnectionField),
            // As HAProxy: they decide about framing and routing, for which it is too late.
            FieldKind::ContentLength | FieldKind::Host | FieldKind::Te => {
                Err(HeadError::TrailerForbidden)
            }
            _ => rules::append(self.fields, self.bytes_max, name, value),
        }
    }
}

impl FieldSink for TrailerBuilder<'_> {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.error.is_none() {
            self.error = self.take(name, value).err();
        }
    }
}
