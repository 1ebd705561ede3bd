//! Checks of the pool's invariants.

use super::Pool;

impl Pool {
    /// Asserts that the pool's counts match its maps, and that every dirty unit is free.
    ///
    /// # Panics
    ///
    /// If a count does not match, or a dirty unit is not free.
    pub fn check(&self) {
        let (mut free, mut dirty, mut committed) = (0, 0, 0);
        for arena in &self.arenas[..self.count] {
            committed += arena.committed - arena.skipped;
            for unit in 0..arena.committed {
                free += usize::from(arena.free.contains(unit));
                dirty += usize::from(arena.dirty.contains(unit));
                assert!(arena.free.contains(unit) || !arena.dirty.contains(unit));
            }
        }
        assert_eq!(dirty, self.dirty.count(), "the count of dirty units");
        let counted = self.committed.count();
        assert_eq!(committed, counted, "the count of committed units");
        let known = free + (self.live + self.purging).count();
        assert_eq!(known, committed, "free, in use, or being purged");
    }

    /// Returns the addresses of all committed units, and whether each is free.
    pub(in crate::units) fn units(&self) -> impl Iterator<Item = (usize, bool)> {
        self.arenas[..self.count].iter().flat_map(|arena| {
            let unit = |unit| (arena.address(unit).addr().get(), arena.free.contains(unit));
            (0..arena.committed).map(unit)
        })
    }
}
