//! Reads the input as a trace, and then reads a trace that it builds from the input. The reader
//! must not panic, and its memory must stay within a limit.
//!
//! A fuzzer rarely finds a correct checksum, so the target computes those of the built trace. The
//! first byte of the input contains the flags of that trace. A sequence of pieces follows. Each has
//! a byte of flags, a length, and the content of a chunk.

#![no_main]

use std::alloc::System;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heapdrome_trace::{
    Chunk, Ending, Foreign, Reader, Record, Recording, Step, Time, cut, export, merge, summarize,
    text,
};
use libfuzzer_sys::fuzz_target;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use zstd::bulk::Compressor;

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Maximum number of bytes that the reader may hold for any trace: its two buffers, and the records
/// of one chunk, which take a few times their length in the file.
const MOST_MEMORY: usize = 64 << 20;

/// Number of bytes of content after which a trace with the flag [`whole::TOOLS`] gets no further
/// chunk, because the tools keep its live blocks in memory.
const MOST_CONTENT: usize = 64 << 10;

/// Number of input bytes between two lines of progress on standard error.
const TOLD: u64 = 10_000_000;

static READ: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static COMPRESSOR: RefCell<Compressor<'static>> =
        RefCell::new(Compressor::new(1).expect("memory"));
}

/// Flags of the whole trace.
mod whole {
    /// Visits only every other chunk of operations.
    pub const SKIP: u8 = 1;
    /// Removes the last byte of the trace.
    pub const CUT: u8 = 2;
    /// Omits the recording, which otherwise precedes the pieces.
    pub const BARE: u8 = 4;
    /// Uses version 1 of the format, which has no stacks.
    pub const OLD: u8 = 16;
    /// Also summarizes, cuts, merges and exports the trace, without a limit on memory.
    pub const TOOLS: u8 = 8;
}

/// Flags of a piece.
mod piece {
    /// Makes a chunk of records instead of operations.
    pub const RECORDS: u8 = 1;
    /// Stores the content as if it were compressed already.
    pub const COMPRESSED: u8 = 2;
    /// Gives the header a wrong length of the content.
    pub const LENGTH: u8 = 4;
    /// Takes the number of operations from the end of the content.
    pub const COUNT: u8 = 8;
    /// Repeats the content up to 32 KiB, or up to the limit of a chunk if the highest three bits
    /// are set, too.
    pub const REPEATED: u8 = 16;
}

fn recording() -> Recording {
    Recording {
        functions: ["malloc", "realloc", "free", "_ZdlPv"]
            .map(String::from)
            .to_vec(),
        ..Recording::default()
    }
}

fn header(mode: u8) -> Vec<u8> {
    let mut bytes = b"hdtrace\n\x02\x00\x01\x00".to_vec();
    if mode & whole::OLD != 0 {
        bytes[8] = 1;
    }
    let sum = crc32fast::hash(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Appends a chunk with correct checksums. If `kind` has the flag `REPEATED`, repeats the content
/// up to 32 KiB, or up to the limit of a chunk if `large` is true and the highest three bits of
/// `kind` are set. Returns the content's length.
fn chunk(trace: &mut Vec<u8>, kind: u8, content: &[u8], operations: u32, large: bool) -> usize {
    let mut content = content.to_vec();
    if kind & piece::REPEATED != 0 && !content.is_empty() {
        let limit = if large && kind >> 5 == 7 {
            4 << 20
        } else {
            32 << 10
        };
        content = content.repeat((limit / content.len()).max(1));
    }
    let compressed = match kind & piece::COMPRESSED {
        0 => COMPRESSOR.with_borrow_mut(|it| it.compress(&content).expect("memory")),
        _ => content.clone(),
    };
    let length = match kind & piece::LENGTH {
        0 => content.len() as u32,
        _ => operations.rotate_left(7),
    };
    let start = trace.len();
    trace.extend([2 - (kind & piece::RECORDS), 0, 0, 0]);
    let sum = crc32fast::hash(&compressed);
    for word in [compressed.len() as u32, length, operations, sum] {
        trace.extend(word.to_le_bytes());
    }
    let sum = crc32fast::hash(&trace[start..]);
    trace.extend(sum.to_le_bytes());
    trace.extend(compressed);
    content.len()
}

/// Returns the number of operations that a chunk's header claims. Without [`piece::COUNT`], this is
/// one for every two bytes of content, because a fuzzer does not find the right number by itself.
fn count(kind: u8, content: &[u8]) -> u32 {
    match (kind & piece::COUNT, content.last_chunk()) {
        (0, _) | (_, None) => (content.len() / 2) as u32,
        (_, Some(last)) => u32::from_le_bytes(*last),
    }
}

fn trace(input: &[u8]) -> Option<(u8, Vec<u8>)> {
    let (&mode, mut rest) = input.split_first()?;
    let mut trace = header(mode);
    if mode & whole::BARE == 0 {
        let records = [Record::Recording(recording())];
        let first = serde_json::to_vec(&records).expect("records are JSON");
        chunk(&mut trace, piece::RECORDS, &first, 0, false);
    }
    let tools = mode & whole::TOOLS != 0;
    let mut total = 0;
    while let [kind, low, high, content @ ..] = rest {
        if tools && total > MOST_CONTENT {
            break;
        }
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (content, after) = content.split_at(length.min(content.len()));
        let large = !tools;
        total += chunk(&mut trace, *kind, content, count(*kind, content), large);
        rest = after;
    }
    if mode & whole::CUT != 0 {
        trace.pop();
    }
    Some((mode, trace))
}

/// Reads a trace to its end or its first damage, and checks its steps.
fn read(mode: u8, trace: &[u8]) -> Result<(), heapdrome_trace::TraceError> {
    let region = Region::new(HEAP);
    let held = || {
        let change = region.change();
        change
            .bytes_allocated
            .saturating_sub(change.bytes_deallocated)
    };
    let mut reader = Reader::new(trace)?;
    let mut visited = true;
    let mut stacks = 0;
    while let Some(mut chunk) = reader.next_chunk()? {
        assert!(held() <= MOST_MEMORY, "{} bytes are held", held());
        if let Chunk::Records(records) = &chunk {
            let new = records.iter().filter(|it| matches!(it, Record::Stack(_)));
            stacks += new.count() as u32;
        }
        if let Chunk::Operations(operations) = &mut chunk {
            visited ^= mode & whole::SKIP != 0;
            if !visited {
                continue;
            }
            let (process, mut next) = (operations.process, operations.first_block);
            let mut time = Time(0);
            operations.visit(|step: Step| {
                use heapdrome_trace::Operation::{Free, Resize};
                assert!(step.time >= time && step.operation.function() < 4);
                let has_stack = step.stack.is_some_and(|stack| stack < stacks);
                let may_have_one = step.operation.may_have_stack() && mode & whole::OLD == 0;
                assert!(step.stack.is_none() || has_stack && may_have_one);
                if let Free { block, .. } | Resize { block, .. } = step.operation {
                    assert!(
                        block < next,
                        "process {process} frees a block of the future"
                    );
                }
                time = step.time;
                next += u64::from(step.operation.makes_block());
            })?;
        }
    }
    match reader.ending() {
        Some(Ending::CutOff { offset }) => assert!(offset <= trace.len() as u64),
        Some(Ending::Complete(_)) => {}
        ending => panic!("read to the end, which is {ending:?}"),
    }
    Ok(())
}

/// Summarizes, cuts, merges and exports a trace.
fn tools(trace: &[u8]) -> Result<(), heapdrome_trace::TraceError> {
    let open = || Reader::new(trace);
    let whole = summarize(&mut open()?)?;
    let half = Time(whole.last.0 / 2);
    let parts = [(Time(0), half), (half, Time(u64::MAX))];
    let mut counts = Vec::new();
    for (from, to) in parts {
        if let Ok(part) = cut(&mut open()?, from, to, Vec::new()) {
            counts.push(summarize(&mut Reader::new(&part[..])?)?.operations);
        }
    }
    assert!(counts.len() < 2 || counts[0] + counts[1] >= whole.operations);
    if let Ok(both) = merge(&mut [open()?, open()?], Vec::new()) {
        let both = summarize(&mut Reader::new(&both[..])?)?;
        assert_eq!(both.operations, 2 * whole.operations);
    }
    text(&mut open()?, None, std::io::sink())?;
    for format in [Foreign::Android, Foreign::MallocBench] {
        export(&mut open()?, 0, format, std::io::sink())?;
    }
    Ok(())
}

fuzz_target!(|input: &[u8]| {
    let before = READ.fetch_add(input.len() as u64, Relaxed);
    let after = before + input.len() as u64;
    if before / TOLD != after / TOLD {
        eprintln!("reader: {after} bytes of input");
    }
    // Reads the input as a trace, then as flags and pieces of one.
    let _ = read(0, input);
    if let Some((mode, trace)) = trace(input) {
        let _ = read(mode, &trace);
        if mode & whole::TOOLS != 0 {
            let _ = tools(&trace);
        }
    }
});
