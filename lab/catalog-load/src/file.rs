//! The file of one data set: a header, a table of blocks, and the compressed blocks.
//!
//! Block 0 is the index. Every other block holds the details of a few entries. All numbers are
//! little endian. The header's checksum covers header and table, and the table has a checksum for
//! each block. So a change of any byte is detected before the data are used.
//!
//! ```text
//! magic 8 | version 4 | set 4 | seed 8 | size 4 | blocks 4
//! entries 8 | records 8 | checksum of records 8 | requested bytes 8
//! per block: packed length 8 | plain length 8 | checksum 8
//! checksum of all above 8
//! blocks
//! ```

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::error::CatalogError;
use crate::join::Tally;

const MAGIC: &[u8; 8] = b"HDCATSET";
const HEAD: usize = 64;
/// Version of the data format that this program writes and reads.
const VERSION: u32 = 2;
const ROW: usize = 24;

/// Maximum accepted size of a block in bytes. A real block has a few MiB at the default size.
const LARGEST_BLOCK: u64 = 1 << 28;

/// Maximum accepted number of blocks.
const MOST_BLOCKS: u32 = 1 << 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) seed: u64,
    pub(crate) size: u32,
    pub(crate) set: u32,
}

/// Path and identity of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
}

/// Facts about a data set that are computed while its file is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) entries: u64,
    /// Number of records and the checksum of their names and URLs. Each item of a chapter has one
    /// record.
    pub(crate) tally: Tally,
    /// Number of bytes that the loaded and joined data set has requested and not freed.
    pub(crate) requested_bytes: u64,
}

/// Description of a data set, from the header of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) place: Place,
    pub(crate) facts: Facts,
    /// Total length of the blocks in bytes, serialised and not compressed.
    pub(crate) data_bytes: u64,
    /// Length of the file in bytes.
    pub(crate) file_bytes: u64,
}

/// Row of the table of blocks.
#[derive(Clone, Copy, Debug)]
struct Row {
    packed: u64,
    plain: u64,
    checksum: u64,
}

/// Compressed block, as stored in the file.
#[derive(Debug)]
pub(crate) struct Packed {
    bytes: Vec<u8>,
    row: Row,
    block: usize,
}

/// Blocks of a data set, collected before they are written.
pub(crate) struct Writer {
    identity: Identity,
    rows: Vec<Row>,
    packed: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(identity: Identity) -> Self {
        Self {
            identity,
            rows: Vec::new(),
            packed: Vec::new(),
        }
    }

    /// Serialises and compresses the next block.
    ///
    /// # Errors
    /// Returns an error if the value cannot be serialised, which does not happen for the model's
    /// types.
    pub(crate) fn push(&mut self, value: &impl Serialize) -> Result<(), postcard::Error> {
        let plain = postcard::to_stdvec(value)?;
        let packed = lz4_flex::block::compress(&plain);
        self.rows.push(Row {
            packed: packed.len() as u64,
            plain: plain.len() as u64,
            checksum: checksum(&packed, self.rows.len()),
        });
        self.packed.extend_from_slice(&packed);
        Ok(())
    }

    /// Writes the file and syncs it to disk.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn write(&self, path: &Path, facts: &Facts) -> Result<(), std::io::Error> {
        let mut file = File::create_new(path)?;
        file.write_all(&self.head(facts))?;
        file.write_all(&self.packed)?;
        file.sync_all()
    }

    /// Replaces the facts in the file that [`Writer::write`] wrote.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn correct(&self, path: &Path, facts: &Facts) -> Result<(), std::io::Error> {
        let mut file = File::options().write(true).open(path)?;
        file.write_all(&self.head(facts))?;
        file.sync_all()
    }

    /// Formats the header, the table and their checksum.
    fn head(&self, facts: &Facts) -> Vec<u8> {
        let mut head = Vec::with_capacity(HEAD + self.rows.len() * ROW + 8);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&self.identity.set.to_le_bytes());
        head.extend_from_slice(&self.identity.seed.to_le_bytes());
        head.extend_from_slice(&self.identity.size.to_le_bytes());
        head.extend_from_slice(&(self.rows.len() as u32).to_le_bytes());
        let Tally { records, checksum } = facts.tally;
        let facts = [facts.entries, records, checksum, facts.requested_bytes];
        let rows = self.rows.iter();
        let rows = rows.flat_map(|row| [row.packed, row.plain, row.checksum]);
        let numbers = facts.into_iter().chain(rows);
        head.extend(numbers.flat_map(u64::to_le_bytes));
        head.extend_from_slice(&xxh3_64(&head).to_le_bytes());
        head
    }
}

/// Returns the checksum of a block. It includes the block's number, so that exchanged blocks are
/// detected.
fn checksum(packed: &[u8], block: usize) -> u64 {
    xxh3_64_with_seed(packed, block as u64)
}

/// Reader of a data set's file, block by block.
pub(crate) struct Reader {
    /// Contents of the header.
    pub(crate) set: Set,
    file: File,
    rows: Vec<Row>,
    next: usize,
}

impl Reader {
    /// Opens a file and checks its header and its length.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is foreign or damaged, or has another version.
    /// Also returns an error if it holds another data set than `wanted`.
    pub(crate) fn open(path: &Path, wanted: Option<Identity>) -> Result<Self, CatalogError> {
        let mut file = File::open(path).map_err(|source| read_error(path, source))?;
        let head = read_head(path, &mut file)?;
        let inside = Identity {
            set: number(&head, 12, 4) as u32,
            seed: number(&head, 16, 8),
            size: number(&head, 24, 4) as u32,
        };
        if wanted.is_some_and(|wanted| inside != wanted) {
            return Err(damaged(path, "it holds another data set"));
        }
        let rows: Vec<Row> = head[HEAD..].chunks_exact(ROW).map(row).collect();
        let sum = |of: fn(&Row) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
        let set = Set {
            place: Place {
                path: path.to_owned(),
                identity: inside,
            },
            facts: facts(&head),
            data_bytes: sum(|row| row.plain),
            file_bytes: (head.len() as u64 + 8).saturating_add(sum(|row| row.packed)),
        };
        let length = file.metadata().map_err(|source| read_error(path, source))?;
        if length.len() != set.file_bytes {
            let reason = format!("it has {} bytes, not {}", length.len(), set.file_bytes);
            return Err(damaged(path, reason));
        }
        Ok(Self {
            set,
            file,
            rows,
            next: 0,
        })
    }

    /// Reads the next block. Returns `None` after the last one.
    ///
    /// # Errors
    /// Returns an error if the block cannot be read or is damaged.
    pub(crate) fn next_block(&mut self) -> Result<Option<Packed>, CatalogError> {
        let block = self.next;
        let Some(row) = self.rows.get(block).copied() else {
            return Ok(None);
        };
        if row.packed > LARGEST_BLOCK || row.plain > LARGEST_BLOCK {
            return Err(damaged(
                &self.set.place.path,
                format!("block {block} is too large"),
            ));
        }
        let mut bytes = vec![0; row.packed as usize];
        let path = &self.set.place.path;
        fill(path, &mut self.file, &mut bytes)?;
        if checksum(&bytes, block) != row.checksum {
            let reason = format!("the checksum of block {block} does not match");
            return Err(damaged(path, reason));
        }
        self.next += 1;
        Ok(Some(Packed { bytes, row, block }))
    }
}

impl Packed {
    /// Decompresses and deserialises the block.
    ///
    /// # Errors
    /// Returns an error if the block cannot be decompressed or deserialised. The block was intact
    /// when it was read, so its bytes have changed in memory.
    pub(crate) fn unpack<T: DeserializeOwned>(self) -> Result<T, CatalogError> {
        let changed = |reason: String| CatalogError::Corrupted {
            what: format!(
                "block {} was intact when read, but cannot be unpacked ({reason})",
                self.block
            ),
        };
        let plain = lz4_flex::block::decompress(&self.bytes, self.row.plain as usize)
            .map_err(|error| changed(error.to_string()))?;
        match postcard::take_from_bytes(&plain) {
            Ok((value, [])) => Ok(value),
            Ok((_, rest)) => Err(changed(format!("{} bytes too many", rest.len()))),
            Err(error) => Err(changed(error.to_string())),
        }
    }
}

/// Reads the header and the table, and checks their checksum.
fn read_head(path: &Path, file: &mut File) -> Result<Vec<u8>, CatalogError> {
    let mut head = vec![0; HEAD];
    fill(path, file, &mut head)?;
    if !head.starts_with(MAGIC) {
        return Err(CatalogError::Foreign {
            path: path.to_owned(),
            reason: "its first bytes are wrong".to_owned(),
        });
    }
    let found = number(&head, 8, 4) as u32;
    if found != VERSION {
        return Err(CatalogError::OtherVersion {
            path: path.to_owned(),
            found,
            expected: VERSION,
        });
    }
    let blocks = number(&head, 28, 4) as u32;
    if blocks == 0 || blocks > MOST_BLOCKS {
        return Err(damaged(path, format!("its header claims {blocks} blocks")));
    }
    head.resize(HEAD + blocks as usize * ROW, 0);
    fill(path, file, &mut head[HEAD..])?;
    let mut written = [0; 8];
    fill(path, file, &mut written)?;
    if xxh3_64(&head) != u64::from_le_bytes(written) {
        return Err(damaged(path, "the checksum of its header does not match"));
    }
    Ok(head)
}

/// Fills `room` with the next bytes of the file.
fn fill(path: &Path, file: &mut File, room: &mut [u8]) -> Result<(), CatalogError> {
    file.read_exact(room).map_err(|source| match source.kind() {
        ErrorKind::UnexpectedEof => damaged(path, "it is truncated"),
        _ => read_error(path, source),
    })
}

fn read_error(path: &Path, source: std::io::Error) -> CatalogError {
    CatalogError::Read {
        path: path.to_owned(),
        source,
    }
}

fn damaged(path: &Path, reason: impl Into<String>) -> CatalogError {
    CatalogError::Damaged {
        path: path.to_owned(),
        reason: reason.into(),
    }
}

/// Reads the little-endian number of `length` bytes at offset `place`.
fn number(bytes: &[u8], place: usize, length: usize) -> u64 {
    let digits = bytes[place..place + length].iter().rev();
    digits.fold(0, |number, digit| number << 8 | u64::from(*digit))
}

fn facts(head: &[u8]) -> Facts {
    let [entries, records, checksum, requested_bytes] =
        [32, 40, 48, 56].map(|place| number(head, place, 8));
    Facts {
        entries,
        tally: Tally { records, checksum },
        requested_bytes,
    }
}

fn row(bytes: &[u8]) -> Row {
    Row {
        packed: number(bytes, 0, 8),
        plain: number(bytes, 8, 8),
        checksum: number(bytes, 16, 8),
    }
}

#[cfg(test)]
mod tests;
