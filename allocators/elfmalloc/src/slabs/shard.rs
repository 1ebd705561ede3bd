//! Shards: bins of small classes that some threads use, and the list of all shards.

use core::cell::Cell;
use core::ops::Deref;
use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::size_class::FIRST_SHARED;
use crate::slabs::bin::Bin;

/// Bins of small classes. Shards are never freed.
#[derive(Debug)]
#[repr(C)]
pub struct Shard {
    /// Number of threads that are attached. Changed under the lock of the list; attached threads
    /// read it without the lock.
    attached: AtomicUsize,
    /// Whether the shard is in the list. The lock of the list guards it.
    is_listed: AtomicBool,
    /// Next shard in the list, written before the shard is listed.
    next: Cell<Option<ShardRef>>,
    /// Bins by class; that of class 0 is unused. The words before the first bin that is used are
    /// read by many threads, and seldom written.
    pub bins: [Bin; FIRST_SHARED],
}

impl Shard {
    const fn new() -> Self {
        Self {
            attached: AtomicUsize::new(0),
            is_listed: AtomicBool::new(false),
            next: Cell::new(None),
            bins: [const { Bin::new() }; FIRST_SHARED],
        }
    }

    /// Returns the number of threads that are attached. Without the lock it may be out of date.
    pub fn attached(&self) -> usize {
        // Relaxed: the lock of the list orders it, or nothing depends on it.
        self.attached.load(Relaxed)
    }

    /// Returns whether threads may be attached to the shard. Once true, this stays true.
    pub fn is_listed(&self) -> bool {
        self.is_listed.load(Relaxed)
    }
}

/// Handle of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ShardRef(NonNull<Shard>);

impl ShardRef {
    /// Returns the shard.
    #[inline]
    pub fn get<'a>(self) -> &'a Shard {
        // SAFETY: shards are never freed, and any thread may use one: all fields are atomic or have
        // a lock, except the link, which no longer changes once other threads know the shard.
        unsafe { self.0.as_ref() }
    }

    /// Returns the handle of the shard at an address; `None` for null.
    #[inline]
    pub(super) fn of_pointer(shard: *mut Shard) -> Option<Self> {
        NonNull::new(shard).map(Self)
    }

    /// Returns the address of the shard.
    pub(super) const fn as_ptr(self) -> *mut Shard {
        self.0.as_ptr()
    }
}

impl Deref for ShardRef {
    type Target = Shard;

    #[inline]
    fn deref(&self) -> &Shard {
        self.get()
    }
}

/// Shard that belongs to a thread's heap, and shard that the thread is attached to. Like heaps,
/// attachments are never freed.
///
/// It begins a cache line: other threads read it, and should not wait for the heap owner's writes
/// to the fields before it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Attachment {
    /// Null until the thread is first attached. Other threads may read an old value: each was right
    /// once, and any bin will do.
    to: AtomicPtr<Shard>,
    own: Shard,
}

impl Attachment {
    /// Creates a shard that is in no list, and an attachment to none.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            to: AtomicPtr::new(null_mut()),
            own: Shard::new(),
        }
    }

    /// Returns the shard that belongs to the heap.
    pub fn own(&self) -> ShardRef {
        ShardRef(NonNull::from(&self.own))
    }

    /// Returns the shard that the thread is attached to.
    #[inline]
    pub fn shard(&self) -> ShardRef {
        // Acquire: pairs with the release in `ShardList::attach`, since the shard may be younger
        // than the heap.
        ShardRef::of_pointer(self.to.load(Acquire)).unwrap_or_else(|| self.own())
    }
}

impl Attachment {
    /// Frees the locks of its shard in the child of a fork.
    ///
    /// # Safety
    ///
    /// The conditions of [`Lock::free_in_child`](heapdrome_pages::Lock::free_in_child) hold.
    pub(crate) unsafe fn free_locks(&self) {
        // SAFETY: this function's contract is that of `free_in_child`.
        let free = |bin: &Bin| unsafe { bin.0.free_in_child() };
        self.own.bins.iter().for_each(free);
    }
}

impl Default for Attachment {
    fn default() -> Self {
        Self::new()
    }
}

/// List of all shards that threads may be attached to; a lock guards it.
#[derive(Debug)]
pub(super) struct ShardList {
    first: Option<ShardRef>,
    count: usize,
}

// SAFETY: any thread may use the listed shards while it holds the lock.
unsafe impl Send for ShardList {}

impl ShardList {
    /// Creates an empty list.
    pub(super) const fn new() -> Self {
        Self {
            first: None,
            count: 0,
        }
    }

    /// Attaches a thread to its own heap's shard if that may be listed and no other thread is
    /// there, else to the shard with the fewest threads. There are at most `most` shards, which is
    /// at least one. Returns whether no thread was there, so that the bins count as idle.
    pub(super) fn attach(&mut self, attachment: &Attachment, most: usize) -> bool {
        let own = attachment.own();
        // Relaxed, here and below: the lock of the list orders it.
        if self.count < most && !own.is_listed.swap(true, Relaxed) {
            own.next.set(self.first);
            self.first = Some(own);
            self.count += 1;
        }
        let is_free = own.is_listed() && own.attached() == 0;
        let emptiest = if is_free { None } else { self.emptiest() };
        let shard = emptiest.unwrap_or(own);
        // Release: pairs with the acquire in `Attachment::shard`.
        attachment.to.store(shard.as_ptr(), Release);
        shard.attached.fetch_add(1, Relaxed) == 0
    }

    /// Returns the number of shards.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the shard with the fewest threads, the oldest of several. The first thread of a
    /// process usually waits for others.
    fn emptiest(&self) -> Option<ShardRef> {
        let mut best = self.first?;
        for shard in self.all() {
            if best.attached() == 0 {
                break;
            }
            if shard.attached() <= best.attached() {
                best = shard;
            }
        }
        Some(best)
    }

    /// Returns whether a thread would have fewer neighbours in another shard.
    pub(super) fn has_emptier(&self, attachment: &Attachment) -> bool {
        let emptiest = self.emptiest().map_or(0, |shard| shard.attached());
        attachment.shard().attached() > emptiest + 1
    }

    /// Detaches a thread. Returns whether it was the last, so that the bins count as idle.
    pub(super) fn detach(&mut self, attachment: &Attachment) -> bool {
        attachment.shard().attached.fetch_sub(1, Relaxed) == 1
    }

    /// In the child of a fork, leaves only the thread of `own` attached, if that is given.
    pub(super) fn forget_attached(&mut self, own: Option<&Attachment>) {
        for shard in self.all() {
            shard.attached.store(0, Relaxed);
        }
        if let Some(own) = own {
            own.shard().attached.store(1, Relaxed);
        }
    }

    /// Returns all shards. Without the lock the list stays right, except that it lacks later
    /// shards.
    pub(super) const fn all(&self) -> AllShards {
        AllShards(self.first)
    }
}

/// Shards that were listed at some moment.
#[derive(Clone, Copy, Debug)]
pub struct AllShards(Option<ShardRef>);

impl Iterator for AllShards {
    type Item = ShardRef;

    fn next(&mut self) -> Option<ShardRef> {
        let here = self.0?;
        self.0 = here.next.get();
        Some(here)
    }
}
