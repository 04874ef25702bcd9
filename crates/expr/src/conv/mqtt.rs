//! Messages of MQTT, manual 7.3.1.

use crate::args::ArgKind::Text;
use crate::args::{Arg, text_arg};
use crate::conv::mqtt_message::{MqttError, MqttField, MqttHead, MqttMessage, MqttValue};
use crate::conv::{Converter, NO_ARGS, args, rewritten, row, text_of};
use crate::error::ExpressionError;
use crate::evaluation::Evaluation;
use crate::number_text::push_int;
use crate::value::{Sample, SampleKind};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("mqtt_field_value", args(2, &[Text, Text]), SampleKind::Bin, SampleKind::Str)
        .examples("mqtt_field_value(connect,username)", "mqtt_field_value(publish,topic)")
        .implemented("a field or a property of an MQTT message", field_value),
    row("mqtt_is_valid", NO_ARGS, SampleKind::Bin, SampleKind::Bool)
        .implemented("whether it begins with a valid MQTT message", is_valid),
];

/// Whether there is such a field in such a message.
///
/// # Errors
/// Naming the word that is unknown.
pub(crate) fn check(message: &str, field: &str) -> Result<(), ExpressionError> {
    let Some(known) = MqttMessage::parse(message) else {
        let words = ["connect", "connack"];
        return Err(ExpressionError::unknown(
            "MQTT message",
            message,
            0..0,
            words,
        ));
    };
    if MqttField::parse(known, field).is_some() {
        return Ok(());
    }
    let what = format!("field or number of a property of the MQTT message '{message}'");
    Err(ExpressionError::unknown(
        &what,
        field,
        0..0,
        MqttField::words_of(known),
    ))
}

fn is_valid<'f>(
    cx: &mut Evaluation<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    match MqttHead::parse(cx.scratch.bytes(text_of(input)?)) {
        Ok(_) => Some(Sample::Bool(true)),
        Err(MqttError::Invalid) => Some(Sample::Bool(false)),
        Err(MqttError::Unfinished) => None,
    }
}

fn field_value<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let message = MqttMessage::parse(text_arg(args, 0))?;
    let field = MqttField::parse(message, text_arg(args, 1))?;
    let made = rewritten(cx, text_of(input)?, |bytes, out| {
        let head = MqttHead::parse(bytes).ok()?;
        if head.message != message {
            return None;
        }
        match head.value(field)? {
            MqttValue::Number(number) => push_int(out, i64::from(number)),
            // An empty text is none, and a NUL ends one.
            MqttValue::Text(b"") => return None,
            MqttValue::Text(text) => {
                let end = memchr::memchr(0, text).unwrap_or(text.len());
                out.extend_from_slice(&text[..end]);
            }
        }
        Some(())
    })?;
    Some(Sample::Str(made))
}
