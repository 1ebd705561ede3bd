//! Bins: the slabs of one class that belong together, under one lock.
//!
//! Each host has a bin for each small class, which several threads may share; all threads share one bin for each larger class.
//! A bin serves from its active slab; when that is used up, from the fullest of its partial slabs,
//! so that nearly empty ones become empty.

use core::ptr::null_mut;
use heapdrome_pages::atomic::Ordering::Relaxed;

use heapdrome_pages::Lock;

use crate::slabs::slab::{Misuse, Place, Slab};

/// How finely partial slabs are told apart by how much of them is free.
const SHARES: usize = 4;
/// Lists of slabs with free blocks: by share, and the empty ones that the bin keeps.
pub(crate) const BUCKETS: usize = SHARES + 1;
/// The list of empty slabs.
pub(crate) const EMPTY: usize = SHARES;

/// The slabs of one class that belong together.
pub type Bin = Lock<Slabs>;

/// What a bin's lock guards. Slabs without a free block are in no list: they come back when one of
/// their blocks does.
#[derive(Debug)]
pub struct Slabs {
    pub(crate) active: *mut Slab,
    pub(crate) buckets: [*mut Slab; BUCKETS],
    /// How many slabs are in the lists.
    listed: u32,
    /// Slabs that belong to the bin, full ones too.
    pub slabs: u32,
    /// True for the bin of a host without guests.
    pub idle: bool,
    /// True where empty slabs stay until others want their memory: a thread that frees what it
    /// allocates, over and over, then leaves the pool alone, which all threads share.
    pub keeps: bool,
    /// Empty slabs.
    pub empties: u32,
    /// The fewest empty slabs since idle ones were last taken out.
    pub(crate) low: u32,
    /// How often blocks were taken.
    pub refills: u64,
    /// How many blocks were given back by threads that used another bin at the time.
    pub remote_frees: u64,
}

// SAFETY: the pointers are to descriptors, which any thread may use under the bin's lock.
unsafe impl Send for Slabs {}

/// The result of giving blocks back.
#[derive(Debug)]
pub struct Given {
    /// How many were taken back.
    pub count: usize,
    /// The slab, if it is empty now; it no longer belongs to the bin.
    pub empty: *mut Slab,
}

impl Slabs {
    /// No slabs.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            active: null_mut(),
            buckets: [null_mut(); BUCKETS],
            listed: 0,
            slabs: 0,
            idle: false,
            keeps: false,
            empties: 0,
            low: 0,
            refills: 0,
            remote_frees: 0,
        }
    }

    /// Says whether this is the bin of a host without guests, or with some: only that keeps empty slabs.
    pub fn set_idle(&mut self, idle: bool) {
        self.idle = idle;
        self.keeps = !idle;
    }

    /// Takes up to `want` blocks from the slabs that are here; fewer, or none, where they hold no
    /// more, or where only scraps were left in the first slabs.
    ///
    /// # Safety
    ///
    /// `slots` has room for `want` pointers.
    pub unsafe fn take(&mut self, slots: *mut *mut u8, want: usize) -> usize {
        let mut taken = 0;
        while taken < want {
            // SAFETY: there is room for as many as are still wanted.
            let more = unsafe { self.take_from_one(slots.add(taken), want - taken) };
            if more == 0 {
                break;
            }
            taken += more;
        }
        taken
    }

    /// Takes up to `want` blocks from one slab; none only where none is here.
    ///
    /// # Safety
    ///
    /// `slots` has room for `want` pointers, which are at least one.
    #[inline]
    pub unsafe fn take_from_one(&mut self, slots: *mut *mut u8, want: usize) -> usize {
        // SAFETY: the lock is held, and what is in the lists are this bin's slabs with free blocks.
        unsafe {
            if self.active.is_null() {
                self.active = self.fullest();
                if self.active.is_null() {
                    return 0;
                }
                self.unlink(self.active);
                Self::activate(self.active);
            }
            let taken = Slab::take(self.active, slots, want);
            if (*self.active).free == 0 {
                (*self.active).place = Place::Full;
                (*self.active).settled = 0;
                self.active = null_mut();
            }
            taken
        }
    }

    /// Makes an empty slab the active one.
    ///
    /// # Safety
    ///
    /// `bin` is the bin that this is the content of, `slab` a started slab of its class that belongs
    /// to none; there is no active slab.
    pub unsafe fn add(&mut self, bin: *const Bin, slab: *mut Slab) {
        debug_assert!(self.active.is_null());
        // SAFETY: the slab is the caller's. Relaxed: whoever reads it takes this bin's lock.
        unsafe {
            (*slab).bin.store(bin.cast_mut(), Relaxed);
            Self::activate(slab);
        }
        self.slabs += 1;
        self.active = slab;
    }

    /// Adds a slab with free blocks, which was in another bin of the class.
    ///
    /// # Safety
    ///
    /// `bin` is the bin that this is the content of; `slab` was just surrendered by another, whose
    /// lock is still held.
    pub unsafe fn adopt(&mut self, bin: *const Bin, slab: *mut Slab) {
        // SAFETY: nobody else can use the slab while both locks are held. Relaxed: as above.
        unsafe {
            (*slab).bin.store(bin.cast_mut(), Relaxed);
            self.link(slab);
        }
        self.slabs += 1;
    }

    /// Gives the first blocks of `blocks`, which lie in `slab`, back to it. With `own`, it is a thread that
    /// uses this bin that does so, and the bin may keep the slab if it is empty then.
    ///
    /// # Errors
    ///
    /// A pointer that is no block in use.
    ///
    /// # Safety
    ///
    /// `slab` belongs to this bin, whose lock is held, and nobody uses the blocks any more.
    pub unsafe fn give(
        &mut self,
        slab: *mut Slab,
        blocks: &[*mut u8],
        own: bool,
    ) -> Result<Given, Misuse> {
        // SAFETY: the caller's promise.
        unsafe {
            let count = Slab::give(slab, blocks)?;
            let empty =
                (*slab).free == (*slab).class.geometry().blocks && (*slab).place != Place::Claimed;
            if empty && own && self.keeps {
                self.keep(slab);
                return Ok(Given {
                    count,
                    empty: null_mut(),
                });
            }
            match (*slab).place {
                Place::Listed if empty => self.unlink(slab),
                Place::Listed => self.relist(slab),
                Place::Active if empty => self.active = null_mut(),
                Place::Full if !empty => self.link(slab),
                _ => {}
            }
            if empty {
                self.slabs -= 1;
                (*slab).place = Place::Nowhere;
                (*slab).settled = 0;
            }
            Ok(Given {
                count,
                empty: if empty { slab } else { null_mut() },
            })
        }
    }

    /// Lists a slab that has just become empty.
    ///
    /// # Safety
    ///
    /// The slab is in this bin, whose lock is held.
    unsafe fn keep(&mut self, slab: *mut Slab) {
        // SAFETY: the caller's promise.
        unsafe {
            match (*slab).place {
                Place::Listed => self.unlink(slab),
                Place::Active => self.active = null_mut(),
                _ => {}
            }
            self.link(slab);
        }
    }

    /// Takes a partial slab out of the bin, for another bin of the class; null where there is none.
    pub fn surrender(&mut self) -> *mut Slab {
        let slab = if self.active.is_null() {
            self.fullest()
        } else {
            self.active
        };
        if slab.is_null() {
            return slab;
        }
        // SAFETY: the slab is in this bin, whose lock is held.
        unsafe {
            if slab == self.active {
                self.active = null_mut();
            } else {
                self.unlink(slab);
            }
            (*slab).place = Place::Nowhere;
            (*slab).settled = 0;
        }
        self.slabs -= 1;
        slab
    }

    /// Calls `visit` for every slab with a free block.
    pub fn each_partial(&self, mut visit: impl FnMut(*mut Slab)) {
        if !self.active.is_null() {
            visit(self.active);
        }
        if self.listed == 0 {
            return;
        }
        for first in self.buckets {
            let mut slab = first;
            while !slab.is_null() {
                visit(slab);
                // SAFETY: slabs in a list belong to this bin, whose lock is held.
                slab = unsafe { (*slab).next };
            }
        }
    }

    /// Asserts that the lists hold what they should.
    ///
    /// # Panics
    ///
    /// Where one does not.
    pub fn check(&self) {
        let no_lists = self.buckets.iter().all(|first| first.is_null());
        assert_eq!(no_lists, self.listed == 0, "the count of listed slabs");
        let mut seen = 0;
        self.each_partial(|slab| {
            // SAFETY: the slab belongs to this bin, whose lock is held.
            unsafe {
                Slab::check(slab);
                assert!((*slab).free != 0, "a full slab in a list");
                let expected = if slab == self.active {
                    Place::Active
                } else {
                    Place::Listed
                };
                assert_eq!((*slab).place, expected);
            }
            seen += 1;
        });
        let active = u32::from(!self.active.is_null());
        assert_eq!(seen, self.listed + active, "the count of partial slabs");
        assert!(self.low <= self.empties && self.empties <= self.listed);
        assert!(self.slabs >= seen, "the count of slabs");
    }

    fn fullest(&self) -> *mut Slab {
        let first = self.buckets.iter().find(|first| !first.is_null());
        first.copied().unwrap_or(null_mut())
    }

    /// # Safety
    ///
    /// The slab is in no list and is this bin's.
    unsafe fn activate(slab: *mut Slab) {
        // SAFETY: the slab is this bin's, whose lock is held.
        unsafe {
            (*slab).place = Place::Active;
            (*slab).settled = (*slab).class.geometry().blocks;
        }
    }

    /// # Safety
    ///
    /// The slab is in no list and is this bin's.
    pub(crate) unsafe fn link(&mut self, slab: *mut Slab) {
        // SAFETY: the slab and what is in the lists are this bin's.
        unsafe {
            let bucket = bucket_of(slab);
            let first = self.buckets[usize::from(bucket)];
            (*slab).bucket = bucket;
            (*slab).place = Place::Listed;
            (*slab).settled = settled_of(slab, bucket);
            (*slab).prev = null_mut();
            (*slab).next = first;
            if !first.is_null() {
                (*first).prev = slab;
            }
            self.buckets[usize::from(bucket)] = slab;
            self.empties += u32::from(usize::from(bucket) == EMPTY);
        }
        self.listed += 1;
    }

    /// # Safety
    ///
    /// The slab is in a list of this bin.
    pub(crate) unsafe fn unlink(&mut self, slab: *mut Slab) {
        // SAFETY: the slab and its neighbours are this bin's.
        unsafe {
            let (prev, next) = ((*slab).prev, (*slab).next);
            if prev.is_null() {
                self.buckets[usize::from((*slab).bucket)] = next;
            } else {
                (*prev).next = next;
            }
            if !next.is_null() {
                (*next).prev = prev;
            }
            self.empties -= u32::from(usize::from((*slab).bucket) == EMPTY);
        }
        self.low = self.low.min(self.empties);
        self.listed -= 1;
    }

    /// Moves a slab to the list that fits its free blocks.
    ///
    /// # Safety
    ///
    /// The slab is in a list of this bin.
    #[inline]
    unsafe fn relist(&mut self, slab: *mut Slab) {
        // SAFETY: the caller's promise.
        unsafe {
            if bucket_of(slab) != (*slab).bucket {
                self.unlink(slab);
                self.link(slab);
            }
        }
    }
}

impl Default for Slabs {
    fn default() -> Self {
        Self::new()
    }
}

/// The list for a slab: the fullest first, [`EMPTY`] where all blocks are free.
///
/// # Safety
///
/// The lock of the slab's bin is held.
#[inline]
unsafe fn bucket_of(slab: *mut Slab) -> u8 {
    // SAFETY: the caller's promise.
    let (free, blocks) = unsafe { ((*slab).free, (*slab).class.geometry().blocks) };
    let free = u32::from(free) * SHARES as u32;
    (free / u32::from(blocks)) as u8
}

/// How many blocks may not be free for the slab to stay in its list: the least number that belongs
/// into the next one, or all.
///
/// # Safety
///
/// The lock of the slab's bin is held.
unsafe fn settled_of(slab: *mut Slab, bucket: u8) -> u16 {
    // SAFETY: the caller's promise.
    let blocks = u32::from(unsafe { (*slab).class.geometry().blocks });
    ((u32::from(bucket) + 1) * blocks).div_ceil(SHARES as u32) as u16
}
