//! Counted elements, and deliberate panics.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};

/// Large element, so that short programs reach several classes.
#[derive(Clone)]
pub struct Page {
    pub number: u64,
    pub rest: [u64; 509],
    _living: Living,
}

impl Page {
    pub fn new(number: u64, tally: &'static Tally) -> Self {
        tally.living.fetch_add(1, SeqCst);
        Self {
            number,
            rest: [number; 509],
            _living: Living(tally),
        }
    }
}

/// State that the elements of one program share.
pub struct Tally {
    /// Number of live elements.
    living: AtomicIsize,
    /// Number of clones that succeed before one panics; negative if none panics.
    fuse: AtomicIsize,
}

impl Tally {
    /// Creates a tally that is never freed, because a vector that drops an element twice must still
    /// find it.
    pub fn new() -> &'static Self {
        Box::leak(Box::new(Self {
            living: AtomicIsize::new(0),
            fuse: AtomicIsize::new(-1),
        }))
    }

    pub fn living(&self) -> isize {
        self.living.load(SeqCst)
    }

    /// Calls `act`. If `clones` is given, the clone after that number of clones panics. Returns
    /// whether a clone panicked.
    pub fn with_fuse(&self, clones: Option<usize>, act: impl FnOnce()) -> bool {
        let fuse = clones.map_or(-1, |clones| clones as isize);
        self.fuse.store(fuse, SeqCst);
        let panicked = panics(act);
        self.fuse.store(-1, SeqCst);
        panicked
    }
}

struct Living(&'static Tally);

impl Clone for Living {
    fn clone(&self) -> Self {
        if self.0.fuse.fetch_sub(1, SeqCst) == 0 {
            panic_as_wanted();
        }
        self.0.living.fetch_add(1, SeqCst);
        Self(self.0)
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.0.living.fetch_sub(1, SeqCst);
    }
}

struct Wanted;

/// Panics deliberately, without a message.
pub fn panic_as_wanted() -> ! {
    resume_unwind(Box::new(Wanted))
}

/// Returns whether `act` panics deliberately. Propagates other panics.
pub fn panics(act: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(()) => false,
        Err(panic) if panic.is::<Wanted>() => true,
        Err(panic) => resume_unwind(panic),
    }
}
