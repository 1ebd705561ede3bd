//! What every paging experiment needs, found or made, and its result handed out.

use std::path::Path;
use std::time::Instant;

use heapdrome_paging::{
    Cell, Error, Event, Lab, Ledger, Leftovers, Limit, Mechanism, Plan, Swap, counters_table,
    free_swap, open_cells, size,
};
use heapdrome_record::{
    Ccdf, CcdfPoint, ClaimResult, Collection, Machine, Nanoseconds, SCHEMA, Scale, Table,
};

use crate::arguments::OutputArguments;
use crate::arguments::paging::MakeSwap;
use crate::destinations::Destinations;
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
    /// When it was opened.
    pub begun: Instant,
    /// The machine as it was then: what is run later must not count as the work of others.
    pub machine: Machine,
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
        for item in &leftovers.foreign {
            output::tell(format!(
                "left alone, as it is not what an earlier run made: {item}"
            ));
        }
        for error in &leftovers.failed {
            output::tell(error);
        }
        Ok(Self {
            lab,
            remarks: vec![huge_pages()],
            begun: Instant::now(),
            machine: heapdrome_machine::describe(),
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
        };
        Ok((lab, leftovers))
    }

    /// Makes the swap that was asked for, if any, and checks that enough is free.
    ///
    /// # Errors
    /// When it cannot be made, or less is free than `needed`.
    pub fn swap(&mut self, arguments: &MakeSwap, needed: u64) -> Result<Option<Swap>, Failure> {
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

    /// The same, or none, which is remarked on.
    ///
    /// # Errors
    /// When someone interrupts.
    pub fn mechanism_if_any(&mut self) -> Result<Option<Mechanism>, Failure> {
        match self.mechanism() {
            Ok(mechanism) => Ok(Some(mechanism)),
            Err(Failure::Interrupted) => Err(Failure::Interrupted),
            Err(failure) => {
                let told = format!("measured without a limit: {failure}");
                self.remarks.push(told);
                Ok(None)
            }
        }
    }

    /// The limit of what needs no swap, if there are limits: so much memory, and a quota of processor time, or a
    /// remark on why there is none.
    ///
    /// # Errors
    /// When someone interrupts.
    pub fn limit_without_swap(
        &mut self,
        mechanism: Option<Mechanism>,
        memory: u64,
        processors: f64,
    ) -> Result<Option<Limit>, Failure> {
        let Some(mechanism) = mechanism else {
            return Ok(None);
        };
        let quota = match self.lab.try_quota(mechanism, processors) {
            Ok(()) => Some(processors),
            Err(Error::Interrupted) => return Err(Failure::Interrupted),
            Err(error) => {
                let told = format!("measured without a quota of processor time: {error}");
                self.remarks.push(told);
                None
            }
        };
        Ok(Some(Limit {
            memory,
            swap: 0,
            processors: quota,
        }))
    }

    /// Runs the cells, telling of each on standard error. Returns how many rounds were run.
    ///
    /// # Errors
    /// When someone interrupts.
    pub fn run(&mut self, cells: &mut [Cell], plan: Plan) -> Result<u32, Failure> {
        let mut tell = telling(cells.len());
        let all = |cells: &[Cell]| (0..cells.len()).collect();
        let ran = self.lab.rounds(cells, 0, plan, &all, &mut tell);
        let ran = ran.map_err(failure)?;
        if ran < plan.rounds {
            self.remarks.push(format!(
                "{ran} of {} rounds were run: another would have taken too long",
                plan.rounds
            ));
        }
        Ok(ran)
    }

    /// Runs further rounds, after `done` of all cells, of those alone that could decide a target that is
    /// open or that a sentence needs for an interval, until there are none.
    ///
    /// # Errors
    /// When someone interrupts.
    pub fn decide(&mut self, cells: &mut [Cell], done: u32, plan: Plan) -> Result<(), Failure> {
        let processors = processors();
        let wanted = |cells: &[Cell]| open_cells(cells, processors);
        let open = wanted(cells).len();
        if open == 0 || plan.rounds == 0 {
            return Ok(());
        }
        let mut tell = telling(open);
        let lab = &self.lab;
        let ran = lab
            .rounds(cells, done, plan, &wanted, &mut tell)
            .map_err(failure)?;
        self.remarks.push(format!(
            "{ran} further rounds of {open} cells or fewer, whose targets or sentences were open"
        ));
        Ok(())
    }

    /// What was run, as it is kept.
    fn collection(
        &self,
        publication: &Publication<'_>,
        tables: Vec<Table>,
        claims: Vec<ClaimResult>,
        cells: &[&Cell],
    ) -> Collection {
        let begun = std::time::SystemTime::now() - self.begun.elapsed();
        Collection {
            schema: SCHEMA,
            heapdrome: env!("CARGO_PKG_VERSION").to_owned(),
            started: humantime::format_rfc3339_seconds(begun).to_string(),
            asked: std::env::args().skip(1).collect(),
            name: publication.name.to_owned(),
            scale: Some(publication.scale),
            machine: self.machine.clone(),
            tables,
            ccdfs: ccdfs(cells),
            claims,
            remarks: self.remarks.clone(),
            ..Collection::default()
        }
    }

    /// Prints the tables, and writes the files that were asked for.
    ///
    /// # Errors
    /// When something cannot be written, or no cell could be measured.
    pub fn publish(
        &self,
        publication: Publication<'_>,
        mut tables: Vec<Table>,
        claims: Vec<ClaimResult>,
        cells: &[&Cell],
    ) -> Result<(), Failure> {
        let title = "Counters of each cell: medians of rounds";
        tables.push(counters_table(title, cells));
        let collection = self.collection(&publication, tables, claims, cells);
        let redaction = Folders::find()?.redaction();
        let Publication { output, data, .. } = publication;
        let printed = output::print_collection(&collection, &destinations(output, data));
        let tables = output::save_collection(&collection, output, Some(&redaction));
        let saved = data.map_or(Ok(()), |path| save(path, cells));
        printed.and(tables).and(saved)?;
        match cells.iter().any(|cell| cell.sound().next().is_some()) {
            true => Ok(()),
            false => Err(Failure::Machine(
                "nothing could be measured; the notes below the tables say why".to_owned(),
            )),
        }
    }
}

/// Tells of every cell that begins, `count` of them in a round, and of those that come to nothing.
fn telling(count: usize) -> impl FnMut(Event<'_>) {
    let (mut begun, mut last) = (0, 0);
    move |event| match event {
        Event::Begins {
            cell,
            round,
            rounds,
        } => {
            begun = if round == last { begun + 1 } else { 1 };
            last = round;
            let (part, name) = (cell.part, &cell.name);
            output::tell(format!(
                "round {round} of {rounds}, {begun} of {count}: {part}: {name}"
            ));
        }
        Event::Failed { cell, reason } => {
            output::tell(format!("{}: {}: {reason}", cell.part, cell.name));
        }
    }
}

/// Processors that the scheduler may use for this process.
pub fn processors() -> usize {
    heapdrome_machine::processors_in_order().len()
}

/// Curves of one drawing that can still be told apart.
const MOST_CURVES: usize = 20;

/// Every kind of time that any cell of an experiment has counted, where they are few enough to be drawn
/// together.
fn ccdfs(cells: &[&Cell]) -> Vec<Ccdf> {
    let mut kinds: Vec<(&str, &String)> = Vec::new();
    for cell in cells {
        let known = cell.sound().flat_map(|report| report.distributions.keys());
        for kind in known {
            if !kinds.contains(&(cell.part, kind)) {
                kinds.push((cell.part, kind));
            }
        }
    }
    let group = |(part, kind): &(&str, &String)| -> Vec<Ccdf> {
        let own = cells.iter().filter(|cell| cell.part == *part);
        own.filter_map(|cell| ccdf(part, kind, cell)).collect()
    };
    let groups = kinds.iter().map(group);
    groups
        .filter(|group| group.len() <= MOST_CURVES)
        .flatten()
        .collect()
}

fn ccdf(part: &str, kind: &str, cell: &Cell) -> Option<Ccdf> {
    let times = cell.distribution(kind);
    let point = |point: heapdrome_paging::Point| CcdfPoint {
        time: Nanoseconds(point.value),
        above: point.share,
    };
    (times.count() > 0).then(|| Ccdf {
        kind: format!("{part}: {kind}"),
        cell: cell.name.clone(),
        count: times.count(),
        points: times.ccdf().into_iter().map(point).collect(),
    })
}

/// Where results go.
#[derive(Clone, Copy, Debug)]
pub struct Publication<'a> {
    /// What was run.
    pub name: &'a str,
    /// How much of it.
    pub scale: Scale,
    /// Where tables are written.
    pub output: &'a OutputArguments,
    /// Where every report is written.
    pub data: Option<&'a Path>,
}

/// Where the tables of an experiment go, and its reports.
pub fn destinations<'a>(output: &'a OutputArguments, data: Option<&'a Path>) -> Destinations<'a> {
    Destinations::of(output).and("--data", data)
}

/// Every report as it came.
fn save(path: &Path, cells: &[&Cell]) -> Result<(), Failure> {
    let cells: Vec<_> = cells
        .iter()
        .map(|cell| {
            serde_json::json!({
                "part": cell.part,
                "cell": cell.name,
                "job": cell.job,
                "memory": cell.limit.map(|limit: Limit| limit.memory),
                "swap": cell.limit.map(|limit: Limit| limit.swap),
                "processors": cell.limit.and_then(|limit: Limit| limit.processors),
                "reports": cell.reports,
                "lost": cell.lost,
                "failure": cell.failure,
            })
        })
        .collect();
    let bytes = serde_json::to_vec(&cells).map_err(Failure::machine)?;
    output::write(path, &bytes)
}

/// How huge pages are set, and what that means for lgalloc.
fn huge_pages() -> String {
    match heapdrome_paging::huge_pages().as_deref() {
        Some("never") => {
            "transparent huge pages: never; what lgalloc asks for has no effect".to_owned()
        }
        set => format!("transparent huge pages: {}", set.unwrap_or("not known")),
    }
}
