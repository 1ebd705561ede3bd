//! Texts that describe the workload `vectors`, its parameters and presets to a reader.

use crate::description::{LATENCY, SEED, THREADS};
use crate::report::FIGURES;
use crate::{Description, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::Vectors),
    name: "vectors",
    summary: "many vectors that grow by realloc at the same time, freed in random order",
    models: "Programs that append to many arrays at a time, such as parsers, compilers and column \
             stores. Each push appends bytes to a vector drawn at random. Some vectors double \
             their capacity when they are full, as those of C++ and Rust do. The others grow by \
             realloc with every push and have no spare capacity, as in much C code. When all \
             vectors have their final size, they are freed in random order. The density of final \
             sizes is inversely proportional to the size.",
    origin: "heapdrome's own.",
    meaning: "One operation is one block allocated or one block freed; a growth is one block freed \
              and one allocated. Every byte that is appended is written, and every vector is read \
              and checked before it is freed. An allocator is fast here if it grows blocks in \
              place, or moves large ones by remapping their pages.",
    silence: "Nothing about blocks that do not grow. With latency=1, growths count as allocations.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: FIGURES,
    check: super::check,
    needs: super::needs,
};

static PARAMETERS: &[Parameter] = &[
    THREADS,
    Parameter::new(
        "rounds",
        "rounds",
        30,
        [1, 1_000_000_000],
        "times that all vectors grow and are freed",
    ),
    Parameter::new(
        "vectors",
        "vectors",
        1000,
        [1, 1 << 31],
        "vectors of each thread",
    ),
    Parameter::new(
        "min",
        "bytes",
        64,
        [8, 1 << 28],
        "minimum final size of a vector",
    ),
    Parameter::new(
        "max",
        "bytes",
        256 << 10,
        [8, 1 << 28],
        "maximum final size of a vector; both are rounded up to whole pushes",
    ),
    Parameter::new(
        "push",
        "bytes",
        64,
        [8, 1 << 20],
        "bytes of each push, a multiple of 8",
    ),
    Parameter::new(
        "exact",
        "percent",
        50,
        [0, 100],
        "share of the vectors that grow with every push; the others double",
    ),
    SEED,
    LATENCY,
];

static PRESETS: &[Preset] = &[
    Preset::own("default", "vectors of 64 bytes to 256 KiB", &[]),
    Preset::own("quick", "a tenth of the rounds", &[("rounds", 3)]),
];
