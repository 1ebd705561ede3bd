//! Decodes the copied events of a ring, in their order.

use std::collections::VecDeque;
use std::path::Path;

use heapdrome_witness::ring::Event;

use crate::addresses::Block;
use crate::backlog::Batch;
use crate::entries::{Decoder, Raw};
use crate::snapshots::Snapshots;

/// Events of one ring that are not in the trace yet, and the state of the ring's decoding.
pub(crate) struct Stream {
    batches: VecDeque<Batch>,
    /// Index of the next entry within the first batch.
    place: usize,
    decoder: Decoder,
    next: Option<Event>,
    /// Number of the next event's thread in the trace; `None` until it is known.
    pub thread: Option<u32>,
    /// Alignment for the next event, from a separate entry; 0 if there was none.
    pub alignment: u64,
    /// Calls of `realloc` and `reallocarray` that have begun and not returned, the innermost last.
    pub resizing: Vec<Resizing>,
    /// Stacks of the ring's calls.
    pub snapshots: Snapshots,
}

/// A call of `realloc` or `reallocarray` that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resizing {
    pub address: u64,
    /// The block that is resized; `None` if it is unknown.
    pub block: Option<Block>,
}

impl Stream {
    /// Creates the stream of the ring in the file `ring`.
    pub(crate) fn new(ring: &Path) -> Self {
        Self {
            batches: VecDeque::new(),
            place: 0,
            decoder: Decoder::default(),
            next: None,
            thread: None,
            alignment: 0,
            resizing: Vec::new(),
            snapshots: Snapshots::of(ring),
        }
    }

    /// Adds a batch of copied entries.
    pub(crate) fn add(&mut self, batch: Batch) {
        self.batches.push_back(batch);
        self.snapshots.expect();
        if self.next.is_none() {
            self.advance();
        }
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<Event> {
        self.next
    }

    /// Removes and returns the next event if its stamp is at most `limit`.
    #[inline]
    pub(crate) fn take(&mut self, limit: u64) -> Option<Event> {
        let event = self.next.filter(|event| event.stamp <= limit)?;
        self.advance();
        Some(event)
    }

    /// Returns the entry `places` entries after the next undecoded one, if it is in the first
    /// batch.
    #[inline]
    pub(crate) fn ahead(&self, places: usize) -> Option<Raw> {
        self.batches
            .front()?
            .entries()
            .get(self.place + places)
            .copied()
    }

    #[inline]
    fn advance(&mut self) {
        self.next = None;
        while let Some(batch) = self.batches.front() {
            while let Some(&entry) = batch.entries().get(self.place) {
                self.place += 1;
                self.next = self.decoder.event(entry);
                if self.next.is_some() {
                    return;
                }
            }
            self.batches.pop_front();
            self.place = 0;
        }
    }
}
