//! A profile for `pprof`: its `profile.proto`, compressed by gzip.
//!
//! If the trace has no stacks, the frames are made up: a process calls a function of the allocator,
//! which calls a range of sizes below a power of two.

mod locations;

use heapdrome_profile::{Amount, Profile};
use heapdrome_schema::{Bytes, compressed};

use self::locations::Locations;
use super::facts::duration;
use super::names;
use super::protobuf::Message;
use crate::{Exporter, ReportError};

/// Exports the profile as a gzip-compressed `profile.proto`, which `go tool pprof` and similar
/// viewers read.
#[derive(Clone, Copy, Debug)]
pub struct Pprof;

/// Quantities of a sample, each with its unit.
const VALUES: [(&str, &str); 6] = [
    ("peak_objects", "count"),
    ("peak_space", "bytes"),
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];
/// Quantity that viewers show first.
const SHOWN: &str = "peak_space";

/// Key of the label that names the process of a sample.
const PROCESS: &str = "process";

/// Quantity and unit of the distance between two sample points.
const PERIOD: (&str, &str) = ("space", "bytes");

/// Numbers of the fields in `profile.proto`. The first group is that of a Profile.
mod field {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const MAPPING: u64 = 3;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING_TABLE: u64 = 6;
    pub(super) const TIME_NANOS: u64 = 9;
    pub(super) const DURATION_NANOS: u64 = 10;
    pub(super) const PERIOD_TYPE: u64 = 11;
    pub(super) const PERIOD: u64 = 12;
    pub(super) const COMMENT: u64 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u64 = 14;
    // Fields of a ValueType:
    pub(super) const TYPE: u64 = 1;
    pub(super) const UNIT: u64 = 2;
    // Fields of a Sample:
    pub(super) const LOCATION_ID: u64 = 1;
    pub(super) const VALUE: u64 = 2;
    pub(super) const LABEL: u64 = 3;
    // Fields of a Label:
    pub(super) const KEY: u64 = 1;
    pub(super) const TEXT: u64 = 2;
    /// First field of a Mapping, a Location and a Function.
    pub(super) const ID: u64 = 1;
    // Fields of a Mapping:
    pub(super) const MEMORY_LIMIT: u64 = 3;
    pub(super) const FILE: u64 = 5;
    pub(super) const BUILD_ID: u64 = 6;
    pub(super) const HAS: [u64; 4] = [7, 8, 9, 10];
    // Fields of a Location:
    pub(super) const MAPPING_ID: u64 = 2;
    pub(super) const ADDRESS: u64 = 3;
    pub(super) const LINE: u64 = 4;
    // Fields of a Line:
    pub(super) const FUNCTION_ID: u64 = 1;
    pub(super) const LINE_NUMBER: u64 = 2;
    // Fields of a Function:
    pub(super) const NAME: u64 = 2;
    pub(super) const FILE_NAME: u64 = 4;
}

impl Exporter<Profile> for Pprof {
    fn export(&self, profile: &Profile) -> Result<Vec<u8>, ReportError> {
        let mut whole = Message::default();
        let mut locations = Locations::new();
        for (name, unit) in VALUES {
            let value = value_type(&mut locations, name, unit);
            whole.message(field::SAMPLE_TYPE, &value);
        }
        match profile.has_stacks() {
            true => by_stack(&mut whole, &mut locations, profile),
            false => by_size(&mut whole, &mut locations, profile),
        }
        locations.write(&mut whole, profile);
        let command = crate::reproduce::for_the_eye(&profile.recording.command);
        let comment = locations.text(&command);
        whole
            .number(field::TIME_NANOS, profile.recording.began)
            .number(field::DURATION_NANOS, duration(profile))
            .number(field::COMMENT, comment)
            .number(field::DEFAULT_SAMPLE_TYPE, locations.text(SHOWN));
        let mean = profile.sampling().mean();
        if mean > 0 {
            let period = value_type(&mut locations, PERIOD.0, PERIOD.1);
            whole
                .message(field::PERIOD_TYPE, &period)
                .number(field::PERIOD, mean);
        }
        for text in locations.texts() {
            whole.text(field::STRING_TABLE, text);
        }
        compressed(&whole.into_bytes()).map_err(|error| ReportError::Pprof(error.to_string()))
    }
}

/// Writes a sample for each stack of each process, with the process as its label.
fn by_stack(whole: &mut Message, locations: &mut Locations, profile: &Profile) {
    for process in &profile.processes {
        let mut label = Message::default();
        label
            .number(field::KEY, locations.text(PROCESS))
            .number(field::TEXT, locations.text(&names::process(process)));
        for one in &process.counts.stacks {
            let frames = locations.stack(profile, one.stack);
            let mut sample = sample(&frames, [one.at_peak, one.made, one.left]);
            sample.message(field::LABEL, &label);
            whole.message(field::SAMPLE, &sample);
        }
    }
}

/// Writes a sample for each combination of process, function and range of sizes.
fn by_size(whole: &mut Message, locations: &mut Locations, profile: &Profile) {
    for process in &profile.processes {
        let caller = locations.made_up(&names::process(process));
        for class in &process.counts.classes {
            let function = locations.made_up(&names::function(profile, class.function));
            let range = format!("{} to {}", Bytes(class.below / 2), Bytes(class.below));
            let size = locations.made_up(&range);
            let amounts = [class.at_peak, class.made, class.left];
            let sample = sample(&[size, function, caller], amounts);
            whole.message(field::SAMPLE, &sample);
        }
    }
}

fn value_type(locations: &mut Locations, name: &str, unit: &str) -> Message {
    let mut message = Message::default();
    message
        .number(field::TYPE, locations.text(name))
        .number(field::UNIT, locations.text(unit));
    message
}

/// Returns the encoded sample of a stack: its frames, the innermost first, and its values.
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
