//! Tests of the text of a profile for a terminal.

use heapdrome_profile::{Profile, profile};
use heapdrome_report::{Exporter, Terminal};
use heapdrome_trace::Reader;
use unicode_width::UnicodeWidthStr;

use crate::traces::{HOSTILE, MS, Trace, exchange, free, leaking, make, odd, several};

fn text(profile: &Profile, width: usize) -> String {
    let terminal = Terminal {
        width,
        colour: false,
    };
    let text = terminal.export(profile).expect("it becomes text");
    String::from_utf8(text).expect("UTF-8")
}

/// Returns the text without its line breaks.
fn told(profile: &Profile) -> String {
    text(profile, 100)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[track_caller]
fn tells(profile: &Profile, sentences: &[&str]) {
    let told = told(profile);
    for sentence in sentences {
        assert!(
            told.contains(sentence),
            "{sentence:?} in:\n{}",
            text(profile, 100)
        );
    }
}

#[test]
fn the_conclusions_come_first_and_are_true() {
    let profile = exchange().profile();
    tells(
        &profile,
        &[
            "./app, profile of 1.00 s Memory: At its peak the program holds 1.01 MiB in 101 blocks, 200 ms \
             after the start (20% of the time). About then 6.00 MiB are resident, 5.94 times as much.",
            "Of 101 blocks, nine in ten are smaller than 128 B. At the peak 99% of the bytes are in 1 block \
             of 1.00 MiB to 2.00 MiB.",
            "Of 91 freed blocks, nine in ten live less than 537 ms.",
            "10 blocks (1000 B) are never freed.",
            "2 threads exchange blocks: 100% of the freed blocks are freed by a thread other",
            "192 calls, 192 per second: 52% malloc, 47% free and 0.5% new.",
            "Every allocator needs at least 1.01 MiB for the program: the live bytes at the peak, in \
             whole pages. Rounding up to size classes adds",
        ],
    );
    assert!(!told(&profile).contains("Incomplete"));
}

#[test]
fn a_trace_that_was_cut_off_says_so_first() {
    let whole = exchange().bytes();
    let cut = |length: usize| {
        Reader::new(&whole[..length])
            .ok()
            .and_then(|reader| profile(reader).ok())
    };
    let cuts: Vec<Profile> = (0..whole.len()).filter_map(cut).collect();
    assert!(cuts.len() > 10);
    for profile in &cuts {
        tells(
            profile,
            &[
                "Incomplete: The trace was cut off after",
                "The trace ends without its last part",
            ],
        );
    }
    let unfinished =
        |profile: &&Profile| profile.all.counts.made.blocks > 0 && !profile.processes[0].is_whole();
    let mut unfinished = cuts.iter().filter(unfinished);
    let profile = unfinished
        .next()
        .expect("a cut before the end of the process");
    tells(
        profile,
        &["10 blocks (1000 B) are not freed when the trace ends."],
    );
}

#[test]
fn processes_that_were_not_recorded_are_named() {
    let profile = several("cc").profile();
    tells(
        &profile,
        &[
            "Incomplete: The recording of 1 process stopped before its end; 1 process was not recorded. All \
             figures cover only the recorded part.",
            "At their peak 3 processes hold 3.93 KiB together. The largest, cc2 (pid 102), holds 3.93 KiB",
            "The recording stopped before the end of cc1 (pid 101)",
            "Not recorded: cc-static (pid 77): it is linked statically.",
            "Each process has one thread that allocates.",
        ],
    );
}

#[test]
fn a_process_without_an_end_is_no_whole_one() {
    let mut trace = Trace::new();
    trace.begin(0, 0, "/bin/app");
    trace.does(0, 0, MS, make(0, 10));
    let sentences = [
        "Incomplete: The trace lacks the end of 1 process.",
        "1 block (10 B) is not freed when the trace ends.",
        "The trace lacks the end of app (pid 100).",
    ];
    tells(&trace.profile(), &sentences);
}

#[test]
fn threads_that_keep_their_blocks_are_said_to() {
    let mut trace = Trace::new();
    for thread in 0..2 {
        trace.does(0, thread, u64::from(thread) * MS, make(0, 10));
        trace.does(0, thread, u64::from(thread) * MS + 160, free(thread.into()));
    }
    tells(
        &trace.profile(),
        &[
            "2 threads allocate, and exchange no blocks",
            "100% are freed by the next call of their thread. Every block is freed.",
        ],
    );
}

#[test]
fn a_sample_gives_estimates_with_intervals() {
    let mut trace = Trace::sampled("./app", 1000);
    trace.begin(0, 0, "/bin/app");
    for block in 0..1000 {
        trace.does(0, 0, block * MS, make(0, 1000));
    }
    for block in 0..500 {
        trace.does(0, 0, (1000 + block) * MS, free(block));
    }
    trace.end(0, 2000 * MS, false);
    // Each block is as large as the mean distance between samples, so a recorded block stands for
    // `1/(1-1/e)` blocks, about 1.582.
    let profile = trace.profile();
    tells(
        &profile,
        &[
            "Sampled: 1,000 blocks of 1,510 to 1,644 were recorded: one for every 1000 B requested.",
            "At its peak the program holds about 1.51 MiB (1.45 MiB to 1.57 MiB) in about 1,577 blocks",
            "About 800 blocks, about 772 KiB (731 KiB to 814 KiB), are never freed.",
            "One thread makes all recorded calls.",
            "that returned a block,",
            "at least about 1.51 MiB for the program: the live bytes at the peak",
        ],
    );
    let told = told(&profile);
    for words in ["next call", "resized", "failed", "requests another"] {
        assert!(!told.contains(words), "{words}: {told}");
    }
}

#[test]
fn stacks_say_who_requested_the_blocks() {
    let mut profile = leaking("./app", "/nowhere/app", 0).profile();
    profile.name_code(std::path::Path::new("/nowhere"));
    tells(
        &profile,
        &[
            "Requested by: 91% of the bytes at the peak are requested by app+0x1234 and 8.8% by app+0x3456.",
            "Growth: The live bytes that app+0x3456 requests only grow, by 46.9 KiB a second",
            "a leak, or a cache without a bound.",
            "app+0x1234 977 KiB 91% 10 977 KiB 0 977 KiB",
            "Stacks whose live bytes only grow",
            "Stacks with the most bytes at the peak",
            "977 KiB 10 91% app+0x1234 < app+0x99",
            "Stacks with the most blocks that the next call frees bytes blocks share requested by < called by",
            "125 KiB 2,000 100% app+0x2345 < app+0x99",
            "Stacks with the most bytes that are not freed",
            "No names of functions in /nowhere/app: it cannot be read: No such file",
        ],
    );
}

#[test]
fn a_profile_without_suspects_gives_the_reason() {
    let reason = "Growth: Not tested for leaks, because the trace has no stacks";
    tells(&exchange().profile(), &[reason]);
    let lasting = |milliseconds: u64| {
        let mut trace = Trace::with_stacks("./app", 0, 1);
        trace.code("/nowhere/app", &[0x1234, 0x99]);
        trace.begin(0, 0, "/bin/app");
        trace.calls(0, 0, make(0, 100));
        trace.end(0, milliseconds * MS, false);
        trace.profile()
    };
    let reason = "Growth: Not tested for leaks, because no process ran for 1.00 s or longer.";
    tells(&lasting(500), &[reason]);
    tells(&lasting(2000), &["Growth: No leak is suspected"]);
}

#[test]
fn stacks_of_a_sample_have_errors_and_no_temporary_blocks() {
    let profile = leaking("./app", "/nowhere/app", 1000).profile();
    tells(
        &profile,
        &["requested by peak bytes 95% ± share peak blocks all bytes not freed"],
    );
    assert!(!told(&profile).contains("next call"));
}

#[test]
fn odd_traces_are_told_without_nonsense() {
    for profile in odd() {
        let told = told(&profile);
        assert!(!told.contains("NaN") && !told.contains("inf"), "{told}");
        assert!(told.contains("Memory: "), "{told}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut profiles = odd();
    profiles.extend([
        exchange().profile(),
        several("cc").profile(),
        several(HOSTILE).profile(),
        leaking("./app", HOSTILE, 0).profile(),
        leaking("./app", &"/long/path".repeat(30), 0).profile(),
    ]);
    for profile in &profiles {
        for width in [40, 60, 80, 100] {
            let text = text(profile, width);
            assert!(!text.contains('\u{1b}'), "{text}");
            for line in text.lines() {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }
}
