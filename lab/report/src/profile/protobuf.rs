//! Encoding of Protocol Buffers messages, according to the public specification.

/// A message that is being written.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

/// Wire type of a number, which is encoded as a varint.
const NUMBER: u64 = 0;
/// Wire type of bytes, which follow their length.
const BYTES: u64 = 2;

impl Message {
    pub(super) fn number(&mut self, field: u64, value: u64) -> &mut Self {
        self.varint(field << 3 | NUMBER);
        self.varint(value);
        self
    }

    pub(super) fn text(&mut self, field: u64, text: &str) -> &mut Self {
        self.bytes(field, text.as_bytes())
    }

    pub(super) fn message(&mut self, field: u64, message: &Self) -> &mut Self {
        self.bytes(field, &message.0)
    }

    /// Adds several numbers as one field.
    pub(super) fn numbers(&mut self, field: u64, values: &[u64]) -> &mut Self {
        let mut packed = Self::default();
        values.iter().for_each(|value| packed.varint(*value));
        self.message(field, &packed)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
