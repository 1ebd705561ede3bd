//! SHA-256 in hexadecimal.

use std::path::Path;

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of a file in hexadecimal.
///
/// # Errors
/// When the file cannot be read.
pub fn sha256_of_file(path: &Path) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    std::io::copy(&mut std::fs::File::open(path)?, &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// Returns the SHA-256 of a byte string in hexadecimal.
pub fn sha256_of_bytes(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
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
