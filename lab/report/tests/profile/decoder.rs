//! A reader of Protocol Buffers that shares no code with the writer under test.

/// The content of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Number(u64),
    Bytes(Vec<u8>),
}

/// A message: its fields in their order.
#[derive(Debug, Default)]
pub struct Message(pub Vec<(u64, Content)>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("it goes on");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

impl Message {
    pub fn read(mut bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let content = match key & 7 {
                0 => Content::Number(varint(&mut bytes)),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (content, rest) = bytes.split_at(length);
                    bytes = rest;
                    Content::Bytes(content.to_vec())
                }
                other => panic!("no field of profile.proto has encoding {other}"),
            };
            fields.push((key >> 3, content));
        }
        Self(fields)
    }

    pub fn all(&self, field: u64) -> impl Iterator<Item = &Content> {
        let of = self.0.iter().filter(move |(known, _)| *known == field);
        of.map(|(_, content)| content)
    }

    pub fn number(&self, field: u64) -> u64 {
        match self.all(field).next() {
            Some(Content::Number(number)) => *number,
            None => 0,
            other => panic!("field {field}: {other:?}"),
        }
    }

    pub fn messages(&self, field: u64) -> Vec<Self> {
        let read = |content: &Content| match content {
            Content::Bytes(bytes) => Self::read(bytes),
            Content::Number(_) => panic!("field {field} is a number"),
        };
        self.all(field).map(read).collect()
    }

    pub fn texts(&self, field: u64) -> Vec<String> {
        let read = |content: &Content| match content {
            Content::Bytes(bytes) => String::from_utf8(bytes.clone()).expect("UTF-8"),
            Content::Number(_) => panic!("field {field} is a number"),
        };
        self.all(field).map(read).collect()
    }

    /// Returns the numbers of a field, whether they are packed or not.
    pub fn numbers(&self, field: u64) -> Vec<u64> {
        let mut all = Vec::new();
        for content in self.all(field) {
            match content {
                Content::Number(number) => all.push(*number),
                Content::Bytes(bytes) => {
                    let mut rest = &bytes[..];
                    while !rest.is_empty() {
                        all.push(varint(&mut rest));
                    }
                }
            }
        }
        all
    }
}
