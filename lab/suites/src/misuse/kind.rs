//! The kinds of misuse.

use crate::SuiteError;

/// A kind of misuse that a program in `lab/registry/misuses` commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Name of the kind, and head of its column.
    pub name: &'static str,
    /// A description of the program's misuse.
    pub what: &'static str,
}

const fn kind(name: &'static str, what: &'static str) -> Kind {
    Kind { name, what }
}

/// The title of a table, and its kinds.
pub(super) type Group = (&'static str, &'static [Kind]);

pub(super) const GROUPS: [Group; 6] = [
    (
        "double free",
        &[
            kind("twice", "a block of 100 bytes, twice in a row"),
            kind("twice-between", "with the free of another block in between"),
            kind(
                "twice-later",
                "with 10,000 other allocations and frees in between",
            ),
            kind(
                "twice-reused",
                "with 200 allocations of that size in between, which stay live",
            ),
            kind("twice-thread", "first by another thread"),
            kind("twice-middle", "a block of 9000 bytes"),
            kind("twice-large", "a block of 1 MiB"),
            kind("twice-aligned", "a block of 9000 bytes from posix_memalign"),
        ],
    ),
    (
        "invalid free: no block begins at the address",
        &[
            kind("interior", "16 bytes into a block of 100"),
            kind("interior-odd", "8 bytes into a block of 100"),
            kind("interior-middle", "64 bytes into a block of 9000"),
            kind("interior-large", "a page into a block of 1 MiB"),
            kind(
                "interior-aligned",
                "64 bytes into a block from posix_memalign",
            ),
            kind("stack", "an array on the stack"),
            kind("static", "a static array of the program"),
            kind("mapping", "a page of the program's own mapping"),
            kind("unmapped", "a page that was unmapped"),
        ],
    ),
    (
        "write out of bounds",
        &[
            kind("over-one", "1 byte after a block of 100"),
            kind("over-full", "1 byte after a block of 64"),
            kind(
                "over-zero",
                "the zero that ends a string, after a block of 64",
            ),
            kind("over-many", "64 bytes after a block of 64"),
            kind(
                "over-beyond",
                "1 byte, at a distance of 64 after a block of 64",
            ),
            kind("over-middle", "20 bytes after a block of 9000"),
            kind(
                "over-aligned",
                "1 byte after a block of 100 from posix_memalign",
            ),
            kind("over-large", "1 byte after a block of 200,000"),
            kind("over-large-many", "8192 bytes after a block of 200,000"),
            kind("under-one", "1 byte before a block of 64"),
            kind("under-many", "16 bytes before a block of 64"),
            kind("under-large", "1 byte before a block of 200,000"),
            kind("under-large-many", "8192 bytes before a block of 200,000"),
        ],
    ),
    (
        "use after free",
        &[
            kind("read", "reads 64 bytes of a block of 100, from offset 32"),
            kind(
                "read-middle",
                "reads 64 bytes of a block of 9000, from offset 32",
            ),
            kind(
                "read-inside",
                "reads 64 bytes in the middle of a block of 9000",
            ),
            kind(
                "read-large",
                "reads 64 bytes of a block of 1 MiB, from offset 32",
            ),
            kind(
                "read-aligned",
                "reads 64 bytes of a block of 100 from posix_memalign, from offset 32",
            ),
            kind(
                "read-moved",
                "reads 64 bytes at the old address of a block of 100 that realloc moved",
            ),
            kind("write", "writes the first 16 bytes of a block of 100"),
            kind(
                "write-inside",
                "writes 16 bytes in the middle of a block of 9000",
            ),
            kind(
                "write-large",
                "writes 16 bytes in the middle of a block of 1 MiB",
            ),
            kind(
                "write-aligned",
                "writes the first 16 bytes of a block of 100 from posix_memalign",
            ),
            kind(
                "write-reused",
                "writes the first 16 bytes of a block of 100, after 200 allocations of that size",
            ),
            kind(
                "write-moved",
                "writes 16 bytes at the old address of a block of 100 that realloc moved",
            ),
        ],
    ),
    (
        "invalid argument of realloc",
        &[
            kind("re-freed", "a block of 100 bytes that was freed"),
            kind("re-large", "a block of 1 MiB that was freed"),
            kind("re-aligned", "a block from posix_memalign that was freed"),
            kind(
                "re-over-one",
                "a block of 100 bytes, after a write of 1 byte behind it",
            ),
            kind(
                "re-over-many",
                "a block of 64 bytes, after a write of 64 bytes behind it",
            ),
            kind("re-interior", "16 bytes into a block of 100"),
            kind("re-inner-large", "a page into a block of 1 MiB"),
            kind(
                "re-inner-aligned",
                "64 bytes into a block from posix_memalign",
            ),
            kind("re-stack", "an array on the stack"),
            kind("re-static", "a static array of the program"),
            kind("re-mapping", "a page of the program's own mapping"),
            kind("re-unmapped", "a page that was unmapped"),
        ],
    ),
    (
        "mismatched delete",
        &[
            kind("delete-twice", "delete, twice"),
            kind("delete-size", "new of 64 bytes, sized delete of 4096 bytes"),
            kind("delete-array", "new[], then delete"),
            kind("delete-malloc", "malloc, then delete"),
            kind("delete-free", "new, then free"),
            kind(
                "delete-aligned",
                "new with an alignment of 256, then plain delete",
            ),
        ],
    ),
];

/// Returns the kinds that `only` names; all kinds if `only` is empty.
///
/// # Errors
/// When `only` contains an unknown name.
pub fn kinds(only: &[String]) -> Result<Vec<Kind>, SuiteError> {
    let all: Vec<Kind> = GROUPS
        .iter()
        .flat_map(|(_, kinds)| *kinds)
        .copied()
        .collect();
    let unknown = only
        .iter()
        .find(|name| !all.iter().any(|kind| kind.name == *name));
    if let Some(asked) = unknown {
        let names: Vec<_> = all.iter().map(|kind| kind.name).collect();
        return Err(SuiteError::UnknownCell {
            asked: asked.clone(),
            known: names.join(", "),
        });
    }
    let wanted = |kind: &Kind| only.is_empty() || only.iter().any(|name| name == kind.name);
    Ok(all.into_iter().filter(wanted).collect())
}
