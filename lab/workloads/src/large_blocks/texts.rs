//! Texts that describe the workload `large-blocks`, its parameters and presets to a reader.

use crate::description::{LATENCY, SEED, THREADS};
use crate::report::FIGURES;
use crate::{Description, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::LargeBlocks),
    name: "large-blocks",
    summary: "blocks of megabytes that come and go among others that stay",
    models: "Programs that work on images, matrices, columns of a table or buffers of a file: \
             every step needs a block of 1 to 64 MiB, writes to all or a part of it, and keeps it \
             until the program needs the memory for another. Each thread allocates a block, and \
             frees blocks drawn at random while its blocks exceed its share of `live`. The \
             density of sizes is inversely proportional to the size.",
    origin: "heapdrome's own.",
    meaning: "One operation is one block allocated or one block freed. Every block is written at \
              both ends and on `written` percent of its pages when allocated, and checked when \
              freed. Page faults take most of the time: an allocator is fast if it keeps freed \
              memory resident, and small if it returns it to the system.",
    silence: "Nothing about small blocks, about blocks that grow, or about blocks that another \
              thread frees.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: FIGURES,
    check: super::check,
    needs: super::needs,
};

static PARAMETERS: &[Parameter] = &[
    THREADS,
    Parameter::new(
        "blocks",
        "blocks",
        400,
        [1, 1_000_000_000],
        "blocks that each thread allocates",
    ),
    Parameter::new(
        "live",
        "MiB",
        512,
        [1, 1 << 20],
        "maximum total size of the blocks that are kept, divided among the threads",
    ),
    Parameter::new(
        "min",
        "bytes",
        1 << 20,
        [4096, 1 << 30],
        "minimum size of a block",
    ),
    Parameter::new(
        "max",
        "bytes",
        64 << 20,
        [4096, 1 << 30],
        "maximum size of a block",
    ),
    Parameter::new(
        "written",
        "percent",
        100,
        [0, 100],
        "share of each block whose pages are written, from its start",
    ),
    SEED,
    LATENCY,
];

static PRESETS: &[Preset] = &[
    Preset::own("whole", "every page is written", &[]),
    Preset::own(
        "part",
        "a tenth of each block is written",
        &[("written", 10), ("blocks", 5000)],
    ),
    Preset::own(
        "quick-whole",
        "every page is written, with fewer blocks",
        &[("blocks", 100), ("live", 256)],
    ),
    Preset::own(
        "quick-part",
        "a tenth of each block is written, with fewer blocks",
        &[("written", 10), ("blocks", 800), ("live", 256)],
    ),
];
