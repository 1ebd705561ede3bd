//! Estimates the time of cells from one run of a small cell of each kind.

use std::mem::discriminant;
use std::time::Duration;

use heapdrome_schema::{Job, PagingCell as Cell};

use crate::experiments::beyond;

/// A small cell and the time of its run.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Small cell whose run was timed.
    pub cell: Cell,
    /// Duration of the process that ran the cell.
    pub took: Duration,
}

/// Returns one cell for each kind of job in each experiment: the cell that swaps most among those
/// that can run here. Omits cells with a preloaded allocator, because that allocator may not be
/// built.
#[must_use]
pub fn probes(small: &[Cell]) -> Vec<&Cell> {
    let mut found: Vec<&Cell> = Vec::new();
    let able = |cell: &&Cell| cell.failure.is_none() && cell.allocator.is_none();
    for cell in small.iter().filter(able) {
        match found.iter_mut().find(|known| is_like(known, cell)) {
            Some(known) if beyond(known) > beyond(cell) => {}
            Some(known) => *known = cell,
            None => found.push(cell),
        }
    }
    found
}

fn is_like(one: &Cell, other: &Cell) -> bool {
    one.part == other.part && discriminant(&one.job) == discriminant(&other.job)
}

/// Returns the expected time of one round of a cell; `None` if no probe has the cell's kind.
#[must_use]
pub fn expected(cell: &Cell, probes: &[Probe]) -> Option<Duration> {
    let probe = probes.iter().find(|probe| is_like(&probe.cell, cell))?;
    let set = |cell: &Cell| cell.job.working_set().as_f64().max(1.0);
    let times = set(cell) / set(&probe.cell);
    let beside = probe.took.saturating_sub(measured(&probe.cell.job));
    let beside = Duration::try_from_secs_f64(beside.as_secs_f64() * times).ok()?;
    Some(measured(&cell.job) + beside)
}

/// Returns the part of a job's time that does not depend on the machine.
fn measured(job: &Job) -> Duration {
    match job {
        Job::Probe | Job::Burst(_) => Duration::ZERO,
        // The batches take half as long as the measuring time.
        Job::Throughput(job) => job.warm_up + job.seconds + job.seconds / 2,
        Job::Read(job) => job.seconds,
        Job::Recycle(job) => job.seconds * u32::try_from(job.threads.len()).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use heapdrome_schema::{Experiment, Scale};

    use super::*;
    use crate::{DocumentSetting, Form, document};

    fn cells(scale: Scale) -> Vec<Cell> {
        let setting = DocumentSetting::default();
        document(&Form::of(scale), &setting, &Experiment::ALL)
    }

    #[test]
    fn every_cell_is_estimated_by_one_of_its_kind() {
        let small = cells(Scale::Quick);
        let took = Duration::from_secs(10);
        let chosen = probes(&small);
        assert!(chosen.len() < small.len() / 5, "{}", chosen.len());
        let chosen: Vec<Probe> = chosen
            .into_iter()
            .map(|cell| Probe {
                cell: cell.clone(),
                took,
            })
            .collect();
        for cell in cells(Scale::Published) {
            let time = expected(&cell, &chosen).expect("there is one of its kind");
            assert!(time >= measured(&cell.job), "{}", cell.name);
        }
        let sweep = |cells: Vec<Cell>| {
            let mut cells = cells.into_iter();
            cells.find(|cell| cell.part == Experiment::RatioSweep)
        };
        let of = |scale| expected(&sweep(cells(scale)).expect("a cell"), &chosen);
        assert_eq!(of(Scale::Quick), Some(took));
        // The published form measures for 5 s. The other 9.3 s of the probe grow with the working
        // set, which is eight times as large.
        let published = of(Scale::Published).expect("a time").as_secs_f64();
        assert!((published - (5.0 + 8.0 * 9.3)).abs() < 1e-6, "{published}");
    }

    #[test]
    fn what_cannot_be_run_stands_for_nothing() {
        let mut small = cells(Scale::Quick);
        small
            .iter_mut()
            .for_each(|cell| cell.failure = Some("no swap".to_owned()));
        assert!(probes(&small).is_empty());
        assert_eq!(expected(&small[0], &[]), None);
    }
}
