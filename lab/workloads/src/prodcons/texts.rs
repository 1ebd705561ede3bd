//! Texts that describe the workload `prodcons`, its parameters and presets to a reader.

use super::{check, needs};
use crate::description::{LATENCY, SEED, THREADS};
use crate::random_blocks::{ALIGN, DISTRIBUTION, MAX, MIN, TOUCH};
use crate::report::FIGURES;
use crate::{Description, Parameter, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::Prodcons),
    name: "prodcons",
    summary: "producers and consumers: every block is freed by a thread that did not allocate it",
    models: "Pipelines, in which one thread builds structures that another destroys. A producer \
             allocates a batch of blocks of random sizes and sends it; a consumer frees all of it \
             in the order in which it was allocated. Batches wait in a queue of bounded length, \
             and a producer waits while its queue is full. If there are as many producers as \
             consumers, they form pairs; otherwise each producer sends its batches to all \
             consumers in turn.",
    origin: "The producer-consumer workload of the elfmalloc performance evaluation (2017), which \
             used the rpmalloc benchmark so that blocks are allocated and freed in different \
             threads, and printed no parameters. Written from the description, with rptest's sizes, \
             contents and hand-over.",
    meaning: "One operation is one block allocated or one block freed. Every producer sends the \
              same number of batches, so that the work grows with the threads. A single thread \
              alternately allocates a batch and frees it: the same calls without another thread, \
              for comparison. Every block is written at both ends and, with touch=1, on every page \
              when allocated, and checked when freed. Threads that wait sleep, so that waiting \
              takes little processor time.",
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
        meaning: "threads, producers and consumers together; 1: one thread does both alternately",
        default: 2,
        ..THREADS
    },
    Parameter::new(
        "producers",
        "threads",
        0,
        [0, 1024],
        "threads that allocate; 0: all that are not consumers, or half of the threads",
    ),
    Parameter::new(
        "consumers",
        "threads",
        0,
        [0, 1024],
        "threads that free; 0: all that are not producers, or half of the threads",
    ),
    Parameter::new(
        "batches",
        "batches",
        5000,
        [1, 1_000_000_000],
        "batches that each producer sends",
    ),
    Parameter::new("objects", "blocks", 1000, [1, 1 << 32], "blocks in a batch"),
    MIN,
    MAX,
    Parameter::new(
        "queue",
        "batches",
        8,
        [1, 1 << 16],
        "maximum number of batches of a producer that wait or are being freed",
    ),
    DISTRIBUTION,
    ALIGN,
    TOUCH,
    SEED,
    LATENCY,
];

const PRESETS: &[Preset] = &[
    Preset::own(
        "default",
        "5000 batches of 1000 blocks of 16 to 1000 bytes",
        &[],
    ),
    Preset::own(
        "published-like",
        "batches as large as rptest's, and as many as its published settings have; the document \
         printed no parameters",
        &[("batches", 40_000), ("objects", 5000)],
    ),
    Preset::own(
        "many-to-one",
        "four producers, one consumer",
        &[("threads", 5), ("consumers", 1), ("batches", 500)],
    ),
    Preset::own(
        "one-to-many",
        "one producer, four consumers",
        &[("threads", 5), ("producers", 1), ("batches", 2000)],
    ),
    Preset::own(
        "quick",
        "a twenty-fifth of the batches",
        &[("batches", 200)],
    ),
];
