//! heapdrome's own allocators as preloadable libraries, carried as bytes.
//!
//! Whoever wants to preload one writes it into a file first.

mod fast_path;

pub use fast_path::{GOLDENS, Golden};

/// One library.
#[derive(Clone, Copy)]
pub struct Library {
    /// Its file name.
    pub file: &'static str,
    /// Its contents; empty where heapdrome was built without them.
    pub bytes: &'static [u8],
}

macro_rules! carried {
    ($($file:literal),* $(,)?) => {
        &[$(Library {
            file: $file,
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $file)),
        }),*]
    };
}

/// Every library.
pub const LIBRARIES: &[Library] = carried![
    "libbumpmalloc.so",
    "libelfmalloc.so",
    "libelfmalloc-l.so",
    "libelfmalloc-hardened.so"
];

/// The library of this file name.
pub fn find(file: &str) -> Option<Library> {
    LIBRARIES.iter().copied().find(|one| one.file == file)
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_library_is_a_shared_object() {
        for library in super::LIBRARIES {
            assert!(library.bytes.starts_with(b"\x7fELF"), "{}", library.file);
        }
    }
}
