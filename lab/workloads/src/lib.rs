//! Synthetic loads for memory allocators, each as a paper or document describes it.
//!
//! A workload calls a [`Heap`] and nothing else for the blocks that it is about. Everything it
//! needs besides is allocated before its measured part begins.

mod account;
mod array;
mod caller;
mod contents;
mod description;
mod failure;
mod heap;
mod latency;
mod lifo;
mod parameters;
mod process;
mod random;
mod report;
mod room;
mod threads;

mod burst;
mod malloctest;
mod prodcons;
mod rptest;
mod shbench;
mod threadtest;

pub use account::BATCH;
pub use description::{Description, FigureText, Parameter, Preset};
pub use failure::{Failure, Refusal};
pub use heap::{Heap, Libc};
pub use lifo::Lifo;
pub use parameters::Parameters;
pub use room::{fits, fits_bytes};

use heapdrome_record::WorkloadReport;

/// Every workload, in the order in which a reader should meet them.
pub fn list() -> &'static [&'static Description] {
    static LIST: [&Description; 6] = [
        &threadtest::DESCRIPTION,
        &shbench::DESCRIPTION,
        &rptest::DESCRIPTION,
        &prodcons::DESCRIPTION,
        &malloctest::DESCRIPTION,
        &burst::DESCRIPTION,
    ];
    &LIST
}

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static Description> {
    list().iter().copied().find(|one| one.name == name)
}

/// The operations of a run before it is run, so that what a short preset leaves out can be told as
/// a factor; `None` where they do not follow from the parameters by a formula that is known here.
pub fn operations(parameters: &Parameters) -> Option<u64> {
    match parameters.description().name {
        "threadtest" => Some(threadtest::operations(parameters)),
        "shbench" => Some(shbench::operations(parameters)),
        "malloctest" => Some(malloctest::operations(parameters)),
        "rptest" => Some(rptest::operations(parameters)),
        "prodcons" => Some(prodcons::operations(parameters)),
        "burst" => Some(burst::operations(parameters)),
        _ => None,
    }
}

/// Runs a workload once on `heap`. Ask [`fits`] first.
///
/// # Errors
/// When the heap has no memory, or gives back other contents than were written.
pub fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    match parameters.description().name {
        "malloctest" => malloctest::run(parameters, heap),
        "shbench" => shbench::run(parameters, heap),
        "threadtest" => threadtest::run(parameters, heap),
        "rptest" => rptest::run(parameters, heap),
        "prodcons" => prodcons::run(parameters, heap),
        "burst" => burst::run(parameters, heap),
        name => unreachable!("{name} is in the list and cannot be run"),
    }
}
