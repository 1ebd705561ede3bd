//! Tests that the child of a fork reuses the memory of the parent's other threads.

use std::ffi::{c_int, c_void};
use std::sync::mpsc::channel;

use heapdrome_bumpmalloc::Bumpmalloc;
use heapdrome_malloc_abi::exported::{free, libc, mallinfo2, malloc, start};

/// Number of blocks. Together they fill many chunks.
const BLOCKS: usize = 64 << 10;
const SIZE: usize = 1 << 10;
/// Maximum number of bytes that bumpmalloc reserves in one batch.
const BATCH: usize = 16 << 20;

// Exit statuses of the child.
const DONE: c_int = 0;
const NO_MEMORY: c_int = 1;
const GREW: c_int = 2;
const OVERWRITTEN: c_int = 3;

/// Blocks whose bytes are all 1. One thread allocates them, and another frees them.
struct Blocks(Vec<*mut c_void>);

// SAFETY: only the thread that owns this value uses the blocks.
unsafe impl Send for Blocks {}

/// Returns a block full of `byte`, or null.
fn allocate(byte: c_int) -> *mut c_void {
    let block = malloc::<Bumpmalloc>(SIZE);
    if !block.is_null() {
        // SAFETY: the block is new and has `SIZE` bytes.
        unsafe { libc::memset(block, byte, SIZE) };
    }
    block
}

/// Frees all blocks except the first, and allocates the same number again. Returns the exit status
/// of the child. Does not panic, and allocates only with bumpmalloc.
fn replace(blocks: &[*mut c_void]) -> c_int {
    let Some((&kept, others)) = blocks.split_first() else {
        return NO_MEMORY;
    };
    let before = mallinfo2::<Bumpmalloc>().arena;
    for &block in others {
        // SAFETY: the block is live, and not used again.
        unsafe { free::<Bumpmalloc>(block) };
    }
    for _ in others {
        if allocate(2).is_null() {
            return NO_MEMORY;
        }
    }
    if mallinfo2::<Bumpmalloc>().arena > before + BATCH {
        return GREW;
    }
    // SAFETY: the block is live, and its bytes were all written.
    let bytes = unsafe { std::slice::from_raw_parts(kept.cast::<u8>(), SIZE) };
    if bytes.iter().any(|&byte| byte != 1) {
        return OVERWRITTEN;
    }
    DONE
}

/// Runs `act` in a child process. Returns the wait status of the child, which exits with the result
/// of `act`. An alarm kills a child that hangs.
fn in_a_child(act: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the child calls only the kernel and bumpmalloc, whose fork handlers are registered.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(60);
            libc::_exit(act());
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    }
}

#[test]
fn full_chunks_of_another_thread_serve_the_child_when_it_has_freed_what_is_in_them() {
    start::<Bumpmalloc>();
    let (give, taken) = channel();
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let blocks = (0..BLOCKS).map(|_| allocate(1)).collect();
            give.send(Blocks(blocks)).expect("the test waits for them");
            // Keeps the thread alive while the process forks.
            ended.recv().expect_err("nothing is ever sent");
        });
        let Blocks(blocks) = taken.recv().expect("the thread sends them");
        assert!(blocks.iter().all(|block| !block.is_null()));
        let status = in_a_child(|| replace(&blocks));
        drop(end);
        assert!(libc::WIFEXITED(status), "status {status:#x}");
        assert_eq!(libc::WEXITSTATUS(status), DONE);
    });
}
