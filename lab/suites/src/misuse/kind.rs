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
        "freed twice",
        &[
            kind("twice", "a block of 100 bytes is freed twice in a row"),
            kind("twice-between", "another block is freed between"),
            kind("twice-later", "10,000 others come and go between"),
            kind(
                "twice-reused",
                "200 others of the size are allocated between, and live",
            ),
            kind("twice-thread", "another thread frees it first"),
            kind("twice-middle", "a block of 9000 bytes"),
            kind("twice-large", "a block of 1 MiB"),
            kind("twice-aligned", "a block of 9000 bytes from posix_memalign"),
        ],
    ),
    (
        "freed, and no block begins there",
        &[
            kind("interior", "16 bytes into a block of 100"),
            kind("interior-odd", "8 bytes into it"),
            kind("interior-middle", "64 bytes into a block of 9000"),
            kind("interior-large", "a page into a block of 1 MiB"),
            kind(
                "interior-aligned",
                "64 bytes into a block from posix_memalign",
            ),
            kind("stack", "an array in a frame"),
            kind("static", "an array of the program's"),
            kind("mapping", "a page of a mapping of the program's own"),
            kind("unmapped", "a page that was unmapped"),
        ],
    ),
    (
        "written out of bounds",
        &[
            kind("over-one", "the byte behind 100 bytes"),
            kind("over-full", "the byte behind 64 bytes"),
            kind(
                "over-zero",
                "the byte behind 64 bytes, by the zero that ends a string",
            ),
            kind("over-many", "64 bytes behind 64"),
            kind("over-beyond", "one byte, 64 behind the end of 64"),
            kind("over-middle", "20 bytes behind 9000"),
            kind(
                "over-aligned",
                "the byte behind 100 bytes from posix_memalign",
            ),
            kind("over-large", "the byte behind 200,000 bytes"),
            kind("over-large-many", "8192 bytes behind 200,000"),
            kind("under-one", "the byte before 64 bytes"),
            kind("under-many", "16 bytes before 64 bytes"),
            kind("under-large", "the byte before 200,000 bytes"),
            kind("under-large-many", "8192 bytes before 200,000"),
        ],
    ),
    (
        "used after it was freed",
        &[
            kind("read", "64 of 100 bytes are read, 32 from the start"),
            kind("read-middle", "64 of 9000 bytes, 32 from the start"),
            kind("read-inside", "64 bytes in the middle of 9000"),
            kind("read-large", "64 bytes of 1 MiB, 32 from the start"),
            kind(
                "read-aligned",
                "64 of 100 bytes from posix_memalign, 32 from the start",
            ),
            kind(
                "read-moved",
                "64 of 100 bytes, after realloc moved the block, through its old address",
            ),
            kind("write", "the first 16 of 100 bytes are written"),
            kind("write-inside", "16 bytes in the middle of 9000"),
            kind("write-large", "16 bytes in the middle of 1 MiB"),
            kind(
                "write-aligned",
                "the first 16 of 100 bytes from posix_memalign",
            ),
            kind(
                "write-reused",
                "the first 16 of 100 bytes, after 200 others of the size were allocated",
            ),
            kind(
                "write-moved",
                "the first 16 of 100 bytes, after realloc moved the block, through its old address",
            ),
        ],
    ),
    (
        "handed to realloc",
        &[
            kind("re-freed", "a block of 100 bytes that was freed"),
            kind("re-large", "a block of 1 MiB that was freed"),
            kind("re-aligned", "a block from posix_memalign that was freed"),
            kind(
                "re-over-one",
                "a block of 100 bytes, after the byte behind it was written",
            ),
            kind(
                "re-over-many",
                "a block of 64 bytes, after 64 behind it were written",
            ),
            kind("re-interior", "16 bytes into a block of 100"),
            kind("re-inner-large", "a page into a block of 1 MiB"),
            kind(
                "re-inner-aligned",
                "64 bytes into a block from posix_memalign",
            ),
            kind("re-stack", "an array in a frame"),
            kind("re-static", "an array of the program's"),
            kind("re-mapping", "a page of a mapping of the program's own"),
            kind("re-unmapped", "a page that was unmapped"),
        ],
    ),
    (
        "deleted as what it is not",
        &[
            kind("delete-twice", "deleted twice"),
            kind("delete-size", "new of 64 bytes, sized delete of 4096"),
            kind("delete-array", "new[] and delete"),
            kind("delete-malloc", "malloc and delete"),
            kind("delete-free", "new and free"),
            kind(
                "delete-aligned",
                "new of an alignment of 256, and plain delete",
            ),
        ],
    ),
];

/// Returns the kinds that `only` contains; all kinds if it is empty.
///
/// # Errors
/// When a name is not a kind.
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
