//! Texts that describe the workload `burst`, its parameters and presets to a reader.

use super::{check, needs};
use crate::description::{LATENCY, SEED, THREADS};
use crate::random_blocks::{ALIGN, DISTRIBUTION, MAX, MIN, TOUCH};
use crate::report::{FIGURES, before_common};
use crate::{Description, FigureText, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::Burst),
    name: "burst",
    summary: "hundreds of megabytes allocated and freed: the memory that stays resident afterwards",
    models: "A program that needs much memory for a moment and then keeps running: a server after \
             a large request, an editor after a large file is closed. All threads fill their slots \
             with blocks of random sizes, wait for each other, and free them. This happens three \
             times. After the first burst no thread calls the allocator for a while; then \
             malloc_trim asks it to release what it can. After the second burst the leading thread \
             occasionally allocates and frees a few blocks while the others sleep. After the third \
             burst one block in every run of `survivors` blocks stays in use, drawn at random, and \
             the leading thread is active as before.",
    origin: "heapdrome's own. It answers a question that administrators ask about allocators: \
             which of them returns memory to the system, when, and how much memory do a few \
             scattered blocks hold?",
    meaning: "One operation is one block allocated or one block freed. Every block is written at \
              both ends and, with touch=1, on every page when allocated, and checked when freed. \
              The leading thread reads memory while the others sleep. Look at the figures that \
              begin with `left_` and `survivor_`: most of the measured time is sleep. If the \
              object that serves malloc exports no malloc_trim, the figures after malloc_trim are \
              missing.",
    silence: "Nothing about speed, and nothing about the cost of purging memory that is needed \
              again. The purge functions of particular allocators, such as those of jemalloc and \
              mimalloc, are not called.",
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
    Parameter::new(
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
    Parameter::new(
        "survivors",
        "blocks",
        64,
        [1, 1 << 30],
        "one of this many blocks survives the third burst",
    ),
    Parameter::new(
        "silence",
        "ms",
        200,
        [0, 3_600_000],
        "time without calls to the allocator after the first burst",
    ),
    Parameter::new(
        "activity",
        "ms",
        1000,
        [0, 3_600_000],
        "time for which the leading thread is active after the second and the third burst",
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
    Preset::own(
        "default",
        "bursts of 200 MiB from four threads, blocks of 16 bytes to 32 KiB",
        &[],
    ),
    Preset::own(
        "alone",
        "the default bursts from one thread",
        &[("threads", 1)],
    ),
    Preset::own(
        "quick",
        "bursts of 48 MiB and a quarter of the silence",
        &[("mebibytes", 48), ("silence", 50)],
    ),
];

const OWN: [FigureText; 6] = [
    FigureText::less(
        "left_silent_bytes",
        "resident memory above the start after the silence of the first burst",
    ),
    FigureText::less(
        "left_trimmed_bytes",
        "left_silent_bytes after malloc_trim(0), if the allocator has it",
    ),
    FigureText::less(
        "left_active_bytes",
        "resident memory above the start after the activity of the second burst",
    ),
    FigureText::less(
        "survivor_bytes",
        "requested bytes of the blocks that survive the third burst",
    ),
    FigureText::less(
        "survivor_overhead",
        "resident memory above the start over survivor_bytes, after the activity that follows the \
         third burst",
    ),
    FigureText::less(
        "survivor_overhead_trimmed",
        "the same after malloc_trim(0), where the allocator has it",
    ),
];

const COUNT: usize = OWN.len() + FIGURES.len();

/// Burst's own figures, followed by those of every workload.
static ALL_FIGURES: [FigureText; COUNT] = before_common(&OWN);
