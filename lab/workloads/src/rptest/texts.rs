//! What a reader should know of rptest.

use super::{ALIGN, TOUCH, check, needs, presets::PRESETS};
use crate::description::{LATENCY, SEED, THREADS};
use crate::report::FIGURES;
use crate::{Description, FigureText, Parameter, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Workload::Rptest,
    name: "rptest",
    summary: "the rpmalloc benchmark: random sizes, scattered frees and allocations, blocks handed \
              to other threads",
    models: "Programs whose threads keep many blocks of mixed sizes, replace a part of them again \
             and again in no order, and pass some to another thread that frees them. In each loop a \
             thread frees the blocks that others sent to it, visits `ops` of its slots and frees \
             what is there, then visits `ops` slots again and allocates into them, after freeing \
             what is still there; in every `cross`-th loop it also allocates `ops` blocks and sends \
             them to the next thread, the last to the first. When all loops are done and all blocks \
             that were sent are freed, memory is sampled and everything freed: one pass. Each thread \
             does two passes and ends; then new threads do two more.",
    origin: "The rpmalloc benchmark of Mattias Jansson, by the description in rpmalloc's \
             BENCHMARKS.md (2017); the first nine parameters in its order. The elfmalloc performance \
             evaluation uses the same program as a producer-consumer, which is the workload \
             prodcons here. Written from the descriptions, which leave open what is said next. Slots \
             are visited in two fixed orders that look random, one for frees and one for \
             allocations, drawn anew for each pass: so every slot is freed once and filled once in \
             `blocks / ops` loops, every loop after the first ones frees exactly `ops` blocks, and a \
             block lives from one to `blocks / ops` loops. The linear falloff reaches nothing at the \
             greatest size; in the exponential one the density halves with every tenth of the \
             range. A fixed size is the middle between min and max. Up to four parcels of a thread \
             are under way; for a fifth it waits. A thread that is alone sends to itself.",
    meaning: "One operation is one block allocated or one block freed, the full frees at the end of \
              passes included; time is that of the four passes, without starting and ending \
              threads. Every block is written at both ends and, with touch=1, on every page when \
              allocated, and checked when freed. `overhead` is the figure of the document, with \
              resident memory in place of mapped.",
    silence: "Nothing about blocks that grow, sizes that depend on one another, or lifetimes much \
              shorter or longer than the others. overhead_mapped of an allocator that reserves \
              address space when the program starts, or far more than it uses, says nothing about \
              memory that others lack.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: &ALL_FIGURES,
    check,
    needs,
};

/// A parameter with its least and greatest value.
pub(crate) const fn parameter(
    name: &'static str,
    unit: &'static str,
    default: u64,
    range: [u64; 2],
    meaning: &'static str,
) -> Parameter {
    let [least, most] = range;
    Parameter {
        name,
        meaning,
        unit,
        default,
        least,
        most,
    }
}

/// The least size of a block.
pub(crate) const MIN: Parameter = parameter("min", "bytes", 16, [1, 1 << 30], "least size");
/// The greatest size of a block.
pub(crate) const MAX: Parameter = parameter("max", "bytes", 1000, [1, 1 << 30], "greatest size");
/// How probable each size is.
pub(crate) const DISTRIBUTION: Parameter = parameter(
    "distribution",
    "",
    0,
    [0, 2],
    "0: all sizes as probable, 1: linear falloff with size, 2: exponential falloff",
);

const PARAMETERS: &[Parameter] = &[
    THREADS,
    parameter(
        "mode",
        "",
        0,
        [0, 1],
        "0: random sizes, 1: one fixed size, the middle between min and max",
    ),
    DISTRIBUTION,
    parameter(
        "cross",
        "loops",
        2,
        [0, 1_000_000_000],
        "one loop in this many hands blocks to another thread; 0: none does",
    ),
    parameter(
        "loops",
        "loops",
        160,
        [1, 1_000_000_000],
        "loops of each thread in each of the four passes",
    ),
    parameter(
        "blocks",
        "slots",
        50_000,
        [1, 1 << 32],
        "slots of each thread",
    ),
    parameter(
        "ops",
        "blocks",
        5000,
        [1, 1 << 32],
        "blocks freed, allocated and handed over at a time",
    ),
    MIN,
    MAX,
    ALIGN,
    TOUCH,
    SEED,
    LATENCY,
];

const fn less(name: &'static str, meaning: &'static str) -> FigureText {
    FigureText {
        name,
        meaning,
        more_is_better: false,
    }
}

const OVERHEAD: FigureText = less(
    "overhead",
    "resident_at_end_bytes over the peak of the bytes requested",
);

const OWN: [FigureText; 4] = [
    less(
        "resident_at_end_bytes",
        "growth of resident memory from the start of the first pass to the end of the loops of the \
         pass where it is greatest, when all blocks that were handed over are freed: without the \
         program, its libraries and the workload's own arrays",
    ),
    less(
        "mapped_at_end_bytes",
        "address space of the process at the same moments, without files, stacks and the workload's \
         own arrays: what the allocator has mapped or reserved",
    ),
    less(
        "overhead_mapped",
        "mapped_at_end_bytes over the peak of the bytes requested, as the document has it",
    ),
    less(
        "overhead_peak",
        "peak resident memory of the whole process over the peak of the bytes requested, which is \
         what other workloads call overhead",
    ),
];

const COUNT: usize = FIGURES.len() + OWN.len();

/// Those that every workload has, with rptest's meaning of overhead, and its own.
static ALL_FIGURES: [FigureText; COUNT] = {
    let mut all = [OVERHEAD; COUNT];
    let mut place = 0;
    while place < FIGURES.len() {
        if !same(FIGURES[place].name, OVERHEAD.name) {
            all[place] = FIGURES[place];
        }
        place += 1;
    }
    while place < COUNT {
        all[place] = OWN[place - FIGURES.len()];
        place += 1;
    }
    all
};

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut place = 0;
    while place < one.len() && place < other.len() && one[place] == other[place] {
        place += 1;
    }
    place == one.len() && place == other.len()
}
