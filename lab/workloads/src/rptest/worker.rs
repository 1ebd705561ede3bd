//! Work of one thread of rptest.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::mapped::stack_bytes;
use super::scatter::Scatter;
use crate::array::Array;
use crate::caller::Tally;
use crate::hand_over::{Parcel, Parcels, Post, Rest};
use crate::random_blocks::{Blocks, Slot};
use crate::threads::{Halt, Team};
use crate::{Failure, Heap};
use heapdrome_system::process::Memory;

/// Number of passes that each thread runs. After each pass, the thread frees all its blocks.
pub(crate) const PASSES: u64 = 2;

/// Settings of all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) threads: u64,
    pub(crate) cross: u64,
    pub(crate) loops: u64,
    pub(crate) blocks: usize,
    pub(crate) ops: usize,
}

/// State that is shared by the threads that were started together.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Number of passes whose loops have ended, summed over all threads. A thread that has ended
    /// the loops of a pass sends nothing more in that pass.
    ended: AtomicU64,
    at_end: Mutex<Memory>,
    /// Size of the address space of all threads' stacks.
    stacks: AtomicU64,
}

impl Notes {
    /// Returns the maximum memory at the end of the loops of any pass.
    pub(crate) fn at_end(&self) -> Memory {
        *self.at_end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the size of the address space of all threads' stacks.
    pub(crate) fn stacks(&self) -> u64 {
        // Relaxed: read after the threads have been joined.
        self.stacks.load(Ordering::Relaxed)
    }

    fn sample(&self) {
        let now = Memory::read();
        let mut greatest = self.at_end.lock().unwrap_or_else(PoisonError::into_inner);
        *greatest = larger(*greatest, now);
    }
}

/// Returns the larger value of each figure.
pub(crate) fn larger(one: Memory, other: Memory) -> Memory {
    Memory {
        peak_resident: one.peak_resident.max(other.peak_resident),
        resident: one.resident.max(other.resident),
        mapped: one.mapped.max(other.mapped),
    }
}

/// State of one thread, from its start to its end.
pub(crate) struct Worker<'a, H: Heap> {
    plan: Plan,
    number: usize,
    notes: &'a Notes,
    post: &'a Post,
    spare: Parcels,
    blocks: Blocks<'a, H>,
    slots: Array<Slot>,
}

impl<'a, H: Heap> Worker<'a, H> {
    pub(crate) fn new(
        plan: Plan,
        number: usize,
        notes: &'a Notes,
        post: &'a Post,
        blocks: Blocks<'a, H>,
    ) -> Result<Self, Failure> {
        // Relaxed: a sum does not depend on the order of its additions.
        notes.stacks.fetch_add(stack_bytes(), Ordering::Relaxed);
        Ok(Self {
            plan,
            number,
            notes,
            post,
            spare: Parcels::none(),
            blocks,
            slots: Array::new(plan.blocks)?,
        })
    }

    /// Runs all passes of this thread, from its start to its end.
    pub(crate) fn work(&mut self, team: &Team) -> Result<(), Halt> {
        for pass in 1..=PASSES {
            self.loops(team)?;
            self.empty_inbox(pass, team)?;
            self.blocks.flush();
            team.meet()?;
            if self.number == 0 {
                self.notes.sample();
            }
            team.meet()?;
            self.free_all()?;
            self.blocks.flush();
            team.meet()?;
        }
        Ok(())
    }

    /// Gives the spare parcels back, so that the next start can use them, and returns the work that
    /// was done.
    pub(crate) fn finish(self) -> Tally {
        let post = self.post;
        self.spare.for_each(|parcel| post.give_back(parcel));
        self.blocks.finish()
    }

    fn loops(&mut self, team: &Team) -> Result<(), Halt> {
        let mut order = || Scatter::new(self.plan.blocks, [self.blocks.bits(), self.blocks.bits()]);
        let (mut to_free, mut to_fill) = (order(), order());
        for turn in 1..=self.plan.loops {
            team.go_on()?;
            self.receive()?;
            for _ in 0..self.plan.ops {
                self.free_slot(to_free.visit())?;
            }
            for _ in 0..self.plan.ops {
                let place = to_fill.visit();
                self.free_slot(place)?;
                self.slots[place] = self.blocks.allocate()?;
            }
            if self.plan.cross != 0 && turn.is_multiple_of(self.plan.cross) {
                self.hand_over(team)?;
            }
        }
        Ok(())
    }

    /// Frees the block in a slot, if there is one.
    #[inline]
    fn free_slot(&mut self, place: usize) -> Result<(), Failure> {
        let slot = self.slots[place];
        if slot.block.is_null() {
            return Ok(());
        }
        self.slots[place].block = std::ptr::null_mut();
        // SAFETY: every filled slot holds a block that `allocate` returned. Only this thread uses
        // it. It has just been removed from its slot, so it is not freed again.
        unsafe { self.blocks.free(slot) }
    }

    /// Allocates a parcel of blocks and sends it to the next thread. The last thread sends to the
    /// first, and a single thread to itself.
    fn hand_over(&mut self, team: &Team) -> Result<(), Halt> {
        let mut parcel = self.empty_parcel(team)?;
        for slot in parcel.slots.iter_mut() {
            *slot = self.blocks.allocate()?;
        }
        let receiver = (self.number + 1) % self.plan.threads as usize;
        self.post.send(receiver, parcel);
        Ok(())
    }

    /// Returns an empty parcel. While all parcels are in transit, this thread empties its own
    /// inbox, so that threads that wait for each other do not deadlock.
    fn empty_parcel(&mut self, team: &Team) -> Result<Box<Parcel>, Halt> {
        let mut rest = Rest::default();
        loop {
            if let Some(parcel) = self.spare.next() {
                return Ok(parcel);
            }
            self.spare = self.post.returned(self.number);
            if let Some(parcel) = self.spare.next() {
                return Ok(parcel);
            }
            if self.receive()? == 0 {
                team.go_on()?;
                rest.take();
            }
        }
    }

    /// Frees the blocks of all received parcels, and returns the number of parcels.
    fn receive(&mut self) -> Result<usize, Failure> {
        let mut count = 0;
        for parcel in self.post.receive(self.number) {
            for slot in parcel.slots.iter() {
                // SAFETY: the sender filled every slot, and no longer uses the blocks. It fills the
                // parcel again before it sends it again, so no block is freed twice.
                unsafe { self.blocks.free(*slot) }?;
            }
            self.post.give_back(parcel);
            count += 1;
        }
        Ok(count)
    }

    /// Frees received blocks until no thread can send any more in this pass.
    fn empty_inbox(&mut self, pass: u64, team: &Team) -> Result<(), Halt> {
        // Release: a thread that reads this count finds all earlier parcels in its inbox.
        self.notes.ended.fetch_add(1, Ordering::Release);
        let mut rest = Rest::default();
        // Acquire: pairs with the release above, on all threads.
        while self.notes.ended.load(Ordering::Acquire) < pass * self.plan.threads {
            if self.receive()? == 0 {
                team.go_on()?;
                rest.take();
            }
        }
        self.receive()?;
        Ok(())
    }

    fn free_all(&mut self) -> Result<(), Failure> {
        (0..self.slots.len()).try_for_each(|place| self.free_slot(place))
    }
}
