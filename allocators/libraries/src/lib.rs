//! heapdrome's own allocators as preloadable libraries, embedded as bytes.
//!
//! To preload a library, first write it to a file.

mod fast_path;

pub use fast_path::{GOLDENS, Golden};

/// Preloadable library.
#[derive(Clone, Copy)]
pub struct Library {
    /// File name of the library.
    pub file: &'static str,
    /// Contents of the library; empty if heapdrome was built without its own allocators.
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

/// All libraries.
pub const LIBRARIES: &[Library] = carried![
    "libbumpmalloc.so",
    "libelfmalloc.so",
    "libelfmalloc-l.so",
    "libelfmalloc-hardened.so"
];

/// Returns the library with this file name.
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
