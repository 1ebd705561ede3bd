//! Conformance suite of the safe layer: generated programs run on `LargeVec` and on `Vec`. Both
//! must have the same elements, and `LargeVec` must drop each element once, even if operations
//! panic. A failing program is shrunk before it is printed. Faulty vectors prove that the programs
//! detect faults.

#[path = "support/draw.rs"]
mod draw;
#[path = "support/elements.rs"]
mod elements;
#[path = "support/subject.rs"]
mod subject;

use std::panic::{AssertUnwindSafe, catch_unwind};

use draw::Draw;
use elements::{Page, Tally, panic_as_wanted, panics};
use heapdrome_lgalloc::{LargeVec, Pattern, Reader};
use subject::{Fault, Subject};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Push,
    Pop,
    Extend(usize),
    /// Extends the vector with an iterator that panics after this number of elements.
    ExtendPanics(usize),
    ExtendFromSlice(usize),
    /// Extends the vector by the first number of elements. A clone panics after the second number
    /// of elements.
    ExtendFromSlicePanics(usize, usize),
    Resize(usize),
    /// Resizes the vector to the first number. A clone panics after the second number of elements.
    ResizePanics(usize, usize),
    Reserve(usize),
    Truncate(usize),
    SwapRemove(usize),
    Write(usize),
    Shrink,
    PurgeSpare,
    Clear,
    /// Moves the vector to another thread and back.
    Send,
    /// Takes this number of elements from each end, and drops the rest.
    TakeApart(usize),
    /// Reads through a reader that prefetches batches of this size.
    Read(usize),
    /// Prefetches this number of elements, starting in the middle.
    Prefetch(usize),
}

impl Draw {
    fn operation(&mut self) -> Operation {
        use Operation::*;
        match self.below(30) {
            0..=3 => Push,
            4..=5 => Pop,
            6..=8 => Extend(self.below(700)),
            9 => ExtendPanics(self.below(700)),
            10..=11 => ExtendFromSlice(self.below(500)),
            12 => ExtendFromSlicePanics(self.below(500), self.below(500)),
            13 => Resize(self.below(2500)),
            14 => ResizePanics(self.below(2500), self.below(1000)),
            15 => Reserve(self.below(3000)),
            16..=17 => Truncate(self.below(1500)),
            18..=19 => SwapRemove(self.below(3000)),
            20 => Write(self.below(3000)),
            21 => Shrink,
            22 => PurgeSpare,
            23 => Clear,
            24 => Send,
            25 => TakeApart(self.below(20)),
            26..=27 => Read(self.below(64)),
            _ => Prefetch(self.below(600)),
        }
    }
}

struct State {
    large: Subject,
    model: Vec<u64>,
    next: u64,
    tally: &'static Tally,
}

impl State {
    fn new(fault: Option<Fault>) -> Self {
        Self {
            large: Subject::new(fault),
            model: Vec::new(),
            next: 1,
            tally: Tally::new(),
        }
    }

    fn page(&mut self) -> Page {
        self.next += 1;
        Page::new(self.next, self.tally)
    }

    fn pages(&mut self, count: usize) -> Vec<Page> {
        (0..count).map(|_| self.page()).collect()
    }

    fn step(mut self, operation: Operation) -> Self {
        use Operation::*;
        match operation {
            Push => {
                let page = self.page();
                self.model.push(page.number);
                self.large.grow(|vec| vec.push(page)).expect("memory");
            }
            Pop => {
                let popped = self.large.pop().map(|page| page.number);
                assert_eq!(popped, self.model.pop());
            }
            Extend(count) => self.extend(count, false),
            ExtendPanics(count) => self.extend(count, true),
            ExtendFromSlice(count) => self.extend_from_slice(count, None),
            ExtendFromSlicePanics(count, after) => self.extend_from_slice(count, Some(after)),
            Resize(length) => self.resize(length, None),
            ResizePanics(length, after) => self.resize(length, Some(after)),
            Reserve(count) => {
                self.large.grow(|vec| vec.reserve(count)).expect("memory");
                assert!(self.large.capacity() >= self.large.len() + count);
            }
            Truncate(length) => {
                self.large.truncate(length);
                self.model.truncate(length);
            }
            Clear => {
                self.large.clear();
                self.model.clear();
            }
            SwapRemove(place) => self.swap_remove(place),
            Write(place) => self.write(place),
            Shrink => self.large.shrink_to_fit().expect("in place"),
            PurgeSpare => assert_eq!(self.large.purge_spare(), Ok(())),
            Send => {
                let moved = std::thread::spawn(move || self);
                self = moved.join().expect("the thread ends well");
            }
            TakeApart(count) => self.take_apart(count),
            Read(batch) => self.read(batch),
            Prefetch(count) => {
                let first = self.model.len() / 2;
                let range = first..(first + count).min(self.model.len());
                assert_eq!(self.large.prefetch_hint(range), Ok(()));
            }
        }
        self
    }

    fn extend(&mut self, count: usize, then_panics: bool) {
        let pages = self.pages(count);
        self.model.extend(pages.iter().map(|page| page.number));
        let end = || -> Option<Page> {
            if then_panics {
                panic_as_wanted()
            }
            None
        };
        let pages = pages.into_iter().chain(std::iter::from_fn(end));
        let extend = || self.large.grow(|vec| vec.extend(pages)).expect("memory");
        assert_eq!(panics(extend), then_panics);
    }

    fn extend_from_slice(&mut self, count: usize, fuse: Option<usize>) {
        let pages = self.pages(count);
        let added = fuse.map_or(count, |after| after.min(count));
        let numbers = pages[..added].iter().map(|page| page.number);
        self.model.extend(numbers);
        let extend = || {
            let added = self.large.grow(|vec| vec.extend_from_slice(&pages));
            added.expect("memory");
        };
        assert_eq!(self.tally.with_fuse(fuse, extend), added < count);
    }

    fn resize(&mut self, length: usize, fuse: Option<usize>) {
        let page = self.page();
        // The last element is moved, not cloned.
        let clones = length.saturating_sub(self.model.len() + 1);
        let panicking = fuse.filter(|after| *after < clones);
        let reached = panicking.map_or(length, |after| self.model.len() + after);
        self.model.resize(reached, page.number);
        let resize = || {
            self.large
                .grow(|vec| vec.resize(length, page))
                .expect("memory")
        };
        assert_eq!(self.tally.with_fuse(fuse, resize), panicking.is_some());
    }

    fn swap_remove(&mut self, place: usize) {
        if let Some(place) = place.checked_rem(self.model.len()) {
            let removed = self.large.swap_remove(place).number;
            assert_eq!(removed, self.model.swap_remove(place));
        }
    }

    fn write(&mut self, place: usize) {
        if let Some(place) = place.checked_rem(self.model.len()) {
            let page = self.page();
            self.model[place] = page.number;
            self.large[place] = page;
        }
    }

    fn take_apart(&mut self, count: usize) {
        let mut parts = std::mem::take(&mut *self.large).into_iter();
        let mut model = std::mem::take(&mut self.model).into_iter();
        for _ in 0..count {
            assert_eq!(parts.len(), model.len());
            assert_eq!(parts.next().map(|page| page.number), model.next());
            assert_eq!(parts.next_back().map(|page| page.number), model.next_back());
        }
    }

    fn read(&self, batch: usize) {
        let large: &LargeVec<Page> = &self.large;
        let count = self.model.len();
        let indices: Vec<usize> = (0..count).map(|at| at * 7919 % count).collect();
        let patterns = [
            Pattern::Sequential(&(0..count)),
            Pattern::Strided {
                first: 0,
                stride: 3,
                count: count / 3,
            },
            Pattern::Indices(&indices),
        ];
        let wanted: [Vec<usize>; 3] = [
            (0..count).collect(),
            (0..count / 3).map(|at| at * 3).collect(),
            indices.clone(),
        ];
        for (pattern, wanted) in patterns.into_iter().zip(wanted) {
            let mut reader = Reader::new(large, pattern, batch).expect("inside");
            let read = reader.by_ref().map(|page| page.number);
            assert!(read.eq(wanted.into_iter().map(|at| self.model[at])));
            assert_eq!(reader.refusal(), None);
        }
    }

    fn check(&self) {
        assert_eq!(self.large.len(), self.model.len());
        for (page, number) in self.large.iter().zip(&self.model) {
            assert_eq!((page.number, page.rest[508]), (*number, *number));
        }
        let living = self.tally.living();
        assert_eq!(living, self.model.len() as isize, "elements live");
    }
}

fn run(program: &[Operation], fault: Option<Fault>) {
    let mut state = State::new(fault);
    for operation in program {
        state = state.step(*operation);
        state.check();
    }
    let tally = state.tally;
    drop(state);
    assert_eq!(tally.living(), 0, "every element is dropped");
}

fn fails(program: &[Operation], fault: Option<Fault>) -> bool {
    catch_unwind(AssertUnwindSafe(|| run(program, fault))).is_err()
}

/// Removes operations as long as the program still fails.
fn shrink(mut program: Vec<Operation>, fails: impl Fn(&[Operation]) -> bool) -> Vec<Operation> {
    let mut length = program.len() / 2;
    while length > 0 {
        let mut at = 0;
        while at < program.len() {
            let mut shorter = program.clone();
            shorter.drain(at..(at + length).min(program.len()));
            if fails(&shorter) {
                program = shorter;
            } else {
                at += length;
            }
        }
        length /= 2;
    }
    program
}

/// Returns seeds and the programs that they generate.
fn programs() -> impl Iterator<Item = (u64, Vec<Operation>)> {
    (1..=40_u64).map(|seed| {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (seed, (0..60).map(|_| draw.operation()).collect())
    })
}

#[test]
fn every_program_does_what_it_does_to_a_vec() {
    for (seed, program) in programs() {
        if fails(&program, None) {
            let shrunk = shrink(program, |program| fails(program, None));
            panic!("seed {seed} fails: {shrunk:?}");
        }
    }
}

/// Each faulty vector fails at least one of the generated programs.
#[test]
fn programs_notice_what_is_wrong_with_a_vector() {
    use Fault::*;
    for fault in [DropsTwice, LosesTheLast, KeepsTheTail, LeaksAtAPanic] {
        let noticed = programs().any(|(_, program)| fails(&program, Some(fault)));
        assert!(noticed, "{fault:?}");
    }
}

#[test]
fn a_failing_program_is_shrunk_to_what_fails() {
    use Operation::*;
    let program = vec![Push, Shrink, Pop, Send, Clear, Extend(3), Pop];
    let pops_twice = |program: &[Operation]| {
        let pops = program.iter().filter(|one| matches!(one, Pop)).count();
        pops == 2
    };
    let shrunk = shrink(program, pops_twice);
    assert!(matches!(shrunk[..], [Pop, Pop]), "{shrunk:?}");
}
