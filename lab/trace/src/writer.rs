//! Writes a trace.

use std::collections::BTreeMap;
use std::io::Write;

use zstd::bulk::Compressor;

use crate::encode::Encoder;
use crate::error::TraceError;
use crate::known::Known;
use crate::layout::{self, Architecture, ChunkHeader, Kind};
use crate::operation::Step;
use crate::records::{Frame, Record, Recording, Totals};

/// Size of encoded operations, in bytes, at which a chunk is written.
const CHUNK_CONTENT: usize = 256 << 10;

/// Estimated size of the added records, in bytes, at which a chunk is written.
const RECORDS_CONTENT: usize = 64 << 10;

/// Compression level of zstd: its fastest standard level. A trace of CPython handling JSON is a
/// sixth smaller at level 3.
const LEVEL: i32 = 1;

/// Writer of a trace, chunk by chunk. Passes each chunk to the sink in one call.
pub struct Writer<W: Write> {
    sink: W,
    compressor: Compressor<'static>,
    chunk: Vec<u8>,
    /// For each process, the chunk that is being filled.
    processes: BTreeMap<u32, Encoder>,
    known: Known,
    records: Vec<Record>,
    records_bytes: usize,
    operations: u64,
    repaired: u64,
    collector_time: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a trace in `sink`. Writes to the sink in large pieces, so no buffered writer is
    /// needed.
    ///
    /// # Errors
    /// Returns an error if the sink does.
    pub fn new(sink: W, recording: &Recording) -> Result<Self, TraceError> {
        Self::for_architecture(sink, recording, Architecture::OWN)
    }

    /// Begins a trace of a program that was recorded on the given architecture.
    ///
    /// # Errors
    /// Returns an error if the sink does.
    pub fn for_architecture(
        mut sink: W,
        recording: &Recording,
        architecture: Architecture,
    ) -> Result<Self, TraceError> {
        sink.write_all(&layout::header(architecture))?;
        let mut writer = Self {
            sink,
            compressor: Compressor::new(LEVEL)?,
            chunk: Vec::new(),
            processes: BTreeMap::new(),
            known: Known::default(),
            records: Vec::new(),
            records_bytes: 0,
            operations: 0,
            repaired: 0,
            collector_time: 0,
        };
        writer.record(Record::Recording(recording.clone()))?;
        writer.flush()?;
        Ok(writer)
    }

    /// Adds an event, which precedes all operations that are added later.
    ///
    /// # Errors
    /// Returns an error if the sink does, if a module or stack does not have the next number, or if
    /// a stack has too many frames or refers to a module that was not added.
    pub fn record(&mut self, record: Record) -> Result<(), TraceError> {
        let known = self.known.add(&record);
        known.map_err(|_| TraceError::Order("its number or one of its frames is wrong"))?;
        let finished = match &record {
            Record::Finish(finish) => Some(finish.process),
            _ => None,
        };
        if let Some(mut encoder) = finished.and_then(|process| self.processes.remove(&process)) {
            self.write_operations(&mut encoder)?;
        }
        self.records_bytes += match &record {
            Record::Process(process) => process.program.len() + process.allocator.len(),
            Record::Bypass(bypass) => bypass.program.len() + bypass.reason.len(),
            Record::Module(module) => module.path.len() + module.build_id.len(),
            Record::Stack(stack) => stack.frames.len() * size_of::<Frame>(),
            _ => 0,
        } + size_of::<Record>();
        self.records.push(record);
        if self.records_bytes >= RECORDS_CONTENT {
            self.write_records()?;
        }
        Ok(())
    }

    /// Adds an operation of a process.
    ///
    /// # Errors
    /// Returns an error if the sink does, or if the operation is earlier than the last one of its
    /// process, frees a block that was not made, or has a stack that was not added or that it
    /// cannot have.
    pub fn operation(&mut self, process: u32, step: Step) -> Result<(), TraceError> {
        if step.stack.is_some_and(|stack| stack >= self.known.stacks) {
            return Err(TraceError::Order("its stack was not added"));
        }
        let encoder = self
            .processes
            .entry(process)
            .or_insert_with(|| Encoder::new(process));
        encoder.add(step)?;
        self.operations += 1;
        if encoder.bytes().len() < CHUNK_CONTENT {
            return Ok(());
        }
        // The records of a process and its threads must precede their operations.
        self.write_records()?;
        if let Some(mut encoder) = self.processes.remove(&process) {
            self.write_operations(&mut encoder)?;
            self.processes.insert(process, encoder);
        }
        Ok(())
    }

    /// Adds to the number of operations whose order was repaired.
    pub fn repaired(&mut self, operations: u64) {
        self.repaired += operations;
    }

    /// Sets the processor time of the collector, in nanoseconds.
    pub fn collector_time(&mut self, nanoseconds: u64) {
        self.collector_time = nanoseconds;
    }

    /// Returns the number of operations that were added.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Writes everything that was added.
    ///
    /// # Errors
    /// Returns an error if the sink does.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        self.write_records()?;
        for (process, mut encoder) in std::mem::take(&mut self.processes) {
            self.write_operations(&mut encoder)?;
            self.processes.insert(process, encoder);
        }
        Ok(self.sink.flush()?)
    }

    /// Completes the trace and returns the sink.
    ///
    /// # Errors
    /// Returns an error if the sink does.
    pub fn finish(mut self) -> Result<W, TraceError> {
        self.flush()?;
        let (operations, repaired) = (self.operations, self.repaired);
        let collector_time = self.collector_time;
        self.records.push(Record::Totals(Totals {
            operations,
            repaired,
            collector_time,
        }));
        self.flush()?;
        Ok(self.sink)
    }

    fn write_records(&mut self) -> Result<(), TraceError> {
        if self.records.is_empty() {
            return Ok(());
        }
        let content = serde_json::to_vec(&self.records).map_err(std::io::Error::from)?;
        self.records.clear();
        self.records_bytes = 0;
        self.write_chunk(Kind::Records, &content, 0)
    }

    fn write_operations(&mut self, encoder: &mut Encoder) -> Result<(), TraceError> {
        if encoder.operations() > 0 {
            self.write_records()?;
            self.write_chunk(Kind::Operations, encoder.bytes(), encoder.operations())?;
            encoder.clear();
        }
        Ok(())
    }

    fn write_chunk(
        &mut self,
        kind: Kind,
        content: &[u8],
        operations: u32,
    ) -> Result<(), TraceError> {
        let compressed = self.compressor.compress(content)?;
        let header = ChunkHeader {
            kind,
            compressed: compressed.len() as u32,
            content: content.len() as u32,
            operations,
            sum: crc32fast::hash(&compressed),
        };
        self.chunk.clear();
        self.chunk.extend_from_slice(&header.to_bytes());
        self.chunk.extend_from_slice(&compressed);
        Ok(self.sink.write_all(&self.chunk)?)
    }
}
