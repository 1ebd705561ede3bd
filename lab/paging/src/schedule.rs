//! The order of the cells. Rounds of all cells come first, so that drift affects all cells alike.
//! Then follow rounds of the cells that could still decide a target or a claim.

use std::collections::VecDeque;
use std::time::Duration;

use heapdrome_schema::PagingCell as Cell;

use crate::open_cells;

/// Numbers of rounds, and the limits on them.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Number of rounds in which all cells run.
    pub all: u32,
    /// Maximum number of further rounds, for cells whose targets or claims are open.
    pub more: u32,
    /// Time limit. A round does not begin if it would end after the limit at the pace of the
    /// slowest round so far. The first round always runs, and an interrupted round always
    /// continues.
    pub within: Option<Duration>,
    /// Number of processors available for the tests of claims.
    pub processors: usize,
}

/// The sequence of the cells' turns. It can continue from any stage of progress.
#[derive(Debug)]
pub struct Schedule {
    rounds: Rounds,
    /// Positions of the cells that get turns.
    places: Vec<usize>,
    /// Number of the last round that was begun before this schedule.
    before: u32,
    round: u32,
    /// The cells that have not had their turn in the current round.
    queue: VecDeque<usize>,
    /// Number of cells that this schedule runs in the current round.
    count: usize,
    begun: Duration,
    /// The mean time of a cell in the slowest round.
    pace: Duration,
}

/// The turn of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Position of the cell among all cells.
    pub place: usize,
    /// Number of the round, from 1.
    pub round: u32,
    /// Number of planned rounds. Includes the further rounds once these have begun.
    pub rounds: u32,
    /// Number of the turn in its round, from 1.
    pub number: usize,
    /// The number of turns in the round.
    pub of: usize,
}

impl Schedule {
    /// Returns a schedule for the cells at `places`. It continues after the rounds that the cells
    /// have already had, which took `spent`.
    #[must_use]
    pub fn new(rounds: Rounds, cells: &[Cell], places: Vec<usize>, spent: Duration) -> Self {
        let turns: u32 = cells.iter().map(|cell| cell.last_round).sum();
        Self {
            rounds,
            places,
            before: last_round(cells),
            round: 0,
            queue: VecDeque::new(),
            count: 0,
            begun: spent,
            pace: spent / turns.max(1),
        }
    }

    /// Returns the next turn. `now` is the time spent so far, including the `spent` of
    /// [`new`](Self::new). Returns `None` if no turn or no time is left.
    pub fn next(&mut self, cells: &[Cell], now: Duration) -> Option<Turn> {
        loop {
            while let Some(place) = self.queue.pop_front() {
                if cells[place].failure.is_none() {
                    return Some(self.turn(place));
                }
            }
            let took = now.saturating_sub(self.begun);
            self.pace = self
                .pace
                .max(took / u32::try_from(self.count.max(1)).unwrap_or(u32::MAX));
            if !self.begin_round(cells, now) {
                return None;
            }
        }
    }

    fn turn(&self, place: usize) -> Turn {
        let Rounds { all, more, .. } = self.rounds;
        Turn {
            place,
            round: self.round,
            rounds: if self.round <= all { all } else { all + more },
            number: self.count - self.queue.len(),
            of: self.count,
        }
    }

    /// Begins the next round, or continues an interrupted one. Returns false if there is no further
    /// round.
    fn begin_round(&mut self, cells: &[Cell], now: Duration) -> bool {
        let Rounds {
            all, more, within, ..
        } = self.rounds;
        self.round += 1;
        if self.round > all {
            self.round = self.round.max(self.before);
        }
        if self.round > all + more {
            return false;
        }
        let queue = self.queue_of(self.round, cells);
        let ends = now + self.pace * u32::try_from(queue.len()).unwrap_or(u32::MAX);
        let late = within.is_some_and(|within| ends > within);
        if late && last_round(cells) > 0 && !is_begun(self.round, cells) {
            // The time may suffice for a round of the open cells alone.
            let skips = self.round <= all;
            self.round = all;
            return skips && self.begin_round(cells, now);
        }
        (self.count, self.begun) = (queue.len(), now);
        self.queue = queue;
        self.count > 0 || self.round < all || self.is_open(cells)
    }

    /// Returns the cells that have not had their turn in a round. The order rotates by one from
    /// round to round.
    fn queue_of(&self, round: u32, cells: &[Cell]) -> VecDeque<usize> {
        let mut wanted = self.places.clone();
        if round > self.rounds.all {
            let open = open_cells(cells, self.rounds.processors);
            wanted.retain(|place| open.contains(place));
        }
        let count = wanted.len();
        let turned = (0..count).map(|place| wanted[(place + round as usize - 1) % count]);
        let left =
            |place: &usize| cells[*place].failure.is_none() && cells[*place].last_round < round;
        turned.filter(left).collect()
    }

    /// Returns whether a cell of this schedule is open, so that a further round could decide a
    /// target or a claim.
    fn is_open(&self, cells: &[Cell]) -> bool {
        let open = open_cells(cells, self.rounds.processors);
        open.iter().any(|place| self.places.contains(place))
    }
}

/// Returns whether any cell has run in this round.
fn is_begun(round: u32, cells: &[Cell]) -> bool {
    let ran = |cell: &Cell| {
        let mut reports = cell.reports.iter();
        cell.last_round == round || reports.any(|report| report.round == round)
    };
    cells.iter().any(ran)
}

/// Returns the last round in which any of these cells has run; zero if there is none.
#[must_use]
pub fn last_round(cells: &[Cell]) -> u32 {
    cells.iter().map(|cell| cell.last_round).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use heapdrome_schema::{Experiment, Job, PagingReport};

    use super::*;

    const ROUNDS: Rounds = Rounds {
        all: 3,
        more: 0,
        within: None,
        processors: 1,
    };
    const SECOND: Duration = Duration::from_secs(1);

    fn cells() -> Vec<Cell> {
        let cell = |name: &str| Cell::new(Experiment::Paging, name, Job::Probe, None);
        ["a", "b", "c"].map(cell).into()
    }

    /// Runs at most `most` turns from `now` on, each of which takes a second. Returns the name and
    /// the round of each cell that had a turn.
    fn run(rounds: Rounds, cells: &mut [Cell], now: Duration, most: usize) -> Vec<String> {
        let mut schedule = Schedule::new(rounds, cells, (0..cells.len()).collect(), now);
        let mut told = Vec::new();
        let mut now = now;
        while told.len() < most {
            let Some(turn) = schedule.next(cells, now) else {
                break;
            };
            let cell = &mut cells[turn.place];
            told.push(format!("{}{}", cell.name, turn.round));
            let report = PagingReport {
                round: turn.round,
                ..PagingReport::default()
            };
            cell.add(turn.round, vec![report]);
            now += SECOND;
        }
        told
    }

    #[test]
    fn the_order_turns_by_one_from_round_to_round() {
        let told = run(ROUNDS, &mut cells(), Duration::ZERO, 100);
        assert_eq!(told, ["a1", "b1", "c1", "b2", "c2", "a2", "c3", "a3", "b3"]);
    }

    /// Regardless of where the schedule is interrupted, every cell must run once in each round, in
    /// the same order.
    #[test]
    fn what_was_interrupted_goes_on_as_if_it_had_not_been() {
        let whole = run(ROUNDS, &mut cells(), Duration::ZERO, 100);
        for cut in 0..=whole.len() {
            let mut cells = cells();
            let mut told = run(ROUNDS, &mut cells, Duration::ZERO, cut);
            told.extend(run(ROUNDS, &mut cells, SECOND * cut as u32, 100));
            assert_eq!(told, whole, "interrupted after {cut}");
        }
    }

    #[test]
    fn no_round_begins_that_would_end_too_late_but_the_first_and_one_that_goes_on() {
        let until = |seconds: u64| Rounds {
            within: Some(Duration::from_secs(seconds)),
            ..ROUNDS
        };
        for (seconds, turns) in [(0, 3), (5, 3), (6, 6), (8, 6), (9, 9)] {
            let told = run(until(seconds), &mut cells(), Duration::ZERO, 100);
            assert_eq!(told.len(), turns, "within {seconds} s");
        }
        let mut cut = cells();
        run(until(6), &mut cut, Duration::ZERO, 4);
        let told = run(until(6), &mut cut, SECOND * 4, 100);
        assert_eq!(
            told,
            ["c2", "a2"],
            "the second round goes on, no third begins"
        );
    }

    /// Returns two cells whose claim needs five rounds, and a third cell without a claim.
    fn with_open_cells() -> Vec<Cell> {
        let cell = |name: &str| Cell::new(Experiment::Strategies, name, Job::Probe, None);
        ["baseline", "prefetch (32 ahead)", "c"].map(cell).into()
    }

    #[test]
    fn open_cells_go_on_where_there_is_no_time_for_all_and_after_an_interrupt() {
        let rounds = Rounds {
            more: 9,
            within: Some(SECOND * 8),
            ..ROUNDS
        };
        let whole = run(rounds, &mut with_open_cells(), Duration::ZERO, 100);
        // Two rounds of all cells take six seconds. A third round would end too late.
        let rounds_of = |told: &[String]| -> Vec<String> {
            let last = |one: &String| one.chars().last().map(String::from);
            told.iter().filter_map(last).collect()
        };
        assert_eq!(rounds_of(&whole), ["1", "1", "1", "2", "2", "2", "4", "4"]);
        for cut in 0..=whole.len() {
            let mut cells = with_open_cells();
            let mut told = run(rounds, &mut cells, Duration::ZERO, cut);
            told.extend(run(rounds, &mut cells, SECOND * cut as u32, 100));
            assert_eq!(told, whole, "interrupted after {cut}");
        }
    }

    #[test]
    fn a_cell_that_was_given_up_has_no_turn() {
        let mut cells = cells();
        cells[1].failure = Some("killed".to_owned());
        let told = run(ROUNDS, &mut cells, Duration::ZERO, 4);
        assert_eq!(told, ["a1", "c1", "c2", "a2"]);
    }
}
