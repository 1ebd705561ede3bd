//! Table of blocks with their own mappings, searched by address under a lock.

use core::ptr::NonNull;

use heapdrome_pages::{Access, Pages};

/// Entry for a block with its own mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Start of the block; null for an unused entry.
    pub block: *mut u8,
    /// Start of the mapping. Equals `block`, unless the block has guard pages. Such a block begins
    /// at a higher address, after the first guard page.
    pub base: *mut u8,
    /// Bytes of the mapping.
    pub bytes: usize,
    /// Usable bytes of the block.
    pub size: usize,
}

impl Mapped {
    const NONE: Self = Self {
        block: core::ptr::null_mut(),
        base: core::ptr::null_mut(),
        bytes: 0,
        size: 0,
    };

    /// Creates the entry of a block that fills its mapping.
    pub(super) const fn whole(base: NonNull<u8>, bytes: usize) -> Self {
        Self {
            block: base.as_ptr(),
            base: base.as_ptr(),
            bytes,
            size: bytes,
        }
    }
}

/// Table of all blocks with their own mappings: a hash table with linear probing, in its own pages.
#[derive(Debug)]
pub struct MappedTable {
    entries: *mut Mapped,
    capacity: usize,
    count: usize,
    /// Usable bytes of all blocks. Guard pages and room to grow do not count.
    pub bytes: usize,
    /// Maximum of `bytes` so far.
    pub peak: usize,
}

// SAFETY: any thread may use the entries while it holds the table's lock.
unsafe impl Send for MappedTable {}

impl MappedTable {
    /// Creates an empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: core::ptr::null_mut(),
            capacity: 0,
            count: 0,
            bytes: 0,
            peak: 0,
        }
    }

    /// Returns the number of blocks.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Adds a block. Returns false if out of memory for the entry.
    pub fn insert(&mut self, pages: &impl Pages, entry: Mapped) -> bool {
        if self.count * 2 >= self.capacity && !self.enlarge(pages) {
            return false;
        }
        self.place(entry);
        self.bytes += entry.size;
        self.peak = self.peak.max(self.bytes);
        true
    }

    /// Returns the entry of the block that begins at `address`.
    #[must_use]
    pub fn find(&self, address: usize) -> Option<Mapped> {
        self.index_of(address).map(|index| self.at(index))
    }

    /// Removes and returns the entry of the block that begins at `address`.
    pub fn remove(&mut self, address: usize) -> Option<Mapped> {
        let mut hole = self.index_of(address)?;
        let removed = self.at(hole);
        self.count -= 1;
        self.bytes -= removed.size;
        // Move later entries of the same cluster into the hole, so that no probe ends early.
        let mut next = hole;
        loop {
            next = (next + 1) & (self.capacity - 1);
            let entry = self.at(next);
            if entry.block.is_null() {
                break;
            }
            let home = self.home(entry.block.addr());
            let distance = |from: usize| next.wrapping_sub(from) & (self.capacity - 1);
            if distance(home) >= distance(hole) {
                self.put(hole, entry);
                hole = next;
            }
        }
        self.put(hole, Mapped::NONE);
        Some(removed)
    }

    /// Records that the block that begins at `address` now has `size` usable bytes. Does nothing if
    /// there is no such block.
    pub fn set_size(&mut self, address: usize, size: usize) {
        if let Some(index) = self.index_of(address) {
            let entry = self.at(index);
            self.put(index, Mapped { size, ..entry });
            self.bytes = self.bytes - entry.size + size;
            self.peak = self.peak.max(self.bytes);
        }
    }

    fn home(&self, address: usize) -> usize {
        let hash = ((address >> 12) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & (self.capacity - 1)
    }

    fn index_of(&self, address: usize) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let mut index = self.home(address);
        loop {
            let block = self.at(index).block;
            if block.addr() == address {
                return Some(index);
            }
            if block.is_null() {
                return None;
            }
            index = (index + 1) & (self.capacity - 1);
        }
    }

    fn at(&self, index: usize) -> Mapped {
        debug_assert!(index < self.capacity);
        // SAFETY: callers in this file pass indices below the capacity, which is the length of the
        // table.
        unsafe { *self.entries.add(index) }
    }

    fn put(&mut self, index: usize, entry: Mapped) {
        debug_assert!(index < self.capacity);
        // SAFETY: callers in this file pass indices below the capacity, which is the length of the
        // table.
        unsafe { *self.entries.add(index) = entry };
    }

    fn place(&mut self, entry: Mapped) {
        let mut index = self.home(entry.block.addr());
        while !self.at(index).block.is_null() {
            index = (index + 1) & (self.capacity - 1);
        }
        self.put(index, entry);
        self.count += 1;
    }

    #[cold]
    fn enlarge(&mut self, pages: &impl Pages) -> bool {
        let capacity = (self.capacity * 2).max(128);
        let bytes =
            |capacity: usize| (capacity * size_of::<Mapped>()).next_multiple_of(pages.page_size());
        let Some(fresh) = pages.reserve(bytes(capacity), 4096, Access::ReadWrite) else {
            return false;
        };
        let mut larger = Self {
            entries: fresh.as_ptr().cast(),
            capacity,
            count: 0,
            ..*self
        };
        for index in 0..self.capacity {
            let entry = self.at(index);
            if !entry.block.is_null() {
                larger.place(entry);
            }
        }
        let old = core::mem::replace(self, larger);
        if let Some(entries) = NonNull::new(old.entries) {
            // SAFETY: the old table was reserved with this size, and is no longer used.
            unsafe { pages.release(entries.cast(), bytes(old.capacity)) };
        }
        true
    }
}

impl Default for MappedTable {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_pages::Simulated;
    use std::collections::BTreeMap;

    #[test]
    fn it_answers_as_a_map_does() {
        let pages = Simulated::new(16 << 20);
        let mut table = MappedTable::new();
        let mut shadow = BTreeMap::new();
        let mut state = 5_u64;
        for _ in 0..if cfg!(miri) { 150 } else { 20_000 } {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let address = ((state >> 40) as usize % 300 + 1) << 12;
            let block = core::ptr::without_provenance_mut(address);
            let entry = Mapped {
                block,
                base: block,
                bytes: 4096,
                size: 4096,
            };
            if shadow.remove(&address).is_some() {
                assert_eq!(table.remove(address), Some(entry));
            } else {
                assert_eq!(table.find(address), None);
                assert!(table.insert(&pages, entry));
                shadow.insert(address, entry);
            }
            assert_eq!(table.count(), shadow.len());
            assert_eq!(table.bytes, shadow.len() * 4096);
        }
        for (address, entry) in shadow {
            assert_eq!(table.find(address), Some(entry));
        }
    }

    #[test]
    fn a_block_counts_with_its_size_and_not_with_its_mapping() {
        let pages = Simulated::new(16 << 20);
        let mut table = MappedTable::new();
        let entry = Mapped {
            block: core::ptr::without_provenance_mut(0x11000),
            base: core::ptr::without_provenance_mut(0x10000),
            bytes: 64 << 10,
            size: 20_000,
        };
        assert!(table.insert(&pages, entry));
        assert_eq!(table.bytes, 20_000);
        table.set_size(0x11000, 40_000);
        table.set_size(0x11000, 30_000);
        assert_eq!((table.bytes, table.peak), (30_000, 40_000));
        assert!(table.remove(0x11000).is_some());
        assert_eq!(table.bytes, 0);
    }
}
