//! Writes the threads' operations as pieces of one file, while the trace is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::program::{PAGE_WORDS, WORD};
use crate::words::Kind;

/// Size of a thread's first piece in words. Small, because in some programs most threads do little.
const FIRST_PIECE: usize = 64;

/// Maximum size of a piece in words. The engine keeps two pieces of each thread in memory.
const LARGEST_PIECE: usize = 16 << 10;

/// Size of a jump from one piece to the next, in words.
const JUMP: usize = 4;

/// Maximum number of words of one operation.
const LONGEST: usize = 5;

/// The pieces of all threads.
pub(super) struct Streams {
    file: File,
    /// Offset of the next piece in the file, in words.
    next: u64,
    threads: Vec<Stream>,
    digest: u64,
}

struct Stream {
    first: u64,
    /// Offset in the file of the piece that is being filled, in words.
    at: u64,
    piece: usize,
    words: Vec<u64>,
}

impl Streams {
    /// Starts writing pieces into a file, after the page of its header.
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            next: PAGE_WORDS,
            threads: Vec::new(),
            digest: 0,
        }
    }

    /// Begins the next thread.
    pub(super) fn add_thread(&mut self) {
        let at = self.place(FIRST_PIECE);
        self.threads.push(Stream {
            first: at,
            at,
            piece: FIRST_PIECE,
            words: Vec::with_capacity(FIRST_PIECE),
        });
    }

    /// Adds an operation of a thread.
    pub(super) fn emit(&mut self, thread: u32, words: &[u64]) -> io::Result<()> {
        for word in words {
            self.digest = (self.digest.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        let stream = &mut self.threads[thread as usize];
        stream.words.extend_from_slice(words);
        match stream.words.len() + LONGEST + JUMP > stream.piece {
            true => self.jump(thread),
            false => Ok(()),
        }
    }

    /// Ends a thread: writes its last piece to the file, and drops the piece.
    pub(super) fn end(&mut self, thread: u32) -> io::Result<()> {
        self.emit(thread, &[Kind::End.word()])?;
        let stream = &mut self.threads[thread as usize];
        let words = std::mem::take(&mut stream.words);
        write(&self.file, stream.at, &words)
    }

    /// Writes the table of threads. Returns the table's offset in words, the size of the file in
    /// bytes, and the digest of all operations.
    pub(super) fn finish(mut self) -> io::Result<(u64, u64, u64)> {
        let first: Vec<u64> = self.threads.iter().map(|stream| stream.first).collect();
        let table = self.place(first.len().max(PAGE_WORDS as usize));
        write(&self.file, table, &first)?;
        let bytes = (table + first.len() as u64) * WORD;
        self.file.set_len(bytes)?;
        Ok((table, bytes, self.digest))
    }

    /// Writes a full piece, and continues the thread in a new one.
    fn jump(&mut self, thread: u32) -> io::Result<()> {
        let piece = (2 * self.threads[thread as usize].piece).min(LARGEST_PIECE);
        let next = self.place(piece);
        let stream = &mut self.threads[thread as usize];
        let bytes = piece as u64 * WORD;
        stream
            .words
            .extend([Kind::Jump.word(), next, bytes, stream.at]);
        write(&self.file, stream.at, &stream.words)?;
        stream.words.clear();
        (stream.at, stream.piece) = (next, piece);
        Ok(())
    }

    /// Reserves room for a piece and returns the piece's offset. Large pieces begin at a page
    /// boundary.
    fn place(&mut self, words: usize) -> u64 {
        if words as u64 >= PAGE_WORDS {
            self.next = self.next.next_multiple_of(PAGE_WORDS);
        }
        let place = self.next;
        self.next += words as u64;
        place
    }
}

fn write(file: &File, at: u64, words: &[u64]) -> io::Result<()> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    file.write_all_at(&bytes, at * WORD)
}
