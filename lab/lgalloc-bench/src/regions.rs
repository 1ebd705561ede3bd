//! Regions of 2 MiB from several sources, and working sets of such regions.

use std::alloc::Layout;
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Arc;

use heapdrome_lgalloc::{Handle, LargeVec, allocate, deallocate};
use heapdrome_schema::{Bytes, Holder};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use crate::failure::Failure;
use crate::published;

/// Size of a region in bytes.
pub const REGION: usize = 2 << 20;
/// Page size in bytes, the unit of touching and reading. The architectures that the document covers
/// have this size.
pub const PAGE: usize = 4096;
/// Number of pages in a region.
const PAGES: usize = REGION / PAGE;

/// A page as an element of a vector.
pub type Page = [u64; PAGE / size_of::<u64>()];

/// Layout that the document's program uses. It is page-aligned, so the allocation uses
/// `posix_memalign` instead of `malloc`.
const LAYOUT: Layout = match Layout::from_size_align(REGION, PAGE) {
    Ok(layout) => layout,
    Err(_) => panic!("the alignment is a power of two"),
};

/// A region. Dropping it returns it to its source.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Lgalloc(Option<Handle>),
    Published(Option<published::Handle>),
    Malloc,
    Mapped,
    /// A part of a vector that is only read. The vector lives as long as any of its parts.
    Part {
        _vector: Arc<LargeVec<Page>>,
    },
}

// SAFETY: a `Region` owns its memory, or shares the ownership of a vector that is never written. So
// it may move to another thread.
unsafe impl Send for Region {}
// SAFETY: `&Region` gives no write access to the memory: `touch` requires `&mut`, and callers of
// `advise` drop pages only of regions that no other thread uses.
unsafe impl Sync for Region {}

impl Region {
    /// Takes a region from the holder.
    pub fn take(holder: Holder) -> Result<Self, Failure> {
        let (start, source) = match holder {
            Holder::Lgalloc => {
                let (start, _, handle) = allocate::<u8>(REGION)?;
                (start, Source::Lgalloc(Some(handle)))
            }
            Holder::Malloc => {
                // SAFETY: `LAYOUT` has a size of `REGION`, which is not zero.
                let start = unsafe { std::alloc::alloc(LAYOUT) };
                let start = NonNull::new(start).ok_or(Failure::Malloc(REGION))?;
                (start, Source::Malloc)
            }
            Holder::Mapped => (map()?, Source::Mapped),
            Holder::Published | Holder::PublishedWorker => {
                let (start, handle) = published::take(holder, REGION)?;
                (start, Source::Published(Some(handle)))
            }
        };
        Ok(Self { start, source })
    }

    /// Writes one byte of each page.
    pub fn touch(&mut self) {
        for page in 0..PAGES {
            // SAFETY: `page` is below `PAGES`, so the byte lies in the region. `&mut self` excludes
            // other access: only a `Part` shares its memory, and no caller touches a part.
            unsafe { self.start.add(page * PAGE).write_volatile(1) };
        }
    }

    /// Applies `madvise` to the whole region.
    pub fn advise(&self, advice: libc::c_int) -> Result<(), Failure> {
        self.advise_bytes(0, REGION, advice)
    }

    fn advise_bytes(
        &self,
        first: usize,
        length: usize,
        advice: libc::c_int,
    ) -> Result<(), Failure> {
        // SAFETY: every caller keeps `first + length` at most `REGION`, so the range lies in the
        // region. No caller passes advice that unmaps. Callers drop pages only of private mappings,
        // whose dropped pages stay readable.
        match unsafe { libc::madvise(self.start.add(first).as_ptr().cast(), length, advice) } {
            0 => Ok(()),
            _ => Err(Failure::system("madvise")),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match &mut self.source {
            Source::Lgalloc(handle) => {
                if let Some(handle) = handle.take() {
                    deallocate(handle);
                }
            }
            Source::Published(handle) => {
                if let Some(handle) = handle.take() {
                    published::put(handle);
                }
            }
            // SAFETY: `start` came from `alloc` with `LAYOUT`, and `self`, its only owner, is being
            // dropped.
            Source::Malloc => unsafe { std::alloc::dealloc(self.start.as_ptr(), LAYOUT) },
            // The vector is freed when its last owner is dropped.
            Source::Part { .. } => {}
            Source::Mapped => {
                // SAFETY: `start` came from `mmap` with this length, and `self`, its only owner, is
                // being dropped.
                unsafe { libc::munmap(self.start.as_ptr().cast(), REGION) };
            }
        }
    }
}

fn map() -> Result<NonNull<u8>, Failure> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: without MAP_FIXED, a new mapping replaces no existing one.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), REGION, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(Failure::system("mmap"));
    }
    NonNull::new(start.cast()).ok_or(Failure::system("mmap"))
}

/// Takes and frees a region of lgalloc or of the published crate, `times` times in a row. Calls the
/// allocators directly, because each timed batch would otherwise include the cost of the dispatch
/// between holders in [`Region`]. Handles are written to memory, as in real programs.
pub fn take_and_return(published: bool, times: u64) -> Result<(), Failure> {
    if published {
        return published::take_and_return(Holder::Published, REGION, times);
    }
    (0..times).try_for_each(|_| {
        let (_, _, handle) = allocate::<u8>(REGION)?;
        deallocate(black_box(handle));
        Ok(())
    })
}

/// Allocates a block with `malloc`, without page alignment, and frees it. Writes one byte in each
/// page if `touch` is set.
pub fn malloc_once(touch: bool) -> Result<(), Failure> {
    // SAFETY: `malloc` accepts any size; the result is checked for null.
    let block = unsafe { libc::malloc(REGION) }.cast::<u8>();
    if block.is_null() {
        return Err(Failure::Malloc(REGION));
    }
    if touch {
        for offset in (0..REGION).step_by(PAGE) {
            // SAFETY: `block` has `REGION` bytes, `offset` is below that, and this function owns
            // the block.
            unsafe { block.add(offset).write_volatile(1) };
        }
    }
    // SAFETY: `block` came from `malloc` above and is not used afterwards. The black box keeps the
    // compiler from removing the pair.
    unsafe { libc::free(black_box(block).cast()) };
    Ok(())
}

/// Returns the number of regions needed for `total` bytes, at least one.
pub fn regions_for(total: Bytes) -> usize {
    (total.0 as usize).div_ceil(REGION).max(1)
}

/// Returns the generator of a page's words. The first word is the page's tag.
fn words(seed: u64, page: usize) -> SplitMix64 {
    SplitMix64::seed_from_u64(seed.wrapping_add((page as u64) << 20))
}

/// A working set: regions whose pages hold incompressible words.
#[derive(Debug)]
pub struct WorkingSet {
    regions: Vec<Region>,
    seed: u64,
    /// The vector, if all regions are parts of one.
    vector: Option<Arc<LargeVec<Page>>>,
}

impl WorkingSet {
    /// Takes regions for `total` bytes and fills them.
    pub fn make(holder: Holder, total: Bytes, seed: u64) -> Result<Self, Failure> {
        let count = regions_for(total);
        let mut set = Self {
            regions: Vec::with_capacity(count),
            seed,
            vector: None,
        };
        for _ in 0..count {
            let region = Region::take(holder)?;
            set.regions.push(region);
            for page in set.pages() - PAGES..set.pages() {
                set.fill(page);
            }
        }
        Ok(set)
    }

    /// Creates the set as one vector of heapdrome's lgalloc. The vector is only read afterwards.
    pub fn in_one_vector(total: Bytes, seed: u64) -> Result<Self, Failure> {
        let count = regions_for(total);
        let mut vector: LargeVec<Page> = LargeVec::with_capacity(count * PAGES)?;
        for page in 0..count * PAGES {
            let mut words = words(seed, page);
            vector.push(std::array::from_fn(|_| words.next_u64()))?;
        }
        let vector = Arc::new(vector);
        let start = NonNull::from(&vector[..]).cast::<u8>();
        let part = |number: usize| Region {
            // SAFETY: the vector holds `count * PAGES` pages, and `number` is below `count`, so
            // this part lies in the vector.
            start: unsafe { start.add(number * REGION) },
            source: Source::Part {
                _vector: Arc::clone(&vector),
            },
        };
        Ok(Self {
            regions: (0..count).map(part).collect(),
            seed,
            vector: Some(vector),
        })
    }

    /// Returns the vector; `None` if the regions are not parts of one.
    pub fn vector(&self) -> Option<&LargeVec<Page>> {
        self.vector.as_deref()
    }

    pub fn pages(&self) -> usize {
        self.regions.len() * PAGES
    }

    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Converts the set into its regions, which keep their contents.
    pub fn into_regions(self) -> Vec<Region> {
        self.regions
    }

    fn start(&self, page: usize) -> NonNull<u64> {
        let region = &self.regions[page / PAGES];
        // SAFETY: `page % PAGES` is below `PAGES`, the number of pages of a region, so the page
        // lies in the region.
        unsafe { region.start.add(page % PAGES * PAGE) }.cast()
    }

    fn fill(&mut self, page: usize) {
        let (start, mut words) = (self.start(page), words(self.seed, page));
        for word in 0..PAGE / size_of::<u64>() {
            // SAFETY: `word` is below the number of words in a page, and the page start is aligned.
            // `make`, the only caller, has taken the regions, so the set owns their memory, and its
            // exclusive borrow prevents other access.
            unsafe { start.add(word).write(words.next_u64()) };
        }
    }

    /// Reads the tag of a page.
    #[inline]
    pub fn read(&self, page: usize) -> u64 {
        // SAFETY: the page start is aligned. The constructors of the set wrote every page, and no
        // page is written after them.
        unsafe { self.start(page).read_volatile() }
    }

    /// Returns the expected tag of a page.
    pub fn tag(&self, page: usize) -> u64 {
        words(self.seed, page).next_u64()
    }

    /// Prefetches a page that may be in swap.
    pub fn will_need(&self, page: usize) -> Result<(), Failure> {
        let region = &self.regions[page / PAGES];
        region.advise_bytes(page % PAGES * PAGE, PAGE, libc::MADV_WILLNEED)
    }

    /// Returns the share of pages that are in memory, including those in the swap cache.
    pub fn resident_share(&self) -> Result<f64, Failure> {
        let mut flags = [0_u8; PAGES];
        let mut resident = 0;
        for region in &self.regions {
            let start = region.start.as_ptr().cast();
            // SAFETY: `flags` has one byte for each page of `PAGE` bytes in the region. If the
            // kernel's pages are larger, it writes fewer bytes.
            if unsafe { libc::mincore(start, REGION, flags.as_mut_ptr()) } != 0 {
                return Err(Failure::system("mincore"));
            }
            resident += flags.iter().filter(|flag| **flag & 1 == 1).count();
        }
        Ok(resident as f64 / self.pages() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLDERS: [Holder; 4] = [
        Holder::Lgalloc,
        Holder::Malloc,
        Holder::Mapped,
        Holder::Published,
    ];

    #[test]
    fn every_page_holds_its_own_tag() {
        for holder in HOLDERS {
            let set = WorkingSet::make(holder, Bytes::from_mib(5), 42).expect("memory");
            assert_eq!(set.pages(), 3 * PAGES);
            let tags: std::collections::BTreeSet<u64> =
                (0..set.pages()).map(|page| set.read(page)).collect();
            assert_eq!(tags.len(), set.pages(), "tags differ");
            assert!((0..set.pages()).all(|page| set.read(page) == set.tag(page)));
            set.will_need(PAGES + 3).expect("advice");
            assert!(set.resident_share().expect("mincore") > 0.0);
        }
    }

    /// The vector and its regions must hold the same pages.
    #[test]
    fn a_vector_holds_the_same_as_its_parts() {
        let set = WorkingSet::in_one_vector(Bytes::from_mib(5), 42).expect("memory");
        assert_eq!(set.pages(), 3 * PAGES);
        let vector = set.vector().expect("it is one");
        assert_eq!(vector.len(), set.pages());
        let same =
            |page: usize| vector[page][0] == set.tag(page) && set.read(page) == set.tag(page);
        assert!((0..set.pages()).all(same));
        set.will_need(PAGES + 3).expect("advice");
        assert!(set.resident_share().expect("mincore") > 0.0);
        let mapped = WorkingSet::make(Holder::Mapped, Bytes::from_mib(2), 42).expect("memory");
        assert!(mapped.vector().is_none());
    }

    #[test]
    fn what_is_dropped_by_advice_is_not_resident() {
        let set = WorkingSet::make(Holder::Mapped, Bytes::from_mib(4), 1).expect("memory");
        let before = set.resident_share().expect("mincore");
        set.regions()[0]
            .advise(libc::MADV_DONTNEED)
            .expect("advice");
        let after = set.resident_share().expect("mincore");
        assert!(after <= before - 0.4, "{before} {after}");
        assert_ne!(set.read(0), set.tag(0), "its contents are gone");
    }

    #[test]
    fn touching_reaches_every_page() {
        for holder in HOLDERS {
            let mut region = Region::take(holder).expect("memory");
            region.touch();
            let byte = |page: usize| {
                // SAFETY: `page` is below `PAGES`, and `touch` wrote the page.
                unsafe { region.start.add(page * PAGE).read() }
            };
            assert!((0..PAGES).all(|page| byte(page) == 1));
        }
    }
}
