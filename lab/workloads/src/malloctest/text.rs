//! What a reader should know of malloctest, its parameters and presets.

use crate::description::{LATENCY, SEED, THREADS};
use crate::report::FIGURES;
use crate::{Description, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Workload::Malloctest,
    name: "malloctest",
    summary: "a million blocks of random sizes allocated, then all freed in the same order",
    models: "A program that builds a large structure and then takes all of it down. In each repeat \
             every thread allocates all of its blocks, of sizes drawn evenly from a range, and \
             then frees them in the order in which it allocated them.",
    origin: "The tool of the same name in an exercise on performance-oriented computing of 2024, \
             which compares the default allocator with a bump allocator that never frees. Written \
             from the exercise's report.",
    meaning: "One operation is one block allocated or one block freed. With touch=0, as in the \
              original, nothing is ever written into a block: the times are those of the \
              allocator's own bookkeeping, an allocator that keeps it elsewhere never has its pages \
              made resident, and the checksum is 0, for there are no contents to check. With \
              touch=1 every byte of every block is written and both ends are checked when it is \
              freed. Each thread has all the iterations: more threads have more work. With touch=0 the \
              load itself draws a size for each block and keeps its address, and no more; what is \
              counted is counted for up to 64 blocks at once.",
    silence: "Without touch=1, nothing about programs that use their memory: the original says so \
              nowhere. A bump allocator that reuses its memory blindly passes without touch=1 and is \
              caught with it wherever blocks overlap. Nothing about blocks that are freed while \
              others are allocated, which is what programs do.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: FIGURES,
    check: super::check,
    needs: super::needs,
};

const fn count(
    name: &'static str,
    meaning: &'static str,
    unit: &'static str,
    default: u64,
) -> Parameter {
    Parameter {
        name,
        meaning,
        unit,
        default,
        least: 1,
        most: 1 << 40,
    }
}

static PARAMETERS: &[Parameter] = &[
    THREADS,
    count("repeats", "how often all is done", "repeats", 5),
    count(
        "iterations",
        "blocks of each thread in a repeat",
        "blocks",
        1_000_000,
    ),
    count("lower", "least size of a block", "bytes", 10),
    count("upper", "greatest size of a block", "bytes", 1000),
    Parameter {
        name: "touch",
        meaning: "1: write every byte of every block and check its ends, 0: write nothing",
        unit: "",
        default: 0,
        least: 0,
        most: 1,
    },
    SEED,
    LATENCY,
];

static PRESETS: &[Preset] = &[
    Preset {
        name: "short",
        meaning: "a hundredth of the published repeats",
        values: &[],
        published: None,
    },
    Preset {
        name: "short-touch",
        meaning: "the short one with every byte written",
        values: &[("touch", 1)],
        published: None,
    },
    Preset {
        name: "quick",
        meaning: "two repeats of 100,000 blocks",
        values: &[("repeats", 2), ("iterations", 100_000)],
        published: None,
    },
    Preset {
        name: "published",
        meaning: "malloctest 1 500 1000000 10 1000, as published",
        values: &[("repeats", 500)],
        published: Some("exercise 07 of Performance-oriented Computing, 2024, part B"),
    },
    Preset {
        name: "published-touch",
        meaning: "the published one with every byte written, which was not published",
        values: &[("repeats", 500), ("touch", 1)],
        published: None,
    },
];
