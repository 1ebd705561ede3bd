//! What a reader should know of burst, its parameters and presets.

use super::{check, needs};
use crate::description::{LATENCY, SEED, THREADS};
use crate::report::FIGURES;
use crate::rptest::{ALIGN, DISTRIBUTION, MAX, MIN, TOUCH, parameter};
use crate::{Description, FigureText, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Workload::Burst,
    name: "burst",
    summary: "hundreds of megabytes allocated and freed: what stays resident afterwards",
    models: "A program that needs much memory for a moment and then lives on: a server after a great \
             request, an editor after a great file was closed. All threads fill their slots with \
             blocks of random sizes, and free them when all have; three times. After the first burst \
             nobody calls the allocator for a while; then it is asked by malloc_trim to give back \
             what it can. After the second the leading thread allocates and frees a few blocks now \
             and then while the others sleep. Of the third one block in every run of `survivors` \
             blocks lives on, drawn at random, while the leading thread is active as before.",
    origin: "heapdrome's own, after the question that administrators put to allocators: who gives \
             memory back, when, and how much do a few scattered blocks hold?",
    meaning: "One operation is one block allocated or one block freed. Every block is written at \
              both ends and, with touch=1, on every page when allocated, and checked when freed. \
              Memory is read by the leading thread while the others sleep. Look at the figures that \
              begin with `left_` and `survivor_`: the times are mostly those of sleeping. Where the \
              object that serves malloc exports no malloc_trim, the figures after it are missing.",
    silence: "Nothing about speed, and nothing about what giving memory back costs when it is needed \
              again. What an allocator gives back by calls of its own, such as those of jemalloc and \
              mimalloc, is not asked for.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: &ALL_FIGURES,
    check,
    needs,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        default: 4,
        ..THREADS
    },
    parameter(
        "mebibytes",
        "MiB",
        200,
        [1, 1 << 20],
        "size of a burst, all threads together",
    ),
    MIN,
    Parameter {
        default: 32_768,
        ..MAX
    },
    parameter(
        "survivors",
        "blocks",
        64,
        [1, 1 << 30],
        "of so many blocks one survives the third burst",
    ),
    parameter(
        "silence",
        "ms",
        200,
        [0, 3_600_000],
        "how long nobody calls the allocator after the first burst",
    ),
    parameter(
        "activity",
        "ms",
        1000,
        [0, 3_600_000],
        "how long the leading thread is active after the second burst and the third",
    ),
    Parameter {
        default: 2,
        ..DISTRIBUTION
    },
    ALIGN,
    TOUCH,
    SEED,
    LATENCY,
];

const PRESETS: &[Preset] = &[
    Preset {
        name: "default",
        meaning: "bursts of 200 MiB from four threads, blocks of 16 bytes to 32 KiB",
        values: &[],
        published: None,
    },
    Preset {
        name: "alone",
        meaning: "the same from one thread",
        values: &[("threads", 1)],
        published: None,
    },
    Preset {
        name: "quick",
        meaning: "bursts of 48 MiB and a quarter of the silence",
        values: &[("mebibytes", 48), ("silence", 50)],
        published: None,
    },
];

const fn less(name: &'static str, meaning: &'static str) -> FigureText {
    FigureText {
        name,
        meaning,
        more_is_better: false,
    }
}

const OWN: [FigureText; 6] = [
    less(
        "left_silent_bytes",
        "resident memory above the start after the silence that follows the first burst",
    ),
    less(
        "left_trimmed_bytes",
        "the same after malloc_trim(0), where the allocator has it",
    ),
    less(
        "left_active_bytes",
        "resident memory above the start after the activity that follows the second burst",
    ),
    less(
        "survivor_bytes",
        "the sizes of the blocks that survive the third burst, as requested",
    ),
    less(
        "survivor_overhead",
        "resident memory above the start over survivor_bytes, after the activity that follows the \
         third burst",
    ),
    less(
        "survivor_overhead_trimmed",
        "the same after malloc_trim(0), where the allocator has it",
    ),
];

const COUNT: usize = OWN.len() + FIGURES.len();

/// Its own figures, then those that every workload has.
static ALL_FIGURES: [FigureText; COUNT] = {
    let mut all = [OWN[0]; COUNT];
    let mut place = 1;
    while place < COUNT {
        all[place] = match place < OWN.len() {
            true => OWN[place],
            false => FIGURES[place - OWN.len()],
        };
        place += 1;
    }
    all
};
