//! Exports the protocol buffer `Tracefile` of ClaytonKnittel/malloc-bench.
//!
//! malloc-bench keeps blocks in a table whose length is the maximum number of live blocks, so
//! numbers of freed blocks are used again. Its format has no number for a block of 0 bytes, and
//! requires that all larger blocks are freed.

use std::io::Write;

use super::{Block, Call, Format};
use crate::varint::put;

/// Field numbers of `Tracefile`.
const LINES: u8 = 1;
const MAX_SIMULTANEOUS: u8 = 2;

/// Field numbers of `TraceLine`.
const MALLOC: u8 = 1;
const FREE: u8 = 2;
const REALLOC: u8 = 3;
const CALLOC: u8 = 4;

/// Functions that take the size of the freed block as an argument.
const SIZED: [&str; 6] = [
    "free_sized",
    "free_aligned_sized",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
];

pub(super) struct File<'a, W> {
    sink: &'a mut W,
    free_names: Vec<u64>,
    names: u64,
}

/// Encodes a message of integer fields. Omits fields that are `None`.
fn message(fields: &[(u8, Option<u64>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (field, value) in fields {
        if let Some(value) = value {
            bytes.push(field << 3);
            put(&mut bytes, *value);
        }
    }
    bytes
}

/// Encodes a message as a field of another message.
fn nested(field: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![field << 3 | 2];
    put(&mut bytes, content.len() as u64);
    bytes.extend_from_slice(content);
    bytes
}

/// Returns the number of a block; `None` for a block of 0 bytes.
fn id(block: &Block) -> Option<u64> {
    (block.size > 0).then_some(block.name)
}

impl<'a, W: Write> File<'a, W> {
    pub(super) fn new(sink: &'a mut W) -> Self {
        Self {
            sink,
            free_names: Vec::new(),
            names: 0,
        }
    }

    fn line(&mut self, kind: u8, fields: &[(u8, Option<u64>)]) -> std::io::Result<()> {
        let line = nested(kind, &message(fields));
        self.sink.write_all(&nested(LINES, &line))
    }

    fn free(&mut self, block: &Block, function: &str) -> std::io::Result<()> {
        let sized = SIZED.contains(&function) && block.size > 0;
        let aligned = block.alignment > 0 && function.contains("align");
        let size = sized.then_some(block.size);
        let alignment = aligned.then_some(block.alignment);
        self.line(FREE, &[(1, id(block)), (2, size), (3, alignment)])
    }

    fn make(&mut self, block: &Block, function: &str) -> std::io::Result<()> {
        let (id, size) = (id(block), Some(block.size));
        let alignment = (block.alignment > 0).then_some(block.alignment);
        match function {
            "calloc" => self.line(CALLOC, &[(1, id), (2, Some(1)), (3, size)]),
            "realloc" | "reallocarray" if id.is_some() => self.line(REALLOC, &[(1, id), (3, size)]),
            _ => self.line(MALLOC, &[(1, id), (2, size), (3, alignment)]),
        }
    }
}

impl<W: Write> Format for File<'_, W> {
    fn name(&mut self, _number: u64, size: u64) -> u64 {
        if size == 0 {
            return 0;
        }
        self.free_names.pop().unwrap_or_else(|| {
            self.names += 1;
            self.names - 1
        })
    }

    fn freed(&mut self, block: Block) {
        self.free_names.extend(id(&block));
    }

    fn call(&mut self, _thread: u32, function: &str, call: &Call) -> std::io::Result<()> {
        match call {
            Call::Make(block) => self.make(block, function),
            Call::Free(None) => self.line(FREE, &[]),
            Call::Free(Some(block)) => self.free(block, function),
            Call::Resize(old, new) if new.size == 0 => {
                self.free(old, function)?;
                self.make(new, function)
            }
            Call::Resize(old, new) => {
                self.line(REALLOC, &[(1, id(new)), (2, id(old)), (3, Some(new.size))])
            }
        }
    }

    fn finish(&mut self, live: Vec<Block>) -> std::io::Result<()> {
        for block in live.iter().filter(|block| id(block).is_some()) {
            self.free(block, "free")?;
        }
        let most = message(&[(MAX_SIMULTANEOUS, Some(self.names))]);
        self.sink.write_all(&most)?;
        self.sink.flush()
    }
}
