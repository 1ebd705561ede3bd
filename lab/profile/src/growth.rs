//! Follows the live bytes of each stack at evenly spaced times, and finds the stacks whose live
//! bytes only grow.

use heapdrome_statistics::{Growth, only_grows};

use crate::amount::Amount;

/// Maximum number of cells of a [`Grid`].
const CELLS: u64 = 256;

/// Binary logarithm of the initial width of a cell in nanoseconds.
const FINEST: u32 = 12;

/// Minimum number of cells from which a trend is computed.
const FEWEST: usize = 40;

/// Share of a process's run time, at its start, that the trend ignores: programs allocate their
/// long-lived data then.
const WARM_UP: f64 = 0.25;

/// Share of a process's run time, at its end, that the trend ignores: programs free their
/// long-lived data then.
const CLEAN_UP: f64 = 0.05;

/// Minimum number of cells in which the live bytes of a suspect changed. Fewer changes are single
/// events, not a trend.
const CHANGES: usize = 10;

/// Maximum probability of suspecting any stack in a process whose stacks do not grow.
const ERROR: f64 = 0.05;

/// A stack whose live bytes only grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Suspect {
    /// Number of the stack in the trace.
    pub stack: u32,
    /// Growth of the stack's live bytes, in bytes per second.
    pub per_second: f64,
    /// Confidence interval of `per_second`. The intervals of all stacks of a process are
    /// simultaneous, with 95% confidence.
    pub interval: [f64; 2],
    /// Live blocks of the stack when the process ended.
    pub left: Amount,
}

impl Suspect {
    /// Run time of a process, in nanoseconds, from which its stacks may be suspected. The memory of
    /// a shorter process may not have settled.
    pub const SHORTEST: u64 = 1_000_000_000;
}

/// Times at which live bytes are noted: the ends of cells of equal width. The width doubles when
/// there are too many cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    begin: Option<u64>,
    /// Binary logarithm of a cell's width in nanoseconds.
    shift: u32,
}

impl Default for Grid {
    fn default() -> Self {
        Self {
            begin: None,
            shift: FINEST,
        }
    }
}

impl Grid {
    /// Begins the first cell at `time`, unless a cell has begun already.
    pub(crate) fn begin(&mut self, time: u64) {
        self.begin.get_or_insert(time);
    }

    /// Widens the cells until one of them contains this time. Returns the binary logarithm of their
    /// width.
    pub(crate) fn shift(&mut self, time: u64) -> u32 {
        self.begin(time);
        while self.cell(time) >= CELLS {
            self.shift += 1;
        }
        self.shift
    }

    /// Returns the index of the cell that contains a time.
    pub(crate) fn cell(&self, time: u64) -> u64 {
        time.saturating_sub(self.begin.unwrap_or(time)) >> self.shift
    }

    fn seconds(self) -> f64 {
        (1_u64 << self.shift) as f64 / 1e9
    }
}

/// Live bytes at the ends of the cells in which they changed.
#[derive(Debug, Default)]
pub(crate) struct Series {
    shift: u32,
    changes: Vec<(u64, u64)>,
}

impl Series {
    /// Records the live bytes after a change within a cell. `shift` is the binary logarithm of the
    /// cells' width.
    pub(crate) fn note(&mut self, shift: u32, cell: u64, bytes: u64) {
        if self.shift != shift {
            self.changes = self.widened(shift);
            self.shift = shift;
        }
        match self.changes.last_mut() {
            Some((last, known)) if *last == cell => *known = bytes,
            _ => self.changes.push((cell, bytes)),
        }
    }

    /// Returns the changes in wider cells, whose width has the binary logarithm `shift`.
    fn widened(&self, shift: u32) -> Vec<(u64, u64)> {
        let mut widened: Vec<(u64, u64)> = Vec::new();
        for (cell, bytes) in &self.changes {
            let cell = cell >> shift.saturating_sub(self.shift);
            match widened.last_mut() {
                Some((last, known)) if *last == cell => *known = *bytes,
                _ => widened.push((cell, *bytes)),
            }
        }
        widened
    }

    /// Returns the live bytes at the ends of the cells `from..to`, and the number of these cells in
    /// which they changed.
    fn within(&self, shift: u32, from: usize, to: usize) -> (Vec<f64>, usize) {
        let mut changes = self.widened(shift).into_iter().peekable();
        let (mut bytes, mut count) = (0, 0);
        let values = (0..to as u64).map(|cell| {
            if let Some((_, known)) = changes.next_if(|(changed, _)| *changed <= cell) {
                bytes = known;
                count += usize::from(cell >= from as u64);
            }
            bytes as f64
        });
        let values: Vec<f64> = values.skip(from).collect();
        (values, count)
    }
}

/// A stack that may be suspected.
pub(crate) struct Candidate<'a> {
    pub stack: u32,
    pub series: &'a Series,
    /// Variance of the stack's live bytes when the process ended; 0 if they are exact.
    pub variance: f64,
}

/// Returns the stacks whose live bytes only grow, the fastest growing first. `end` is the time at
/// which the process ends.
pub(crate) fn suspects(grid: Grid, end: u64, all: Vec<Candidate<'_>>) -> Vec<Suspect> {
    let mut grid = grid;
    if end.saturating_sub(grid.begin.unwrap_or(end)) < Suspect::SHORTEST {
        return Vec::new();
    }
    grid.shift(end);
    // The last cell is not complete, so it does not count.
    let whole = grid.cell(end) as usize;
    let from = (whole as f64 * WARM_UP).ceil() as usize;
    let to = (whole as f64 * (1.0 - CLEAN_UP)).floor() as usize;
    if to < from + FEWEST {
        return Vec::new();
    }
    let tested = all.into_iter().map(|one| {
        let (values, changes) = one.series.within(grid.shift, from, to);
        (one, values, changes)
    });
    let tested: Vec<_> = tested.filter(|(_, _, changes)| *changes > 0).collect();
    let error = ERROR / tested.len().max(1) as f64;
    let suspect = |(one, values, changes): (Candidate<'_>, Vec<f64>, usize)| {
        let Growth { slope, interval } =
            only_grows(&values, error, one.variance.max(0.0)).filter(|_| changes >= CHANGES)?;
        let each_second = |slope: f64| slope / grid.seconds();
        Some(Suspect {
            stack: one.stack,
            per_second: each_second(slope),
            interval: interval.map(each_second),
            left: Amount::default(),
        })
    };
    let mut suspects: Vec<Suspect> = tested.into_iter().filter_map(suspect).collect();
    suspects.sort_by(|one, other| other.per_second.total_cmp(&one.per_second));
    suspects
}
