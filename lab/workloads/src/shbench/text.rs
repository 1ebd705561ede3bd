//! Texts that describe the workload `shbench`, its parameters and presets to a reader.

use crate::description::{LATENCY, SEED, THREADS};
use crate::report::FIGURES;
use crate::{Description, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::Shbench),
    name: "shbench",
    summary: "blocks of varying sizes and lifetimes: freed newest first, oldest first, or kept",
    models: "A program whose objects differ in size and in lifetime. In each round a thread \
             allocates blocks of random sizes. At the end of the round some are freed newest first \
             (last in, first out), then some in the reverse order, oldest first. The others are \
             kept in slots and live until a later block takes over the slot: some briefly, some \
             for many rounds. The fate of a block follows from its place in the round: a fixed \
             pattern of a hundred blocks, with the shares spread evenly.",
    origin: "After MicroQuill's shbench, which the elfmalloc performance evaluation of 2017 \
             describes as similar to threadtest with varying sizes and lifetimes. The original's \
             source may not be passed on; this was written from the description only and shares \
             no code with it, so that its figures cannot be compared with those of the original.",
    meaning: "One operation is one block allocated or one block freed. Every block is written at \
              both ends when allocated and checked when freed. The rounds are divided among the \
              threads, so that the work does not grow with the threads; each thread has slots of \
              its own.",
    silence: "Nothing about blocks that another thread frees, nor about large blocks. The sizes \
              are drawn evenly, which is unlike most programs: their small sizes are more \
              frequent.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: FIGURES,
    check: super::check,
    needs: super::needs,
};

/// Maximum value of a parameter with a wide range.
const MOST: u64 = u32::MAX as u64;

static PARAMETERS: &[Parameter] = &[
    THREADS,
    Parameter::new(
        "iterations",
        "rounds",
        10_000,
        [1, MOST],
        "rounds, divided among the threads",
    ),
    Parameter::new(
        "blocks",
        "blocks",
        1000,
        [1, MOST],
        "blocks that a thread allocates in a round",
    ),
    Parameter::new("min", "bytes", 1, [1, MOST], "minimum size of a block"),
    Parameter::new("max", "bytes", 64, [1, MOST], "maximum size of a block"),
    Parameter::new(
        "lifo",
        "percent",
        40,
        [0, 100],
        "share of the blocks that are freed newest first",
    ),
    Parameter::new(
        "fifo",
        "percent",
        40,
        [0, 100],
        "share of the blocks that are freed oldest first; the others are kept",
    ),
    Parameter::new(
        "kept",
        "blocks",
        20_000,
        [1, MOST],
        "slots of each thread for blocks that are kept",
    ),
    SEED,
    LATENCY,
];

const MEDIUM: (&str, u64) = ("max", 4096);
const FEWER_KEPT: (&str, u64) = ("kept", 5000);

static PRESETS: &[Preset] = &[
    Preset::own("small", "sizes from 1 to 64 bytes", &[]),
    Preset::own(
        "medium",
        "sizes from 64 bytes to 4 KiB",
        &[("min", 64), MEDIUM, FEWER_KEPT, ("iterations", 2500)],
    ),
    Preset::own(
        "quick-small",
        "the small preset with a twentieth of the rounds",
        &[("iterations", 500)],
    ),
    Preset::own(
        "quick-medium",
        "the medium preset with a tenth of the rounds",
        &[("min", 64), MEDIUM, FEWER_KEPT, ("iterations", 250)],
    ),
    Preset::own(
        "published-small",
        "the small preset with fifty times the rounds; the document states no counts",
        &[("iterations", 500_000)],
    ),
    Preset::own(
        "published-medium",
        "the medium preset with a hundred times the rounds; the document states no counts",
        &[("min", 64), MEDIUM, FEWER_KEPT, ("iterations", 250_000)],
    ),
];
