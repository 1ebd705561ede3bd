//! What a reader should know of prodcons.

use super::{check, needs};
use crate::description::{LATENCY, SEED, THREADS};
use crate::report::FIGURES;
use crate::rptest::{ALIGN, DISTRIBUTION, MAX, MIN, TOUCH, parameter};
use crate::{Description, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Workload::Prodcons,
    name: "prodcons",
    summary: "producers and consumers: every block is freed by another thread than its own",
    models: "Pipelines, in which one thread builds what another takes apart: a producer allocates a \
             batch of blocks of random sizes and sends it, a consumer frees all of it in the order \
             in which it was allocated. Batches wait in a queue of bounded length, and a producer \
             waits while its queue is full. As many producers as consumers are pairs; otherwise each \
             producer sends its batches to all consumers in turn.",
    origin: "The producer-consumer workload of the elfmalloc performance evaluation (2017), which \
             used the rpmalloc benchmark so that blocks are allocated and freed in different \
             threads, and printed no parameters. Written from the description, with rptest's sizes, \
             contents and hand-over.",
    meaning: "One operation is one block allocated or one block freed. Every producer sends the same \
              number of batches, so that more threads have more work. A single thread allocates a \
              batch and frees it, by turns: the same calls with no other thread, to compare with. \
              Every block is written at both ends and, with touch=1, on every page when allocated, \
              and checked when freed. Threads that wait sleep, so that waiting takes little \
              processor time.",
    silence: "Nothing about threads that free some of their own blocks as well, or about memory \
              that stays in use: each block lives as long as it waits in the queue.",
    parameters: PARAMETERS,
    presets: PRESETS,
    figures: FIGURES,
    check,
    needs,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        meaning: "threads, producers and consumers together; 1: one thread does both by turns",
        default: 2,
        ..THREADS
    },
    parameter(
        "producers",
        "threads",
        0,
        [0, 1024],
        "threads that allocate; 0: those that are no consumers, or half of the threads",
    ),
    parameter(
        "consumers",
        "threads",
        0,
        [0, 1024],
        "threads that free; 0: those that are no producers, or half of the threads",
    ),
    parameter(
        "batches",
        "batches",
        5000,
        [1, 1_000_000_000],
        "batches that each producer sends",
    ),
    parameter("objects", "blocks", 1000, [1, 1 << 32], "blocks in a batch"),
    MIN,
    MAX,
    parameter(
        "queue",
        "batches",
        8,
        [1, 1 << 16],
        "batches of a producer that can wait or be in a consumer's hands",
    ),
    DISTRIBUTION,
    ALIGN,
    TOUCH,
    SEED,
    LATENCY,
];

const fn preset(
    name: &'static str,
    meaning: &'static str,
    values: &'static [(&'static str, u64)],
) -> Preset {
    Preset {
        name,
        meaning,
        values,
        published: None,
    }
}

const PRESETS: &[Preset] = &[
    preset(
        "default",
        "5000 batches of 1000 blocks of 16 to 1000 bytes",
        &[],
    ),
    preset(
        "published-like",
        "batches as large as rptest hands over, and as many as its published settings do; the \
         document printed no parameters",
        &[("batches", 40_000), ("objects", 5000)],
    ),
    preset(
        "many-to-one",
        "four producers, one consumer",
        &[("threads", 5), ("consumers", 1), ("batches", 500)],
    ),
    preset(
        "one-to-many",
        "one producer, four consumers",
        &[("threads", 5), ("producers", 1), ("batches", 2000)],
    ),
    preset(
        "quick",
        "a twenty-fifth of the batches",
        &[("batches", 200)],
    ),
];
