//! Gives blocks directly back to their slabs.

use heapdrome_elfmalloc::SizeClass;
use heapdrome_elfmalloc::heap::heaps::Heaps;
use heapdrome_elfmalloc::misuse::Misuse;
use heapdrome_elfmalloc::slabs::bin::ClassBin;
use heapdrome_elfmalloc::slabs::free_blocks::FreeBlocks;
use heapdrome_pages::Pages;

/// Gives back blocks that the test allocated. Double and invalid frees are allowed. No code
/// dereferences the pointers afterwards.
pub fn give<P: Pages>(
    heaps: &Heaps<P>,
    home: Option<ClassBin<'_>>,
    class: SizeClass,
    blocks: &mut [*mut u8],
) -> Result<(), Misuse> {
    // SAFETY: the test allocated the blocks, and no longer uses them. Double and invalid frees
    // break the contract on purpose: the slabs detect them without following a pointer.
    let blocks = unsafe { FreeBlocks::new(class, blocks) };
    heaps.shards.give(home, blocks).map(drop)
}
