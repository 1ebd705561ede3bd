//! The places in which a replay keeps its blocks' addresses, used again as soon as a thread knows
//! that they are free.

use std::collections::VecDeque;

use crate::words::{FIRST_SLOT, MAX_SLOTS};

/// Number of slots that a thread takes over at a time.
const BATCH: usize = 64;

/// Minimum number of free slots of one thread for which another waits rather than use new ones.
const MANY: usize = 4096;

/// Another thread, and the number of its operation up to which all are known to be done.
type Known = (u32, u64);

/// Slots that threads have left free, with the number of the operation that freed each.
#[derive(Default)]
pub(super) struct Slots {
    free: Vec<VecDeque<(u32, u64)>>,
    /// Whom each thread has waited for last.
    known: Vec<Option<Known>>,
    /// The last thread that left many free.
    richest: u32,
    used: u32,
}

impl Slots {
    /// Adds the next thread, which begins after what it knows.
    pub(super) fn add_thread(&mut self, known: Option<Known>) {
        self.free.push(VecDeque::new());
        self.known.push(known);
    }

    /// Notes that a thread has waited for another.
    pub(super) fn learn(&mut self, thread: u32, known: Known) {
        self.known[thread as usize] = Some(known);
    }

    /// Number of slots, those included that are always null.
    pub(super) fn count(&self) -> u32 {
        FIRST_SLOT + self.used
    }

    /// Returns the thread for which `thread` should wait, so that it can use the slots which that
    /// one left free, and does not run ever further ahead of it. `live`: number of live blocks.
    /// `operation`: the number of the thread's operation that needs a slot.
    pub(super) fn creditor(&mut self, thread: u32, operation: u64, live: usize) -> Option<u32> {
        self.take_over(thread, operation);
        let is_out = self.free[thread as usize].is_empty();
        let theirs = self.free[self.richest as usize].len();
        (is_out && self.richest != thread && theirs >= live.max(MANY)).then_some(self.richest)
    }

    /// Returns a free slot for a thread; `None` if there are too many.
    pub(super) fn take(&mut self, thread: u32) -> Option<u32> {
        if let Some((slot, _)) = self.free[thread as usize].pop_back() {
            return Some(slot);
        }
        let slot = FIRST_SLOT + self.used;
        self.used += 1;
        (slot < MAX_SLOTS).then_some(slot)
    }

    /// Notes that a thread's operation of this number freed a slot.
    pub(super) fn give(&mut self, thread: u32, slot: u32, operation: u64) {
        let own = &mut self.free[thread as usize];
        own.push_back((slot, operation));
        if own.len() >= MANY {
            self.richest = thread;
        }
    }

    /// Gives the slots of a thread that has ended to the one that waited for its end by the
    /// operation of this number.
    pub(super) fn inherit(&mut self, heir: u32, ended: u32, waited: u64) {
        let mut slots = std::mem::take(&mut self.free[ended as usize]);
        slots
            .iter_mut()
            .for_each(|(_, operation)| *operation = waited);
        let own = &mut self.free[heir as usize];
        // The smaller of the two moves. Slots that another thread may take stand in front.
        if slots.len() > own.len() {
            std::mem::swap(own, &mut slots);
        }
        for slot in slots {
            own.push_front(slot);
        }
    }

    /// Takes slots over that the thread knows to be free before its operation of this number, if it
    /// has none.
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
