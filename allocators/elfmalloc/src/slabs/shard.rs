//! Shards: sets of bins for small classes, and the list of all shards.

use core::cell::Cell;
use core::ops::Deref;
use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::size_class::FIRST_SHARED;
use crate::slabs::bin::Bin;

/// Set of bins for small classes, used by one or more threads. Shards are never freed.
#[derive(Debug)]
#[repr(C)]
pub struct Shard {
    /// Number of attached threads. Changed under the lock of the list, but also read without the
    /// lock.
    attached: AtomicUsize,
    /// Whether the shard is in the list. Written under the lock of the list.
    is_listed: AtomicBool,
    /// Next shard in the list, written before the shard is listed.
    next: Cell<Option<ShardRef>>,
    /// Bins by class; the bin of class 0 is unused. Placed last, because threads write to bins, but
    /// seldom to the fields above.
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

    /// Returns the number of attached threads. Without the lock of the list it may be out of date.
    pub fn attached(&self) -> usize {
        // Relaxed: callers hold the lock of the list, or tolerate an old value.
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
        // SAFETY: shards are never freed, and any thread may use them: all fields are atomic or
        // have a lock, except the link, which no longer changes once the shard is listed.
        unsafe { self.0.as_ref() }
    }

    /// Returns the handle of the shard at an address; `None` for null.
    #[inline]
    pub(super) fn of_pointer(shard: *mut Shard) -> Option<Self> {
        NonNull::new(shard).map(Self)
    }

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

/// Shard that is part of a thread's heap, and pointer to the shard to which the thread is attached.
/// Like heaps, attachments are never freed.
///
/// Begins a cache line. Other threads read it, so it must not share a line with the fields before
/// it, which the heap's owner writes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Attachment {
    /// Shard to which the thread is attached; null until it is first attached. Other threads may
    /// read an old value, which is harmless: any thread may use any bin.
    to: AtomicPtr<Shard>,
    own: Shard,
}

impl Attachment {
    /// Creates the attachment of a thread that is not attached yet. Its own shard is not listed.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            to: AtomicPtr::new(null_mut()),
            own: Shard::new(),
        }
    }

    /// Writes a [new](Self::new) attachment to `place`, part by part, because the calling thread
    /// may have a small stack.
    ///
    /// # Safety
    ///
    /// `place` is aligned, large enough, and used by no other code.
    pub(crate) unsafe fn write(place: *mut Self) {
        // SAFETY: by this function's contract, the place is aligned and large enough, and no other
        // code uses it.
        unsafe {
            (&raw mut (*place).to).write(AtomicPtr::new(null_mut()));
            let own = &raw mut (*place).own;
            (&raw mut (*own).attached).write(AtomicUsize::new(0));
            (&raw mut (*own).is_listed).write(AtomicBool::new(false));
            (&raw mut (*own).next).write(Cell::new(None));
            for class in 0..FIRST_SHARED {
                (&raw mut (*own).bins[class]).write(Bin::new());
            }
        }
    }

    /// Returns the shard that is part of the heap.
    pub fn own(&self) -> ShardRef {
        ShardRef(NonNull::from(&self.own))
    }

    /// Returns the shard to which the thread is attached; before that, the heap's own shard.
    #[inline]
    pub fn shard(&self) -> ShardRef {
        // Acquire: pairs with the release in `ShardList::attach`, because the shard may have been
        // created after the heap.
        ShardRef::of_pointer(self.to.load(Acquire)).unwrap_or_else(|| self.own())
    }
}

impl Attachment {
    /// Unlocks the heap's own shard in the child of a fork.
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

/// List of all shards to which threads may be attached; a lock guards it.
#[derive(Debug)]
pub(super) struct ShardList {
    first: Option<ShardRef>,
    count: usize,
}

// SAFETY: any thread may use the listed shards while it holds the lock.
unsafe impl Send for ShardList {}

impl ShardList {
    pub(super) const fn new() -> Self {
        Self {
            first: None,
            count: 0,
        }
    }

    /// Attaches a thread to its own heap's shard, if that shard has no thread and is listed or can
    /// be listed. Otherwise attaches it to the listed shard with the fewest threads. At most `most`
    /// shards are listed; `most` is at least 1.
    pub(super) fn attach(&mut self, attachment: &Attachment, most: usize) {
        let own = attachment.own();
        // Relaxed, here and below: the lock of the list orders all accesses, except reads of
        // `attached` that tolerate an old value.
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
        shard.attached.fetch_add(1, Relaxed);
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the shard with the fewest threads. If several have no thread, returns the newest of
    /// them. If several have the same lowest number above zero, returns the oldest of them: it is
    /// often the shard of the main thread, which usually waits for the other threads.
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

    /// Returns whether the thread would have fewer threads beside it in another shard.
    pub(super) fn has_emptier(&self, attachment: &Attachment) -> bool {
        let emptiest = self.emptiest().map_or(0, |shard| shard.attached());
        attachment.shard().attached() > emptiest + 1
    }

    /// Detaches a thread from its shard. Returns whether the shard has no threads now.
    pub(super) fn detach(&mut self, attachment: &Attachment) -> bool {
        attachment.shard().attached.fetch_sub(1, Relaxed) == 1
    }

    /// In the child of a fork, detaches all threads except that of `own`, if given.
    pub(super) fn forget_attached(&mut self, own: Option<&Attachment>) {
        for shard in self.all() {
            shard.attached.store(0, Relaxed);
        }
        if let Some(own) = own {
            own.shard().attached.store(1, Relaxed);
        }
    }

    /// Returns all shards. The result stays valid without the lock, but lacks shards that are added
    /// later.
    pub(super) const fn all(&self) -> AllShards {
        AllShards(self.first)
    }
}

/// Iterator over all shards that were listed at some moment.
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
