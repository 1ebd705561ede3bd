//! Programs of allocator calls, which can be generated from a seed and written as text. Every
//! subset of a program's steps is also a program.

use std::fmt;
use std::str::FromStr;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Number of slots of a thread, each of which holds at most one block. Smaller under Miri, so that
/// steps of its short programs find blocks to free, resize and hand over.
pub(crate) const SLOTS: usize = if cfg!(miri) { 16 } else { 64 };

/// Operation of a step. A block in a slot is freed before another block is stored there, so that
/// every sequence of steps is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `malloc(size)`.
    Allocate,
    /// `calloc` of elements that have `size` bytes in total.
    Zeroed,
    /// `posix_memalign(alignment, size)`.
    Aligned,
    /// `realloc(block, size)`; the block is null if the slot is empty.
    Reallocate,
    /// `free(block)`; the block is null if the slot is empty.
    Free,
    /// Hands the block to the thread with number `size`, modulo the number of threads.
    Give,
    /// Takes a block that was handed to this thread, if any.
    Take,
    /// `malloc_trim(size)`.
    Trim,
}

const NAMES: [(Operation, &str); 8] = [
    (Operation::Allocate, "allocate"),
    (Operation::Zeroed, "zeroed"),
    (Operation::Aligned, "aligned"),
    (Operation::Reallocate, "reallocate"),
    (Operation::Free, "free"),
    (Operation::Give, "give"),
    (Operation::Take, "take"),
    (Operation::Trim, "trim"),
];

/// One call in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Number of the thread that makes the call.
    pub thread: usize,
    /// Operation of the call.
    pub operation: Operation,
    /// Index of the slot whose block the call uses or replaces.
    pub slot: usize,
    /// Size in bytes, if the operation has one; for [`Operation::Give`], the number of the
    /// receiving thread.
    pub size: usize,
    /// Alignment, if the operation has one.
    pub alignment: usize,
}

/// Calls of one or several threads. The calls of one thread are ordered; those of different threads
/// are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program(pub Vec<Step>);

impl Program {
    /// Generates a program with the given numbers of threads and steps. Equal seeds give equal
    /// programs.
    ///
    /// # Panics
    ///
    /// If `threads` is 0, unless `steps` is 0, too.
    #[must_use]
    pub fn generate(seed: u64, threads: usize, steps: usize) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        Self((0..steps).map(|_| step(&mut random, threads)).collect())
    }

    /// Returns the number of threads of the program: the highest thread number of a step, plus one.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.0.iter().map(|step| step.thread + 1).max().unwrap_or(0)
    }
}

fn step(random: &mut ChaCha8Rng, threads: usize) -> Step {
    let operation = match random.random_range(0..1000) {
        0..320 => Operation::Allocate,
        320..400 => Operation::Zeroed,
        400..460 => Operation::Aligned,
        460..580 => Operation::Reallocate,
        580..840 => Operation::Free,
        840..920 => Operation::Give,
        920..999 => Operation::Take,
        _ => Operation::Trim,
    };
    let (size, alignment) = match operation {
        Operation::Allocate | Operation::Zeroed | Operation::Reallocate => (size(random), 1),
        Operation::Aligned => (size(random), 8 << random.random_range(0..10)),
        Operation::Give => (random.random_range(0..threads), 1),
        Operation::Free | Operation::Take => (0, 1),
        Operation::Trim => (random.random_range(0..1 << 20), 1),
    };
    let thread = random.random_range(0..threads);
    Step {
        thread,
        operation,
        slot: random.random_range(0..SLOTS),
        size,
        alignment,
    }
}

/// Draws a size. Most sizes are small; many lie at, or one byte beside, a possible boundary of size
/// classes (eighths of powers of two).
fn size(random: &mut ChaCha8Rng) -> usize {
    match random.random_range(0..1000) {
        0..20 => 0,
        20..500 => random.random_range(1..=256),
        500..850 => {
            let power = 16_usize << random.random_range(0..12);
            let boundary = power + power / 8 * random.random_range(0..8);
            boundary + random.random_range(0..3) - 1
        }
        850..990 => {
            let largest = 16_usize << random.random_range(0..12);
            random.random_range(1..=largest)
        }
        _ => {
            let power = 1_usize << random.random_range(16..22);
            power + random.random_range(0..8193) - 4096
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            let name = NAMES
                .iter()
                .find(|(operation, _)| *operation == step.operation);
            let name = name.map_or("", |(_, name)| name);
            writeln!(
                f,
                "{} {name} {} {} {}",
                step.thread, step.slot, step.size, step.alignment
            )?;
        }
        Ok(())
    }
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let steps = text.lines().enumerate().map(|(index, line)| {
            parse(line).ok_or_else(|| {
                format!(
                    "line {}: {line:?} is not a step; write THREAD OPERATION SLOT SIZE ALIGNMENT",
                    index + 1
                )
            })
        });
        steps.collect::<Result<_, _>>().map(Self)
    }
}

fn parse(line: &str) -> Option<Step> {
    let mut words = line.split_ascii_whitespace();
    let thread = words.next()?.parse().ok()?;
    let name = words.next()?;
    let (operation, _) = NAMES.iter().find(|(_, known)| *known == name)?;
    let slot = words.next()?.parse().ok().filter(|slot| *slot < SLOTS)?;
    let size = words.next()?.parse().ok()?;
    let alignment = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Step {
        thread,
        operation: *operation,
        slot,
        size,
        alignment,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_read_as_it_was_written() {
        let program = Program::generate(3, 4, 500);
        assert_eq!(program.to_string().parse(), Ok(program));
    }

    #[test]
    fn seeds_differ_and_repeat() {
        assert_eq!(Program::generate(1, 2, 50), Program::generate(1, 2, 50));
        assert_ne!(Program::generate(1, 2, 50), Program::generate(2, 2, 50));
    }

    #[test]
    fn a_broken_line_is_named() {
        let refused = "0 free 1 0 1\n0 fly 1 0 1".parse::<Program>();
        assert!(refused.is_err_and(|message| message.starts_with("line 2: \"0 fly 1 0 1\"")));
    }
}
