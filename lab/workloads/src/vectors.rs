//! Vectors: many vectors that grow by realloc at the same time.

mod texts;

pub(crate) use texts::DESCRIPTION;

use heapdrome_schema::WorkloadReport;

use crate::account::Account;
use crate::array::{Array, Zeroed};
use crate::caller::Caller;
use crate::contents::{self, WORD};
use crate::random::{Random, mix};
use crate::random_blocks::{Shape, Sizes, check_sizes};
use crate::report::Outcome;
use crate::threads::{self, Halt, Team};
use crate::{Failure, Heap, Parameters};

#[derive(Clone, Copy)]
struct Vector {
    /// Block that holds the vector; null before the first push.
    block: *mut u8,
    /// Number of bytes that were pushed.
    length: u32,
    /// Size of the block.
    capacity: u32,
    /// Final length in bytes.
    end: u32,
    /// 1 if the vector has no spare capacity, 0 if its capacity doubles.
    exact: u32,
}

// SAFETY: a null pointer and zeros are a vector without a block.
unsafe impl Zeroed for Vector {}

/// Settings of all threads.
#[derive(Debug)]
struct Plan {
    rounds: u64,
    vectors: u64,
    push: u32,
    exact: u64,
    sizes: Sizes,
}

impl Plan {
    fn of(parameters: &Parameters) -> Self {
        let (min, max) = (parameters.value("min"), parameters.value("max"));
        Self {
            rounds: parameters.value("rounds"),
            vectors: parameters.value("vectors"),
            push: parameters.value("push") as u32,
            exact: parameters.value("exact"),
            sizes: Sizes::new(Shape::Logarithmic, min, max),
        }
    }

    /// Returns an empty vector. The final sizes are evenly spaced quantiles of the distribution,
    /// and exact and doubling vectors are spread evenly among them. So the number of growths does
    /// not depend on the seed.
    fn vector(&self, number: u64) -> Vector {
        let share = (u128::from(2 * number + 1) << 63) / u128::from(self.vectors);
        let before = number * self.exact / 100;
        Vector {
            block: std::ptr::null_mut(),
            length: 0,
            capacity: 0,
            end: self.sizes.draw(share as u64).next_multiple_of(self.push),
            exact: u32::from((number + 1) * self.exact / 100 > before),
        }
    }

    /// Returns all vectors of a thread, in the order of their final sizes.
    fn all(&self) -> impl Iterator<Item = Vector> {
        (0..self.vectors).map(|number| self.vector(number))
    }
}

impl Vector {
    /// Returns the capacity that a vector without room for a push grows to.
    fn next_capacity(&self, push: u32) -> u32 {
        match self.exact {
            0 => self.capacity.saturating_mul(2).max(push),
            _ => self.capacity + push,
        }
    }

    /// Returns the final capacity, and the number of times that the vector gets a block.
    fn growths(mut self, push: u32) -> (u32, u64) {
        if self.exact == 1 {
            return (self.end, u64::from(self.end / push));
        }
        let mut growths = 0;
        while self.capacity < self.end {
            self.capacity = self.next_capacity(push);
            growths += 1;
        }
        (self.capacity, growths)
    }
}

fn check(parameters: &Parameters) -> Result<(), String> {
    check_sizes(parameters)?;
    let push = parameters.value("push");
    match push % WORD as u64 {
        0 => Ok(()),
        _ => Err(format!("push must be a multiple of {WORD}, not {push}")),
    }
}

/// Estimates the peak memory: for each thread the final capacities, a copy of the largest block,
/// and the arrays.
fn needs(parameters: &Parameters) -> u64 {
    let plan = Plan::of(parameters);
    let final_capacity = |vector: Vector| u64::from(vector.growths(plan.push).0);
    let capacities: u64 = plan.all().map(final_capacity).sum();
    let of_each = capacities + parameters.value("max") + bookkeeping(&plan);
    of_each.saturating_mul(parameters.value("threads"))
}

/// Returns the size of one thread's arrays in bytes.
fn bookkeeping(plan: &Plan) -> u64 {
    plan.vectors * (size_of::<Vector>() + size_of::<u32>()) as u64
}

/// Returns the number of operations of a run: blocks allocated plus blocks freed.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    let plan = Plan::of(parameters);
    let growths: u64 = plan.all().map(|vector| vector.growths(plan.push).1).sum();
    let of_round = growths.saturating_mul(2 * parameters.value("threads"));
    of_round.saturating_mul(plan.rounds)
}

struct Worker<'a, H: Heap> {
    plan: &'a Plan,
    caller: Caller<'a, H>,
    random: Random,
    key: u64,
    vectors: Array<Vector>,
    /// Numbers of all vectors. The first ones still grow or, while vectors are freed, are in use.
    order: Array<u32>,
}

pub(crate) fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let value = |name| parameters.value(name);
    let (threads, seed, timed) = (value("threads"), value("seed"), value("latency") == 1);
    let plan = Plan::of(parameters);
    let account = Account::default();
    let finished = threads::run(
        threads as usize,
        |number| {
            Ok(Worker {
                plan: &plan,
                caller: Caller::new(heap, &account, timed),
                random: Random::new(seed, number),
                key: mix(mix(seed) ^ number as u64),
                vectors: Array::new(plan.vectors as usize)?,
                order: Array::new(plan.vectors as usize)?,
            })
        },
        |_, worker, team| worker.work(team),
        |worker| worker.caller.finish(),
    )?;
    let bookkeeping = threads * bookkeeping(&plan);
    Ok(Outcome::of(finished, &account, bookkeeping).report(parameters))
}

impl<H: Heap> Worker<'_, H> {
    fn work(&mut self, team: &Team) -> Result<(), Halt> {
        for round in 0..self.plan.rounds {
            team.go_on()?;
            self.begin(round);
            self.grow_all()?;
            self.free_all()?;
        }
        Ok(())
    }

    fn begin(&mut self, round: u64) {
        self.key = mix(self.key ^ round);
        for (vector, empty) in self.vectors.iter_mut().zip(self.plan.all()) {
            *vector = empty;
        }
        self.number_all();
    }

    fn number_all(&mut self) {
        for (number, place) in self.order.iter_mut().enumerate() {
            *place = number as u32;
        }
    }

    /// Draws one of the first `count` vectors of the order. Returns its place in the order and its
    /// number.
    #[inline]
    fn draw(&mut self, count: usize) -> (usize, u32) {
        let place = self.random.below(count as u64) as usize;
        (place, self.order[place])
    }

    /// Pushes to vectors drawn at random until all have their final size.
    fn grow_all(&mut self) -> Result<(), Failure> {
        let mut growing = self.order.len();
        while growing > 0 {
            let (place, number) = self.draw(growing);
            self.push(number)?;
            let vector = self.vectors[number as usize];
            if vector.length == vector.end {
                growing -= 1;
                self.order[place] = self.order[growing];
            }
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, number: u32) -> Result<(), Failure> {
        let (push, key) = (self.plan.push, self.key ^ u64::from(number));
        let vector = &mut self.vectors[number as usize];
        let length = vector.length + push;
        if length > vector.capacity {
            let capacity = vector.next_capacity(push);
            let (old, new) = (vector.capacity as usize, capacity as usize);
            // SAFETY: the vector's block is null, or came from `grow` with the vector's capacity
            // and is in use. The returned block replaces it in the vector.
            vector.block = unsafe { self.caller.grow(vector.block, old, new) }?;
            vector.capacity = capacity;
        }
        let (from, to) = (vector.length as usize, length as usize);
        // SAFETY: the block has `capacity` bytes, at least `length`, and only this thread uses it.
        // A push is a multiple of a word, and `grow` checked the alignment.
        unsafe { contents::write_words(vector.block, from, to, key) };
        vector.length = length;
        Ok(())
    }

    /// Checks and frees all vectors in random order.
    fn free_all(&mut self) -> Result<(), Failure> {
        self.number_all();
        for left in (1..=self.order.len()).rev() {
            let (place, number) = self.draw(left);
            self.order[place] = self.order[left - 1];
            let vector = self.vectors[number as usize];
            let (key, length) = (self.key ^ u64::from(number), vector.length as usize);
            // SAFETY: `push` wrote `length` bytes of the vector's block, word by word, and only
            // this thread uses it. `grow` checked its alignment.
            let found = unsafe { contents::verify_words(vector.block, length, key) }?;
            let size = vector.capacity as usize;
            // SAFETY: the block came from `grow` with this size. The number was removed from the
            // order, so that the block is not freed again.
            unsafe { self.caller.free_checked(vector.block, size, found) };
        }
        Ok(())
    }
}
