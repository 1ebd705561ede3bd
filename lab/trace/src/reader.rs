//! Reads a trace.

use std::collections::HashMap;
use std::io::{ErrorKind, Read};

use zstd::bulk::Decompressor;

use crate::decode::{self, Limits, Start};
use crate::error::{Damage, TraceError};
use crate::known::Known;
use crate::layout::{
    Architecture, CHUNK_HEADER_BYTES, ChunkHeader, HEADER_BYTES, Kind, MAGIC, MAX_CONTENT,
    STACKS_SINCE, read_header,
};
use crate::operation::Step;
use crate::records::{Record, Recording, Totals};

/// Way in which a trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The trace is complete.
    Complete(Totals),
    /// The trace is cut off. Everything before the offset was read.
    CutOff {
        /// Offset of the end of the last complete chunk, in bytes.
        offset: u64,
    },
}

/// Reader of a trace from its beginning to its end, chunk by chunk. Its memory does not depend on
/// the number of operations.
pub struct Reader<R> {
    source: R,
    offset: u64,
    architecture: Architecture,
    version: u16,
    known: Known,
    recording: Recording,
    decompressor: Decompressor<'static>,
    compressed: Vec<u8>,
    content: Vec<u8>,
    /// Number of the next block of each process; `None` after a chunk that was not visited.
    blocks: HashMap<u32, Option<u64>>,
    ending: Option<Ending>,
}

/// A part of a trace.
pub enum Chunk<'a> {
    /// Events that are not operations.
    Records(Vec<Record>),
    /// Operations of one process.
    Operations(Operations<'a>),
}

impl Chunk<'_> {
    /// Calls `visit` with the process and each step of a chunk of operations. Does nothing for a
    /// chunk of records.
    ///
    /// # Errors
    /// Returns an error if the chunk is damaged. The steps before the damage were visited.
    pub fn visit(self, mut visit: impl FnMut(u32, Step)) -> Result<(), TraceError> {
        match self {
            Self::Records(_) => Ok(()),
            Self::Operations(mut operations) => {
                let process = operations.process;
                operations.visit(|step| visit(process, step))
            }
        }
    }
}

/// Operations of one process.
pub struct Operations<'a> {
    /// The number of the process in the trace.
    pub process: u32,
    /// Number of operations.
    pub count: u32,
    /// Number of the first block that an operation of this chunk makes.
    pub first_block: u64,
    /// Size of the compressed content in bytes.
    pub bytes: u64,
    /// Size of the decompressed content in bytes.
    pub content_bytes: u64,
    start: Start,
    content: &'a [u8],
    limits: Limits,
    offset: u64,
    next_block: &'a mut Option<u64>,
}

impl Operations<'_> {
    /// Calls `visit` with each step.
    ///
    /// # Errors
    /// Returns an error if the chunk is damaged. The steps before the damage were visited.
    #[inline]
    pub fn visit(&mut self, visit: impl FnMut(Step)) -> Result<(), TraceError> {
        let offset = self.offset;
        let damaged = |damage| TraceError::Damaged { offset, damage };
        let (limits, count) = (self.limits, self.count);
        let next = decode::visit(self.start, self.content, limits, count, visit);
        *self.next_block = Some(next.map_err(damaged)?);
        Ok(())
    }
}

/// Fills `buffer` from `source`. Returns the number of bytes read, which is smaller than the buffer
/// only if the source has ended.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> Result<usize, TraceError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(filled)
}

impl<R: Read> Reader<R> {
    /// Reads the beginning of a trace. Reads the content of each chunk of `source` in one piece, so
    /// no buffered reader is needed.
    ///
    /// # Errors
    /// Returns an error if reading fails, or if the source is no trace, has a newer version, is
    /// damaged, or ends before its first chunk does.
    pub fn new(mut source: R) -> Result<Self, TraceError> {
        let mut header = [0; HEADER_BYTES];
        let there = fill(&mut source, &mut header)?;
        if there < HEADER_BYTES {
            let begins = there > 0 && header[..there].iter().zip(&MAGIC).all(|(a, b)| a == b);
            return Err(match begins {
                true => TraceError::CutOffAtStart,
                false => TraceError::NotATrace,
            });
        }
        let (architecture, version) = read_header(&header)?;
        let mut reader = Self {
            source,
            offset: HEADER_BYTES as u64,
            architecture,
            version,
            known: Known::default(),
            recording: Recording::default(),
            decompressor: Decompressor::new()?,
            compressed: Vec::new(),
            content: Vec::new(),
            blocks: HashMap::new(),
            ending: None,
        };
        let first = reader.read_chunk()?.ok_or(TraceError::CutOffAtStart)?;
        let mut records = if first.kind == Kind::Records {
            reader.records(HEADER_BYTES as u64)?
        } else {
            Vec::new()
        };
        match (records.pop(), records.pop()) {
            (Some(Record::Recording(recording)), None) if recording.functions.len() < 256 => {
                reader.recording = recording;
                Ok(reader)
            }
            _ => Err(TraceError::Damaged {
                offset: HEADER_BYTES as u64,
                damage: Damage::Record,
            }),
        }
    }

    /// Returns the description of the recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Returns the architecture of the machine on which the trace was recorded.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Returns the number of bytes up to the end of the last chunk that was read.
    pub fn bytes_read(&self) -> u64 {
        self.offset
    }

    /// Returns how the trace ends; `None` before [`next_chunk`](Self::next_chunk) has reached the
    /// end.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Returns the next part of the trace; `None` at its end.
    ///
    /// # Errors
    /// Returns an error if reading fails or the trace is damaged.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk<'_>>, TraceError> {
        if self.ending.is_some() {
            return Ok(None);
        }
        let offset = self.offset;
        let damaged = |damage| TraceError::Damaged { offset, damage };
        let Some(header) = self.read_chunk()? else {
            return Ok(None);
        };
        if header.kind == Kind::Records {
            let records = self.records(offset)?;
            if let Some(Record::Totals(totals)) = records.last() {
                self.ending = Some(Ending::Complete(*totals));
                if fill(&mut self.source, &mut [0])? > 0 {
                    return Err(TraceError::Damaged {
                        offset: self.offset,
                        damage: Damage::Length(0),
                    });
                }
            }
            return Ok(Some(Chunk::Records(records)));
        }
        let mut bytes = &self.content[..];
        let start = Start::take(&mut bytes).map_err(damaged)?;
        let next_block = self.blocks.entry(start.process).or_insert(Some(0));
        if next_block
            .take()
            .is_some_and(|next| next != start.next_block)
        {
            return Err(damaged(Damage::Reference));
        }
        Ok(Some(Chunk::Operations(Operations {
            process: start.process,
            count: header.operations,
            first_block: start.next_block,
            bytes: header.compressed.into(),
            content_bytes: header.content.into(),
            start,
            content: bytes,
            limits: Limits {
                functions: self.recording.functions.len() as u8,
                stacks: self.known.stacks,
            },
            offset,
            next_block,
        })))
    }

    /// Reads and decompresses a chunk. Returns `None` if the trace was cut off here.
    fn read_chunk(&mut self) -> Result<Option<ChunkHeader>, TraceError> {
        let offset = self.offset;
        let damaged = |damage| TraceError::Damaged { offset, damage };
        let mut header = [0; CHUNK_HEADER_BYTES];
        let there = fill(&mut self.source, &mut header)?;
        if there < CHUNK_HEADER_BYTES {
            self.ending = Some(Ending::CutOff { offset });
            return Ok(None);
        }
        let header = ChunkHeader::from_bytes(&header).map_err(damaged)?;
        self.compressed.resize(header.compressed as usize, 0);
        if fill(&mut self.source, &mut self.compressed)? < self.compressed.len() {
            self.ending = Some(Ending::CutOff { offset });
            return Ok(None);
        }
        if crc32fast::hash(&self.compressed) != header.sum {
            return Err(damaged(Damage::Checksum));
        }
        self.content.clear();
        self.content
            .reserve_exact((header.content as usize).min(MAX_CONTENT));
        let length = self
            .decompressor
            .decompress_to_buffer(&self.compressed, &mut self.content);
        if length.ok() != Some(header.content as usize) {
            return Err(damaged(Damage::Compression));
        }
        self.offset += (CHUNK_HEADER_BYTES + self.compressed.len()) as u64;
        Ok(Some(header))
    }

    /// Parses the content of the chunk at `offset`, and checks its records.
    fn records(&mut self, offset: u64) -> Result<Vec<Record>, TraceError> {
        let damaged = |damage| TraceError::Damaged { offset, damage };
        let records: Vec<Record> =
            serde_json::from_slice(&self.content).map_err(|_| damaged(Damage::Record))?;
        for record in &records {
            if self.version < STACKS_SINCE && matches!(record, Record::Module(_) | Record::Stack(_))
            {
                return Err(damaged(Damage::Record));
            }
            self.known.add(record).map_err(damaged)?;
        }
        Ok(records)
    }
}
