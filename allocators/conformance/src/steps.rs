//! Counts the instructions of a call by single-stepping (ptrace) a child through calls that it has
//! warmed up.
//!
//! The count includes all instructions that the processor executes, from the function's first
//! instruction through its return. It includes the functions that this function calls, but not its
//! caller or a PLT stub. So the count is exact, and belongs to the path that was taken.

use std::fmt;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use crate::Source;
use traced::{Event, Traced};

mod traced;

/// Program that runs as the traced child, and makes the calls to be counted.
const PROGRAM: Source = Source::new("steps.c", include_str!("../programs/steps.c"), &[]);
/// Exit statuses of the program, as in `programs/steps.c`: a function is missing, or ptrace is
/// forbidden.
const NO_FUNCTION: i32 = 3;
const FORBIDDEN: i32 = 4;
/// Maximum number of instructions that are stepped through, including those between calls.
const MOST: usize = 1_000_000;

/// Names of a function that allocates and a function that frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'a> {
    /// Name of the function that allocates, such as `malloc`.
    pub give: &'a str,
    /// Name of the function that frees, such as `free`.
    pub take: &'a str,
}

/// Number of instructions for each function of a pair: a count that at least half of the calls
/// have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Number of instructions for allocating a block of 64 bytes.
    pub give: usize,
    /// Number of instructions for freeing the block.
    pub take: usize,
}

/// Reason why there is no count.
#[derive(Debug, PartialEq, Eq)]
pub enum StepsError {
    /// The system forbids processes from tracing one another.
    Forbidden,
    /// Any other reason, described in one line.
    Failed(String),
}

impl fmt::Display for StepsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden => f.write_str(
                "instructions cannot be counted: ptrace is forbidden; in a container add the capability \
                 SYS_PTRACE or a seccomp profile that allows it, elsewhere lower kernel.yama.ptrace_scope",
            ),
            Self::Failed(what) => write!(f, "instructions cannot be counted: {what}"),
        }
    }
}

impl std::error::Error for StepsError {}

impl From<io::Error> for StepsError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Counts the instructions of a pair in a library that is preloaded into a child.
///
/// # Errors
///
/// If the system forbids tracing, if the child cannot be compiled or run, if the library has no
/// such functions, if the calls take too many instructions, or if fewer than half of them take the
/// same number of instructions.
pub fn count(library: &Path, pair: Pair<'_>) -> Result<Steps, StepsError> {
    let folder = tempfile::tempdir()?;
    let program = PROGRAM
        .compiled(folder.path())
        .map_err(StepsError::Failed)?;
    let mut child = Command::new(program)
        .args([pair.give, pair.take])
        .env("LD_PRELOAD", library)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let said = child.stdout.take();
    let mut traced = Traced::new(&child);
    match traced.wait()? {
        Event::Stopped(libc::SIGSTOP) => {}
        Event::Ended(Some(FORBIDDEN)) => return Err(StepsError::Forbidden),
        Event::Ended(Some(NO_FUNCTION)) => {
            let what = format!("no {} or {} there", pair.give, pair.take);
            return Err(StepsError::Failed(what));
        }
        other => return Err(unexpected(&other)),
    }
    traced.end_with_tracer()?;
    let mut calls = Calls::new(entries(said)?);
    for _ in 0..MOST {
        traced.step()?;
        match traced.wait()? {
            Event::Stopped(libc::SIGTRAP) => {
                let (instruction, stack) = traced.place()?;
                calls.at(instruction, stack);
            }
            Event::Stopped(libc::SIGSTOP) => return calls.steps(),
            other => return Err(unexpected(&other)),
        }
    }
    Err(StepsError::Failed(format!(
        "the calls did not end within {MOST} instructions"
    )))
}

fn unexpected(event: &Event) -> StepsError {
    StepsError::Failed(format!("the child did what it should not: {event:?}"))
}

/// Returns the addresses of both functions, which the child prints.
fn entries(said: Option<ChildStdout>) -> Result<[u64; 2], StepsError> {
    let mut line = String::new();
    if let Some(said) = said {
        BufReader::new(said).read_line(&mut line)?;
    }
    let mut words = line.split_whitespace().map(str::parse);
    match (words.next(), words.next()) {
        (Some(Ok(give)), Some(Ok(take))) => Ok([give, take]),
        _ => Err(StepsError::Failed(format!("the child said {line:?}"))),
    }
}

/// Instruction counts of the calls of two functions, updated at every instruction.
struct Calls {
    entries: [u64; 2],
    inside: Option<Call>,
    counts: [Vec<usize>; 2],
}

/// Call that has not returned yet.
struct Call {
    which: usize,
    /// Stack pointer at the call's first instruction. It points to the return address.
    stack: u64,
    steps: usize,
}

impl Calls {
    const fn new(entries: [u64; 2]) -> Self {
        Self {
            entries,
            inside: None,
            counts: [Vec::new(), Vec::new()],
        }
    }

    /// Records that an instruction was executed. `instruction` is the address of the next
    /// instruction, and `stack` the stack pointer.
    fn at(&mut self, instruction: u64, stack: u64) {
        if let Some(call) = &mut self.inside {
            call.steps += 1;
            // Only the call's return removes the return address from the stack.
            if stack > call.stack {
                self.counts[call.which].push(call.steps);
                self.inside = None;
            }
        } else if let Some(which) = self.entries.iter().position(|&entry| entry == instruction) {
            self.inside = Some(Call {
                which,
                stack,
                steps: 0,
            });
        }
    }

    fn steps(&self) -> Result<Steps, StepsError> {
        let [give, take] = &self.counts;
        Ok(Steps {
            give: usual(give)?,
            take: usual(take)?,
        })
    }
}

/// Returns the count that at least half of the calls have. A few calls may take a slow path.
fn usual(counts: &[usize]) -> Result<usize, StepsError> {
    let times = |count| counts.iter().filter(|&&other| other == count).count();
    let found = counts.iter().copied().max_by_key(|&count| times(count));
    found
        .filter(|&count| 2 * times(count) >= counts.len())
        .ok_or_else(|| StepsError::Failed(format!("the calls differ: {counts:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_with_its_own_return() {
        let mut calls = Calls::new([100, 200]);
        // `give` changes the stack and calls another function before it returns. `take` loops back
        // to its first instruction.
        let give = [
            (50, 80),
            (100, 72),
            (104, 64),
            (300, 56),
            (301, 64),
            (105, 72),
            (51, 80),
        ];
        let take = [
            (200, 72),
            (201, 72),
            (200, 72),
            (201, 72),
            (52, 80),
            (53, 80),
        ];
        for (instruction, stack) in give.into_iter().chain(take) {
            calls.at(instruction, stack);
        }
        assert_eq!(calls.steps(), Ok(Steps { give: 5, take: 4 }));
    }

    #[test]
    fn the_usual_count_is_that_of_half_of_the_calls() {
        assert_eq!(usual(&[5, 5, 90, 5]), Ok(5));
        assert_eq!(usual(&[5, 6, 6, 90]), Ok(6));
        for none in [&[][..], &[5, 6, 7, 8, 5]] {
            assert!(usual(none).is_err(), "{none:?}");
        }
    }
}
