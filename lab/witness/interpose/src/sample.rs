//! Chooses the requests that are recorded, and the requests whose stack is recorded.
//!
//! Sample points are a Poisson process over the requested bytes of a thread. The thread counts down
//! to its next point. Distances are memoryless, so a new distance may be drawn at the end of each
//! request.
//!
//! If stacks are rarer than recorded blocks, there are two processes: points with a stack, and
//! plain points. Together they have the density of recorded blocks.

use crate::clock::clock;
use crate::control;
use crate::exponential::{distance, random};
use crate::rings;
use crate::thread::{Thread, thread};

/// The points that fall into a request.
#[derive(Clone, Copy, Default)]
pub struct Points {
    /// Whether the request is recorded.
    pub any: bool,
    /// Whether the stack of the request is recorded.
    pub stack: bool,
}

/// Mean distances in bytes between the points of each Poisson process; `None` for a process without
/// points.
struct Means {
    plain: Option<f64>,
    stack: Option<f64>,
}

impl Means {
    fn new() -> Self {
        let (all, stack) = (
            control::sample_bytes() as f64,
            control::stack_bytes() as f64,
        );
        let is_rarer = stack > all && stack > 1.0;
        let plain = match is_rarer {
            // The rates of both processes add up to the rate of all points.
            true => all * stack / (stack - all),
            false => all,
        };
        Self {
            plain: (plain > 0.0).then_some(plain),
            stack: is_rarer.then_some(stack),
        }
    }
}

/// Counts a request, and returns the points that fall into it.
pub fn count(size: u64) -> Points {
    let (thread, size) = (thread(), size.max(1));
    let (left, is_over) = thread.until.get().overflowing_sub(size);
    thread.until.set(left);
    let points = if is_over {
        pass(size)
    } else {
        Points::default()
    };
    let is_all = control::sample_bytes() == 0;
    Points {
        any: points.any || is_all,
        stack: points.stack || (is_all && control::stack_bytes() == 1),
    }
}

/// Returns the points within a request that ended the thread's countdown. In a new thread, which
/// has not drawn a distance, the countdown is 0.
pub fn pass(size: u64) -> Points {
    let size = size.max(1);
    if thread().seed.get() == 0 {
        // Makes the recording name the process even if no point falls into its requests.
        rings::announce();
        begin(thread());
        let thread = thread();
        if thread.until.get() >= size {
            thread.until.set(thread.until.get() - size);
            return Points::default();
        }
        thread.until.set(thread.until.get().wrapping_sub(size));
    }
    step(thread(), size)
}

fn begin(thread: &Thread) {
    let place = (&raw const *thread) as u64;
    // Odd, so that no seed is zero. The clock differs between processes whose threads have equal
    // addresses.
    thread.seed.set((clock() ^ place.rotate_left(32)) | 1);
    begin_countdown(thread, &Means::new());
}

/// Draws the next point of each Poisson process.
fn begin_countdown(thread: &Thread, means: &Means) {
    let plain = draw(thread, means.plain);
    let stack = draw(thread, means.stack);
    count_down_to(thread, plain, stack);
}

/// Returns the points within a request that contains the next point, and continues the countdown
/// after the request.
fn step(thread: &Thread, size: u64) -> Points {
    // The countdown is negative by the number of bytes from the point to the end of the request.
    let first = thread.until.get().wrapping_add(size);
    let means = Means::new();
    if first >= size {
        // A signal handler requested memory in the meantime, and continued the countdown. So the
        // next point is no longer in this request.
        begin_countdown(thread, &means);
        return Points::default();
    }
    let plain = first.saturating_add(thread.plain_gap.get());
    let stack = first.saturating_add(thread.stack_gap.get());
    let has_plain = plain < size && means.plain.is_some();
    let has_stack = stack < size && means.stack.is_some();
    let plain_left = match has_plain {
        true => draw(thread, means.plain),
        false => plain.saturating_sub(size),
    };
    let stack_left = match has_stack {
        true => draw(thread, means.stack),
        false => stack.saturating_sub(size),
    };
    count_down_to(
        thread,
        means.plain.map_or(u64::MAX, |_| plain_left),
        means.stack.map_or(u64::MAX, |_| stack_left),
    );
    // If the points with a stack form no separate Poisson process, either every point has a stack
    // or, if no stacks are taken, none has.
    let all_have = means.stack.is_none() && control::stack_bytes() != 0;
    Points {
        any: has_plain || has_stack,
        stack: has_stack || (has_plain && all_have),
    }
}

fn count_down_to(thread: &Thread, plain: u64, stack: u64) {
    thread.until.set(plain.min(stack));
    thread.plain_gap.set(plain - thread.until.get());
    thread.stack_gap.set(stack - thread.until.get());
}

/// Draws the distance to the next point of a Poisson process.
fn draw(thread: &Thread, mean: Option<f64>) -> u64 {
    mean.map_or(u64::MAX, |mean| {
        let mut seed = thread.seed.get();
        let bits = random(&mut seed);
        thread.seed.set(seed);
        distance(bits, mean)
    })
}
