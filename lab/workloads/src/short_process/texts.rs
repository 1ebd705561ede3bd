//! Texts that describe the workload `short-process`, its parameters and presets to a reader.

use crate::description::{LATENCY, SEED, THREADS};
use crate::random_blocks::{MAX, MIN, TOUCH, check_sizes};
use crate::report::{CHILDREN, FIGURES, before_common};
use crate::{Description, FigureText, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::ShortProcess),
    name: "short-process",
    summary: "a program that starts, allocates a little and ends, run many times",
    models: "Builds, scripts and command lines, which run thousands of programs of a few \
             milliseconds. Each thread starts a child process and waits until it ends, again and \
             again. A child allocates small blocks of `kibibytes` in all, checks them, and ends \
             without freeing them, as most programs do. The density of sizes is inversely \
             proportional to the size.",
    origin: "heapdrome's own.",
    meaning: "One operation is one process started and ended. The children run heapdrome-runner \
              itself; the proof counts each of them as a process that the allocator must serve. \
              Most of the time is that of the kernel and the loader, which is equal under all \
              allocators except for the size of their libraries; the rest is the allocator's \
              start and end, and the page faults of its first blocks. cpu_s includes the \
              processor time of the children. The checksum is 0, because the children check \
              their blocks themselves.",
    silence: "Nothing about a program that runs for longer than a few milliseconds. With \
              latency=1, the time of a process counts as that of an allocation.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: &ALL_FIGURES,
    check: check_sizes,
    needs: super::needs,
};

static PARAMETERS: &[Parameter] = &[
    Parameter {
        meaning: "threads that start processes, each one process at a time",
        ..THREADS
    },
    Parameter::new(
        "processes",
        "processes",
        1000,
        [1, 1_000_000_000],
        "processes that each thread starts",
    ),
    Parameter::new(
        "kibibytes",
        "KiB",
        64,
        [0, 1 << 30],
        "total size of the blocks of a process",
    ),
    MIN,
    Parameter {
        default: 512,
        ..MAX
    },
    TOUCH,
    SEED,
    LATENCY,
];

static PRESETS: &[Preset] = &[
    Preset::own("default", "64 KiB of blocks", &[]),
    Preset::own("empty", "no blocks", &[("kibibytes", 0)]),
    Preset::own("large", "8 MiB of blocks", &[("kibibytes", 8192)]),
    Preset::own("quick", "a tenth of the processes", &[("processes", 100)]),
];

const PEAK: FigureText = FigureText::less(
    "child_peak_resident_bytes",
    "peak resident memory of the largest child",
);

const OWN: &[FigureText] = &[CHILDREN[0], CHILDREN[1], PEAK];

const COUNT: usize = OWN.len() + FIGURES.len();

static ALL_FIGURES: [FigureText; COUNT] = before_common(OWN);
