//! The loops of reader and prefetch threads.

use std::hint::black_box;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use heapdrome_lgalloc::{Pattern, Reader};
use heapdrome_schema::Order;

use crate::draws::Draws;
use crate::failure::Failure;
use crate::regions::WorkingSet;
use crate::times::Times;

/// The warm-up phase, which does not count.
pub const SETTLE: u8 = 0;
/// The measured phase.
pub const MEASURE: u8 = 1;
/// The phase in which every thread ends.
pub const STOP: u8 = 2;

/// Time that a prefetch thread sleeps once it is far enough ahead of the reader. A spinning thread
/// would take a core from the readers.
const NAP: Duration = Duration::from_micros(50);

/// Number of reads that one lgalloc `Reader` performs, in many batches, before a new `Reader`
/// replaces it.
const READS: usize = 1 << 12;

/// State that all threads share.
pub struct Stage<'a> {
    pub set: &'a WorkingSet,
    pub phase: AtomicU8,
}

/// One reader, with preallocated memory for its records.
pub struct ReadThread {
    pub draws: Draws,
    /// Number of reads done so far.
    pub position: AtomicU64,
    pub sheet: Sheet,
}

/// Times that one reader recorded.
pub struct Sheet {
    pub reads: Times,
    pub with_advice: Times,
    pub without_advice: Times,
    pub span: Duration,
    /// Start of the first counted read.
    begun: Option<Instant>,
}

impl Sheet {
    /// Returns whether the next read counts; `None` in the last phase.
    fn goes_on(&mut self, stage: &Stage<'_>) -> Option<bool> {
        let counts = now(stage)?;
        if counts {
            self.begun.get_or_insert_with(Instant::now);
        }
        Some(counts)
    }

    /// Ends the measured span.
    fn end(&mut self) {
        self.span = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
    }
}

impl ReadThread {
    /// Returns a reader that draws from this number of pages.
    pub fn new(order: Order, pages: usize, seed: u64) -> Self {
        Self {
            draws: Draws::new(order, pages, seed),
            position: AtomicU64::new(0),
            sheet: Sheet {
                reads: Times::new(),
                with_advice: Times::new(),
                without_advice: Times::new(),
                span: Duration::ZERO,
                begun: None,
            },
        }
    }
}

/// Returns whether reads count in the current phase; `None` in the last one.
fn now(stage: &Stage<'_>) -> Option<bool> {
    // Relaxed: the phase guards no other data.
    match stage.phase.load(Ordering::Relaxed) {
        SETTLE => Some(false),
        MEASURE => Some(true),
        _ => None,
    }
}

fn timed_read(stage: &Stage<'_>, page: usize) -> Result<Duration, Failure> {
    let start = Instant::now();
    let found = stage.set.read(page);
    let time = start.elapsed();
    match found == stage.set.tag(page) {
        true => Ok(time),
        false => Err(Failure::Contents(page)),
    }
}

/// Reads one page after the other, until the last phase.
pub fn singles(
    stage: &Stage<'_>,
    draws: &mut Draws,
    position: &AtomicU64,
    sheet: &mut Sheet,
) -> Result<(), Failure> {
    while let Some(counts) = sheet.goes_on(stage) {
        let time = timed_read(stage, draws.draw())?;
        if counts {
            sheet.reads.record(time);
        }
        // Relaxed: the prefetch thread and the watcher only need the reader's approximate position.
        position.fetch_add(1, Ordering::Relaxed);
    }
    sheet.end();
    Ok(())
}

/// Prefetches a batch of pages, then reads them, until the last phase.
pub fn batches(
    stage: &Stage<'_>,
    draws: &mut Draws,
    position: &AtomicU64,
    sheet: &mut Sheet,
    pages: usize,
) -> Result<(), Failure> {
    let mut batch = Vec::with_capacity(pages);
    while let Some(counts) = sheet.goes_on(stage) {
        batch.clear();
        batch.extend((0..pages).map(|_| draws.draw()));
        let start = Instant::now();
        for page in &batch {
            stage.set.will_need(*page)?;
        }
        let asked = start.elapsed();
        for page in &batch {
            let time = timed_read(stage, *page)?;
            if counts {
                sheet.reads.record(time);
            }
        }
        let whole = start.elapsed();
        if counts {
            sheet.with_advice.record(whole);
            sheet.without_advice.record(whole - asked);
        }
        // Relaxed: only the watcher reads the position, and an approximate value suffices.
        position.fetch_add(pages as u64, Ordering::Relaxed);
    }
    sheet.end();
    Ok(())
}

/// Reads through lgalloc's readers until the last phase. A reader prefetches each batch of pages
/// before it reads them. The time of a prefetch is part of the read that triggers it.
pub fn by_reader(
    stage: &Stage<'_>,
    draws: &mut Draws,
    position: &AtomicU64,
    sheet: &mut Sheet,
    pages: usize,
) -> Result<(), Failure> {
    let no_vector = || Failure::Instructions("a reader reads a vector of lgalloc's".into());
    let vector = stage.set.vector().ok_or_else(no_vector)?;
    while now(stage).is_some() {
        let drawn: Vec<usize> = (0..READS).map(|_| draws.draw()).collect();
        let reader = Reader::new(vector, Pattern::Indices(&drawn), pages);
        let mut reader = reader.map_err(|error| Failure::Instructions(error.to_string()))?;
        for page in &drawn {
            let Some(counts) = sheet.goes_on(stage) else {
                break;
            };
            let start = Instant::now();
            let found = black_box(reader.next().map(|words| words[0]));
            let time = start.elapsed();
            if found != Some(stage.set.tag(*page)) {
                return Err(Failure::Contents(*page));
            }
            if counts {
                sheet.reads.record(time);
            }
            // Relaxed: only the watcher reads the position, and an approximate value suffices.
            position.fetch_add(1, Ordering::Relaxed);
        }
    }
    sheet.end();
    Ok(())
}

/// Prefetches pages before the reader draws them. `draws` is a copy of the reader's own sequence.
pub fn prefetch(
    stage: &Stage<'_>,
    mut draws: Draws,
    position: &AtomicU64,
    ahead: u64,
) -> Result<(), Failure> {
    let mut drawn = 0_u64;
    while now(stage).is_some() {
        // Relaxed: a slightly old position suffices.
        let read = position.load(Ordering::Relaxed);
        if drawn >= read.saturating_add(ahead) {
            std::thread::sleep(NAP);
            continue;
        }
        let page = draws.draw();
        drawn += 1;
        // Skip pages that the reader has already passed.
        if drawn > read {
            stage.set.will_need(page)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_schema::{Bytes, Holder};

    /// If a page changes unexpectedly, the read must not count as a fast one.
    #[test]
    fn a_page_with_other_contents_ends_the_run() {
        let set = WorkingSet::make(Holder::Mapped, Bytes::from_mib(2), 5).expect("memory");
        set.regions()[0]
            .advise(libc::MADV_DONTNEED)
            .expect("advice");
        let stage = Stage {
            set: &set,
            phase: AtomicU8::new(MEASURE),
        };
        let mut reader = ReadThread::new(Order::Uniform, set.pages(), 5);
        let ended = singles(
            &stage,
            &mut reader.draws,
            &reader.position,
            &mut reader.sheet,
        );
        assert!(matches!(ended, Err(Failure::Contents(_))));
    }
}
