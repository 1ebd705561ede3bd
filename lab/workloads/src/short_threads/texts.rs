//! Texts that describe the workload `short-threads`, its parameters and presets to a reader.

use crate::description::{LATENCY, SEED, THREADS};
use crate::random_blocks::{MAX, MIN, TOUCH, check_sizes};
use crate::report::FIGURES;
use crate::{Description, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::ShortThreads),
    name: "short-threads",
    summary: "threads that allocate, hand one block to the main thread and end, one after another",
    models: "Programs that start a thread for every request or task; such programs start about \
             200 threads a second. Each thread allocates `blocks` blocks, frees all but one in \
             the order of allocation, and ends. The main thread waits for the oldest thread, \
             frees the block that it handed over, and starts the next. `threads` of them are \
             alive at the same time, without pauses between them. The density of sizes is \
             inversely proportional to the size.",
    origin: "heapdrome's own.",
    meaning: "One operation is one block allocated or one block freed. Every block is written at \
              both ends and, with touch=1, on every page when allocated, and checked when freed. \
              Starting and ending threads is part of the measured time, because an allocator \
              creates and dissolves its state for each thread. The system's own cost of a thread \
              is equal under all allocators.",
    silence: "Nothing about threads that live long, or about large blocks.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: FIGURES,
    check: check_sizes,
    needs: super::needs,
};

static PARAMETERS: &[Parameter] = &[
    Parameter {
        meaning: "short threads that are alive at the same time",
        default: 4,
        ..THREADS
    },
    Parameter::new(
        "count",
        "threads",
        30_000,
        [1, 1_000_000_000],
        "short threads in all",
    ),
    Parameter::new(
        "blocks",
        "blocks",
        100,
        [1, 1 << 32],
        "blocks that each thread allocates",
    ),
    MIN,
    Parameter {
        default: 4096,
        ..MAX
    },
    TOUCH,
    SEED,
    LATENCY,
];

static PRESETS: &[Preset] = &[
    Preset::own("default", "30,000 threads, four alive at a time", &[]),
    Preset::own("quick", "a tenth of the threads", &[("count", 3000)]),
];
