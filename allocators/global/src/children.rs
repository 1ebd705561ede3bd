//! Children of a program whose other threads constantly allocate.

use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr,
    Ordering::{AcqRel, Relaxed},
};

use heapdrome_malloc_abi::MallocAbi;

const THREADS: u64 = 4;
const FORKS: usize = 20;
/// Time limit of a child in seconds. A child normally takes milliseconds.
const PATIENCE: u32 = 60;

/// Block that any thread may free.
struct Block {
    bytes: Vec<u8>,
}

static SHARED: [AtomicPtr<Block>; 64] = [const { AtomicPtr::new(null_mut()) }; 64];
static STOP: AtomicBool = AtomicBool::new(false);

/// Puts a block into a slot, and frees the block that it replaces.
fn exchange(slot: usize, block: *mut Block) {
    // AcqRel: a thread that takes a block sees the writes of the thread that put it there.
    let old = SHARED[slot].swap(block, AcqRel);
    if !old.is_null() {
        // SAFETY: a pointer from a slot is a box that no other code owns.
        let old = unsafe { Box::from_raw(old) };
        assert!(old.bytes.iter().all(|&byte| byte == 7));
    }
}

fn busy(mut state: u64) {
    // Relaxed: no other memory depends on this flag.
    while !STOP.load(Relaxed) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let draw = (state >> 33) as usize;
        let most = if draw.is_multiple_of(100) {
            600_000
        } else {
            3000
        };
        let bytes = vec![7; draw % most + 1];
        exchange(
            (state >> 20) as usize % SHARED.len(),
            Box::into_raw(Box::new(Block { bytes })),
        );
    }
}

/// Checks in a child that it can free blocks of the parent's other threads, and start new threads.
fn child() {
    for slot in 0..SHARED.len() {
        exchange(slot, null_mut());
    }
    let mut blocks: Vec<Vec<usize>> = (0..2000).map(|at| vec![at; at % 40 * 12 + 1]).collect();
    blocks.push(vec![2000; 400_000]);
    assert!(
        blocks
            .iter()
            .enumerate()
            .all(|(at, block)| block.iter().all(|&word| word == at))
    );
    let thread =
        std::thread::spawn(move || blocks.into_iter().map(|block| block.len()).sum::<usize>());
    assert!(thread.join().expect("all was well") > 400_000);
}

/// Forks a child that calls `body`, and waits for the child.
fn in_child(body: fn()) {
    // SAFETY: allocating in the child of a multithreaded process is the property under test. The
    // child has a time limit, and exits without running destructors.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        // SAFETY: no precondition.
        unsafe { libc::alarm(PATIENCE) };
        body();
        // SAFETY: no precondition.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the status is a local variable.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(
        status, 0,
        "a child ended otherwise, by SIGALRM (14) if it hung"
    );
}

/// Constantly returns memory to the system, so that locks are held when the process forks.
fn trim<A: MallocAbi>() {
    // Relaxed: no other memory depends on this flag.
    while !STOP.load(Relaxed) {
        heapdrome_malloc_abi::trim::<A>(0);
    }
}

/// Checks that children can allocate, free and start threads, while the parent forks often and its
/// threads allocate.
pub fn forks<A: MallocAbi + 'static>() {
    let mut threads: Vec<_> = (1..=THREADS)
        .map(|seed| std::thread::spawn(move || busy(seed)))
        .collect();
    threads.push(std::thread::spawn(trim::<A>));
    for _ in 0..FORKS {
        in_child(child);
    }
    STOP.store(true, Relaxed);
    for thread in threads {
        thread.join().expect("all was well");
    }
}

/// Allocates enough blocks for a slow path. Asserts that the process then has a background thread.
fn has_background_thread() {
    let blocks: Vec<Vec<u8>> = (0..10_000).map(|_| Vec::with_capacity(1000)).collect();
    let threads = std::fs::read_dir("/proc/self/task").expect("the kernel tells");
    assert_eq!(threads.count(), 2);
    drop(black_box(blocks));
}

/// Checks that with ELFMALLOC_BACKGROUND_PURGE the process and its child each have one additional
/// thread.
pub fn background() {
    has_background_thread();
    in_child(has_background_thread);
}
