//! Tests of the profile for pprof: a separate decoder reads it back.

use std::collections::BTreeMap;
use std::io::Read as _;

use heapdrome_profile::Profile;
use heapdrome_report::{Exporter, Pprof};

use crate::decoder::Message;
use crate::traces::{HOSTILE, exchange, leaking, odd, several};

/// A profile as pprof would read it from the file.
struct Read {
    types: Vec<(String, String)>,
    /// Values of each stack. The outermost frame of a stack comes first.
    stacks: BTreeMap<Vec<String>, Vec<u64>>,
    shown: String,
    duration: u64,
    time: u64,
    period: u64,
    /// Path and build id of each mapping.
    mappings: Vec<[String; 2]>,
    /// Address of each location, and its functions with their lines.
    locations: Vec<(u64, Vec<String>)>,
    /// Labels of the samples, such as `process=app (pid 100)`.
    labels: Vec<String>,
}

fn read(profile: &Profile) -> Read {
    let packed = Pprof.export(profile).expect("it becomes a file");
    let mut bytes = Vec::new();
    let mut unpacked = flate2::read::GzDecoder::new(&packed[..]);
    unpacked.read_to_end(&mut bytes).expect("gzip");
    let whole = Message::read(&bytes);
    let texts = whole.texts(6);
    assert_eq!(texts[0], "");
    let text = |place: u64| texts[place as usize].clone();
    let functions: BTreeMap<u64, String> = whole
        .messages(5)
        .iter()
        .map(|function| (function.number(1), text(function.number(2))))
        .collect();
    let frames: BTreeMap<u64, String> = whole
        .messages(4)
        .iter()
        .map(|location| {
            let lines = location.messages(4);
            (location.number(1), functions[&lines[0].number(1)].clone())
        })
        .collect();
    let mut stacks = BTreeMap::new();
    for sample in whole.messages(2) {
        let stack = sample
            .numbers(1)
            .iter()
            .rev()
            .map(|id| frames[id].clone())
            .collect();
        assert!(stacks.insert(stack, sample.numbers(2)).is_none());
    }
    let types = whole.messages(1);
    let types = types
        .iter()
        .map(|kind| (text(kind.number(1)), text(kind.number(2))));
    Read {
        types: types.collect(),
        stacks,
        shown: text(whole.number(14)),
        duration: whole.number(10),
        time: whole.number(9),
        period: whole.number(12),
        mappings: mappings(&whole, &texts),
        locations: locations(&whole, &functions),
        labels: labels(&whole, &texts),
    }
}

fn mappings(whole: &Message, texts: &[String]) -> Vec<[String; 2]> {
    let mapping = |mapping: &Message| {
        assert!(mapping.number(2) < mapping.number(3), "it has an extent");
        [5, 6].map(|field| texts[mapping.number(field) as usize].clone())
    };
    let mappings: Vec<_> = whole.messages(3).iter().map(mapping).collect();
    for location in whole.messages(4) {
        assert!(location.number(2) as usize <= mappings.len());
    }
    mappings
}

fn locations(whole: &Message, functions: &BTreeMap<u64, String>) -> Vec<(u64, Vec<String>)> {
    let location = |location: &Message| {
        let lines = location.messages(4);
        let line = |line: &Message| format!("{}:{}", functions[&line.number(1)], line.number(2));
        (location.number(3), lines.iter().map(line).collect())
    };
    whole.messages(4).iter().map(location).collect()
}

fn labels(whole: &Message, texts: &[String]) -> Vec<String> {
    let labels = whole.messages(2).into_iter();
    let text = |place: u64| &texts[place as usize];
    let label = |label: Message| format!("{}={}", text(label.number(1)), text(label.number(2)));
    labels
        .flat_map(|sample| sample.messages(3))
        .map(label)
        .collect()
}

#[test]
fn stacks_are_processes_functions_and_sizes() {
    let read = read(&exchange().profile());
    let types: Vec<_> = read
        .types
        .iter()
        .map(|(name, unit)| format!("{name}/{unit}"))
        .collect();
    let expected = [
        "peak_objects/count",
        "peak_space/bytes",
        "alloc_objects/count",
        "alloc_space/bytes",
        "inuse_objects/count",
        "inuse_space/bytes",
    ];
    assert_eq!(types, expected);
    assert_eq!(read.shown, "peak_space");
    assert_eq!(
        (read.duration, read.time),
        (1_000_000_000, 1_700_000_000_000_000_000)
    );
    let stack = |names: [&str; 3]| names.map(str::to_owned).to_vec();
    let small = stack(["app (pid 100)", "malloc", "64 B to 128 B"]);
    let large = stack(["app (pid 100)", "new", "1.00 MiB to 2.00 MiB"]);
    let mib = 1 << 20;
    let stacks = BTreeMap::from([
        (small, vec![100, 10_000, 100, 10_000, 10, 1000]),
        (large, vec![1, mib, 1, mib, 0, 0]),
    ]);
    assert_eq!(read.stacks, stacks);
}

#[test]
fn values_add_up_to_the_profile() {
    let mut profiles = odd();
    profiles.extend([
        exchange().profile(),
        several("cc").profile(),
        several(HOSTILE).profile(),
        leaking("./app", HOSTILE, 0).profile(),
        leaking("./app", HOSTILE, 1000).profile(),
    ]);
    for profile in &profiles {
        let read = read(profile);
        let sum = |place: usize| {
            read.stacks
                .values()
                .map(|values| values[place])
                .sum::<u64>()
        };
        let counts = &profile.all.counts;
        assert_eq!([sum(2), sum(3)], [counts.made.blocks, counts.made.bytes]);
        assert_eq!([sum(4), sum(5)], [counts.left.blocks, counts.left.bytes]);
        let peaks = profile
            .processes
            .iter()
            .map(|process| process.peak.live.bytes);
        assert_eq!(sum(1), peaks.sum::<u64>());
    }
}

#[test]
fn stacks_of_the_trace_are_stacks_with_mappings() {
    let read = read(&leaking("./app", "/nowhere/app", 4096).profile());
    let stack = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let places: Vec<_> = read.stacks.keys().cloned().collect();
    let expected = ["app+0x1234", "app+0x2345", "app+0x3456"];
    assert_eq!(places, expected.map(|name| stack(["app+0x99", name])));
    let large = &read.stacks[&stack(["app+0x99", "app+0x1234"])];
    assert_eq!(large[..2], large[2..4], "all live at the peak");
    assert_eq!(read.mappings, [["/nowhere/app", "00ff"]]);
    let (addresses, lines): (Vec<_>, Vec<_>) = read.locations.into_iter().unzip();
    assert_eq!(addresses, [0x1234, 0x99, 0x2345, 0x3456]);
    assert_eq!(lines[0], ["app+0x1234:0"]);
    assert_eq!(read.labels, ["process=app (pid 100)"; 3]);
    assert_eq!(read.period, 4096);
}
