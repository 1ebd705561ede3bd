//! Checks of the global allocator of a Rust program.
//!
//! The programs of this crate differ only in their allocator. Each runs the check that its argument
//! names, and exits with status 0 if the check passes.

mod blocks;
mod children;
mod corners;
mod threads;

use std::process::ExitCode;

use heapdrome_malloc_abi::MallocAbi;

/// Time limit of a program, in seconds.
const LIMIT: u32 = 300;

/// Name of a check, and its function.
type Check = (&'static str, fn());

/// Runs the check that the first argument names, in a program whose global allocator is `A`.
#[must_use]
pub fn main<A: MallocAbi + 'static>() -> ExitCode {
    let checks: [Check; 10] = [
        ("served", corners::served::<A>),
        ("layouts", blocks::layouts),
        ("empty", blocks::empty),
        ("refusals", corners::refusals),
        ("errno", corners::errno),
        ("threads", threads::threads),
        ("forks", children::forks::<A>),
        ("background", children::background),
        ("small-pages", corners::small_pages),
        ("nothing", || ()),
    ];
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some((_, check)) = checks.iter().find(|(known, _)| *known == name) else {
        eprintln!("no such check: {name}");
        return ExitCode::from(2);
    };
    // SAFETY: no precondition.
    unsafe { libc::alarm(LIMIT) };
    check();
    ExitCode::SUCCESS
}
