//! Keeps quantities over time in a bounded number of points that show every peak.

/// Maximum number of points of a timeline.
pub const POINTS: usize = 512;

/// Binary logarithm of the initial width of a point in nanoseconds.
const FINEST: u32 = 12;

/// A quantity during the time of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Maximum of the quantity during the point.
    pub most: u64,
    /// Value of the quantity at the end of the point.
    pub last: u64,
}

impl Level {
    fn then(self, later: Self) -> Self {
        Self {
            most: self.most.max(later.most),
            last: later.last,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            most: self.most.saturating_add(other.most),
            last: self.last.saturating_add(other.last),
        }
    }
}

/// One point of a timeline: an interval of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Time at which the point begins, in nanoseconds since the recording began.
    pub time: u64,
    /// Requested bytes of the live blocks.
    pub bytes: Level,
    /// Number of live blocks.
    pub blocks: Level,
    /// Resident memory in bytes; `None` before the first reading.
    pub resident: Option<Level>,
    /// Calls of allocation functions; of a sampled trace, the estimated number of those that
    /// returned a block.
    pub calls: u64,
}

/// Quantities over time. All points are equally wide and have no gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Width of a point in nanoseconds.
    pub width: u64,
    /// Points in order of time.
    pub points: Vec<Point>,
}

impl Timeline {
    /// Returns the point that contains this time.
    #[must_use]
    pub fn at(&self, time: u64) -> Option<&Point> {
        let first = self.points.first()?.time;
        let place = time.checked_sub(first)? / self.width.max(1);
        self.points.get(usize::try_from(place).ok()?)
    }
}

/// An interval of time. A quantity that is `None` did not change within it.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    bytes: Option<Level>,
    blocks: Option<Level>,
    resident: Option<Level>,
    calls: u64,
}

fn then(earlier: Option<Level>, later: Option<Level>) -> Option<Level> {
    match (earlier, later) {
        (Some(earlier), Some(later)) => Some(earlier.then(later)),
        (one, other) => other.or(one),
    }
}

fn plus(one: Option<Level>, other: Option<Level>) -> Option<Level> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.plus(other)),
        (one, other) => one.or(other),
    }
}

impl Cell {
    /// Joins this interval and the next.
    fn then(self, later: Self) -> Self {
        Self {
            bytes: then(self.bytes, later.bytes),
            blocks: then(self.blocks, later.blocks),
            resident: then(self.resident, later.resident),
            calls: self.calls.saturating_add(later.calls),
        }
    }

    /// Adds the same interval of another process.
    fn plus(self, other: Self) -> Self {
        Self {
            bytes: plus(self.bytes, other.bytes),
            blocks: plus(self.blocks, other.blocks),
            resident: plus(self.resident, other.resident),
            calls: self.calls.saturating_add(other.calls),
        }
    }
}

/// A timeline that is being filled. The intervals begin at multiples of their width, which is a
/// power of two and doubles when there are too many intervals.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// Binary logarithm of an interval's width in nanoseconds.
    width: u32,
    /// Number of intervals of this width before the first one.
    first: u64,
    cells: Vec<Cell>,
}

impl Default for Cells {
    fn default() -> Self {
        Self {
            width: FINEST,
            first: 0,
            cells: Vec::new(),
        }
    }
}

impl Cells {
    /// Records calls that changed the live bytes and blocks. Each pair contains the amounts before
    /// and after the calls.
    pub(crate) fn call(&mut self, time: u64, calls: u64, bytes: [u64; 2], blocks: [u64; 2]) {
        let cell = self.cell(time);
        cell.calls = cell.calls.saturating_add(calls);
        cell.bytes = changed(cell.bytes, bytes);
        cell.blocks = changed(cell.blocks, blocks);
    }

    /// Records live bytes and blocks that no call made, such as inherited ones.
    pub(crate) fn hold(&mut self, time: u64, bytes: u64, blocks: u64) {
        let cell = self.cell(time);
        cell.bytes = changed(cell.bytes, [bytes; 2]);
        cell.blocks = changed(cell.blocks, [blocks; 2]);
    }

    /// Records resident memory.
    pub(crate) fn resident(&mut self, time: u64, bytes: u64) {
        let cell = self.cell(time);
        cell.resident = changed(cell.resident, [bytes; 2]);
    }

    /// Fills gaps, and extends the last amounts up to `time`. If `is_over`, the amounts are zero at
    /// that time.
    pub(crate) fn end(&mut self, time: u64, is_over: bool) {
        self.cell(time);
        let mut before = Cell::default();
        for cell in &mut self.cells {
            let held = |known: Option<Level>, before: Option<Level>| {
                let before = before.map(|Level { last, .. }| Level { most: last, last });
                known.or(before)
            };
            cell.bytes = held(cell.bytes, before.bytes);
            cell.blocks = held(cell.blocks, before.blocks);
            cell.resident = held(cell.resident, before.resident);
            before = *cell;
        }
        let last = self.cells.last_mut().filter(|_| is_over);
        if let Some(Cell {
            bytes,
            blocks,
            resident,
            ..
        }) = last
        {
            for level in [bytes, blocks, resident].into_iter().flatten() {
                level.last = 0;
            }
        }
    }

    /// Adds another timeline, on which [`end`](Self::end) was called. Intervals outside of the
    /// other timeline's time stay unchanged.
    pub(crate) fn add(&mut self, mut other: Self) {
        let Some(end) = other.cells.len().checked_sub(1) else {
            return;
        };
        for place in [other.first, other.first + end as u64] {
            self.cell(place << other.width);
        }
        while self.width < other.width {
            self.coarsen();
        }
        while other.width < self.width {
            other.coarsen();
        }
        let skip = (other.first - self.first) as usize;
        for (own, other) in self.cells[skip..].iter_mut().zip(other.cells) {
            *own = own.plus(other);
        }
    }

    /// Converts the intervals into the points of a timeline.
    pub(crate) fn timeline(&self) -> Timeline {
        let point = |(place, cell): (usize, &Cell)| Point {
            time: (self.first + place as u64) << self.width,
            bytes: cell.bytes.unwrap_or_default(),
            blocks: cell.blocks.unwrap_or_default(),
            resident: cell.resident,
            calls: cell.calls,
        };
        Timeline {
            width: 1 << self.width,
            points: self.cells.iter().enumerate().map(point).collect(),
        }
    }

    /// Returns the interval that contains this time, and adds it if it is missing.
    #[inline]
    fn cell(&mut self, time: u64) -> &mut Cell {
        let place = (time >> self.width).wrapping_sub(self.first);
        if place >= self.cells.len() as u64 {
            return self.grown(time);
        }
        &mut self.cells[place as usize]
    }

    /// Returns the interval that contains this time, after coarsening the timeline until it has
    /// room for the interval.
    fn grown(&mut self, time: u64) -> &mut Cell {
        loop {
            let place = time >> self.width;
            if self.cells.is_empty() {
                self.first = place;
            }
            let end = self.first + self.cells.len() as u64;
            let (from, to) = (self.first.min(place), end.max(place + 1));
            if to - from <= POINTS as u64 {
                let before = (self.first - from) as usize;
                self.cells
                    .splice(..0, std::iter::repeat_n(Cell::default(), before));
                self.cells.resize((to - from) as usize, Cell::default());
                self.first = from;
                return &mut self.cells[(place - from) as usize];
            }
            self.coarsen();
        }
    }

    /// Joins neighbouring intervals in pairs.
    fn coarsen(&mut self) {
        let mut joined: Vec<Cell> = Vec::with_capacity(self.cells.len() / 2 + 1);
        for (place, cell) in (self.first..).zip(&self.cells) {
            match joined.last_mut() {
                Some(last) if place % 2 == 1 => *last = last.then(*cell),
                _ => joined.push(*cell),
            }
        }
        self.cells = joined;
        self.first /= 2;
        self.width += 1;
    }
}

/// Returns a quantity of an interval after a change from the first amount to the second.
fn changed(before: Option<Level>, [from, to]: [u64; 2]) -> Option<Level> {
    let now = Level {
        most: from.max(to),
        last: to,
    };
    then(before, Some(now))
}
