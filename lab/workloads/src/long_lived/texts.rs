//! Texts that describe the workload `long-lived`, its parameters and presets to a reader.

use crate::description::{LATENCY, SEED, THREADS};
use crate::random_blocks::{MAX, MIN, TOUCH, check_sizes};
use crate::report::{FIGURES, before_common};
use crate::{Description, FigureText, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::LongLived),
    name: "long-lived",
    summary: "a heap of mixed sizes whose blocks are replaced slowly, with regular bursts",
    models: "A server that runs for weeks, such as a cache, a database or a browser. The threads \
             fill a heap of `mebibytes` with blocks of mixed sizes. In each period they replace \
             `turnover` percent of the blocks, drawn at random; then they allocate a burst of \
             `burst` percent as many blocks and free all of it. After `pause` milliseconds the \
             resident memory is read, and the next period begins. The density of sizes is \
             inversely proportional to the size.",
    origin: "heapdrome's own.",
    meaning: "One operation is one block allocated or one block freed. Every block is written at \
              both ends and, with touch=1, on every page when allocated, and checked when freed. \
              The figures of overhead compare the growth of resident memory with the requested \
              bytes in use at the ends of the periods, when the burst is freed. If overhead_last \
              exceeds overhead_first, memory fragments over time.",
    silence: "Nothing about the effects of weeks, which no run of seconds shows, nor about blocks \
              that another thread frees.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: &ALL_FIGURES,
    check: check_sizes,
    needs: super::needs,
};

static PARAMETERS: &[Parameter] = &[
    THREADS,
    Parameter::new(
        "mebibytes",
        "MiB",
        256,
        [1, 1 << 20],
        "requested size of the heap, divided among the threads",
    ),
    Parameter::new(
        "periods",
        "periods",
        40,
        [1, 1_000_000_000],
        "periods, each with a burst",
    ),
    Parameter::new(
        "turnover",
        "percent",
        5,
        [0, 100],
        "blocks that are replaced in a period",
    ),
    Parameter::new(
        "burst",
        "percent",
        50,
        [0, 1000],
        "size of a burst, relative to the heap",
    ),
    Parameter::new(
        "pause",
        "ms",
        10,
        [0, 3_600_000],
        "time after a burst until memory is read",
    ),
    MIN,
    Parameter {
        default: 16 << 10,
        ..MAX
    },
    TOUCH,
    SEED,
    LATENCY,
];

static PRESETS: &[Preset] = &[
    Preset::own("default", "256 MiB over 40 periods", &[]),
    Preset::own(
        "large",
        "1 GiB over 100 periods, with pauses of 200 ms",
        LARGE,
    ),
    Preset::own(
        "quick",
        "64 MiB over 10 periods",
        &[("mebibytes", 64), ("periods", 10)],
    ),
];

const LARGE: &[(&str, u64)] = &[("mebibytes", 1024), ("periods", 100), ("pause", 200)];

const OWN: &[FigureText] = &[
    FigureText::less(
        "overhead_first",
        "growth of resident memory over the requested bytes in use, after the first period",
    ),
    FigureText::less(
        "overhead_last",
        "growth of resident memory over the requested bytes in use, after the last period",
    ),
    FigureText::less("overhead_mean", "mean of this ratio over all periods"),
];

const COUNT: usize = OWN.len() + FIGURES.len();

static ALL_FIGURES: [FigureText; COUNT] = before_common(OWN);
