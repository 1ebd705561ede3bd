//! Second pass over a process: compiles each step into words of its thread.

use std::collections::VecDeque;
use std::fs::File;

use heapdrome_trace::{Operation, Step};

use super::CompileError;
use super::blocks::Blocks;
use super::functions::{Call, resolved};
use super::slots::Slots;
use super::streams::Streams;
use super::survey::Survey;
use super::table::Numbers;
use crate::options::Speed;
use crate::program::Header;
use crate::words::{self, Kind, MAIN, MAX_THREADS, halves};

/// Minimum recorded time between two pauses of a thread, in nanoseconds. Threads cannot be woken
/// more precisely.
const PAUSE: u64 = 50_000;

struct Live {
    slot: u32,
    thread: u32,
    /// Number of the operation that made the block, among the operations of `thread`.
    made: u64,
    /// Number of the publication by which `thread` announced the block; 0 if the block is not
    /// published.
    ticket: u32,
    size: u64,
}

#[derive(Clone, Copy, Default)]
struct Thread {
    steps: u64,
    tickets: u32,
    /// Time of the latest operation before which a pause was compiled.
    until: u64,
}

/// Minimum ratio of new to old size, as numerator and denominator, at which a resize counts as
/// growth ahead of need.
const AHEAD: [u64; 2] = [3, 2];

/// Estimates the number of bytes that a program writes at the start of a block after a resize from
/// `before` to `size` bytes, if the block is never resized again.
///
/// A program that multiplies an array's size fills between none and all of the added bytes, on
/// average half of them. A program that grows an array only slightly knows the needed size, and
/// fills the whole block.
fn written(before: u64, size: u64) -> u64 {
    // Multiply in 128 bits: the products cannot overflow, and, unlike a quotient, lose no
    // remainder.
    let [new, old] = [size, before].map(u128::from);
    let is_ahead = before > 0 && new * u128::from(AHEAD[1]) >= old * u128::from(AHEAD[0]);
    match is_ahead {
        true => before + (size - before) / 2,
        false => size,
    }
}

/// Compiler of steps into words.
pub(super) struct Emitter {
    survey: Survey,
    calls: Vec<Call>,
    streams: Streams,
    slots: Slots,
    live: Blocks<Live>,
    live_bytes: u128,
    numbers: Numbers,
    threads: Vec<Thread>,
    /// Threads that have made their last step and are to be joined, in the order of those steps.
    ended: VecDeque<u32>,
    /// Thread of the previous step.
    previous: Option<u32>,
    began: u64,
    steps: u64,
    header: Header,
}

impl Emitter {
    pub(super) fn new(header: Header, survey: Survey, calls: Vec<Call>, file: File) -> Self {
        Self {
            survey,
            calls,
            streams: Streams::new(file),
            slots: Slots::default(),
            live: Blocks::default(),
            live_bytes: 0,
            numbers: Numbers::default(),
            threads: Vec::new(),
            ended: VecDeque::new(),
            previous: None,
            began: 0,
            steps: 0,
            header,
        }
    }

    /// Ends all threads, and returns the program's header.
    pub(super) fn finish(mut self) -> Result<Header, CompileError> {
        self.join_ended()?;
        self.streams.end(MAIN)?;
        let mut header = self.header;
        header.threads = self.threads.len() as u32;
        header.slots = self.slots.count();
        header.live = self.live.len() as u64;
        (header.table, header.bytes, header.digest) = self.streams.finish()?;
        Ok(header)
    }

    /// Compiles a step. `block` is the number of the block that the step makes, if any.
    pub(super) fn step(&mut self, step: Step, block: u64) -> Result<(), CompileError> {
        let time = step.time.0;
        if self.steps == 0 {
            self.began = time;
        }
        let known = self.numbers.get(step.thread);
        let turn = self.pass_turn(known)?;
        let thread = match known {
            Some(thread) => thread,
            None => self.start(step.thread, time)?,
        };
        if let Some((other, ticket)) = turn {
            self.wait(thread, other, ticket)?;
        }
        self.previous = Some(thread);
        self.space_out(thread, time)?;
        self.threads[thread as usize].steps += 1;
        self.operation(thread, step.operation, block)?;
        if self.survey.last[thread as usize] == self.steps && thread != MAIN {
            self.ended.push_back(thread);
        }
        self.steps += 1;
        Ok(())
    }

    /// In a locked replay, if a thread other than `next` did the previous step, makes that thread
    /// publish the step. Returns that thread and the count for which `next` must wait; otherwise
    /// `None`.
    fn pass_turn(&mut self, next: Option<u32>) -> Result<Option<(u32, u32)>, CompileError> {
        match self.previous {
            Some(previous) if self.header.speed == Speed::Locked && next != Some(previous) => {
                Ok(Some((previous, self.publish(previous)?)))
            }
            _ => Ok(None),
        }
    }

    /// Starts a thread, after joining all threads that had ended by then in the recording.
    fn start(&mut self, name: u32, time: u64) -> Result<u32, CompileError> {
        let thread = self.threads.len() as u32;
        if thread >= MAX_THREADS {
            return Err(CompileError::TooMany("threads"));
        }
        self.numbers.add(name);
        self.threads.push(Thread::default());
        self.streams.add_thread();
        if thread == MAIN {
            self.slots.add_thread(None);
            return Ok(thread);
        }
        self.join_ended()?;
        self.space_out(MAIN, time)?;
        self.streams
            .emit(MAIN, &[Kind::Start.word(), thread.into()])?;
        let known = (MAIN, self.threads[MAIN as usize].steps);
        self.slots.add_thread(Some(known));
        Ok(thread)
    }

    fn join_ended(&mut self) -> Result<(), CompileError> {
        while let Some(ended) = self.ended.pop_front() {
            self.streams.end(ended)?;
            self.streams
                .emit(MAIN, &[Kind::Join.word(), ended.into()])?;
            let main = &mut self.threads[MAIN as usize];
            main.steps += 1;
            self.slots.inherit(MAIN, ended, main.steps);
        }
        Ok(())
    }

    /// In a paced replay, makes a thread sleep until `time`, the time of its next operation. Omits
    /// the sleep if `time` is less than [`PAUSE`] after the end of the thread's previous sleep.
    fn space_out(&mut self, thread: u32, time: u64) -> Result<(), CompileError> {
        let own = &mut self.threads[thread as usize];
        let time = time.saturating_sub(self.began);
        if self.header.speed == Speed::Paced && time >= own.until + PAUSE {
            own.until = time;
            self.streams.emit(thread, &[Kind::Until.word(), time])?;
        }
        Ok(())
    }

    fn publish(&mut self, thread: u32) -> Result<u32, CompileError> {
        let own = &mut self.threads[thread as usize];
        let ticket = own.tickets.checked_add(1);
        own.tickets = ticket.ok_or(CompileError::TooMany("blocks that change threads"))?;
        self.streams.emit(thread, &[Kind::Publish.word()])?;
        Ok(own.tickets)
    }

    fn wait(&mut self, thread: u32, awaited: u32, ticket: u32) -> Result<(), CompileError> {
        let words = [Kind::Wait.word(), halves(awaited, ticket)];
        Ok(self.streams.emit(thread, &words)?)
    }

    fn operation(
        &mut self,
        thread: u32,
        operation: Operation,
        number: u64,
    ) -> Result<(), CompileError> {
        match operation {
            Operation::Make {
                function,
                size,
                alignment,
            } => {
                let slot = self.slot(thread)?;
                let call = self.calls[usize::from(function)];
                self.make(thread, slot, resolved(call, size, alignment), size)?;
                self.lives(thread, number, slot, size)?;
            }
            Operation::Resize { size, block, .. } => {
                let old = self.freed(thread, block)?;
                let until = match self.survey.resized.has(number) {
                    true => size,
                    false => written(old.size, size),
                };
                let end = [old.size, until];
                match u32::try_from(size) {
                    Ok(size) => {
                        let first = [Kind::ShortResize.word(), halves(old.slot, size)];
                        self.streams.emit(thread, &[first, end].concat())?;
                    }
                    Err(_) => {
                        let first = [Kind::Resize.word(), halves(old.slot, 0), size];
                        self.streams.emit(thread, &[&first[..], &end].concat())?;
                    }
                }
                self.lives(thread, number, old.slot, size)?;
            }
            Operation::Free { block, .. } => {
                let old = self.freed(thread, block)?;
                self.streams.emit(thread, &[words::free(old.slot)])?;
                let step = self.threads[thread as usize].steps;
                let owner = self.owner_of_slots(thread);
                self.slots.give(owner, old.slot, step);
            }
            Operation::FreeNull { .. } => {
                self.streams.emit(thread, &[Kind::FreeNull.word()])?;
            }
            Operation::FreeForeign { .. } | Operation::Fail { .. } => {
                self.header.left_out += 1;
                return Ok(());
            }
        }
        self.header.operations += 1;
        Ok(())
    }

    /// Returns a slot that the thread knows to be free, or a new one. If the thread knows no free
    /// slot, and another thread has freed many, the thread first waits for the other one and takes
    /// over some of its slots. Thus the two threads do not drift apart without limit.
    fn slot(&mut self, thread: u32) -> Result<u32, CompileError> {
        let owner = self.owner_of_slots(thread);
        let step = self.threads[thread as usize].steps;
        if let Some(other) = self.slots.creditor(owner, step, self.live.len()) {
            let ticket = self.publish(other)?;
            self.wait(thread, other, ticket)?;
            let steps = self.threads[other as usize].steps;
            self.slots.learn(thread, (other, steps));
            self.slots.take_over(thread, step);
        }
        self.slots
            .take(owner)
            .ok_or(CompileError::TooMany("blocks"))
    }

    /// Returns the thread whose free slots `thread` uses. In a locked replay every thread knows the
    /// progress of all others, so all threads share the slots of the first one.
    fn owner_of_slots(&self, thread: u32) -> u32 {
        match self.header.speed {
            Speed::Locked => MAIN,
            _ => thread,
        }
    }

    /// Removes a live block and returns it. If another thread publishes the making of the block,
    /// waits for that publication.
    fn freed(&mut self, thread: u32, block: u64) -> Result<Live, CompileError> {
        let old = self.live.remove(block);
        let old = old.ok_or(CompileError::Twice(block))?;
        self.live_bytes -= u128::from(old.size);
        if old.ticket > 0 {
            self.wait(thread, old.thread, old.ticket)?;
            self.slots.learn(thread, (old.thread, old.made));
        }
        Ok(old)
    }

    fn lives(&mut self, thread: u32, block: u64, slot: u32, size: u64) -> Result<(), CompileError> {
        let ticket = match self.survey.published.has(block) {
            true => self.publish(thread)?,
            false => 0,
        };
        let made = self.threads[thread as usize].steps;
        let live = Live {
            slot,
            thread,
            made,
            ticket,
            size,
        };
        self.live.insert(block, live);
        self.live_bytes += u128::from(size);
        let bytes = u64::try_from(self.live_bytes).unwrap_or(u64::MAX);
        self.header.floor = self.header.floor.max(bytes);
        Ok(())
    }

    fn make(
        &mut self,
        thread: u32,
        slot: u32,
        (call, alignment): (Call, u32),
        size: u64,
    ) -> Result<(), CompileError> {
        let whole = |kind: Kind, low| [kind.word(), halves(slot, low), size];
        let mut emit = |words: &[u64]| self.streams.emit(thread, words);
        let written = match (call, u32::try_from(size)) {
            (Call::Malloc, Ok(size)) => emit(&[halves(slot, size)]),
            (Call::Malloc, Err(_)) => emit(&whole(Kind::Malloc, 0)),
            (Call::Calloc, Ok(size)) => emit(&[Kind::ShortCalloc.word(), halves(slot, size)]),
            (Call::Calloc, Err(_)) => emit(&whole(Kind::Calloc, 0)),
            (Call::Aligned(_), _) => emit(&whole(Kind::Aligned, alignment)),
            (Call::AlignedAlloc, _) => emit(&whole(Kind::AlignedAlloc, alignment)),
        };
        Ok(written?)
    }
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn half_of_the_bytes_that_a_growing_array_adds_are_written() {
        assert_eq!(written(100, 200), 150);
        assert_eq!(written(2, 3), 2);
        assert_eq!(
            written(u64::MAX / 2, u64::MAX),
            u64::MAX / 2 + u64::MAX / 4 + 1
        );
    }

    #[test]
    fn other_resizes_write_the_whole_block() {
        for (before, size) in [(100, 149), (1, 0), (1, 1), (3, 2), (0, 50), (u64::MAX, 1)] {
            assert_eq!(written(before, size), size, "{before} to {size}");
        }
    }
}
