//! Passes blocks from thread to thread.
//!
//! Each receiver has an inbox. Each sender has a fixed number of parcels, created before the
//! measured part. An emptied parcel returns to its sender. A sender whose parcels are all in
//! transit waits for one, so that the number in transit is bounded. No parcel is dropped during a
//! run. A hand-over costs one atomic exchange of a word each way, regardless of the number of
//! blocks.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::Failure;
use crate::array::Array;
use crate::random_blocks::Slot;

/// Blocks in transit to the thread that frees them.
#[derive(Debug)]
pub(crate) struct Parcel {
    next: *mut Parcel,
    sender: usize,
    /// Slots of the blocks in transit.
    pub(crate) slots: Array<Slot>,
}

// SAFETY: only the thread that holds the box accesses the parcel and its blocks.
unsafe impl Send for Parcel {}

/// Stack of parcels to which any thread may push; one thread takes all of them in one exchange.
#[derive(Debug, Default)]
struct Stack {
    head: AtomicPtr<Parcel>,
}

impl Stack {
    fn push(&self, parcel: Box<Parcel>) {
        let parcel = Box::into_raw(parcel);
        // Relaxed: the head's target is not read here, and the exchange below checks that the head
        // is still current.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: no other thread can reach `parcel` until the exchange below succeeds.
            unsafe { (*parcel).next = head };
            // Release: pairs with the acquire in `take`, so that the thread that takes the parcel
            // sees its contents. A head that was taken and pushed again in the meantime is
            // harmless, because parcels are only ever taken all together.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            match self
                .head
                .compare_exchange_weak(head, parcel, success, failure)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes all parcels, in the order in which they were pushed.
    fn take(&self) -> Parcels {
        // Relaxed: an empty stack is the common case, and nothing is read through the pointer.
        if self.head.load(Ordering::Relaxed).is_null() {
            return Parcels::none();
        }
        // Acquire: pairs with the release in `push`. Parcels below the head were released by
        // earlier exchanges of this word, whose release sequence a later exchange continues.
        let mut taken = self.head.swap(ptr::null_mut(), Ordering::Acquire);
        let mut reversed = ptr::null_mut();
        while !taken.is_null() {
            // SAFETY: the chain was swapped out of the stack, so only this thread can reach it.
            let next = unsafe { std::mem::replace(&mut (*taken).next, reversed) };
            reversed = taken;
            taken = next;
        }
        Parcels(reversed)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Parcels, in the order in which they were sent.
#[derive(Debug)]
pub(crate) struct Parcels(*mut Parcel);

impl Parcels {
    pub(crate) fn none() -> Self {
        Self(ptr::null_mut())
    }
}

impl Iterator for Parcels {
    type Item = Box<Parcel>;

    fn next(&mut self) -> Option<Box<Parcel>> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the pointer came from `Box::into_raw` in `push`, and only this thread can reach
        // the chain.
        let parcel = unsafe { Box::from_raw(self.0) };
        self.0 = parcel.next;
        Some(parcel)
    }
}

impl Drop for Parcels {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

/// Stack on its own pair of cache lines. A processor fetches such a pair together, so threads would
/// contend for it if they shared it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart(Stack);

/// Inboxes of the receivers, and return boxes for the senders' emptied parcels.
#[derive(Debug)]
pub(crate) struct Post {
    inboxes: Vec<Apart>,
    returns: Vec<Apart>,
    bytes: u64,
}

impl Post {
    /// Creates the boxes of these receivers and senders; each sender has `parcels` parcels of
    /// `room` blocks.
    ///
    /// # Errors
    /// Returns a failure if the system is out of memory for the parcels.
    pub(crate) fn new(
        receivers: usize,
        senders: usize,
        parcels: usize,
        room: usize,
    ) -> Result<Self, Failure> {
        let boxes = |count| (0..count).map(|_| Apart::default()).collect();
        let mut post = Self {
            inboxes: boxes(receivers),
            returns: boxes(senders),
            bytes: 0,
        };
        for sender in 0..senders {
            for _ in 0..parcels {
                let (next, slots) = (ptr::null_mut(), Array::new(room)?);
                post.bytes += slots.bytes();
                post.give_back(Box::new(Parcel {
                    next,
                    sender,
                    slots,
                }));
            }
        }
        Ok(post)
    }

    /// Returns the number of bytes that all parcels occupy.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn send(&self, receiver: usize, parcel: Box<Parcel>) {
        self.inboxes[receiver].0.push(parcel);
    }

    /// Takes all parcels that were sent to `receiver` and that it has not taken yet.
    pub(crate) fn receive(&self, receiver: usize) -> Parcels {
        self.inboxes[receiver].0.take()
    }

    /// Returns an emptied parcel to its sender.
    pub(crate) fn give_back(&self, parcel: Box<Parcel>) {
        self.returns[parcel.sender].0.push(parcel);
    }

    /// Takes all parcels that receivers have given back to `sender` and that it has not taken yet.
    pub(crate) fn returned(&self, sender: usize) -> Parcels {
        self.returns[sender].0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parcels_arrive_in_order_and_return_to_their_sender() {
        let post = Post::new(2, 2, 3, 4).unwrap();
        // Each parcel has a page of its own.
        assert_eq!(post.bytes(), 2 * 3 * 4096);
        for (key, mut parcel) in post.returned(1).enumerate() {
            parcel.slots[0].key = key as u32;
            post.send(0, parcel);
        }
        assert_eq!(post.receive(1).count(), 0);
        let received: Vec<_> = post.receive(0).collect();
        let keys: Vec<_> = received.iter().map(|parcel| parcel.slots[0].key).collect();
        assert_eq!(keys, [0, 1, 2]);
        assert_eq!(post.returned(1).count(), 0);
        received
            .into_iter()
            .for_each(|parcel| post.give_back(parcel));
        assert_eq!((post.returned(1).count(), post.returned(0).count()), (3, 3));
    }

    #[test]
    fn nothing_is_lost_or_doubled_between_threads() {
        const EACH: u32 = 20_000;
        let post = Post::new(1, 3, 2, 1).unwrap();
        let send = |sender: usize| {
            let mut sent = 0;
            while sent < EACH {
                for mut parcel in post.returned(sender) {
                    // A parcel that returns after the last one was sent stays in its return box.
                    if sent < EACH {
                        parcel.slots[0].key = sent;
                        parcel.slots[0].size = sender as u32;
                        post.send(0, parcel);
                        sent += 1;
                    }
                }
                std::thread::yield_now();
            }
        };
        let mut next = [0; 3];
        std::thread::scope(|scope| {
            (0..3).for_each(|sender| drop(scope.spawn(move || send(sender))));
            while next != [EACH; 3] {
                for parcel in post.receive(0) {
                    let slot = parcel.slots[0];
                    assert_eq!(slot.key, next[slot.size as usize]);
                    next[slot.size as usize] += 1;
                    post.give_back(parcel);
                }
                std::thread::yield_now();
            }
        });
    }
}
