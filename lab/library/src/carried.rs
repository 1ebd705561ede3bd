//! The built-in traces.

use std::sync::LazyLock;

use crate::manifest::{Entry, Manifest};

/// A trace that is part of the heapdrome executable.
#[derive(Debug)]
pub struct Carried {
    /// Entry of the trace in the manifest.
    pub entry: Entry,
    /// Content of the trace file.
    pub bytes: &'static [u8],
}

const TRACES: [(&str, &[u8]); 9] = [
    ("gcc", include_bytes!("../traces/gcc.trace")),
    ("cpython", include_bytes!("../traces/cpython.trace")),
    ("redis", include_bytes!("../traces/redis.trace")),
    ("sqlite", include_bytes!("../traces/sqlite.trace")),
    ("git", include_bytes!("../traces/git.trace")),
    ("ghostscript", include_bytes!("../traces/ghostscript.trace")),
    ("rocksdb", include_bytes!("../traces/rocksdb.trace")),
    ("node", include_bytes!("../traces/node.trace")),
    ("postgres", include_bytes!("../traces/postgres.trace")),
];

const TOLD: &str = include_str!("../traces/manifest.json");

static CARRIED: LazyLock<Vec<Carried>> = LazyLock::new(|| {
    let manifest: Manifest = serde_json::from_str(TOLD).expect("the library's manifest is right");
    let bytes = |name: &str| TRACES.iter().find(|(own, _)| *own == name);
    let carried = manifest.traces.into_iter().filter_map(|entry| {
        let (_, bytes) = bytes(&entry.name)?;
        Some(Carried { entry, bytes })
    });
    carried.collect()
});

/// Returns every built-in trace.
#[must_use]
pub fn carried() -> &'static [Carried] {
    &CARRIED
}

/// Returns the built-in trace of this name, if there is one.
#[must_use]
pub fn find_carried(name: &str) -> Option<&'static Carried> {
    carried().iter().find(|one| one.entry.name == name)
}

#[cfg(test)]
mod tests {
    use heapdrome_system::sha256_of_bytes;
    use heapdrome_trace::{Reader, summarize};

    use super::*;
    use crate::recipe::recipes;

    /// Maximum total size of all built-in traces, in bytes.
    const MOST_BYTES: usize = 2 << 20;

    #[test]
    fn the_carried_traces_are_those_of_the_manifest_and_small() {
        let bytes: usize = carried().iter().map(|one| one.bytes.len()).sum();
        assert!(bytes < MOST_BYTES, "{bytes}");
        assert_eq!(carried().len(), TRACES.len());
        assert!(carried().len() >= 8);
        for one in carried() {
            let entry = &one.entry;
            assert_eq!(sha256_of_bytes(one.bytes), entry.sha256, "{}", entry.name);
            assert_eq!(one.bytes.len() as u64, entry.bytes, "{}", entry.name);
            assert!(recipes().iter().any(|recipe| recipe.name == entry.name));
            let mut reader = Reader::new(one.bytes).unwrap_or_else(|error| panic!("{error}"));
            let summary = summarize(&mut reader).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(summary.operations, entry.operations, "{}", entry.name);
        }
    }
}
