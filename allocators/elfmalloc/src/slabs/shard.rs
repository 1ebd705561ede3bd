//! Shards: bins of small classes that some threads use, and the list of those that may be used.

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
    /// Number of threads that are attached. Changed under the lock of the list, read by attached
    /// threads without.
    attached: AtomicUsize,
    /// Whether the shard is in the list. The same lock guards it.
    is_listed: AtomicBool,
    /// The next shard in the list, written before the shard is listed.
    next: Cell<Option<ShardRef>>,
    /// By class. Class 0 has none: what lies before the first line that is used is read by many,
    /// and written seldom.
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

    /// Number of threads that are attached; it may be late.
    pub fn attached(&self) -> usize {
        // Relaxed: the lock orders it, or nothing depends on it.
        self.attached.load(Relaxed)
    }

    /// Whether threads may be attached to it. Once that is so it stays so.
    pub fn is_listed(&self) -> bool {
        self.is_listed.load(Relaxed)
    }
}

/// Handle of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ShardRef(NonNull<Shard>);

impl ShardRef {
    /// The shard.
    #[inline]
    pub fn get<'a>(self) -> &'a Shard {
        // SAFETY: shards are never freed, and any thread may use one: all of it is atomic or has a
        // lock, but for the link, which changes no more once other threads know the shard.
        unsafe { self.0.as_ref() }
    }

    /// Handle of the shard at an address where there is one.
    #[inline]
    pub(super) fn of_pointer(shard: *mut Shard) -> Option<Self> {
        NonNull::new(shard).map(Self)
    }

    /// Address of the shard.
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

/// The shard that a thread's heap brings along, and the one that the thread is attached to. Like
/// heaps, attachments are never freed.
///
/// It begins a line of the cache: other threads read it, and are not to wait for what the owner of
/// a heap writes before.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Attachment {
    /// Null before the first time. Others may read it, and be late: any answer was right once, and
    /// every bin will do.
    to: AtomicPtr<Shard>,
    own: Shard,
}

impl Attachment {
    /// A shard that is in no list, and a thread that is attached to none.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            to: AtomicPtr::new(null_mut()),
            own: Shard::new(),
        }
    }

    /// The shard that the heap brings along.
    pub fn own(&self) -> ShardRef {
        ShardRef(NonNull::from(&self.own))
    }

    /// The shard that the thread is attached to.
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
    /// As for [`Lock::free_in_child`](heapdrome_pages::Lock::free_in_child).
    pub(crate) unsafe fn free_locks(&self) {
        // SAFETY: the conditions are the same.
        let free = |bin: &Bin| unsafe { bin.0.free_in_child() };
        self.own.bins.iter().for_each(free);
    }
}

impl Default for Attachment {
    fn default() -> Self {
        Self::new()
    }
}

/// All shards that threads may be attached to; a lock guards it.
#[derive(Debug)]
pub(super) struct ShardList {
    first: Option<ShardRef>,
    count: usize,
}

// SAFETY: shards may be listed by any thread under the lock.
unsafe impl Send for ShardList {}

impl ShardList {
    /// No shards.
    pub(super) const fn new() -> Self {
        Self {
            first: None,
            count: 0,
        }
    }

    /// Attaches a thread: to its own heap's shard if that may be listed and no other thread is
    /// there, else to the one with the fewest threads. There are at most `most` shards, which is at
    /// least one. True where no thread was there: the bins count as idle.
    pub(super) fn attach(&mut self, attachment: &Attachment, most: usize) -> bool {
        let own = attachment.own();
        // Relaxed, here and below: the lock orders it.
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

    /// Number of shards.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// The shard with the fewest threads, the oldest of them: the first thread of a process waits
    /// for others, as a rule.
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

    /// Whether a thread would have fewer neighbours elsewhere.
    pub(super) fn has_emptier(&self, attachment: &Attachment) -> bool {
        let emptiest = self.emptiest().map_or(0, |shard| shard.attached());
        attachment.shard().attached() > emptiest + 1
    }

    /// Detaches a thread. True where it was the last: the bins count as idle then.
    pub(super) fn detach(&mut self, attachment: &Attachment) -> bool {
        attachment.shard().attached.fetch_sub(1, Relaxed) == 1
    }

    /// In the child of a fork: no thread is attached but that of `own`.
    pub(super) fn forget_attached(&mut self, own: Option<&Attachment>) {
        for shard in self.all() {
            shard.attached.store(0, Relaxed);
        }
        if let Some(own) = own {
            own.shard().attached.store(1, Relaxed);
        }
    }

    /// All shards. The answer stays right without the lock, but for shards that are listed later.
    pub(super) const fn all(&self) -> AllShards {
        AllShards(self.first)
    }
}

/// The shards that were listed at some moment.
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
