//! Texts that describe the workload `fork-server`, its parameters and presets to a reader.

use crate::description::{LATENCY, SEED, THREADS};
use crate::random_blocks::{MAX, MIN, TOUCH, check_sizes};
use crate::report::{CHILDREN, FIGURES, before_common};
use crate::{Description, FigureText, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::ForkServer),
    name: "fork-server",
    summary: "a parent with a warm heap that forks children, which work on a copy of it",
    models: "Servers that load their data and then fork a process for each request or snapshot, \
             such as PostgreSQL, Redis, Apache and the workers of Python. The parent fills a heap \
             with `blocks` blocks. Then it forks `children` children, at most `alive` at a time. \
             Each child allocates `allocates` blocks, checks and writes to `touches` inherited \
             blocks drawn at random, frees its own blocks, and ends by _exit. After each fork the \
             parent replaces `replaces` of its blocks. When `alive` children are alive, it first \
             waits for the oldest. The density of sizes is inversely proportional to the size.",
    origin: "heapdrome's own.",
    meaning: "One operation is one block allocated or one block freed, in the parent or in a \
              child. cpu_s includes the processor time of the children. Memory is that of the \
              parent; peak_requested_bytes excludes the children's own blocks. A page that parent \
              and child share is copied when either writes to it, so that an allocator is slow \
              here if it writes to many pages. With several threads, the others replace as many \
              blocks while the first forks. A child that fails, or does not end within two \
              minutes, ends the run; no child survives the parent.",
    silence: "Nothing about children that execute another program, or that start threads.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: &ALL_FIGURES,
    check: check_sizes,
    needs: super::needs,
};

static PARAMETERS: &[Parameter] = &[
    Parameter {
        meaning: "threads of the parent, each with a heap of its own; the first forks",
        ..THREADS
    },
    Parameter::new(
        "children",
        "children",
        300,
        [1, 1_000_000_000],
        "children in all",
    ),
    Parameter::new(
        "alive",
        "children",
        4,
        [1, 256],
        "maximum number of children at a time",
    ),
    Parameter::new(
        "blocks",
        "blocks",
        50_000,
        [1, 1 << 32],
        "blocks that each thread of the parent keeps",
    ),
    Parameter::new(
        "replaces",
        "blocks",
        500,
        [0, 1 << 32],
        "blocks that each thread of the parent replaces after each fork",
    ),
    Parameter::new(
        "touches",
        "blocks",
        500,
        [0, 1 << 32],
        "inherited blocks that each child writes to",
    ),
    Parameter::new(
        "allocates",
        "blocks",
        1000,
        [1, 1 << 32],
        "blocks that each child allocates and frees",
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
    Preset::own("default", "300 children of a heap of 35 MiB", &[]),
    Preset::own("quick", "a sixth of the children", &[("children", 50)]),
];

static ALL_FIGURES: [FigureText; COUNT] = before_common(CHILDREN);

const COUNT: usize = CHILDREN.len() + FIGURES.len();
