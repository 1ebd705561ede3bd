//! The suite `lgalloc`: the tables and claims of the document "Running lgalloc benchmarks on a
//! target host".

use std::time::{Duration, Instant};

use heapdrome_paging::{
    DocumentSetting, Form, Probe, Rounds, Swap, SwapKind, SwapRequest, do_without_swap, document,
    expected, free_swap, probes, swapped,
};
use heapdrome_schema::{Bytes, Collection, Experiment, PagingCell as Cell, Scale};

use super::estimate::Estimate;
use super::{Pieces, SuiteRequest};
use crate::event::{Event, Piece};
use crate::failure::Failure;
use crate::kept::Kept;
use crate::paging::{
    Cells, Opened, SwapWish, failure, holdings, outcome, processors, rivals_of, unbuilt,
};

/// Name of the suite.
pub const NAME: &str = "lgalloc";

/// Memory limit of cells that need no swap, as in the document.
const MEMORY: Bytes = Bytes::from_gib(4);
/// Processor quota of cells that need no swap, as in the document.
const PROCESSORS: f64 = 16.0;

/// Options that only this suite has.
#[derive(Clone, Debug)]
pub struct DocumentRequest {
    /// Swap to use. If no swap is requested and too little is free, a file is created.
    pub swap: SwapWish,
    /// Whether to try each value of the kernel's policy for huge pages.
    pub set_huge_pages: bool,
}

/// Experiments of the document that the suite runs.
pub(super) struct Document<'a> {
    cells: Cells<'a>,
    setting: DocumentSetting,
    parts: Vec<Experiment>,
    swap: SwapWish,
    form: Form,
}

impl<'a> Document<'a> {
    /// Opens the lab, and adds the requested cells to the collection.
    ///
    /// # Errors
    /// When an experiment or an allocator is unknown, the lab cannot be opened, or a cell was run
    /// earlier with other settings.
    pub(super) fn open(request: &SuiteRequest, kept: &mut Kept<'a>) -> Result<Self, Failure> {
        let parts = parts(&request.only)?;
        let mut form = Form::of(request.scale);
        if let Some(rounds) = request.rounds {
            (form.rounds, form.more_rounds) = (rounds, 0);
        }
        let (asked, build) = (&request.allocators, !request.estimate);
        let more = holdings(asked, build, kept.engine())?;
        let mut opened = Opened::new(kept.engine())?;
        let mechanism = opened.mechanism_if_any()?;
        let limit = opened.limit_without_swap(mechanism, MEMORY, PROCESSORS)?;
        let rivals = match parts.contains(&Experiment::Throughput) {
            true => rivals_of(asked, build, &mut opened)?,
            false => Vec::new(),
        };
        let setting = DocumentSetting {
            limit,
            more,
            rivals,
            set_huge_pages: request.document.set_huge_pages,
            seed: request.seed.unwrap_or(1),
        };
        let rounds = Rounds {
            all: form.rounds,
            more: form.more_rounds,
            within: form.within,
            processors: processors(),
        };
        let wanted = document(&form, &setting, &parts);
        let cells = Cells::new(opened, mechanism, rounds, wanted, &mut kept.collection);
        let cells = cells.map_err(|cell| {
            let path = request.resume.clone().unwrap_or_default();
            Failure::Usage(format!(
                "--resume {}: {cell} was measured under another limit, seed or allocator there; use the same, or \
                 start the suite again",
                path.display()
            ))
        })?;
        Ok(Self {
            cells: cells.with_sentences(),
            setting,
            parts,
            swap: request.document.swap.clone(),
            form,
        })
    }

    /// Creates swap for these cells: the requested swap, or a swap file if too little is free.
    /// Returns `None` if nothing must be created. If swap is impossible, also marks the cells that
    /// require it as failed, and adds a remark with the reason.
    ///
    /// # Errors
    /// When the user interrupts.
    fn swap_for(&mut self, cells: &mut [&mut Cell]) -> Result<Option<Swap>, Failure> {
        let mechanism = self.cells.mechanism;
        let needed = swapped(cells.iter().map(|cell| &**cell));
        let why = match (mechanism, needed) {
            (None, _) => "no memory limit can be set here".to_owned(),
            (_, Bytes(0)) => return Ok(None),
            (Some(_), _) => match self.make_swap(needed) {
                Ok(swap) => return Ok(swap),
                Err(Failure::Machine(why)) => why,
                Err(failure) => return Err(failure),
            },
        };
        self.cells.opened.remarks.push(format!(
            "left out, not measured: all cells that need swap under a limit ({why})"
        ));
        for cell in cells {
            do_without_swap(cell, mechanism, &why);
        }
        Ok(None)
    }

    fn make_swap(&mut self, needed: Bytes) -> Result<Option<Swap>, Failure> {
        let mut wish = self.swap.clone();
        // A swap area is much slower when it is more than half full. Its first page is unusable.
        let enough = needed * 2 + Bytes::from_mib(1);
        if wish.request.is_none() && free_swap() < enough {
            wish.request = Some(SwapRequest {
                kind: SwapKind::File,
                bytes: enough.rounded_up_to(Bytes::from_gib(1)),
            });
        }
        let swap = self.cells.opened.swap(&wish, needed)?;
        if let Some(made) = wish.request {
            let told = format!("swap: {made}, created and removed");
            self.cells.opened.remarks.push(told);
        }
        Ok(swap)
    }

    /// Runs one small cell of each kind, and returns the durations.
    fn probe(&self, small: &[Cell]) -> Result<Vec<Probe>, Failure> {
        let mut found = Vec::new();
        let opened = &self.cells.opened;
        for cell in probes(small) {
            let mut cell = cell.clone();
            let title = format!("estimate: {}: {}", cell.part, cell.name);
            opened.engine.tell(Event::CellStarted(&title));
            let begun = Instant::now();
            let lost = opened.lab.run_cell(&mut cell, 1, self.cells.mechanism);
            let took = begun.elapsed();
            match lost.map_err(failure)? {
                None => found.push(Probe { cell, took }),
                Some(why) => opened.engine.tell(Event::RoundLost {
                    cell: &cell,
                    why: &why,
                }),
            }
        }
        Ok(found)
    }

    /// Sums up the remaining time of each experiment.
    fn add_up(&self, collection: &mut Collection, probes: &[Probe]) -> Estimate {
        let mut found = Estimate::default();
        let (all, most) = (self.form.rounds, self.form.rounds + self.form.more_rounds);
        let wanted: Vec<&mut Cell> = self.cells.wanted(collection).collect();
        for part in &self.parts {
            let own = wanted.iter().filter(|cell| cell.part == *part);
            let (mut least, mut longest) = (Some(Duration::ZERO), Duration::ZERO);
            for cell in own {
                let Some(one) = expected(cell, probes) else {
                    least = None;
                    continue;
                };
                let left = |rounds: u32| one * rounds.saturating_sub(cell.last_round);
                least = least.map(|sum| sum + left(all));
                longest += left(most);
            }
            match least {
                Some(least) => found.add(part.to_string(), least, longest),
                None => found.add_unknown(part.to_string()),
            }
        }
        if let Some(within) = self.form.within {
            found.end_after(within);
        }
        found
    }
}

impl Pieces for Document<'_> {
    fn estimate(&mut self, kept: &mut Kept<'_>) -> Result<Estimate, Failure> {
        let engine = kept.engine();
        engine.tell(Event::Estimating);
        let others = self.setting.rivals.iter().chain(&self.setting.more);
        let unbuilt = unbuilt(&others.collect::<Vec<_>>(), engine)?;
        if !unbuilt.is_empty() {
            engine.tell(Event::NotBuilt(&unbuilt));
        }
        let mut small = document(&Form::of(Scale::Quick), &self.setting, &self.parts);
        let swap = self.swap_for(&mut small.iter_mut().collect::<Vec<_>>())?;
        let probes = self.probe(&small);
        swap.map_or(Ok(()), Swap::remove).map_err(failure)?;
        Ok(self.add_up(&mut kept.collection, &probes?))
    }

    fn run(&mut self, kept: &mut Kept<'_>) -> Result<(), Failure> {
        let (left, done) = self.cells.left_and_done(&kept.collection);
        kept.engine().tell(Event::SuiteStarted {
            pieces: Piece::Cell,
            left,
            done,
            file: kept.file(),
        });
        if self.cells.are_done(&kept.collection) {
            return Ok(());
        }
        let mut wanted: Vec<&mut Cell> = self.cells.wanted(&mut kept.collection).collect();
        let swap = self.swap_for(&mut wanted)?;
        let ran = self.cells.run(kept);
        let removed = swap.map_or(Ok(()), Swap::remove);
        ran.and(removed.map_err(failure))
    }

    fn evaluate(&self, collection: &mut Collection) {
        self.cells.evaluate(collection);
    }

    fn outcome(&self, collection: &Collection) -> Result<(), Failure> {
        outcome(collection)
    }
}

/// Returns the experiments of these names; all experiments for an empty list.
///
/// # Errors
/// When a name is unknown.
fn parts(only: &[String]) -> Result<Vec<Experiment>, Failure> {
    let known = |name: &&String| Experiment::ALL.iter().any(|part| part.name() == **name);
    if let Some(name) = only.iter().find(|name| !known(name)) {
        let names = Experiment::ALL.map(Experiment::name).join(", ");
        return Err(Failure::Usage(format!(
            "--only {name}: the suite lgalloc has {names}"
        )));
    }
    let wanted = |part: &Experiment| only.is_empty() || only.iter().any(|name| name == part.name());
    Ok(Experiment::ALL.into_iter().filter(wanted).collect())
}
