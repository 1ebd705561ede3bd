//! What every paging experiment needs, found or made, and its result handed out.

use std::collections::BTreeSet;
use std::path::Path;

use heapdrome_paging::{
    Cell, Error, Event, Lab, Ledger, Leftovers, Limit, Mechanism, Swap, free_swap, size,
};
use heapdrome_record::{
    Ccdf, CcdfPoint, Collection, Nanoseconds, SCHEMA, Scale, Table, write_atomically,
};

use super::arguments::{CommonArguments, SwapArguments};
use crate::failure::Failure;
use crate::folders::Folders;
use crate::workload::companion;
use crate::{interrupt, output};

/// The companion that runs experiments.
const CHILD: &str = "heapdrome-lgalloc-bench";

/// The lab, opened.
pub struct Session {
    /// The lab.
    pub lab: Lab,
    /// What a reader should know about the whole.
    pub remarks: Vec<String>,
}

/// The failure that an error of the lab is.
pub fn failure(error: Error) -> Failure {
    match error {
        Error::Interrupted => Failure::Interrupted,
        error => Failure::machine(error),
    }
}

impl Session {
    /// Opens the lab, and removes what a killed one has left.
    ///
    /// # Errors
    /// When the companion is missing, or a folder cannot be written to.
    pub fn open() -> Result<Self, Failure> {
        let (lab, leftovers) = Self::open_lab()?;
        for item in &leftovers.removed {
            output::tell(format!("removed what an earlier run had left: {item}"));
        }
        for error in &leftovers.failed {
            output::tell(error);
        }
        Ok(Self {
            lab,
            remarks: vec![huge_pages()],
        })
    }

    /// The same, with what became of leftovers.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_lab() -> Result<(Lab, Leftovers), Failure> {
        let interrupt = interrupt::flag()?;
        let state = Folders::find()?.races.with_file_name("paging");
        let (ledger, leftovers) = Ledger::open(&state).map_err(failure)?;
        let lab = Lab {
            child: companion::find(CHILD)?,
            ledger,
            interrupt,
            environment: Vec::new(),
        };
        Ok((lab, leftovers))
    }

    /// Makes the swap that was asked for, if any, and checks that enough is free.
    ///
    /// # Errors
    /// When it cannot be made, or less is free than `needed`.
    pub fn swap(
        &mut self,
        arguments: &SwapArguments,
        needed: u64,
    ) -> Result<Option<Swap>, Failure> {
        let made = arguments.swap.map(|request| {
            output::tell(format!("making {} of swap", size(request.bytes)));
            Swap::make(request, &arguments.swap_folder, &self.lab.ledger)
        });
        let made = made.transpose().map_err(failure)?;
        let free = free_swap();
        if free < needed {
            // Dropping what was made removes it.
            return Err(Failure::Machine(format!(
                "{} of swap is free and {} is needed: add --swap file:{} (root), or take a smaller \
                 --total",
                size(free),
                size(needed),
                size((2 * needed).next_multiple_of(1 << 30))
            )));
        }
        if free < 2 * needed {
            self.remarks.push(format!(
                "swap is more than half full in these experiments ({} free, {} used), which slows it \
                 down; make it larger than {}",
                size(free),
                size(needed),
                size(2 * needed)
            ));
        }
        Ok(made)
    }

    /// The mechanism that makes limits here.
    ///
    /// # Errors
    /// When there is none.
    pub fn mechanism(&mut self) -> Result<Mechanism, Failure> {
        let mechanism = self.lab.mechanism().map_err(failure)?;
        self.remarks.push(format!(
            "memory limits by {}, read back by each process",
            mechanism.name()
        ));
        Ok(mechanism)
    }

    /// Runs the cells, telling of each on standard error.
    ///
    /// # Errors
    /// When someone interrupts.
    pub fn run(
        &self,
        cells: &mut [Cell],
        rounds: u32,
        mechanism: Option<Mechanism>,
    ) -> Result<(), Failure> {
        let mut tell = |event: Event<'_>| match event {
            Event::Begins {
                cell,
                round,
                rounds,
            } => output::tell(format!("round {round} of {rounds}: {cell}")),
            Event::Failed { cell, reason } => output::tell(format!("{cell}: {reason}")),
        };
        self.lab
            .rounds(cells, rounds, mechanism, &mut tell)
            .map_err(failure)
    }

    /// Prints the tables, and writes the files that were asked for.
    ///
    /// # Errors
    /// When something cannot be written, or no cell could be measured.
    pub fn publish(
        &self,
        name: &str,
        common: &CommonArguments,
        tables: Vec<Table>,
        cells: &[&Cell],
    ) -> Result<(), Failure> {
        let now = std::time::SystemTime::now();
        let collection = Collection {
            schema: SCHEMA,
            heapdrome: env!("CARGO_PKG_VERSION").to_owned(),
            started: humantime::format_rfc3339_seconds(now).to_string(),
            asked: std::env::args().skip(1).collect(),
            name: name.to_owned(),
            scale: Some(if common.quick {
                Scale::Quick
            } else {
                Scale::Usual
            }),
            machine: heapdrome_machine::describe(),
            races: Vec::new(),
            tables,
            ccdfs: ccdfs(cells),
            misuse: Vec::new(),
            claims: Vec::new(),
            absent: Vec::new(),
            remarks: self.remarks.clone(),
        };
        let redaction = Folders::find()?.redaction();
        let published = output::publish_collection(&collection, &common.output, Some(&redaction));
        let saved = common
            .data
            .as_deref()
            .map_or(Ok(()), |path| save(path, cells));
        published.and(saved)?;
        match cells.iter().any(|cell| cell.sound().next().is_some()) {
            true => Ok(()),
            false => Err(Failure::Machine(
                "nothing could be measured; the notes below the tables say why".to_owned(),
            )),
        }
    }
}

/// Every kind of time that any cell has counted.
fn ccdfs(cells: &[&Cell]) -> Vec<Ccdf> {
    let kinds: BTreeSet<&String> = cells
        .iter()
        .flat_map(|cell| cell.sound())
        .flat_map(|report| report.distributions.keys())
        .collect();
    let one = |kind: &String, cell: &Cell| {
        let times = cell.distribution(kind);
        let point = |point: heapdrome_paging::Point| CcdfPoint {
            time: Nanoseconds(point.value),
            above: point.share,
        };
        (times.count() > 0).then(|| Ccdf {
            kind: kind.clone(),
            cell: cell.name.clone(),
            count: times.count(),
            points: times.ccdf().into_iter().map(point).collect(),
        })
    };
    kinds
        .into_iter()
        .flat_map(|kind| cells.iter().filter_map(move |cell| one(kind, cell)))
        .collect()
}

/// Every report as it came.
fn save(path: &Path, cells: &[&Cell]) -> Result<(), Failure> {
    let cells: Vec<_> = cells
        .iter()
        .map(|cell| {
            serde_json::json!({
                "cell": cell.name,
                "job": cell.job,
                "memory": cell.limit.map(|limit: Limit| limit.memory),
                "swap": cell.limit.map(|limit: Limit| limit.swap),
                "reports": cell.reports,
                "failure": cell.failure,
            })
        })
        .collect();
    let bytes = serde_json::to_vec(&cells).map_err(Failure::machine)?;
    write_atomically(path, &bytes).map_err(Failure::machine)
}

/// How huge pages are set, and what that means for lgalloc.
fn huge_pages() -> String {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let set = text.split(['[', ']']).nth(1).unwrap_or("not known");
    match set {
        "never" => "transparent huge pages: never; what lgalloc asks for has no effect".to_owned(),
        set => format!("transparent huge pages: {set}"),
    }
}
