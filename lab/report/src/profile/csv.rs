//! A profile as CSV, with one figure in each line.

use heapdrome_profile::{Amount, Counts, Digits, Level, ProcessProfile, Profile, Timeline};

use super::{code, names};
use crate::csv::{Csv, written};
use crate::{Exporter, ReportError};

const HEADS: [&str; 6] = ["process", "program", "table", "at", "name", "value"];

/// The profile as CSV in the long form: `process,program,table,at,name,value`.
///
/// `process` is the number of the process in the trace, or `all`. `at` depends on the table: the
/// time of a point in nanoseconds since the recording began; the power of two above a histogram's
/// quantity; a function; an allocator; or the functions of a stack, the outermost first, separated
/// by semicolons. It is empty in the table `summary`.
impl Exporter<Profile> for Csv {
    fn export(&self, profile: &Profile) -> Result<Vec<u8>, ReportError> {
        let mut rows = vec![HEADS.map(str::to_owned)];
        let all = &profile.all;
        let mut sheet = Sheet::new(&mut rows, "all", "");
        sheet.add("summary", "", "begin_ns", all.span[0]);
        sheet.add("summary", "", "end_ns", all.span[1]);
        sheet.add("summary", "", "peak_live_bytes_least", all.peak.least);
        sheet.add("summary", "", "peak_live_bytes_most", all.peak.most);
        sheet.add("summary", "", "sample_bytes", profile.sampling().mean());
        sheet.time(profile);
        sheet.counts(profile, &all.counts);
        sheet.stacks(profile);
        sheet.timeline(&all.timeline);
        for process in &profile.processes {
            let number = process.number.to_string();
            let program = process
                .process
                .as_ref()
                .map_or("", |known| known.program.as_str());
            let mut sheet = Sheet::new(&mut rows, &number, program);
            sheet.process(process);
            sheet.growth(profile, process);
            sheet.counts(profile, &process.counts);
            sheet.timeline(&process.timeline);
        }
        written(rows.into_iter())
    }
}

/// Writer of the lines of one process, or of all processes together.
struct Sheet<'a> {
    rows: &'a mut Vec<[String; 6]>,
    process: &'a str,
    program: &'a str,
}

impl<'a> Sheet<'a> {
    fn new(rows: &'a mut Vec<[String; 6]>, process: &'a str, program: &'a str) -> Self {
        Self {
            rows,
            process,
            program,
        }
    }

    fn add(&mut self, table: &str, at: &str, name: &str, value: u64) {
        let cells = [self.process, self.program, table, at, name].map(str::to_owned);
        let [process, program, table, at, name] = cells;
        self.rows
            .push([process, program, table, at, name, value.to_string()]);
    }

    fn amount(&mut self, table: &str, at: &str, name: &str, amount: Amount) {
        self.add(table, at, &format!("{name}blocks"), amount.blocks);
        self.add(table, at, &format!("{name}bytes"), amount.bytes);
    }

    fn process(&mut self, process: &ProcessProfile) {
        self.add("summary", "", "begin_ns", process.span[0]);
        self.add("summary", "", "end_ns", process.span[1]);
        self.add("summary", "", "is_whole", process.is_whole().into());
        self.add("summary", "", "threads", process.threads);
        self.add("summary", "", "peak_time_ns", process.peak.time);
        self.amount("summary", "", "peak_live_", process.peak.live);
        self.amount("summary", "", "peak_inherited_", process.peak.inherited);
        let half = process.peak.variance.half_width();
        if half != Amount::default() {
            self.amount("summary", "", "peak_live_half_width_", half);
        }
        self.add("summary", "", "most_live_blocks", process.most_blocks);
        if let Some(resident) = process.most_resident {
            self.add("summary", "", "most_resident_bytes", resident);
        }
    }

    /// Writes the processor time in the allocator and in total, if the former is known.
    fn time(&mut self, profile: &Profile) {
        if let Ok(time) = profile.time_in_allocator() {
            let mut add = |name, value: f64| self.add("summary", "", name, value.round() as u64);
            add("allocator_time_ns", time.allocator);
            add("allocator_time_half_width_ns", time.half_width);
            add("processor_time_ns", time.processor);
            let [least, most] = time.processor_interval;
            add("processor_time_least_ns", least);
            add("processor_time_most_ns", most);
        }
    }

    fn counts(&mut self, profile: &Profile, counts: &Counts) {
        let amounts = [
            ("made_", counts.made),
            ("freed_", counts.freed),
            ("freed_by_others_", counts.freed_by_others),
            ("temporary_", counts.temporary),
            ("left_", counts.left),
            ("inherited_freed_", counts.inherited_freed),
            ("inherited_left_", counts.inherited_left),
        ];
        for (name, amount) in amounts {
            self.amount("summary", "", name, amount);
        }
        if !profile.sampling().is_whole() {
            self.add("summary", "", "recorded_blocks", counts.recorded);
            let made = counts.made_variance.half_width();
            self.amount("summary", "", "made_half_width_", made);
            let left = counts.left_variance.half_width();
            self.amount("summary", "", "left_half_width_", left);
        }
        let resizes = counts.resizes;
        let figures = [
            ("foreign_frees", counts.foreign_frees),
            ("null_frees", counts.null_frees),
            ("repeated_frees", counts.repeated_frees),
            ("resizes", resizes.calls),
            ("resizes_to_grow", resizes.grown),
            ("resizes_to_shrink", resizes.shrunk),
            ("resized_blocks", resizes.chains),
            ("longest_chain", resizes.longest.into()),
            ("resized_bytes_kept", resizes.copied),
            ("most_requested_bytes", counts.most_requested),
        ];
        for (name, value) in figures {
            self.add("summary", "", name, value);
        }
        self.digits("size", &counts.sizes);
        self.digits("lifetime_ns", &counts.lived_time);
        self.digits("lifetime_bytes", &counts.lived_bytes);
        for (place, function) in counts.functions.iter().enumerate() {
            let name = names::function(profile, place as u8);
            self.add("function", &name, "calls", function.calls);
            self.add("function", &name, "failed", function.failed);
        }
        for (name, rounded) in counts.rounded() {
            self.add("size_classes", name, "most_live_bytes", rounded.most_live);
            self.add("size_classes", name, "made_bytes", rounded.made);
        }
    }

    /// Writes the table `stack`, which exists only for all processes together.
    fn stacks(&mut self, profile: &Profile) {
        for called in code::stacks(profile) {
            let (at, of) = (called.folded(), called.of);
            self.amount("stack", &at, "peak_", of.at_peak);
            let half = of.at_peak_variance.half_width();
            if half != Amount::default() {
                self.amount("stack", &at, "peak_half_width_", half);
            }
            self.amount("stack", &at, "made_", of.made);
            self.amount("stack", &at, "temporary_", of.temporary);
            self.amount("stack", &at, "left_", of.left);
        }
    }

    /// Writes the stacks whose live bytes only grow, for one process.
    fn growth(&mut self, profile: &Profile, process: &ProcessProfile) {
        for suspect in &process.suspects {
            let names = code::names(profile, Some(suspect.stack));
            let at = code::folded(&names);
            let [low, high] = suspect.interval;
            let figures = [
                ("bytes_per_second", suspect.per_second),
                ("bytes_per_second_low", low),
                ("bytes_per_second_high", high),
            ];
            for (name, value) in figures {
                self.add("growth", &at, name, value.round() as u64);
            }
        }
    }

    fn digits(&mut self, table: &str, digits: &Digits) {
        for (below, amount) in digits.steps() {
            self.amount(table, &below.to_string(), "", amount);
        }
    }

    fn timeline(&mut self, timeline: &Timeline) {
        for point in &timeline.points {
            let at = point.time.to_string();
            let mut level = |name: &str, level: Level| {
                self.add("timeline", &at, &format!("{name}_most"), level.most);
                self.add("timeline", &at, &format!("{name}_last"), level.last);
            };
            level("live_bytes", point.bytes);
            level("live_blocks", point.blocks);
            if let Some(resident) = point.resident {
                level("resident_bytes", resident);
            }
            self.add("timeline", &at, "calls", point.calls);
        }
    }
}
