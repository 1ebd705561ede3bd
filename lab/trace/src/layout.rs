//! Encodes and decodes the parts of fixed length: the header of a trace and those of chunks.

use crate::error::{Damage, TraceError};

/// The version of the format that this crate writes, and the latest that it reads.
pub const VERSION: u16 = 2;

/// The first version in which operations may have stacks.
pub(crate) const STACKS_SINCE: u16 = 2;

pub(crate) const MAGIC: [u8; 8] = *b"hdtrace\n";

/// Bytes of a file's header: magic, version, architecture, a zero, checksum.
pub(crate) const HEADER_BYTES: usize = 16;

/// Bytes of a chunk's header: kind, three zeros, length in the file, length when decompressed,
/// number of operations, checksum of the content, checksum of these fields.
pub(crate) const CHUNK_HEADER_BYTES: usize = 24;

/// Maximum number of bytes of a chunk's decompressed content, and so of the reader's buffer for it.
pub(crate) const MAX_CONTENT: usize = 4 << 20;

/// Maximum of each length in a chunk's header, in bytes. Larger than [`MAX_CONTENT`], because
/// content that does not shrink is longer in the file.
pub(crate) const MAX_LENGTH: usize = MAX_CONTENT + MAX_CONTENT / 8;

/// The processor architecture of a recorded program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64
    X86_64,
    /// 64-bit ARM
    Aarch64,
    /// An architecture that this version does not know, by its number.
    Other(u8),
}

impl Architecture {
    /// The architecture that this crate was compiled for.
    pub const OWN: Self = match () {
        () if cfg!(target_arch = "x86_64") => Self::X86_64,
        () if cfg!(target_arch = "aarch64") => Self::Aarch64,
        () => Self::Other(0),
    };

    fn number(self) -> u8 {
        match self {
            Self::X86_64 => 1,
            Self::Aarch64 => 2,
            Self::Other(number) => number,
        }
    }
}

pub(crate) fn header(architecture: Architecture) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[10] = architecture.number();
    let sum = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Returns a trace's architecture and version.
pub(crate) fn read_header(bytes: &[u8; HEADER_BYTES]) -> Result<(Architecture, u16), TraceError> {
    if bytes[..8] != MAGIC {
        return Err(TraceError::NotATrace);
    }
    let found = u16::from_le_bytes([bytes[8], bytes[9]]);
    if word(bytes, 12) != crc32fast::hash(&bytes[..12]) {
        let damage = Damage::Checksum;
        return Err(TraceError::Damaged { offset: 8, damage });
    }
    if found > VERSION {
        let known = VERSION;
        return Err(TraceError::Newer { found, known });
    }
    let architecture = match bytes[10] {
        1 => Architecture::X86_64,
        2 => Architecture::Aarch64,
        other => Architecture::Other(other),
    };
    Ok((architecture, found))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Records,
    Operations,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkHeader {
    pub kind: Kind,
    /// Size of the compressed content in bytes.
    pub compressed: u32,
    /// Size of the decompressed content in bytes.
    pub content: u32,
    /// Number of operations in the content.
    pub operations: u32,
    /// The checksum of the compressed content.
    pub sum: u32,
}

impl ChunkHeader {
    pub(crate) fn to_bytes(self) -> [u8; CHUNK_HEADER_BYTES] {
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        bytes[0] = match self.kind {
            Kind::Records => 1,
            Kind::Operations => 2,
        };
        let words = [self.compressed, self.content, self.operations, self.sum];
        for (place, word) in words.into_iter().enumerate() {
            bytes[4 + 4 * place..8 + 4 * place].copy_from_slice(&word.to_le_bytes());
        }
        let sum = crc32fast::hash(&bytes[..20]);
        bytes[20..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; CHUNK_HEADER_BYTES]) -> Result<Self, Damage> {
        if word(bytes, 20) != crc32fast::hash(&bytes[..20]) {
            return Err(Damage::Checksum);
        }
        let kind = match bytes[0] {
            1 => Kind::Records,
            2 => Kind::Operations,
            other => return Err(Damage::Code(other)),
        };
        let [compressed, content, operations, sum] = [4, 8, 12, 16].map(|at| word(bytes, at));
        for length in [compressed, content] {
            if length as usize > MAX_LENGTH {
                return Err(Damage::Length(length.into()));
            }
        }
        Ok(Self {
            kind,
            compressed,
            content,
            operations,
            sum,
        })
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
