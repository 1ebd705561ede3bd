//! Survival: the smallest memory limit under which a command finishes, and its slowdown under each
//! limit that was tried.

mod proof;
mod report;
mod slowdown;

use std::time::Duration;

use heapdrome_measure::command_environment;
use heapdrome_paging::{
    Contained, Enclosure, Error, Lab, Mechanism, Search, Swap, Task, contain, free_swap, patience,
    size,
};
use heapdrome_schema::{Bytes, Collection, Entrant, Limit, Purpose, Scale, Survival, Trial};

use crate::allocators::Names;
use crate::engine::Engine;
use crate::event::{Event, Searching};
use crate::failure::Failure;
use crate::kept::started;
use crate::paging::{Opened, SwapWish, failure};
use crate::program;

pub use report::outcome;
pub use slowdown::samples;

/// Limit above the memory of any machine. For memory or swap, it stands for no limit.
const UNLIMITED: Bytes = Bytes(1 << 46);
/// Time limit of the first run, before the command's duration is known.
const FIRST: Duration = Duration::from_secs(24 * 60 * 60);

/// Request for a search of the smallest limits.
pub struct SurviveRequest {
    /// Names, paths or groups of allocators; empty for the group `default`.
    pub allocators: Vec<String>,
    /// Swap to create, or the existing swap.
    pub swap: SwapWish,
    /// Number of runs that must all finish under a limit.
    pub runs: u32,
    /// Relative precision of the smallest limit; 0.05 is 5%.
    pub precision: f64,
    /// Time limit of a run, as a multiple of the time without a memory limit. The limit also has a
    /// fixed minimum.
    pub patience: f64,
    /// Command with its arguments.
    pub command: Vec<String>,
    /// Arguments of heapdrome that requested the search.
    pub asked: Vec<String>,
}

struct Site<'a> {
    request: &'a SurviveRequest,
    lab: &'a Lab,
    mechanism: Mechanism,
    engine: &'a Engine,
}

/// Searches for the smallest limit under each allocator: without swap, and with swap if any is
/// free. The collection contains all findings, even if the search failed.
///
/// # Errors
/// When the command does not exist or reads from a pipe, no limit is possible, an allocator cannot
/// be found or built, or swap cannot be created. The result beside the collection is an error when
/// the command cannot be traced or run, the user interrupts, or swap cannot be removed.
pub fn survive(
    request: &SurviveRequest,
    engine: &Engine,
) -> Result<(Collection, Result<(), Failure>), Failure> {
    let name = &request.command[0];
    if program::find(name, ".".as_ref()).is_none() {
        return Err(Failure::Usage(format!(
            "cannot find the command {name}; a shell line is written as: sh -c '...'"
        )));
    }
    program::check_repeatable(request.command.iter().map(String::as_str))?;
    let begun = started("survive", Purpose::default(), request.asked.clone());
    let mut opened = Opened::new(engine)?;
    let mechanism = opened.lab.own_groups().map_err(failure)?;
    let registry = engine.registry()?;
    let names = Names::new(&registry, engine);
    let entrants = names.ready_all(&request.allocators, None)?.entrants;
    let swap = swap(&mut opened, &request.swap)?;
    let mut rows = Vec::new();
    let site = Site {
        request,
        lab: &opened.lab,
        mechanism,
        engine,
    };
    let ran = site.search_all(&entrants, free_swap() > Bytes(0), &mut rows);
    let removed = swap.map_or(Ok(()), Swap::remove).map_err(failure);
    opened.remarks.push(format!(
        "a limit passes if {} of {} runs exit with status 0 without an OOM kill; limits are accurate \
         to {:.0}%",
        request.runs,
        request.runs,
        request.precision * 100.0
    ));
    let collection = Collection {
        machine: opened.machine.clone(),
        tables: report::tables(&rows, &request.command),
        purpose: Purpose::Survival {
            scale: Scale::Usual,
            searches: rows,
        },
        remarks: opened.remarks.clone(),
        ..begun
    };
    Ok((collection, ran.and(removed)))
}

/// Creates the requested swap, and adds a remark on the free swap. Without a request, creates
/// nothing.
fn swap(opened: &mut Opened<'_>, wish: &SwapWish) -> Result<Option<Swap>, Failure> {
    let swap = opened.swap(wish, Bytes(0))?;
    let told = match free_swap() {
        Bytes(0) => {
            "no swap is free, so only limits without swap are measured; add --swap file:8G (root)"
                .to_owned()
        }
        free => format!("with swap: {} free", size(free)),
    };
    opened.remarks.push(told);
    Ok(swap)
}

impl Site<'_> {
    fn search_all(
        &self,
        entrants: &[Entrant],
        with_swap: bool,
        rows: &mut Vec<Survival>,
    ) -> Result<(), Failure> {
        for entrant in entrants {
            if let Some(why) = self.unproven(entrant)? {
                self.tell(entrant, Searching::NotServed(&why));
                rows.push(Survival {
                    allocator: entrant.name.clone(),
                    failure: Some(why),
                    ..Survival::default()
                });
                continue;
            }
            let kinds = if with_swap {
                &[false, true][..]
            } else {
                &[false]
            };
            for swap in kinds {
                rows.push(self.search(entrant, *swap)?);
            }
        }
        Ok(())
    }

    /// Returns the reason why there is no search under the allocator; `None` if it serves the
    /// command.
    fn unproven(&self, entrant: &Entrant) -> Result<Option<String>, Failure> {
        self.tell(entrant, Searching::Proof);
        proof::missing(&self.request.command, entrant, &self.lab.interrupt)
    }

    fn search(&self, entrant: &Entrant, swap: bool) -> Result<Survival, Failure> {
        let mut task = Task {
            words: self.request.command.iter().map(Into::into).collect(),
            environment: command_environment(entrant),
            timeout: FIRST,
        };
        let times = self.request.patience;
        let mut run = |limit: Option<Bytes>| {
            let contained = self.run(&task, limit, swap)?;
            if limit.is_none() {
                task.timeout = patience(contained.wall, times);
            }
            Ok(contained)
        };
        let search = Search {
            runs: self.request.runs,
            precision: self.request.precision,
        };
        self.tell(entrant, Searching::Unlimited { swap });
        let mut tell = |trial: &Trial| self.tell(entrant, Searching::Tried { swap, trial });
        let found = search.smallest(&mut run, &mut tell).map_err(failure)?;
        Ok(Survival {
            allocator: entrant.name.clone(),
            swap,
            ..found
        })
    }

    fn tell(&self, entrant: &Entrant, step: Searching<'_>) {
        let allocator = &entrant.name;
        self.engine.tell(Event::Searching { allocator, step });
    }

    fn run(&self, task: &Task, memory: Option<Bytes>, swap: bool) -> Result<Contained, Error> {
        let limit = Limit {
            memory: memory.unwrap_or(UNLIMITED),
            swap: if swap { UNLIMITED } else { Bytes(0) },
            processors: None,
        };
        let enclosure = Enclosure::make(self.mechanism, limit, &self.lab.ledger)?;
        contain(task, &enclosure, &self.lab.interrupt)
    }
}
