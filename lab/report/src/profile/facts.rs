//! The conclusions of a profile, in sentences.

use heapdrome_profile::{Amount, Counts, Digits, ProcessProfile, Profile};
use heapdrome_schema::{Bytes, Nanoseconds};
use heapdrome_trace::Ending;

use super::estimates::{about, sampled, with_interval};
use super::shares::share;
use super::{code, names, requested, time};
use crate::words::{self, count, fraction};

/// Shortest lifetime that a trace can show, in nanoseconds.
pub(super) const FINEST: u64 = 1000;

/// A paragraph that follows a label.
pub(crate) struct Fact {
    pub(crate) heading: &'static str,
    pub(crate) text: String,
}

/// Returns the paragraphs of a profile, the most important first.
pub(crate) fn facts(profile: &Profile) -> Vec<Fact> {
    let counts = &profile.all.counts;
    let fact = |heading, text: Option<String>| {
        Some(Fact {
            heading,
            text: text?,
        })
    };
    let facts = [
        fact("Incomplete", incomplete(profile)),
        fact("Sampled", sampled(profile)),
        fact("Memory", Some(memory(profile))),
        fact(
            "Requested by",
            requested::requested_by(&code::stacks(profile)),
        ),
        fact("Growth", requested::growth(profile)),
        fact("Sizes", sizes(profile)),
        fact("Lifetimes", lifetimes(profile)),
        fact("Threads", threads(profile)),
        fact("Calls", calls(profile)),
        fact("Time", time::in_allocator(profile)),
        fact("Resizes", resizes(counts)),
        fact("Size classes", size_classes(profile)),
    ];
    facts.into_iter().flatten().collect()
}

/// Returns the time from the beginning of the first process to the end of the last, in nanoseconds.
pub(crate) fn duration(profile: &Profile) -> u64 {
    let [from, to] = profile.all.span;
    to - from
}

/// Returns the time from the beginning of the first process to a point in time.
pub(crate) fn since_start(profile: &Profile, time: u64) -> Nanoseconds {
    Nanoseconds(time.saturating_sub(profile.all.span[0]))
}

/// Returns sentences on the reasons why the figures may be too low, if there are any.
fn incomplete(profile: &Profile) -> Option<String> {
    let mut told = Vec::new();
    if let Ending::CutOff { .. } = profile.ending {
        told.push(format!(
            "the trace was cut off after {}, so later operations are unknown",
            Nanoseconds(duration(profile))
        ));
    }
    let gave_up =
        |process: &&ProcessProfile| process.finish.as_ref().is_some_and(|end| end.gave_up);
    let gave_up = profile.processes.iter().filter(gave_up).count() as u64;
    if gave_up > 0 {
        let processes = count(gave_up, "process");
        told.push(format!(
            "the recording of {processes} stopped before its end"
        ));
    }
    let has_no_end = |process: &&ProcessProfile| process.finish.is_none();
    let unfinished = profile.processes.iter().filter(has_no_end).count() as u64;
    if unfinished > 0 && matches!(profile.ending, Ending::Complete(_)) {
        let processes = count(unfinished, "process");
        told.push(format!("the trace lacks the end of {processes}"));
    }
    let bypassed = profile.bypassed.len() as u64;
    if bypassed > 0 {
        let were = if bypassed == 1 { "was" } else { "were" };
        told.push(format!(
            "{} {were} not recorded",
            count(bypassed, "process")
        ));
    }
    let sentence = words::capital(&told.join("; "));
    (!told.is_empty()).then(|| format!("{sentence}. All figures cover only the recorded part."))
}

fn memory(profile: &Profile) -> String {
    let Some(largest) = profile.largest().filter(|one| one.peak.live.bytes > 0) else {
        return "No memory was requested.".to_owned();
    };
    let peak = peak(profile, largest);
    match profile.processes.len() {
        1 => format!("At its peak the program holds {peak}"),
        several => {
            let all = profile.all.peak;
            let [least, most] = [all.least, all.most].map(|bytes| Bytes(bytes).to_string());
            let together = match least == most {
                true => least,
                false => format!("{least} to {most}"),
            };
            let about = about(profile);
            format!(
                "At their peak {several} processes hold {about}{together} together. The largest, {}, holds {peak}",
                names::process(largest)
            )
        }
    }
}

/// Describes the peak: `250 MiB in 1,234 blocks, 8.2 s after the start (40% of the time). About
/// then 260 MiB are resident, ...`
fn peak(profile: &Profile, process: &ProcessProfile) -> String {
    let live = process.peak.live;
    let mut text = format!(
        "{} in {}{}, {} after the start ({} of the time).",
        with_interval(
            profile,
            live.bytes,
            process.peak.variance.half_width().bytes
        ),
        about(profile),
        count(live.blocks, "block"),
        since_start(profile, process.peak.time),
        share(since_start(profile, process.peak.time).0, duration(profile)),
    );
    if let Some(resident) = process.resident_at_peak() {
        let ratio = words::two_decimals(resident as f64 / live.bytes as f64);
        let resident = Bytes(resident);
        text.push_str(&format!(
            " About then {resident} are resident, {ratio} times as much."
        ));
    }
    text
}

/// Formats two quantiles, such as `half are smaller than 64 B, nine in ten are smaller than 512 B`.
/// `than` is the verb phrase of both clauses, such as `are smaller than`. `None` if there are no
/// blocks.
fn halves(digits: &Digits, tell: impl Fn(u64) -> String, than: &str) -> Option<String> {
    let [half, most] = [0.5, 0.9].map(|share| digits.below_which(share));
    let (half, most) = (half?, most?);
    Some(match half == most {
        true => format!("nine in ten {than} {}", tell(most)),
        false => format!(
            "half {than} {}, nine in ten {than} {}",
            tell(half),
            tell(most)
        ),
    })
}

fn bytes(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

/// Formats an upper limit of lifetimes, at least [`FINEST`]: consecutive calls may share a time
/// stamp, so shorter lifetimes are not known.
fn lifetime(time: u64) -> String {
    Nanoseconds(time.max(FINEST)).to_string()
}

fn sizes(profile: &Profile) -> Option<String> {
    let counts = &profile.all.counts;
    let halves = halves(&counts.sizes, bytes, "are smaller than")?;
    let blocks = count(counts.made.blocks, "block");
    let mut text = format!("Of {}{blocks}, {halves}.", about(profile));
    let largest = profile.largest()?;
    let held = at_peak(largest);
    if let Some((below, amount)) = held.iter().max_by_key(|(_, amount)| amount.bytes)
        && amount.bytes > 0
    {
        let whose = match profile.processes.len() {
            1 => "At the peak",
            _ => "At the peak of the largest process",
        };
        text.push_str(&format!(
            " {whose} {} of the bytes are in {} of {} to {}.",
            share(amount.bytes, largest.peak.live.bytes),
            count(amount.blocks, "block"),
            Bytes(below / 2),
            Bytes(*below),
        ));
    }
    Some(text)
}

/// Returns the blocks that are live at the peak of a process, by the power of two above their
/// sizes.
pub(crate) fn at_peak(process: &ProcessProfile) -> Vec<(u64, Amount)> {
    let mut steps = std::collections::BTreeMap::<u64, Amount>::new();
    for class in &process.counts.classes {
        let step = steps.entry(class.below).or_default();
        step.blocks += class.at_peak.blocks;
        step.bytes += class.at_peak.bytes;
    }
    steps.into_iter().collect()
}

fn lifetimes(profile: &Profile) -> Option<String> {
    let counts = &profile.all.counts;
    if counts.made.blocks == 0 {
        return None;
    }
    let left = left(profile);
    let Some(halves) = halves(&counts.lived_time, lifetime, "live less than") else {
        return Some(left);
    };
    let freed = count(counts.freed.blocks, "freed block");
    let mut text = format!("Of {}{freed}, {halves}.", about(profile));
    let between = counts.lived_bytes.below_which(0.5);
    match between {
        Some(0 | 1) => text.push_str(" Half are freed before their process requests another byte."),
        Some(between) => text.push_str(&format!(
            " Half are freed before their process requests another {}.",
            Bytes(between)
        )),
        None => {}
    }
    if counts.temporary.blocks > 0 {
        let share = share(counts.temporary.blocks, counts.freed.blocks);
        text.push_str(&format!(
            " {share} are freed by the next call of their thread."
        ));
    }
    Some(format!("{text} {left}"))
}

/// Returns a sentence on the blocks that were not freed.
fn left(profile: &Profile) -> String {
    let counts = &profile.all.counts;
    let is_whole = profile.processes.iter().all(ProcessProfile::is_whole);
    let is_sampled = !profile.sampling().is_whole();
    let half = counts.left_variance.half_width();
    let what = match counts.left.blocks {
        0 if is_sampled => "Every recorded block".to_owned(),
        0 => "Every block".to_owned(),
        blocks if is_sampled => format!(
            "About {}, {},",
            count(blocks, "block"),
            with_interval(profile, counts.left.bytes, half.bytes)
        ),
        blocks => format!("{} ({})", count(blocks, "block"), Bytes(counts.left.bytes)),
    };
    match (counts.left.blocks, is_whole) {
        (0, _) => format!("{what} is freed."),
        (1, true) => format!("{what} is never freed."),
        (_, true) => format!("{what} are never freed."),
        (1, false) => format!("{what} is not freed when the trace ends."),
        (_, false) => format!("{what} are not freed when the trace ends."),
    }
}

fn threads(profile: &Profile) -> Option<String> {
    let counts = &profile.all.counts;
    if counts.calls() == 0 {
        return None;
    }
    let most = profile
        .processes
        .iter()
        .map(|process| process.threads)
        .max()?;
    let recorded = match profile.sampling().is_whole() {
        true => "",
        false => "recorded ",
    };
    Some(match (most, counts.freed_by_others.blocks) {
        (0 | 1, _) => match profile.processes.len() {
            1 => format!("One thread makes all {recorded}calls."),
            _ => "Each process has one thread that allocates.".to_owned(),
        },
        (_, 0) => format!(
            "{} allocate, and exchange no {recorded}blocks: each {recorded}block is freed by the thread that \
             made it.",
            count(profile.all.threads, "thread")
        ),
        (_, blocks) => format!(
            "{} exchange blocks: {} of the freed blocks are freed by a thread other than the one that \
             made them.",
            count(profile.all.threads, "thread"),
            share(blocks, counts.freed.blocks)
        ),
    })
}

/// Formats the average number of calls per second; `None` if no time passed.
pub(crate) fn per_second(profile: &Profile, calls: u64) -> Option<String> {
    let seconds = Nanoseconds(duration(profile)).as_seconds();
    (seconds > 0.0).then(|| words::short_number((calls as f64 / seconds).round()))
}

fn calls(profile: &Profile) -> Option<String> {
    let counts = &profile.all.counts;
    let calls = counts.calls();
    if calls == 0 {
        return None;
    }
    let mut text = match profile.sampling().is_whole() {
        true => count(calls, "call"),
        false => format!("About {} that returned a block", count(calls, "call")),
    };
    if let Some(rate) = per_second(profile, calls) {
        text.push_str(&format!(", {rate} per second"));
    }
    let mut functions: Vec<_> = counts.functions.iter().enumerate().collect();
    functions.sort_by_key(|(_, function)| std::cmp::Reverse(function.calls));
    let told = functions
        .iter()
        .take(3)
        .filter(|(_, function)| function.calls > 0);
    let told = told.map(|(place, function)| {
        let name = names::function(profile, *place as u8);
        format!("{} {name}", share(function.calls, calls))
    });
    text.push_str(&format!(": {}.", words::listed(&told.collect::<Vec<_>>())));
    match counts.failed() {
        0 => {}
        1 => text.push_str(&format!(
            " One fails, for {}.",
            Bytes(counts.largest_failed)
        )),
        failed => text.push_str(&format!(
            " {} fail, the largest for {}.",
            words::grouped(failed),
            Bytes(counts.largest_failed)
        )),
    }
    Some(text)
}

fn resizes(counts: &Counts) -> Option<String> {
    let resizes = &counts.resizes;
    (resizes.calls > 0).then(|| {
        format!(
            "{} {} resized {}, {} of them to grow; one block {}. If each resize moved its block, {} would be copied.",
            count(resizes.chains, "block"),
            if resizes.chains == 1 { "is" } else { "are" },
            count(resizes.calls, "time"),
            share(resizes.grown, resizes.calls),
            count(resizes.longest.into(), "time"),
            Bytes(resizes.copied)
        )
    })
}

/// Returns sentences on the memory that every allocator needs, and on the share that rounding up to
/// size classes adds. The sentences name the allocators that add the least and the most. `None` if
/// no memory was requested.
fn size_classes(profile: &Profile) -> Option<String> {
    let counts = &profile.all.counts;
    if counts.most_requested == 0 {
        return None;
    }
    let added = |rounded: u64| rounded as f64 / counts.most_requested as f64 - 1.0;
    let mut all: Vec<_> = counts
        .rounded()
        .map(|(name, one)| (added(one.most_live), name))
        .collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let ((least, first), (most, last)) = (all.first()?, all.last()?);
    let floor = profile
        .largest()?
        .peak
        .live
        .bytes
        .div_ceil(profile.page_bytes());
    let floor = floor.saturating_mul(profile.page_bytes());
    let whose = if profile.processes.len() == 1 {
        "the program"
    } else {
        "the largest process"
    };
    Some(format!(
        "Every allocator needs at least {}{} for {whose}: the live bytes at the peak, in whole \
         pages. Rounding up to size classes adds {} ({first}) to {} ({last}).",
        about(profile),
        Bytes(floor),
        fraction(*least),
        fraction(*most)
    ))
}
