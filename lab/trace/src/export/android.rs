//! Exports the lines that Android's `memory_replay` reads, one for each call: `tid: malloc 0x1000
//! 100`.

use std::collections::HashMap;
use std::io::Write;

use super::{Block, Call, Format};

/// Difference between the addresses of two consecutive blocks. No address is used twice.
const STEP: u64 = 16;

/// Address of the first block. It is not 0, because address 0 stands for no block.
const FIRST: u64 = 0x1000;

pub(super) struct Lines<'a, W> {
    sink: &'a mut W,
    tids: HashMap<u32, u32>,
}

impl<'a, W: Write> Lines<'a, W> {
    pub(super) fn new(sink: &'a mut W) -> Self {
        let tids = HashMap::new();
        Self { sink, tids }
    }
}

impl<W: Write> Format for Lines<'_, W> {
    fn thread(&mut self, thread: u32, tid: u32) {
        self.tids.insert(thread, tid);
    }

    fn name(&mut self, number: u64, _size: u64) -> u64 {
        number.wrapping_mul(STEP).wrapping_add(FIRST)
    }

    fn call(&mut self, thread: u32, function: &str, call: &Call) -> std::io::Result<()> {
        let tid = self.tids.get(&thread).copied().unwrap_or(thread + 1);
        let sink = &mut self.sink;
        match call {
            Call::Make(Block {
                name,
                size,
                alignment,
                ..
            }) => match function {
                _ if *alignment > 0 => {
                    writeln!(sink, "{tid}: memalign {name:#x} {alignment} {size}")
                }
                "calloc" => writeln!(sink, "{tid}: calloc {name:#x} 1 {size}"),
                "realloc" | "reallocarray" => {
                    writeln!(sink, "{tid}: realloc {name:#x} 0x0 {size}")
                }
                _ => writeln!(sink, "{tid}: malloc {name:#x} {size}"),
            },
            Call::Resize(old, new) => writeln!(
                sink,
                "{tid}: realloc {:#x} {:#x} {}",
                new.name, old.name, new.size
            ),
            Call::Free(None) => writeln!(sink, "{tid}: free 0x0"),
            Call::Free(Some(block)) => writeln!(sink, "{tid}: free {:#x}", block.name),
        }
    }

    fn finish(&mut self, _live: Vec<Block>) -> std::io::Result<()> {
        self.sink.flush()
    }
}
