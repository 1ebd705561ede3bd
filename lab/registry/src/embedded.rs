//! Entries and glue files that are embedded in heapdrome.

use crate::RegistryError;
use crate::entry::{self, Entry};

/// Embeds each entry's file, by name. A base must precede its variants.
macro_rules! entry_files {
    ($($name:literal),* $(,)?) => {
        const ENTRIES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../allocators/", $name, ".toml")))),*];
    };
}

macro_rules! glue {
    ($($name:literal),* $(,)?) => {
        const GLUE: &[(&str, &str)] = &[$(($name, include_str!(concat!("../glue/", $name)))),*];
    };
}

entry_files![
    "system",
    "system-arena1",
    "system-huge",
    "jemalloc",
    "jemalloc-decay",
    "jemalloc-debian",
    "mimalloc2",
    "mimalloc2-secure",
    "mimalloc3",
    "mimalloc3-secure",
    "mimalloc3-no-purge",
    "mimalloc3-no-huge",
    "mimalloc-debian",
    "snmalloc",
    "snmalloc-checks",
    "snmalloc-checks-memcpy-only",
    "rpmalloc",
    "tcmalloc",
    "tcmalloc-percpu",
    "tcmalloc-gperftools",
    "scudo",
    "scudo-no-release",
    "tbbmalloc",
    "hardened_malloc",
    "hardened_malloc-light",
    "hoard",
    "dlmalloc",
    "mallocng",
    "oldmalloc",
    "isoalloc",
    "lgalloc",
    "elfmalloc-2017",
    "elfmalloc",
    "elfmalloc-l",
    "elfmalloc-hardened",
    "bumpmalloc",
    "cheapest",
    "rpmalloc2",
    "llalloc",
    "lockfree-malloc",
    "scalloc",
    "supermalloc",
    "ltalloc",
    "mesh",
];

glue![
    "cheapest/cheapest.c",
    "dlmalloc/aligned_alloc.c",
    "musl/exports.c",
    "musl/fork.c",
    "musl/include/atomic.h",
    "musl/include/break.h",
    "musl/include/dynlink.h",
    "musl/include/fork_impl.h",
    "musl/include/futex.h",
    "musl/include/libc.h",
    "musl/include/plain.h",
    "musl/include/pthread_impl.h",
    "musl/mallocng.h",
];

/// Returns every built-in entry.
pub(crate) fn entries() -> Result<Vec<Entry>, RegistryError> {
    let mut entries: Vec<Entry> = Vec::with_capacity(ENTRIES.len());
    for (name, text) in ENTRIES {
        let find = |base: &str| entries.iter().find(|entry| entry.name == base).cloned();
        let entry = entry::parse(text, &find);
        entries.push(entry.map_err(|reason| RegistryError::BrokenEntry {
            name: (*name).to_owned(),
            reason,
        })?);
    }
    Ok(entries)
}

/// Returns heapdrome's own build files, with their paths relative to the glue folder.
pub(crate) fn glue_files() -> &'static [(&'static str, &'static str)] {
    GLUE
}

#[cfg(test)]
mod tests;
