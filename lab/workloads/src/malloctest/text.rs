//! Texts that describe the workload `malloctest`, its parameters and presets to a reader.

use crate::description::{LATENCY, SEED, THREADS};
use crate::report::FIGURES;
use crate::{Description, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::Malloctest),
    name: "malloctest",
    summary: "a million blocks of random sizes allocated, then all freed in the same order",
    models: "A program that builds a large structure and then destroys all of it. In each repeat \
             every thread allocates all of its blocks, of sizes drawn evenly from a range, and \
             then frees them in the order in which it allocated them.",
    origin: "The tool of the same name in an exercise on performance-oriented computing of 2024, \
             which compares the default allocator with a bump allocator that never frees. Written \
             from the exercise's report.",
    meaning: "One operation is one block allocated or one block freed. With touch=0, as in the \
              original, nothing is ever written into a block: the times are those of the \
              allocator's own bookkeeping, the pages of an allocator that keeps its bookkeeping \
              elsewhere never become resident, and the checksum is 0, because there are no \
              contents to check. With touch=1 every byte of every block is written and both ends \
              are checked when it is freed. Each thread runs all the iterations: more threads have \
              more work. With touch=0 the load itself only draws a size for each block and keeps \
              its address; it counts up to 64 blocks at a time.",
    silence: "Without touch=1, nothing about programs that use their memory, although the original \
              does not mention this. A bump allocator that reuses its memory blindly passes \
              without touch=1 and is caught with it if blocks overlap. Nothing about blocks that \
              are freed while others are allocated, as in most programs.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: FIGURES,
    check: super::check,
    needs: super::needs,
};

static PARAMETERS: &[Parameter] = &[
    THREADS,
    Parameter::new("repeats", "repeats", 5, [1, 1 << 40], "number of repeats"),
    Parameter::new(
        "iterations",
        "blocks",
        1_000_000,
        [1, 1 << 40],
        "blocks of each thread in a repeat",
    ),
    Parameter::new(
        "lower",
        "bytes",
        10,
        [1, 1 << 40],
        "minimum size of a block",
    ),
    Parameter::new(
        "upper",
        "bytes",
        1000,
        [1, 1 << 40],
        "maximum size of a block",
    ),
    Parameter::new(
        "touch",
        "",
        0,
        [0, 1],
        "1: write every byte of every block and check its ends, 0: write nothing",
    ),
    SEED,
    LATENCY,
];

static PRESETS: &[Preset] = &[
    Preset::own("short", "a hundredth of the published repeats", &[]),
    Preset::own(
        "short-touch",
        "the short preset with every byte written",
        &[("touch", 1)],
    ),
    Preset::own(
        "quick",
        "two repeats of 100,000 blocks",
        &[("repeats", 2), ("iterations", 100_000)],
    ),
    Preset::own(
        "published",
        "malloctest 1 500 1000000 10 1000, as published",
        &[("repeats", 500)],
    )
    .published("exercise 07 of Performance-oriented Computing, 2024, part B"),
    Preset::own(
        "published-touch",
        "the published preset with every byte written (not part of the publication)",
        &[("repeats", 500), ("touch", 1)],
    ),
];
