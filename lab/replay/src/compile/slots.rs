//! Assignment of slots to blocks. A slot holds the address of a block. A thread reuses a slot as
//! soon as it knows that the slot is free.

use std::collections::VecDeque;

use crate::words::{FIRST_SLOT, MAX_SLOTS};

/// Maximum number of slots that a thread takes over from another thread at a time, or half of the
/// other thread's free slots if that is more.
const BATCH: usize = 64;

/// Minimum number of free slots of one thread at which another thread waits for it instead of using
/// new slots.
const MANY: usize = 4096;

/// Another thread, and the number of its operations that are known to be done.
type Known = (u32, u64);

/// Free slots of each thread, each with the number of the operation that freed it.
#[derive(Default)]
pub(super) struct Slots {
    free: Vec<VecDeque<(u32, u64)>>,
    /// For each thread, its latest knowledge of another thread.
    known: Vec<Option<Known>>,
    /// The thread that most recently had at least [`MANY`] free slots.
    richest: u32,
    used: u32,
}

impl Slots {
    /// Adds the next thread. It begins after the operations in `known`.
    pub(super) fn add_thread(&mut self, known: Option<Known>) {
        self.free.push(VecDeque::new());
        self.known.push(known);
    }

    /// Records that a thread has waited for the operations in `known`.
    pub(super) fn learn(&mut self, thread: u32, known: Known) {
        self.known[thread as usize] = Some(known);
    }

    /// Returns the number of slots, including those that are always null.
    pub(super) fn count(&self) -> u32 {
        FIRST_SLOT + self.used
    }

    /// Returns another thread with at least [`MANY`] and at least `live` free slots, if `thread`
    /// knows no free slot at its operation `operation`. `thread` should then wait for the other
    /// thread and use its slots, so that the two do not drift apart without limit. `live` is the
    /// number of live blocks.
    pub(super) fn creditor(&mut self, thread: u32, operation: u64, live: usize) -> Option<u32> {
        self.take_over(thread, operation);
        let is_out = self.free[thread as usize].is_empty();
        let theirs = self.free[self.richest as usize].len();
        (is_out && self.richest != thread && theirs >= live.max(MANY)).then_some(self.richest)
    }

    /// Returns a free slot for a thread; `None` if the program has too many slots.
    pub(super) fn take(&mut self, thread: u32) -> Option<u32> {
        if let Some((slot, _)) = self.free[thread as usize].pop_back() {
            return Some(slot);
        }
        let slot = FIRST_SLOT + self.used;
        self.used += 1;
        (slot < MAX_SLOTS).then_some(slot)
    }

    /// Records that `operation` of `thread` freed `slot`.
    pub(super) fn give(&mut self, thread: u32, slot: u32, operation: u64) {
        let own = &mut self.free[thread as usize];
        own.push_back((slot, operation));
        if own.len() >= MANY {
            self.richest = thread;
        }
    }

    /// Moves the free slots of the ended thread `ended` to the thread `heir`. `waited` is the
    /// operation of `heir` that joined the ended thread.
    pub(super) fn inherit(&mut self, heir: u32, ended: u32, waited: u64) {
        let mut slots = std::mem::take(&mut self.free[ended as usize]);
        slots
            .iter_mut()
            .for_each(|(_, operation)| *operation = waited);
        let own = &mut self.free[heir as usize];
        // Move the smaller of the two queues. Slots that another thread may take are in front.
        if slots.len() > own.len() {
            std::mem::swap(own, &mut slots);
        }
        for slot in slots {
            own.push_front(slot);
        }
    }

    /// If `thread` has no free slots, moves some of another thread's slots to it, if `thread` knows
    /// that they are free. The moved slots count as freed by `operation` of `thread`.
    pub(super) fn take_over(&mut self, thread: u32, operation: u64) {
        if !self.free[thread as usize].is_empty() {
            return;
        }
        let Some((other, done)) = self.known[thread as usize].filter(|(other, _)| *other != thread)
        else {
            return;
        };
        let theirs = &mut self.free[other as usize];
        let known = theirs.iter().take(BATCH.max(theirs.len() / 2));
        let known = known.take_while(|(_, freed)| *freed <= done);
        let count = known.count();
        let taken: Vec<_> = theirs
            .drain(..count)
            .map(|(slot, _)| (slot, operation))
            .collect();
        self.free[thread as usize].extend(taken);
    }
}
