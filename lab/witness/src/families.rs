//! Allocators that programs link under names of their own, beside or instead of the usual malloc.
//!
//! The usual case is a Rust program whose `#[global_allocator]` comes from a crate. Such crates
//! link only a part of an allocator's interface: the mimalloc crate calls `mi_malloc_aligned` and
//! never `mi_malloc`. An allocator is therefore recognised by parts of its functions' names, and
//! only if functions of both kinds exist: one that allocates and one that frees.

/// Naming scheme of the functions of one allocator.
enum Names {
    /// Names that begin with one of these prefixes.
    Prefixed(&'static [&'static str]),
    /// Mangled names of functions of this Rust crate.
    Crate(&'static str),
}

const FAMILIES: [Names; 10] = [
    Names::Prefixed(&["mi_", "_mi_"]),
    Names::Prefixed(&["_rjem_", "_rjem_je_", "je_"]),
    Names::Prefixed(&["sn_"]),
    Names::Prefixed(&["rp"]),
    Names::Prefixed(&["tc_"]),
    Names::Prefixed(&["scalable_"]),
    Names::Prefixed(&["dl"]),
    Names::Prefixed(&["GC_"]),
    Names::Crate("heapdrome_elfmalloc"),
    Names::Crate("heapdrome_bumpmalloc"),
];

/// Strings that follow a prefix in the names of functions that allocate.
const ALLOCATING: [&str; 5] = ["malloc", "calloc", "zalloc", "aligned_alloc", "rust_alloc"];

/// Strings that follow a prefix in the names of functions that free.
const FREEING: [&str; 5] = ["free", "cfree", "dallocx", "sdallocx", "rust_dealloc"];

/// Parts of mangled names of functions that allocate, each preceded by its length.
const ALLOCATING_PARTS: [&str; 3] = ["8allocate", "15allocate_zeroed", "16allocate_aligned"];

/// Part of the mangled names of functions that free.
const FREEING_PART: &str = "10deallocate";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Allocates,
    Frees,
}

impl Names {
    /// Returns the kind of the function of this name, if it belongs to the allocator.
    fn kind(&self, name: &str) -> Option<Kind> {
        match self {
            Self::Prefixed(prefixes) => {
                let rests = prefixes
                    .iter()
                    .filter_map(|prefix| name.strip_prefix(prefix));
                rests.filter_map(kind_of_rest).next()
            }
            Self::Crate(path) => {
                let mangled = name.starts_with("_ZN") || name.starts_with("_R");
                let own = mangled && name.contains(path);
                let allocates = || ALLOCATING_PARTS.iter().any(|part| name.contains(part));
                match own {
                    true if name.contains(FREEING_PART) => Some(Kind::Frees),
                    true if allocates() => Some(Kind::Allocates),
                    _ => None,
                }
            }
        }
    }
}

fn kind_of_rest(rest: &str) -> Option<Kind> {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|begin| rest.starts_with(begin));
    match () {
        () if begins(&ALLOCATING) => Some(Kind::Allocates),
        () if begins(&FREEING) => Some(Kind::Frees),
        () => None,
    }
}

/// Search for allocators among the functions that a program defines.
#[derive(Default)]
pub(crate) struct Search {
    /// For each family: the shortest name that allocates, and whether a function of the family
    /// frees.
    seen: [(Option<String>, bool); FAMILIES.len()],
}

impl Search {
    /// Records the name of a function that the program defines.
    pub(crate) fn see(&mut self, name: &[u8]) {
        let Ok(name) = std::str::from_utf8(name) else {
            return;
        };
        for (family, (allocating, frees)) in FAMILIES.iter().zip(&mut self.seen) {
            match family.kind(name) {
                Some(Kind::Frees) => *frees = true,
                Some(Kind::Allocates)
                    if allocating
                        .as_ref()
                        .is_none_or(|known| name.len() < known.len()) =>
                {
                    *allocating = Some(name.to_owned());
                }
                _ => {}
            }
        }
    }

    /// Returns a name by which a reader can recognise the allocator: one of its functions, or its
    /// crate. Returns `None` if no family has functions of both kinds.
    pub(crate) fn found(&self) -> Option<String> {
        let mut families = FAMILIES.iter().zip(&self.seen);
        families.find_map(|(family, (allocating, frees))| {
            let name = allocating.as_ref().filter(|_| *frees)?;
            Some(match family {
                Names::Prefixed(_) => name.clone(),
                Names::Crate(path) => (*path).to_owned(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Option<String> {
        let mut search = Search::default();
        names.iter().for_each(|name| search.see(name.as_bytes()));
        search.found()
    }

    #[test]
    fn crates_that_link_a_part_of_an_interface_are_known() {
        for (names, known) in [
            (
                &["_mi_page_malloc", "mi_malloc_aligned", "mi_free"][..],
                "mi_malloc_aligned",
            ),
            (&["_rjem_mallocx", "_rjem_sdallocx"], "_rjem_mallocx"),
            (&["sn_rust_alloc", "sn_rust_dealloc"], "sn_rust_alloc"),
            (
                &["rpfree", "rpmalloc_thread_initialize", "rpmalloc"],
                "rpmalloc",
            ),
            (&["tc_malloc", "tc_free"], "tc_malloc"),
        ] {
            assert_eq!(found(names).as_deref(), Some(known));
        }
    }

    #[test]
    fn heapdromes_own_crates_are_known() {
        let names = [
            "_ZN112_$LT$heapdrome_elfmalloc..Allocator$u20$as$u20$MallocAbi$GT$15allocate_zeroed17h1E",
            "_ZN112_$LT$heapdrome_elfmalloc..Allocator$u20$as$u20$MallocAbi$GT$10deallocate17h2E",
        ];
        assert_eq!(found(&names).as_deref(), Some("heapdrome_elfmalloc"));
        assert_eq!(found(&names[..1]), None);
    }

    #[test]
    fn one_half_of_an_interface_is_no_allocator() {
        for names in [
            &["mi_malloc"][..],
            &["tc_new", "tc_delete"],
            &["rpfree"],
            &["je_malloc", "mi_free"],
            &["malloc", "free", "dlopen", "main"],
        ] {
            assert_eq!(found(names), None, "{names:?}");
        }
    }
}
