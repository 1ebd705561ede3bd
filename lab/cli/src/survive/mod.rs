//! `heapdrome survive`: under how little memory a command still finishes, and how slow it is then.

mod proof;
mod report;

use std::time::Duration;

use heapdrome_engine::Engine;
use heapdrome_engine::kept::started;
use heapdrome_engine::paging::{Opened, failure};
use heapdrome_measure::command_environment;
use heapdrome_paging::{
    Contained, Enclosure, Error, Lab, Mechanism, Search, Swap, Task, contain, free_swap, patience,
    size, told_trial,
};
use heapdrome_record::{Bytes, Entrant, Limit, Scale, Survival, Trial};

use crate::allocators::Names;
use crate::arguments::SurviveArguments;
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::{output, program, progress};

/// More than any machine has: the limit of a run without one, and that of swap.
const UNLIMITED: Bytes = Bytes(1 << 46);
/// For how long a command may run before anything is known of it.
const FIRST: Duration = Duration::from_secs(24 * 60 * 60);

/// Everything that a search needs.
struct Site<'a> {
    arguments: &'a SurviveArguments,
    lab: &'a Lab,
    mechanism: Mechanism,
}

/// Searches under each allocator, without swap and with it.
///
/// # Errors
/// When the command is not there or fails without a limit, no limit can be made, or someone
/// interrupts; whatever was found until then has been printed and written.
pub fn survive(arguments: &SurviveArguments) -> Result<(), Failure> {
    Destinations::of(&arguments.output).check(&[])?;
    let name = &arguments.command[0];
    if program::find(name, ".".as_ref()).is_none() {
        return Err(Failure::Usage(format!(
            "cannot find the command {name}; a shell line is written as: sh -c '...'"
        )));
    }
    let engine = progress::engine()?;
    let asked = std::env::args().skip(1).collect();
    let begun = started("survive", Scale::Usual, asked);
    let mut opened = Opened::new(&engine)?;
    let mechanism = opened.lab.own_groups().map_err(failure)?;
    let entrants = entrants(&arguments.allocators, &engine)?;
    let swap = swap(&mut opened, arguments)?;
    let mut rows = Vec::new();
    let site = Site {
        arguments,
        lab: &opened.lab,
        mechanism,
    };
    let ran = site.search_all(&entrants, free_swap() > Bytes(0), &mut rows);
    let removed = swap.map_or(Ok(()), Swap::remove).map_err(failure);
    opened.remarks.push(format!(
        "a limit counts if {} of {} runs finish with status 0 and the kernel kills nothing in the \
         group; it is known to {:.0}%",
        arguments.runs,
        arguments.runs,
        arguments.precision * 100.0
    ));
    let published = report::publish(begun, &opened, arguments, rows);
    ran.and(removed).and(published)
}

/// The allocators, built where they are not there yet, the system's first.
fn entrants(asked: &[String], engine: &Engine) -> Result<Vec<Entrant>, Failure> {
    let catalogue = engine.catalogue()?;
    let names = Names::new(&catalogue, engine);
    Ok(names.ready_all(asked, None)?.entrants)
}

/// The swap that was asked for; what is there already will do, and so will none.
fn swap(opened: &mut Opened<'_>, arguments: &SurviveArguments) -> Result<Option<Swap>, Failure> {
    let swap = opened.swap(&arguments.make.wish(), Bytes(0))?;
    let told = match free_swap() {
        Bytes(0) => {
            "no swap is free, so that only the limits without swap are known; add --swap file:8G \
              (root)"
                .to_owned()
        }
        free => format!("with swap: {} of it are free", size(free)),
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
                output::tell(format!("{}: {why}", entrant.name));
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

    /// Why the allocator does not serve the command, if it does not.
    fn unproven(&self, entrant: &Entrant) -> Result<Option<String>, Failure> {
        output::tell(format!("{}: proving who serves malloc", entrant.name));
        proof::missing(&self.arguments.command, entrant, &self.lab.interrupt)
    }

    fn search(&self, entrant: &Entrant, swap: bool) -> Result<Survival, Failure> {
        let told = format!(
            "{}, {}",
            entrant.name,
            if swap { "with swap" } else { "no swap" }
        );
        let mut task = Task {
            words: self.arguments.command.iter().map(Into::into).collect(),
            environment: command_environment(entrant),
            timeout: FIRST,
        };
        let times = self.arguments.patience;
        let mut run = |limit: Option<Bytes>| {
            let contained = self.run(&task, limit, swap)?;
            if limit.is_none() {
                task.timeout = patience(contained.wall, times);
            }
            Ok(contained)
        };
        let search = Search {
            runs: self.arguments.runs,
            precision: self.arguments.precision,
        };
        output::tell(format!("{told}: without a limit"));
        let mut tell = |trial: &Trial| output::tell(format!("{told}: {}", told_trial(trial)));
        let found = search.smallest(&mut run, &mut tell).map_err(failure)?;
        Ok(Survival {
            allocator: entrant.name.clone(),
            swap,
            ..found
        })
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
