//! A profile for `pprof`: its `profile.proto`, compressed by gzip.
//!
//! A trace has no stacks. Frames are made of what it has: a process calls a function, which makes
//! blocks of a size.

use std::collections::HashMap;

use heapdrome_profile::{Amount, Profile};
use heapdrome_schema::{Bytes, compressed};

use super::facts::duration;
use super::names;
use super::protobuf::Message;
use crate::{Exporter, ReportError};

/// The profile as a gzip-compressed `profile.proto`, for `go tool pprof` and its like.
#[derive(Clone, Copy, Debug)]
pub struct Pprof;

/// The values of a sample with their units, and which of them is shown first.
const VALUES: [(&str, &str); 6] = [
    ("peak_objects", "count"),
    ("peak_space", "bytes"),
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];
const SHOWN: &str = "peak_space";

/// Fields of the messages in profile.proto.
mod field {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING_TABLE: u64 = 6;
    pub(super) const TIME_NANOS: u64 = 9;
    pub(super) const DURATION_NANOS: u64 = 10;
    pub(super) const COMMENT: u64 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u64 = 14;
    /// Of a ValueType.
    pub(super) const TYPE: u64 = 1;
    pub(super) const UNIT: u64 = 2;
    /// Of a Sample.
    pub(super) const LOCATION_ID: u64 = 1;
    pub(super) const VALUE: u64 = 2;
    /// Of a Location and of a Function.
    pub(super) const ID: u64 = 1;
    pub(super) const LINE: u64 = 4;
    pub(super) const FUNCTION_ID: u64 = 1;
    pub(super) const NAME: u64 = 2;
}

impl Exporter<Profile> for Pprof {
    fn export(&self, profile: &Profile) -> Result<Vec<u8>, ReportError> {
        let mut whole = Message::default();
        let mut texts = Texts::new();
        for (name, unit) in VALUES {
            whole.message(field::SAMPLE_TYPE, &value_type(&mut texts, name, unit));
        }
        let mut frames = Frames::default();
        for process in &profile.processes {
            let caller = frames.place(&names::process(process));
            for class in &process.counts.classes {
                let function = frames.place(&names::function(profile, class.function));
                let range = format!("{} to {}", Bytes(class.below / 2), Bytes(class.below));
                let size = frames.place(&range);
                let amounts = [class.at_peak, class.made, class.left];
                let sample = sample(&[size, function, caller], amounts);
                whole.message(field::SAMPLE, &sample);
            }
        }
        frames.write(&mut whole, &mut texts);
        let comment = texts.place(&crate::reproduce::for_the_eye(&profile.recording.command));
        whole
            .number(field::TIME_NANOS, profile.recording.began)
            .number(field::DURATION_NANOS, duration(profile))
            .number(field::COMMENT, comment)
            .number(field::DEFAULT_SAMPLE_TYPE, texts.place(SHOWN));
        for text in &texts.all {
            whole.text(field::STRING_TABLE, text);
        }
        compressed(&whole.into_bytes()).map_err(|error| ReportError::Pprof(error.to_string()))
    }
}

fn value_type(texts: &mut Texts, name: &str, unit: &str) -> Message {
    let mut message = Message::default();
    message
        .number(field::TYPE, texts.place(name))
        .number(field::UNIT, texts.place(unit));
    message
}

/// A sample: its frames, the innermost first, and its values.
fn sample(frames: &[u64], amounts: [Amount; 3]) -> Message {
    let values: Vec<u64> = amounts
        .iter()
        .flat_map(|amount| [amount.blocks, amount.bytes])
        .collect();
    let mut message = Message::default();
    message
        .numbers(field::LOCATION_ID, frames)
        .numbers(field::VALUE, &values);
    message
}

/// The table of texts; the first is empty, as the format wants it.
struct Texts {
    all: Vec<String>,
    places: HashMap<String, u64>,
}

impl Texts {
    fn new() -> Self {
        Self {
            all: vec![String::new()],
            places: HashMap::new(),
        }
    }

    fn place(&mut self, text: &str) -> u64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}

/// The frames, each a function and a location of the same number, from 1.
#[derive(Default)]
struct Frames {
    names: Vec<String>,
    places: HashMap<String, u64>,
}

impl Frames {
    fn place(&mut self, name: &str) -> u64 {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.names.push(name.to_owned());
        let place = self.names.len() as u64;
        self.places.insert(name.to_owned(), place);
        place
    }

    fn write(&self, whole: &mut Message, texts: &mut Texts) {
        for (id, name) in (1..).zip(&self.names) {
            let (mut line, mut location) = (Message::default(), Message::default());
            line.number(field::FUNCTION_ID, id);
            location.number(field::ID, id).message(field::LINE, &line);
            let mut function = Message::default();
            function
                .number(field::ID, id)
                .number(field::NAME, texts.place(name));
            whole
                .message(field::LOCATION, &location)
                .message(field::FUNCTION, &function);
        }
    }
}
