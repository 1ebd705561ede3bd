//! Alternating races, which run one round each in turn. Disturbances of the machine then affect all
//! races alike, and the rounds of two races form pairs.

use heapdrome_measure::schedule;
use heapdrome_packages::Lock;
use heapdrome_schema::RaceResult;

use super::cell::{Cell, CellRequest, Load};
use super::contest::Ended;
use super::store::ProofStore;
use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;
use crate::workload::Asked;

/// A race that waits for its turn.
struct Turn {
    cell: Cell,
    /// End of the race, once it has ended.
    ended: Option<Result<Ended, Failure>>,
}

impl Turn {
    fn rounds(&self) -> u32 {
        self.cell.contest.race.complete_rounds()
    }
}

/// Returns whether these races can alternate. Races with `--setup` or `--cleanup` cannot, because
/// another race's turn could destroy the results of `--setup`.
pub fn can_be_taken(requests: &[CellRequest]) -> bool {
    requests.iter().all(|request| {
        let options = &request.options;
        options.setup.is_none() && options.cleanup.is_none()
    })
}

/// If a race locks a folder of the cache, takes a lock that excludes other sweeps with such races,
/// because two of these sweeps could deadlock.
fn alone(requests: &[CellRequest], engine: &Engine) -> Result<Option<Lock>, Failure> {
    let keeps = |request: &CellRequest| match &request.load {
        Load::Command(_) => false,
        Load::Workload { name, words, quick } => {
            Asked::parse(name, words, *quick).is_ok_and(|asked| asked.keeps_something())
        }
    };
    if !requests.iter().any(keeps) {
        return Ok(None);
    }
    engine.tell(Event::Locking("the folders of the workload"));
    let locked = engine.folders.cache.lock("sweep");
    engine.check()?;
    locked.map(Some).map_err(Failure::machine)
}

/// Runs the races in turns. Returns those that have a result, each with its position in `requests`,
/// and the first failure. After an interrupt, every race that has rounds has a result.
pub fn in_turns(
    requests: &[CellRequest],
    engine: &Engine,
) -> (Vec<(usize, RaceResult)>, Result<(), Failure>) {
    let _alone = match alone(requests, engine) {
        Ok(lock) => lock,
        Err(failure) => return (Vec::new(), Err(failure)),
    };
    let (mut turns, mut outcome) = begin(requests, engine);
    if let Some(request) = requests.first() {
        // The seed itself determines the order of entrants in each round, so the order of races
        // uses the inverted seed.
        take(&mut turns, !request.seed);
    }
    let mut done = Vec::new();
    for (place, turn) in turns.into_iter().enumerate() {
        let Turn { mut cell, ended } = turn;
        let ended = cell.contest.end(ended.unwrap_or(Err(Failure::Interrupted)));
        let (result, ended) = cell.result(ended);
        let partial = matches!(ended, Err(Failure::Interrupted)) && result.rounds > 0;
        if ended.is_ok() || partial {
            done.push((place, result));
        }
        outcome = outcome.and(ended);
    }
    (done, outcome)
}

/// Plans or resumes the races in order, and does all work that precedes their rounds. Stops at the
/// first failure.
fn begin(requests: &[CellRequest], engine: &Engine) -> (Vec<Turn>, Result<(), Failure>) {
    let mut proofs = ProofStore::default();
    let mut turns = Vec::new();
    for request in requests {
        if let Err(failure) = engine.check() {
            return (turns, Err(failure));
        }
        engine.tell(Event::CellStarted(&request.title));
        let (cell, begun) = match Cell::begin(request, engine, Some(&mut proofs)) {
            Ok(begun) => begun,
            Err(failure) => return (turns, Err(failure)),
        };
        cell.contest.close();
        let failed = matches!(
            begun,
            Err(_) | Ok(Some(Ended::BaselineFailed(_) | Ended::DifferentWork(_)))
        );
        turns.push(Turn {
            cell,
            ended: begun.transpose(),
        });
        if failed {
            break;
        }
    }
    (turns, Ok(()))
}

/// Runs a round of every unfinished race, in a new order each time, until no race is left. After an
/// interruption, races that have missed their turn go first, so that the rounds form pairs again.
fn take(turns: &mut [Turn], seed: u64) {
    let going_on = turns.iter().filter(|turn| turn.ended.is_none());
    let first = going_on.map(Turn::rounds).min().unwrap_or(0);
    for round in first.. {
        if turns.iter().all(|turn| turn.ended.is_some()) {
            return;
        }
        for place in schedule::order(seed, round, turns.len()) {
            let turn = &mut turns[place];
            if turn.ended.is_some() || turn.rounds() > round {
                continue;
            }
            turn.cell.contest.open();
            turn.ended = turn.cell.contest.round_or_end().transpose();
            turn.cell.contest.close();
            if matches!(turn.ended, Some(Err(Failure::Interrupted))) {
                return;
            }
        }
    }
}
