//! Synthetic loads for memory allocators. Most follow the description of a paper or document; the
//! others model how programs allocate.
//!
//! A workload takes the blocks under test from a [`Heap`] only. It allocates its other memory
//! before its measured part begins, except for the threads and processes that it starts as part of
//! the load.

mod account;
mod array;
mod caller;
mod contents;
mod description;
mod failure;
mod hand_over;
mod heap;
mod latency;
mod lifo;
mod random;
mod random_blocks;
mod report;
mod room;
mod threads;

mod burst;
mod churn;
mod fork_server;
mod large_blocks;
mod long_lived;
mod malloctest;
mod prodcons;
mod rptest;
mod shbench;
mod short_process;
mod short_threads;
mod threadtest;
mod vectors;

pub use account::BATCH;
pub use description::{Description, FigureText, Parameter, Parameters, Preset, Workload};
pub use failure::{Failure, Refusal};
pub use heap::{Heap, Libc};
pub use lifo::Lifo;
pub use room::{fits, fits_bytes};
pub use short_process::child;

use heapdrome_schema::WorkloadReport;

/// Returns every workload, in the order of presentation.
pub fn list() -> &'static [&'static Description] {
    static LIST: &[&Description] = &[
        &threadtest::DESCRIPTION,
        &shbench::DESCRIPTION,
        &rptest::DESCRIPTION,
        &prodcons::DESCRIPTION,
        &malloctest::DESCRIPTION,
        &burst::DESCRIPTION,
        &large_blocks::DESCRIPTION,
        &churn::DESCRIPTION,
        &vectors::DESCRIPTION,
        &short_threads::DESCRIPTION,
        &long_lived::DESCRIPTION,
        &fork_server::DESCRIPTION,
        &short_process::DESCRIPTION,
    ];
    LIST
}

/// Returns the workload of this name.
pub fn find(name: &str) -> Option<&'static Description> {
    list().iter().copied().find(|one| one.name == name)
}

/// Returns the number of operations of a run with these parameters; `None` for a workload with a
/// program of its own. The ratio of the numbers of two presets shows by which factor one is
/// shorter.
pub fn operations(parameters: &Parameters) -> Option<u64> {
    Some(match parameters.description().workload? {
        Workload::Threadtest => threadtest::operations(parameters),
        Workload::Shbench => shbench::operations(parameters),
        Workload::Rptest => rptest::operations(parameters),
        Workload::Prodcons => prodcons::operations(parameters),
        Workload::Malloctest => malloctest::operations(parameters),
        Workload::Burst => burst::operations(parameters),
        Workload::LargeBlocks => large_blocks::operations(parameters),
        Workload::Churn => churn::operations(parameters),
        Workload::Vectors => vectors::operations(parameters),
        Workload::ShortThreads => short_threads::operations(parameters),
        Workload::LongLived => long_lived::operations(parameters),
        Workload::ForkServer => fork_server::operations(parameters),
        Workload::ShortProcess => short_process::operations(parameters),
    })
}

/// Runs a workload once on `heap`. Call [`fits`] first.
///
/// # Errors
/// Returns [`Failure::Elsewhere`] if the workload has a program of its own. Returns other failures
/// if the heap is out of memory or misaligns or damages a block, if the system refuses memory, a
/// thread or a process to the workload itself, or if a child process fails.
pub fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let description = parameters.description();
    let Some(workload) = description.workload else {
        return Err(Failure::Elsewhere(description.name));
    };
    match workload {
        Workload::Threadtest => threadtest::run(parameters, heap),
        Workload::Shbench => shbench::run(parameters, heap),
        Workload::Rptest => rptest::run(parameters, heap),
        Workload::Prodcons => prodcons::run(parameters, heap),
        Workload::Malloctest => malloctest::run(parameters, heap),
        Workload::Burst => burst::run(parameters, heap),
        Workload::LargeBlocks => large_blocks::run(parameters, heap),
        Workload::Churn => churn::run(parameters, heap),
        Workload::Vectors => vectors::run(parameters, heap),
        Workload::ShortThreads => short_threads::run(parameters, heap),
        Workload::LongLived => long_lived::run(parameters, heap),
        Workload::ForkServer => fork_server::run(parameters, heap),
        Workload::ShortProcess => short_process::run(parameters, heap),
    }
}
