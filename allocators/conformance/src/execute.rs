//! Runs a program of allocator calls, and checks the results against a shadow heap.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, Mutex, PoisonError};

use crate::program::SLOTS;
use crate::shadow::Shadow;
use crate::{Operation, Program, Step, Subject};

/// Live block, with the seed of its contents.
struct Block {
    start: *mut u8,
    size: usize,
    id: u64,
}

// SAFETY: a block belongs to the thread that owns this value.
unsafe impl Send for Block {}

/// State of one run, shared by all threads.
struct Run<'a> {
    subject: &'a Subject,
    shadow: Shadow,
    inboxes: Vec<Mutex<VecDeque<Block>>>,
    ids: AtomicU64,
    failed: AtomicBool,
}

/// Runs every thread's steps, then frees the remaining blocks, some after their threads have ended.
///
/// # Errors
///
/// The fault that the thread with the lowest number found, or a fault after all threads ended.
/// Names the step that showed the fault, if a step did.
pub fn execute(subject: &Subject, program: &Program) -> Result<(), String> {
    let threads = program.threads();
    let run = Run {
        subject,
        shadow: Shadow::new(),
        inboxes: (0..threads).map(|_| Mutex::default()).collect(),
        ids: AtomicU64::new(1),
        failed: AtomicBool::new(false),
    };
    let barrier = Barrier::new(threads.max(1));
    let mut results = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let (run, barrier) = (&run, &barrier);
                scope.spawn(move || {
                    let steps: Vec<Step> = program
                        .0
                        .iter()
                        .filter(|step| step.thread == thread)
                        .copied()
                        .collect();
                    barrier.wait();
                    run.thread(&steps)
                })
            })
            .collect();
        for worker in workers {
            results.push(
                worker
                    .join()
                    .unwrap_or_else(|_| Err("a thread panicked".into())),
            );
        }
    });
    results.into_iter().collect::<Result<(), String>>()?;
    for inbox in &run.inboxes {
        let left = std::mem::take(&mut *inbox.lock().unwrap_or_else(PoisonError::into_inner));
        for block in left {
            run.free(Some(block))
                .map_err(|what| format!("after all threads ended: {what}"))?;
        }
    }
    Ok(())
}

impl Run<'_> {
    fn thread(&self, steps: &[Step]) -> Result<(), String> {
        let mut slots: Vec<Option<Block>> = (0..SLOTS).map(|_| None).collect();
        for (index, step) in steps.iter().enumerate() {
            if self.failed.load(Relaxed) {
                return Ok(());
            }
            self.step(step, &mut slots).map_err(|what| {
                self.failed.store(true, Relaxed);
                let line = Program(vec![*step]).to_string();
                format!("step {index} of its thread, {:?}: {what}", line.trim_end())
            })?;
        }
        for slot in &mut slots {
            self.free(slot.take())
                .map_err(|what| format!("at the end: {what}"))?;
        }
        Ok(())
    }

    fn step(&self, step: &Step, slots: &mut [Option<Block>]) -> Result<(), String> {
        let held = slots[step.slot].take();
        let kept = match step.operation {
            Operation::Reallocate => self.reallocate(held, step.size)?,
            Operation::Give => {
                if let Some(block) = held {
                    self.inbox(step.size).push_back(block);
                }
                None
            }
            Operation::Free => {
                self.free(held)?;
                None
            }
            Operation::Take => {
                self.free(held)?;
                self.inbox(step.thread).pop_front()
            }
            Operation::Allocate | Operation::Zeroed | Operation::Aligned => {
                self.free(held)?;
                self.allocate(step)?
            }
            Operation::Trim => {
                // SAFETY: no precondition.
                unsafe { (self.subject.malloc_trim)(step.size) };
                held
            }
        };
        slots[step.slot] = kept;
        Ok(())
    }

    fn inbox(&self, thread: usize) -> std::sync::MutexGuard<'_, VecDeque<Block>> {
        let inbox = &self.inboxes[thread % self.inboxes.len()];
        inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allocate(&self, step: &Step) -> Result<Option<Block>, String> {
        let size = step.size;
        let mut start: *mut c_void = null_mut();
        // SAFETY: the arguments satisfy each function's contract.
        unsafe {
            match step.operation {
                Operation::Zeroed => {
                    let element = if size.is_multiple_of(8) { 8 } else { 1 };
                    start = (self.subject.calloc)(size / element, element);
                }
                Operation::Aligned => {
                    (self.subject.posix_memalign)(&raw mut start, step.alignment, size);
                }
                _ => start = (self.subject.malloc)(size),
            }
        }
        if start.is_null() {
            return self.refused(None);
        }
        let start = start.cast::<u8>();
        if step.operation == Operation::Zeroed {
            // SAFETY: the block has `size` bytes, which calloc has initialised.
            let bytes = unsafe { std::slice::from_raw_parts(start, size) };
            if let Some(at) = first_not_zero(bytes) {
                return Err(format!("byte {at} of {start:p} is not zero"));
            }
        }
        self.admit(
            start,
            size,
            step.alignment.max(if size >= 16 { 16 } else { 8 }),
        )
        .map(Some)
    }

    /// Checks whether a null result is valid. `held` is the block that `realloc` should have
    /// resized, if any; it must be unchanged, and is live again.
    fn refused(&self, held: Option<Block>) -> Result<Option<Block>, String> {
        if !self.subject.refuses {
            return Err("null, where there is memory".into());
        }
        let Some(block) = held else { return Ok(None) };
        block.check(block.size)?;
        let entered = self.shadow.enter(block.start.addr(), block.size);
        entered.map_err(|_| "realloc gave a block away that it did not replace".to_owned())?;
        Ok(Some(block))
    }

    /// Checks a new block, records it in the shadow, and fills it.
    fn admit(&self, start: *mut u8, size: usize, alignment: usize) -> Result<Block, String> {
        if !start.addr().is_multiple_of(alignment) {
            return Err(format!("{start:p} is not a multiple of {alignment}"));
        }
        // SAFETY: the block was just allocated, so it is live.
        let usable = unsafe { (self.subject.malloc_usable_size)(start.cast()) };
        if usable < size {
            return Err(format!(
                "{start:p} of {size} bytes has {usable} usable ones"
            ));
        }
        self.shadow
            .enter(start.addr(), size)
            .map_err(|(from, to)| {
                format!("{start:p} of {size} bytes overlaps the live block at {from:#x} to {to:#x}")
            })?;
        // Relaxed: only the uniqueness of the numbers matters.
        let block = Block {
            start,
            size,
            id: self.ids.fetch_add(1, Relaxed),
        };
        // The bytes behind the requested size belong to the program, too.
        for at in sampled(usable) {
            // SAFETY: `at` lies within the usable bytes of a live block.
            unsafe { start.add(at).write(block.byte(at)) };
        }
        Ok(block)
    }

    fn reallocate(&self, held: Option<Block>, size: usize) -> Result<Option<Block>, String> {
        let old = held
            .as_ref()
            .map_or(null_mut(), |block| block.start.cast::<c_void>());
        if let Some(block) = &held {
            block.check(block.size)?;
            self.shadow.leave(block.start.addr(), block.size);
        }
        // SAFETY: the pointer is null or a live block, which is not used again unless `realloc`
        // fails.
        let start = unsafe { (self.subject.realloc)(old, size) }.cast::<u8>();
        match held {
            Some(_) if size == 0 => {
                if start.is_null() {
                    return Ok(None);
                }
                Err("realloc to nothing must free and return null, as glibc's does".into())
            }
            held if start.is_null() => self.refused(held),
            None => self.admit(start, size, 8).map(Some),
            Some(before) => {
                let moved = Block {
                    start,
                    size: before.size,
                    id: before.id,
                };
                moved.check(before.size.min(size))?;
                self.admit(start, size, 8).map(Some)
            }
        }
    }

    fn free(&self, block: Option<Block>) -> Result<(), String> {
        let mut start = null_mut();
        if let Some(block) = &block {
            block.check(block.size)?;
            self.shadow.leave(block.start.addr(), block.size);
            start = block.start;
        }
        // SAFETY: the pointer is null or a live block, which is not used again.
        unsafe { (self.subject.free)(start.cast()) };
        Ok(())
    }
}

/// Number of bytes at the start of a block that are written and read. Smaller under Miri, which is
/// slow.
const DENSE: usize = if cfg!(miri) { 16 } else { 1024 };
/// Distance between the sampled bytes in the rest of a block.
const STRIDE: usize = if cfg!(miri) { 16_381 } else { 509 };

/// Returns the offsets of the bytes of a block that are written and read: the first bytes, a sample
/// of the rest, and the last byte.
fn sampled(size: usize) -> impl Iterator<Item = usize> {
    let dense = size.min(DENSE);
    (0..dense)
        .chain((dense..size).step_by(STRIDE))
        .chain(size.checked_sub(1))
}

fn first_not_zero(bytes: &[u8]) -> Option<usize> {
    if cfg!(miri) {
        return sampled(bytes.len()).find(|&at| bytes[at] != 0);
    }
    bytes.iter().position(|&byte| byte != 0)
}

impl Block {
    fn byte(&self, at: usize) -> u8 {
        let word =
            self.id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (at as u64).wrapping_mul(0x2545_f491);
        (word >> 24) as u8 ^ word as u8
    }

    /// Checks that the sampled bytes among the first `size` are unchanged since they were written.
    fn check(&self, size: usize) -> Result<(), String> {
        // `admit` sampled the usable bytes, so it may not have written the last of the `size`
        // bytes. Leave that byte out.
        for at in sampled(size).take(size.min(DENSE) + size.saturating_sub(DENSE).div_ceil(STRIDE))
        {
            // SAFETY: `at` lies in a live block, and the byte there was written.
            let found = unsafe { self.start.add(at).read() };
            let expected = self.byte(at);
            if found != expected {
                let (start, size) = (self.start, self.size);
                return Err(format!(
                    "byte {at} of {start:p} of {size} bytes was {expected:#04x} and is {found:#04x}"
                ));
            }
        }
        Ok(())
    }
}
