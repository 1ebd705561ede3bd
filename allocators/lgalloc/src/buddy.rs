//! Buddy allocator for address space, which it reserves in areas. Free blocks are clean: they were
//! never used, were purged, or lost their pages in a move. A block also counts as clean if the
//! system refused to purge it.

use core::ptr::NonNull;

use heapdrome_pages::{Access, Advice, Pages};

use crate::class::{CLASSES, SizeClass, UNIT};

/// Maximum number of areas. The size of new areas grows with the reserved bytes, so that even
/// terabytes need only a few dozen areas.
const AREAS: usize = 512;
/// Index of the smallest class that a new area usually has: 1 GiB. An area is smaller only if the
/// system refuses this size, or if the largest class is smaller.
const FIRST_AREA: usize = 9;

/// Range of address space. Its size is [`UNIT`] times a power of two.
///
/// `tree` is a binary tree of blocks in an array, with its root at 1. The bit of a block is set if
/// the whole block is free and not part of a larger free block.
#[derive(Clone, Copy, Debug)]
struct Area {
    base: usize,
    class: usize,
    tree: NonNull<u64>,
    free: [u32; CLASSES],
}

// SAFETY: the tree belongs only to its area, the area belongs only to its `Buddy`, and neither is
// tied to a thread.
unsafe impl Send for Area {}

fn tree_bytes<P: Pages>(pages: &P, class: usize) -> Option<usize> {
    let bytes = (2_usize << class).div_ceil(8).max(8);
    bytes.checked_next_multiple_of(pages.page_size())
}

impl Area {
    fn holds(&self, start: usize) -> bool {
        start.wrapping_sub(self.base) < UNIT << self.class
    }

    fn node(&self, start: usize, class: usize) -> usize {
        (1 << (self.class - class)) + (((start - self.base) / UNIT) >> class)
    }

    fn word(&mut self, node: usize) -> &mut u64 {
        // SAFETY: `node` is below twice the number of units, and the tree has at least that many
        // bits. The tree has its own mapping, which lives as long as the area.
        unsafe { &mut *self.tree.as_ptr().add(node / 64) }
    }

    fn is_free(&mut self, node: usize) -> bool {
        *self.word(node) & (1 << (node % 64)) != 0
    }

    fn set(&mut self, node: usize, class: usize) {
        *self.word(node) |= 1 << (node % 64);
        self.free[class] += 1;
    }

    fn clear(&mut self, node: usize, class: usize) {
        *self.word(node) &= !(1 << (node % 64));
        self.free[class] -= 1;
    }

    /// Returns the node of the free block with the lowest address in this class.
    fn first_free(&mut self, class: usize) -> Option<usize> {
        let first = 1_usize << (self.class - class);
        let mut node = first;
        while node < first * 2 {
            let bits = *self.word(node) >> (node % 64);
            if bits == 0 {
                node = (node / 64 + 1) * 64;
                continue;
            }
            let found = node + bits.trailing_zeros() as usize;
            return (found < first * 2).then_some(found);
        }
        None
    }

    fn take(&mut self, from: usize, class: usize) -> Option<usize> {
        let mut node = self.first_free(from)?;
        self.clear(node, from);
        for half in (class..from).rev() {
            node *= 2;
            self.set(node + 1, half);
        }
        let index = node - (1 << (self.class - class));
        Some(self.base + ((index << class) * UNIT))
    }

    /// Puts a block back. Returns whether the whole area is free now.
    fn put(&mut self, start: usize, mut class: usize) -> bool {
        let mut node = self.node(start, class);
        while class < self.class && self.is_free(node ^ 1) {
            self.clear(node ^ 1, class);
            node /= 2;
            class += 1;
        }
        self.set(node, class);
        class == self.class
    }

    /// Extends a block of class `class` in place to class `wanted`, by taking its right neighbours.
    /// Returns false, without any change, if the neighbours are not all free, or if the block
    /// begins no block of class `wanted` in its area.
    fn extend(&mut self, start: usize, class: usize, wanted: usize) -> bool {
        if wanted > self.class {
            return false;
        }
        let first = self.node(start, class);
        let fits = (class..wanted).all(|at| {
            let node = first >> (at - class);
            node.is_multiple_of(2) && self.is_free(node + 1)
        });
        if fits {
            for at in class..wanted {
                self.clear((first >> (at - class)) + 1, at);
            }
        }
        fits
    }
}

/// Buddy allocator over a set of areas.
#[derive(Debug)]
pub struct Buddy<P: Pages> {
    pages: P,
    areas: [Option<Area>; AREAS],
    /// Number of entries of `areas` that have ever been used.
    used: usize,
    reserved: usize,
    /// Whether new areas request huge pages.
    pub huge_pages: bool,
}

impl<P: Pages> Buddy<P> {
    /// Creates a buddy allocator without areas.
    pub const fn new(pages: P) -> Self {
        Self {
            pages,
            areas: [None; AREAS],
            used: 0,
            reserved: 0,
            huge_pages: true,
        }
    }

    /// Returns the number of areas, and the bytes reserved in them.
    pub fn reserved(&self) -> (usize, usize) {
        (
            self.areas[..self.used].iter().flatten().count(),
            self.reserved,
        )
    }

    /// Returns the number of free blocks of a class.
    pub fn free_blocks(&self, class: SizeClass) -> usize {
        let areas = self.areas[..self.used].iter().flatten();
        areas.map(|area| area.free[class.index()] as usize).sum()
    }

    /// Takes a clean block from the existing areas. Splits the smallest free block that is large
    /// enough.
    pub fn take(&mut self, class: SizeClass) -> Option<usize> {
        for from in class.index()..CLASSES {
            for area in self.areas[..self.used].iter_mut().flatten() {
                if area.free[from] != 0 {
                    return area.take(from, class.index());
                }
            }
        }
        None
    }

    /// Puts a clean block back. Releases an area that is completely free, unless it is the only
    /// area and has at most the class `FIRST_AREA`.
    pub fn put(&mut self, start: usize, class: SizeClass) {
        let areas = &mut self.areas[..self.used];
        let place = areas
            .iter()
            .position(|area| area.is_some_and(|area| area.holds(start)));
        let Some((place, area)) = place.and_then(|at| Some((at, areas[at].as_mut()?))) else {
            debug_assert!(false, "a block of no area");
            return;
        };
        let keep = area.class <= FIRST_AREA && self.reserved == UNIT << area.class;
        if area.put(start, class.index()) && !keep {
            self.unmap(place);
        }
    }

    fn unmap(&mut self, place: usize) {
        let Some(area) = self.areas[place] else {
            return;
        };
        let size = UNIT << area.class;
        let Some(base) = NonNull::new(area.base as *mut u8) else {
            return;
        };
        // SAFETY: every block of the area is free, so no code uses its addresses.
        if !unsafe { self.pages.release(base, size) } {
            return;
        }
        self.areas[place] = None;
        self.reserved -= size;
        if let Some(bytes) = tree_bytes(&self.pages, area.class) {
            // SAFETY: the tree was reserved with this size, and its area no longer exists.
            unsafe { self.pages.release(area.tree.cast(), bytes) };
        }
    }

    /// Extends a block in place. Returns false, without any change, if that is impossible.
    pub fn extend(&mut self, start: usize, class: SizeClass, wanted: SizeClass) -> bool {
        let mut areas = self.areas[..self.used].iter_mut().flatten();
        let area = areas.find(|area| area.holds(start));
        area.is_some_and(|area| area.extend(start, class.index(), wanted.index()))
    }

    /// Reserves an area with room for a block of `class`. First tries a quarter of the reserved
    /// bytes, rounded up to a class, but at least 1 GiB and at least `class`. While the system
    /// refuses, halves the size, down to `class`. Returns false if the system refuses that size
    /// too, or if there are `AREAS` areas.
    pub fn grow(&mut self, class: SizeClass) -> bool {
        let place = self.areas.iter().position(Option::is_none);
        let Some(place) = place else { return false };
        let quarter = SizeClass::of_bytes(self.reserved / 4).map_or(CLASSES - 1, SizeClass::index);
        let wanted = quarter.max(FIRST_AREA.min(CLASSES - 1)).max(class.index());
        let area = (class.index()..=wanted)
            .rev()
            .find_map(|class| self.new_area(class));
        let Some(area) = area else { return false };
        self.reserved += UNIT << area.class;
        self.areas[place] = Some(area);
        self.used = self.used.max(place + 1);
        true
    }

    fn new_area(&self, class: usize) -> Option<Area> {
        let size = UNIT << class;
        let bytes = tree_bytes(&self.pages, class)?;
        let tree = self
            .pages
            .reserve(bytes, self.pages.page_size(), Access::ReadWrite)?;
        let Some(base) = self.pages.reserve(size, UNIT, Access::ReadWrite) else {
            // SAFETY: the tree was just reserved with this size, and no other code uses it.
            unsafe { self.pages.release(tree, bytes) };
            return None;
        };
        if self.huge_pages {
            // SAFETY: the area was just reserved, and no other code uses it.
            unsafe { self.pages.advise(base, size, Advice::HugePages) };
        }
        let base = base.as_ptr().expose_provenance();
        let mut area = Area {
            base,
            class,
            tree: tree.cast(),
            free: [0; CLASSES],
        };
        area.set(1, class);
        Some(area)
    }
}

#[cfg(test)]
#[path = "buddy_tests.rs"]
mod tests;
