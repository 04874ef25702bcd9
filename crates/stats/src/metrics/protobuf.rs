//! Protocol buffers, as far as an export needs them: a message is fields, a field is a key and
//! what follows.
//!
//! By hand, because what is needed is a varint and four kinds of fields; a library would bring a
//! code generator or two dozen structs for it.
//!
//! Source: "Encoding", protobuf.dev/programming-guides/encoding.

/// A message under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

/// What follows a key.
const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH: u32 = 2;

impl Message {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A number without a sign (`uint32`, `uint64`, `enum`).
    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        varint(value, &mut self.bytes);
    }

    /// A number with a sign (`sint32`, `sint64`): small ones are short, whichever their sign.
    pub(super) fn signed(&mut self, field: u32, value: i64) {
        self.number(field, ((value << 1) ^ (value >> 63)) as u64);
    }

    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.key(field, FIXED_64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.key(field, LENGTH);
        Self::write_length(text.len(), &mut self.bytes);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A message in this one.
    pub(super) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.key(field, LENGTH);
        let begin = self.bytes.len();
        fill(self);
        // What was written moves by its length, which is known only now.
        let mut length = Vec::with_capacity(4);
        Self::write_length(self.bytes.len() - begin, &mut length);
        self.bytes.splice(begin..begin, length);
    }

    /// The length that stands before bytes of that length.
    pub(super) fn write_length(length: usize, into: &mut Vec<u8>) {
        varint(length as u64, into);
    }

    fn key(&mut self, field: u32, kind: u32) {
        varint(u64::from(field << 3 | kind), &mut self.bytes);
    }
}

/// Seven bits to a byte, the lowest first; the eighth says that more follow.
fn varint(mut value: u64, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn fields_are_written_as_the_encoding_says() {
        let mut message = Message::default();
        message.number(1, 150);
        assert_eq!(message.bytes(), [0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.text(2, "testing");
        assert_eq!(message.bytes(), b"\x12\x07testing");
        let mut outer = Message::default();
        outer.message(3, |inner| inner.number(1, 150));
        assert_eq!(outer.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        for (value, byte) in [(0, 0), (-1, 1), (1, 2), (-2, 3)] {
            let mut message = Message::default();
            message.signed(1, value);
            assert_eq!(message.bytes(), [0x08, byte]);
        }
        let mut message = Message::default();
        message.signed(1, i64::MIN);
        assert_eq!(message.bytes().len(), 11);
        let mut message = Message::default();
        message.double(1, 1.0);
        assert_eq!(message.bytes(), [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        let mut message = Message::default();
        message.text(1, &"x".repeat(300));
        assert_eq!(message.bytes()[..3], [0x0a, 0xac, 0x02]);
    }
}
