//! SHA-256 in hexadecimal.

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

/// The SHA-256 of a file in hexadecimal.
///
/// # Errors
/// When the file cannot be read.
pub fn sha256_of_file(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut block = vec![0_u8; 1 << 16];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hexadecimal(&hasher.finalize())),
            read => hasher.update(&block[..read]),
        }
    }
}

/// The SHA-256 of some bytes in hexadecimal.
pub fn sha256_of_bytes(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(digest: &[u8]) -> String {
    digest
        .iter()
        .fold(String::with_capacity(digest.len() * 2), |mut text, byte| {
            // Writing into a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_known_text_is_the_published_one() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_of_bytes(b"abc"), expected);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("abc");
        std::fs::write(&path, "abc").expect("a file can be written");
        assert_eq!(sha256_of_file(&path).expect("readable"), expected);
    }
}
