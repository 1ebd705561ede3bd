//! What a reader should know of shbench, its parameters and presets.

use crate::description::{LATENCY, SEED, THREADS};
use crate::report::FIGURES;
use crate::{Description, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Workload::Shbench,
    name: "shbench",
    summary: "blocks of varying sizes and lifetimes: freed newest first, oldest first, or kept",
    models: "A program whose objects differ in size and in how long they live. In each round a \
             thread allocates blocks of random sizes. At the end of the round some are freed \
             newest first (last in, first out), then some in the reverse order, oldest first; \
             the others are kept in slots and live until a later block falls into the same slot, \
             some for a moment and some for many rounds. Which fate a block meets follows from its place \
             in the round: a fixed pattern of a hundred, with the shares spread evenly.",
    origin: "After MicroQuill's shbench, which the elfmalloc performance evaluation of 2017 \
             describes as similar to threadtest with varying sizes and lifetimes. The original's \
             source may not be passed on; this was written from the description only and shares \
             no code with it, so that its figures cannot be compared with those of the original.",
    meaning: "One operation is one block allocated or one block freed. Every block is written at \
              both ends when allocated and checked when freed. The rounds are divided among the \
              threads, so that more threads have no more work; each thread has slots of its own.",
    silence: "Nothing about blocks that another thread frees, nor about large blocks. The sizes \
              are drawn evenly, which programs seldom do: their small sizes are more frequent.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: FIGURES,
    check: super::check,
    needs: super::needs,
};

/// A parameter with a wide range.
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
        most: u32::MAX as u64,
    }
}

const fn percent(name: &'static str, meaning: &'static str, default: u64) -> Parameter {
    Parameter {
        name,
        meaning,
        unit: "percent",
        default,
        least: 0,
        most: 100,
    }
}

static PARAMETERS: &[Parameter] = &[
    THREADS,
    count(
        "iterations",
        "rounds, divided among the threads",
        "rounds",
        10_000,
    ),
    count(
        "blocks",
        "blocks that a thread allocates in a round",
        "blocks",
        1000,
    ),
    count("min", "least size of a block", "bytes", 1),
    count("max", "greatest size of a block", "bytes", 64),
    percent(
        "lifo",
        "share of the blocks that are freed newest first",
        40,
    ),
    percent(
        "fifo",
        "share of the blocks that are freed oldest first; the others are kept",
        40,
    ),
    count(
        "kept",
        "slots of each thread for blocks that are kept",
        "blocks",
        20_000,
    ),
    SEED,
    LATENCY,
];

const MEDIUM: (&str, u64) = ("max", 4096);
const FEWER_KEPT: (&str, u64) = ("kept", 5000);

static PRESETS: &[Preset] = &[
    Preset {
        name: "small",
        meaning: "sizes from 1 to 64 bytes",
        values: &[],
        published: None,
    },
    Preset {
        name: "medium",
        meaning: "sizes from 64 bytes to 4 KiB",
        values: &[("min", 64), MEDIUM, FEWER_KEPT, ("iterations", 2500)],
        published: None,
    },
    Preset {
        name: "quick-small",
        meaning: "the small one in a twentieth of the rounds",
        values: &[("iterations", 500)],
        published: None,
    },
    Preset {
        name: "quick-medium",
        meaning: "the medium one in a tenth of the rounds",
        values: &[("min", 64), MEDIUM, FEWER_KEPT, ("iterations", 250)],
        published: None,
    },
    Preset {
        name: "published-small",
        meaning: "the small one in fifty times the rounds; the document names no counts",
        values: &[("iterations", 500_000)],
        published: None,
    },
    Preset {
        name: "published-medium",
        meaning: "the medium one in a hundred times the rounds; the document names no counts",
        values: &[("min", 64), MEDIUM, FEWER_KEPT, ("iterations", 250_000)],
        published: None,
    },
];
