//! Generated programs on the safe layer, beside `Vec`: the same elements, each dropped once, whatever
//! the order of operations. A program that fails is shrunk before it is shown.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};

use heapdrome_lgalloc::{LargeVec, Pattern, Reader};

/// 512 of them fill the smallest region, so that short programs cross several classes.
#[derive(Clone)]
struct Page {
    number: u64,
    rest: [u64; 509],
    _living: Living,
}

/// Counts the elements that live.
struct Living(Arc<AtomicIsize>);

impl Clone for Living {
    fn clone(&self) -> Self {
        self.0.fetch_add(1, SeqCst);
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Push,
    Pop,
    Extend(usize),
    Resize(usize),
    Reserve(usize),
    Truncate(usize),
    SwapRemove(usize),
    Write(usize),
    Shrink,
    Clear,
    /// Another thread goes on with it.
    Send,
    /// Taken apart from both ends, so many elements, and what is left is dropped.
    TakeApart(usize),
    /// Read by a reader that prefetches batches of so many.
    Read(usize),
    /// Asked for so many elements from the middle on.
    Prefetch(usize),
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn operation(&mut self) -> Operation {
        use Operation::*;
        match self.below(24) {
            0..=3 => Push,
            4..=5 => Pop,
            6..=9 => Extend(self.below(700)),
            10 => Resize(self.below(2500)),
            11 => Reserve(self.below(3000)),
            12..=13 => Truncate(self.below(1500)),
            14..=15 => SwapRemove(self.below(3000)),
            16 => Write(self.below(3000)),
            17 => Shrink,
            18 => Clear,
            19 => Send,
            20 => TakeApart(self.below(20)),
            21..=22 => Read(self.below(64)),
            _ => Prefetch(self.below(600)),
        }
    }
}

struct State {
    large: LargeVec<Page>,
    model: Vec<u64>,
    next: u64,
    living: Arc<AtomicIsize>,
}

impl State {
    fn new() -> Self {
        Self {
            large: LargeVec::new(),
            model: Vec::new(),
            next: 1,
            living: Arc::default(),
        }
    }

    fn page(&mut self) -> Page {
        self.next += 1;
        self.living.fetch_add(1, SeqCst);
        Page {
            number: self.next,
            rest: [self.next; 509],
            _living: Living(Arc::clone(&self.living)),
        }
    }

    fn step(mut self, operation: Operation) -> Self {
        use Operation::*;
        match operation {
            Push => {
                let page = self.page();
                self.model.push(page.number);
                self.large.push(page).expect("memory");
            }
            Pop => {
                let popped = self.large.pop().map(|page| page.number);
                assert_eq!(popped, self.model.pop());
            }
            Extend(count) => {
                let pages: Vec<Page> = (0..count).map(|_| self.page()).collect();
                self.model.extend(pages.iter().map(|page| page.number));
                self.large.extend(pages).expect("memory");
            }
            Resize(length) => {
                let page = self.page();
                self.model.resize(length, page.number);
                self.large.resize(length, page).expect("memory");
            }
            Reserve(count) => {
                self.large.reserve(count).expect("memory");
                assert!(self.large.capacity() >= self.large.len() + count);
            }
            Truncate(length) => {
                self.large.truncate(length);
                self.model.truncate(length);
            }
            SwapRemove(place) if !self.model.is_empty() => {
                let place = place % self.model.len();
                let removed = self.large.swap_remove(place).number;
                assert_eq!(removed, self.model.swap_remove(place));
            }
            Write(place) if !self.model.is_empty() => {
                let (place, page) = (place % self.model.len(), self.page());
                self.model[place] = page.number;
                self.large[place] = page;
            }
            Shrink => self.large.shrink_to_fit().expect("in place"),
            Clear => {
                self.large.clear();
                self.model.clear();
            }
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
            SwapRemove(_) | Write(_) => {}
        }
        self
    }

    fn take_apart(&mut self, count: usize) {
        let mut parts = std::mem::take(&mut self.large).into_iter();
        let mut model = std::mem::take(&mut self.model).into_iter();
        for _ in 0..count {
            assert_eq!(parts.len(), model.len());
            assert_eq!(parts.next().map(|page| page.number), model.next());
            assert_eq!(parts.next_back().map(|page| page.number), model.next_back());
        }
    }

    fn read(&self, batch: usize) {
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
            let mut reader = Reader::new(&self.large, pattern, batch).expect("inside");
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
        let living = self.living.load(SeqCst);
        assert_eq!(living, self.model.len() as isize, "elements live");
    }
}

fn run(program: &[Operation]) {
    let mut state = State::new();
    for operation in program {
        state = state.step(*operation);
        state.check();
    }
    let living = Arc::clone(&state.living);
    drop(state);
    assert_eq!(living.load(SeqCst), 0, "every element is dropped");
}

fn fails(program: &[Operation]) -> bool {
    catch_unwind(AssertUnwindSafe(|| run(program))).is_err()
}

/// Leaves out operations as long as the program still fails.
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

#[test]
fn every_program_does_what_it_does_to_a_vec() {
    for seed in 1..=40_u64 {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let program: Vec<Operation> = (0..60).map(|_| draw.operation()).collect();
        if fails(&program) {
            let shrunk = shrink(program, fails);
            panic!("seed {seed} fails: {shrunk:?}");
        }
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
