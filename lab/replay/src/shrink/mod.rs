//! Finds a short program of allocation calls that fails in the same way as a long one.
//!
//! Delta debugging as in A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing
//! Input", IEEE Transactions on Software Engineering 28(2), 2002: halves of the program, then
//! quarters and so on, are left out as long as the rest still fails. The result is minimal for
//! single steps: if any one block with its calls, or any one call that makes no block, is removed,
//! the failure disappears.

mod script;

use std::collections::BTreeSet;

pub use script::Script;
use script::{Call, What};

/// Sizes that are tried in place of a larger one. The smallest is 1: for a size of 0, an allocator
/// may return null, which looks like a failure, and a resize may free the block.
const SIZES: [u64; 9] = [1, 8, 16, 64, 256, 1024, 4096, 65_536, 1 << 20];

/// Maximum number of calls in a program whose calls are simplified one by one.
const FEW: usize = 64;

/// Outcome of [`shrink`].
#[derive(Debug)]
pub struct Shrunk<E> {
    /// The shortest failing program that was found.
    pub script: Script,
    /// Number of programs that were tried.
    pub tried: u64,
    /// Error that ended the search before the program was minimal; `None` if none did.
    pub stopped: Option<E>,
}

/// Shortens a failing program. `fails` runs a program and returns whether it fails in the expected
/// way. If it returns an error, the search ends with the shortest program so far.
pub fn shrink<E>(script: Script, fails: &mut dyn FnMut(&Script) -> Result<bool, E>) -> Shrunk<E> {
    let mut search = Search {
        best: script,
        tried: 0,
        fails,
    };
    let stopped = search.run().err();
    Shrunk {
        script: search.best,
        tried: search.tried,
        stopped,
    }
}

struct Search<'a, E> {
    /// The shortest program so far.
    best: Script,
    tried: u64,
    fails: &'a mut dyn FnMut(&Script) -> Result<bool, E>,
}

impl<E> Search<'_, E> {
    fn run(&mut self) -> Result<(), E> {
        self.prefix()?;
        loop {
            let before = self.best.calls.clone();
            // Leave out the call that makes a block together with all other calls on that block.
            self.remove(|call| Some(call.block.unwrap_or(call.id)))?;
            self.remove(|call| (!call.makes()).then_some(call.id))?;
            self.merge_threads()?;
            self.reduce_sizes()?;
            self.call_malloc()?;
            if self.best.calls == before {
                return Ok(());
            }
        }
    }

    /// Tries a program, and keeps it if it fails.
    fn fails(&mut self, calls: Vec<Call>) -> Result<bool, E> {
        if calls.is_empty() || calls == self.best.calls {
            return Ok(false);
        }
        let candidate = self.best.with(calls);
        self.tried += 1;
        let fails = (self.fails)(&candidate)?;
        if fails {
            self.best = candidate;
        }
        Ok(fails)
    }

    /// Leaves out the calls after the failure, which the failing program does not run.
    fn prefix(&mut self) -> Result<(), E> {
        let whole = self.best.calls.clone();
        let (mut passes, mut fails) = (0, whole.len());
        while fails - passes > 1 {
            let middle = passes + (fails - passes) / 2;
            match self.fails(whole[..middle].to_vec())? {
                true => fails = middle,
                false => passes = middle,
            }
        }
        Ok(())
    }

    /// Removes groups of calls, and keeps each removal after which the program still fails. `unit`
    /// returns the ID of a call's group, or `None` for a call that must stay.
    fn remove(&mut self, unit: fn(&Call) -> Option<u32>) -> Result<(), E> {
        let units: BTreeSet<u32> = self.best.calls.iter().filter_map(unit).collect();
        let mut units: Vec<u32> = units.into_iter().collect();
        let mut length = units.len().div_ceil(2).max(1);
        loop {
            let (mut place, mut removed) = (0, false);
            while place < units.len() {
                let end = (place + length).min(units.len());
                let part = &units[place..end];
                let stays =
                    |call: &&Call| unit(call).is_none_or(|unit| part.binary_search(&unit).is_err());
                let rest = self.best.calls.iter().filter(stays).copied().collect();
                match self.fails(rest)? {
                    true => {
                        units.drain(place..end);
                        removed = true;
                    }
                    false => place = end,
                }
            }
            match length {
                1 if !removed => return Ok(()),
                _ => length = length.div_ceil(2),
            }
        }
    }

    /// Moves all calls to thread 0. If the program then passes, tries each thread by itself, and
    /// keeps each move after which the program still fails.
    fn merge_threads(&mut self) -> Result<(), E> {
        let one = self.best.map(|call| Call { thread: 0, ..call });
        if self.fails(one)? {
            return Ok(());
        }
        let threads: BTreeSet<u32> = self.best.calls.iter().map(|call| call.thread).collect();
        for thread in threads {
            let merged = self.best.map(|call| Call {
                thread: if call.thread == thread {
                    0
                } else {
                    call.thread
                },
                ..call
            });
            self.fails(merged)?;
        }
        Ok(())
    }

    /// Makes blocks smaller: first all of them together, and in a short program then one by one.
    fn reduce_sizes(&mut self) -> Result<(), E> {
        for most in SIZES {
            let smaller = self.best.map(|call| call.at_most(most));
            if self.fails(smaller)? {
                break;
            }
        }
        if self.best.calls.len() > FEW {
            return Ok(());
        }
        for place in 0..self.best.calls.len() {
            for most in SIZES {
                let mut calls = self.best.calls.clone();
                calls[place] = calls[place].at_most(most);
                if calls == self.best.calls || self.fails(calls)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Replaces calls that make blocks by plain malloc: first all of them together, and in a short
    /// program then one by one.
    fn call_malloc(&mut self) -> Result<(), E> {
        let Some(malloc) = self.best.function("malloc") else {
            return Ok(());
        };
        let plain = |call: Call| match call.what {
            What::Make { size, .. } => Call {
                what: What::Make {
                    function: malloc,
                    size,
                    alignment: 0,
                },
                ..call
            },
            _ => call,
        };
        let all = self.best.map(plain);
        if self.fails(all)? || self.best.calls.len() > FEW {
            return Ok(());
        }
        for place in 0..self.best.calls.len() {
            let mut calls = self.best.calls.clone();
            calls[place] = plain(calls[place]);
            self.fails(calls)?;
        }
        Ok(())
    }
}
