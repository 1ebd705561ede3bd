//! Files compressed by gzip.

use std::io::{Read as _, Result, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

/// First two bytes of every gzip file.
const MAGIC: &[u8] = b"\x1f\x8b";

/// Returns whether `bytes` begin like a gzip file. The file's name does not matter.
pub fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Compresses `bytes`. Equal bytes yield equal files, because neither a name nor a time is stored.
///
/// # Errors
/// When the encoder fails, which does not happen in memory.
pub fn compressed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Returns `bytes` as the content of a file at `path`, compressed if the name ends in `.gz`.
///
/// # Errors
/// When the encoder fails, which does not happen in memory.
pub fn compressed_if_named(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>> {
    match path.extension().is_some_and(|ending| ending == "gz") {
        true => compressed(&bytes),
        false => Ok(bytes),
    }
}

/// Decompresses a gzip file, which may consist of several gzip members.
///
/// # Errors
/// [`std::io::ErrorKind::UnexpectedEof`] when the end is missing, and another kind when the file is
/// damaged.
pub(crate) fn decompressed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    MultiGzDecoder::new(bytes).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    const TEXT: &[u8] = b"{\"schema\": 1, \"heapdrome\": \"0.1.0\"}";

    #[test]
    fn what_is_compressed_comes_back() {
        let packed = compressed(TEXT).expect("compressed");
        assert!(is_compressed(&packed) && !is_compressed(TEXT));
        assert_eq!(decompressed(&packed).expect("whole"), TEXT);
        assert_eq!(packed, compressed(TEXT).expect("compressed"));
        let twice = [packed.clone(), packed].concat();
        assert_eq!(decompressed(&twice).expect("whole"), [TEXT, TEXT].concat());
    }

    #[test]
    fn the_name_decides_how_a_file_is_written() {
        for (name, packs) in [("r.json", false), ("r.json.gz", true), ("gz", false)] {
            let bytes = compressed_if_named(Path::new(name), TEXT.to_vec()).expect("written");
            assert_eq!(is_compressed(&bytes), packs, "{name}");
        }
    }

    #[test]
    fn every_missing_end_is_told_from_damage() {
        let packed = compressed(TEXT).expect("compressed");
        for end in 0..packed.len() {
            let error = decompressed(&packed[..end]).err().map(|error| error.kind());
            assert_eq!(error, Some(ErrorKind::UnexpectedEof), "{end}");
        }
        let mut damaged = packed.clone();
        let checksum = damaged.len() - 8;
        damaged[checksum] ^= 1;
        let error = decompressed(&damaged).expect_err("the checksum is wrong");
        assert_ne!(error.kind(), ErrorKind::UnexpectedEof);
    }
}
