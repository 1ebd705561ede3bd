//! Texts that describe the workload `rptest`, its parameters and presets to a reader.

use super::{check, needs, presets::PRESETS};
use crate::description::{LATENCY, SEED, THREADS};
use crate::random_blocks::{ALIGN, DISTRIBUTION, MAX, MIN, TOUCH};
use crate::report::FIGURES;
use crate::{Description, FigureText, Parameter, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::Rptest),
    name: "rptest",
    summary: "the rpmalloc benchmark: random sizes, scattered frees and allocations, blocks handed \
              to other threads",
    models: "Programs whose threads keep many blocks of mixed sizes, repeatedly replace some of \
             them in random order, and pass some to another thread that frees them. In each loop a \
             thread frees the blocks that others sent to it and visits `ops` of its slots to free \
             the blocks there. It then visits `ops` slots again: it frees any block still there \
             and allocates a new one. In every `cross`-th loop it also allocates `ops` blocks and \
             sends them to the next thread, the last thread to the first. When all loops are done \
             and all sent blocks are freed, memory is sampled and everything is freed: this is one \
             pass. Each thread runs two passes and ends; then new threads run two more.",
    origin: "The rpmalloc benchmark of Mattias Jansson, by the description in rpmalloc's \
             BENCHMARKS.md (2017); the first nine parameters in its order. The elfmalloc \
             performance evaluation uses the same program as a producer-consumer, which is the \
             workload prodcons here. Written from the descriptions, which leave the following \
             details open. Slots are visited in two fixed orders that look random, one for frees \
             and one for allocations, drawn again for each pass: every slot is freed once and \
             filled once in `blocks / ops` loops, every loop after the first ones frees exactly \
             `ops` blocks, and a block lives for one to `blocks / ops` loops. The linear falloff \
             reaches zero at the maximum size; in the exponential one the density halves with \
             every tenth of the range. A fixed size is the mean of min and max. A thread has at \
             most four parcels in transit; before a fifth it waits. A single thread sends to \
             itself.",
    meaning: "One operation is one block allocated or one block freed, including the full frees at \
              the end of the passes. Time is that of the four passes, without starting and ending \
              threads. Every block is written at both ends and, with touch=1, on every page when \
              allocated, and checked when freed. `overhead` is the document's figure, with \
              resident memory instead of mapped memory.",
    silence: "Nothing about blocks that grow, sizes that depend on one another, or lifetimes that \
              differ much from the others. overhead_mapped shows nothing about usable memory if \
              the allocator reserves address space at the start of the program, or far more than \
              it uses.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: &ALL_FIGURES,
    check,
    needs,
};

const PARAMETERS: &[Parameter] = &[
    THREADS,
    Parameter::new(
        "mode",
        "",
        0,
        [0, 1],
        "0: random sizes, 1: one fixed size, the mean of min and max",
    ),
    DISTRIBUTION,
    Parameter::new(
        "cross",
        "loops",
        2,
        [0, 1_000_000_000],
        "one loop in this many passes blocks to another thread; 0: none does",
    ),
    Parameter::new(
        "loops",
        "loops",
        160,
        [1, 1_000_000_000],
        "loops of each thread in each of the four passes",
    ),
    Parameter::new(
        "blocks",
        "slots",
        50_000,
        [1, 1 << 32],
        "slots of each thread",
    ),
    Parameter::new(
        "ops",
        "blocks",
        5000,
        [1, 1 << 32],
        "blocks freed, allocated and passed on at a time",
    ),
    MIN,
    MAX,
    ALIGN,
    TOUCH,
    SEED,
    LATENCY,
];

const OVERHEAD: FigureText = FigureText::less(
    "overhead",
    "resident_at_end_bytes over the peak of the bytes requested",
);

const OWN: [FigureText; 4] = [
    FigureText::less(
        "resident_at_end_bytes",
        "growth of resident memory from the start of the first pass to the end of the loops of the \
         pass where it is greatest, when all blocks that were handed over are freed: without the \
         program, its libraries and the workload's own arrays",
    ),
    FigureText::less(
        "mapped_at_end_bytes",
        "address space of the process at the same moments, without files, stacks and the workload's \
         own arrays: what the allocator has mapped or reserved",
    ),
    FigureText::less(
        "overhead_mapped",
        "mapped_at_end_bytes over the peak of the bytes requested, as the document has it",
    ),
    FigureText::less(
        "overhead_peak",
        "peak resident memory of the whole process over the peak of the bytes requested, which is \
         what other workloads call overhead",
    ),
];

const COUNT: usize = FIGURES.len() + OWN.len();

/// Figures of every workload, with rptest's meaning of overhead, followed by rptest's own figures.
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
