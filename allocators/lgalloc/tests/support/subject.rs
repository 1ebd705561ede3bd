//! Vector under test: a `LargeVec`, or one with a fault that generated programs must detect.

use std::mem::forget;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use heapdrome_lgalloc::LargeVec;

use crate::elements::Page;

/// Fault in a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Popping an element also drops it.
    DropsTwice,
    /// Growth loses the last element.
    LosesTheLast,
    /// Truncating does not drop the removed elements.
    KeepsTheTail,
    /// Elements added before a panic are neither counted nor dropped.
    LeaksAtAPanic,
}

pub struct Subject {
    vec: LargeVec<Page>,
    fault: Option<Fault>,
}

impl Subject {
    pub fn new(fault: Option<Fault>) -> Self {
        let vec = LargeVec::new();
        Self { vec, fault }
    }

    /// Runs an operation that may enlarge the vector, and adds the effect of the fault, if any.
    pub fn grow<R>(&mut self, act: impl FnOnce(&mut LargeVec<Page>) -> R) -> R {
        let (length, capacity) = (self.vec.len(), self.vec.capacity());
        let done = catch_unwind(AssertUnwindSafe(|| act(&mut self.vec)));
        let grew = length > 0 && self.vec.capacity() > capacity;
        if self.fault == Some(Fault::LosesTheLast) && grew {
            drop(self.vec.pop());
        }
        if self.fault == Some(Fault::LeaksAtAPanic) && done.is_err() {
            self.forget_from(length);
        }
        done.unwrap_or_else(|panic| resume_unwind(panic))
    }

    pub fn pop(&mut self) -> Option<Page> {
        let last = self.vec.last();
        if let (Some(Fault::DropsTwice), Some(last)) = (self.fault, last) {
            // SAFETY: the element is live. It consists of numbers and a static reference, and its
            // drop only updates a counter, so a second drop accesses no freed memory.
            drop(unsafe { std::ptr::read(last) });
        }
        self.vec.pop()
    }

    pub fn truncate(&mut self, length: usize) {
        if self.fault == Some(Fault::KeepsTheTail) {
            self.forget_from(length);
        }
        self.vec.truncate(length);
    }

    fn forget_from(&mut self, length: usize) {
        while self.vec.len() > length {
            forget(self.vec.pop());
        }
    }
}

impl Deref for Subject {
    type Target = LargeVec<Page>;

    fn deref(&self) -> &LargeVec<Page> {
        &self.vec
    }
}

impl DerefMut for Subject {
    fn deref_mut(&mut self) -> &mut LargeVec<Page> {
        &mut self.vec
    }
}
