//! `heapdrome suite lgalloc`: every table of the document, and its sentences.

use heapdrome_paging::{
    Cell, Job, Limit, Mechanism, Order, Plan, Swap, SwapKind, SwapRequest, claims, free_swap,
    targets,
};

use super::experiments::{halves, rivals_of};
use super::form::Form;
use super::holding::{Holding, holdings};
use super::parts::{self, Measuring, Part, Sweep};
use super::session::{Publication, Session, failure, processors};
use crate::arguments::SuiteArguments;
use crate::arguments::paging::{MakeSwap, PagingSuiteArguments};
use crate::failure::Failure;

/// The suite's name.
pub const NAME: &str = "lgalloc";

/// The names of its parts, for `--only`.
const PARTS: [&str; 7] = [
    "throughput",
    parts::PAGING,
    parts::HEAVY,
    "ratio-sweep",
    "strategies",
    "thp",
    "burst",
];

/// The limit of memory of what needs no swap, and the quota of processor time, as the document has them.
const MEMORY: u64 = 4 << 30;
const PROCESSORS: f64 = 16.0;

/// Refuses options that only this suite has.
///
/// # Errors
/// When one of them was given.
pub fn refuse_options(arguments: &PagingSuiteArguments) -> Result<(), Failure> {
    match arguments.make.swap.is_some() || arguments.thp || arguments.data.is_some() {
        true => Err(Failure::usage(
            "--swap, --thp and --data are for the suite lgalloc",
        )),
        false => Ok(()),
    }
}

/// Runs the suite. What cannot be run here is left out, and the report says why.
///
/// # Errors
/// When the command line makes no sense, nothing can be measured, or someone interrupts; whatever was
/// measured until then has been printed and written.
pub fn suite(arguments: &SuiteArguments) -> Result<(), Failure> {
    check(arguments)?;
    let mut form = Form::of(arguments.scale());
    if let Some(rounds) = arguments.rounds {
        (form.rounds, form.more_rounds) = (rounds, 0);
    }
    let more = match arguments.allocators.as_slice() {
        [] => Vec::new(),
        names => holdings(names)?,
    };
    let mut session = Session::open()?;
    let mechanism = session.mechanism_if_any()?;
    let limit = session.limit_without_swap(mechanism, MEMORY, PROCESSORS)?;
    let rivals = match wanted(arguments, "throughput") {
        true => rivals_of(&arguments.allocators, &mut session)?,
        false => Vec::new(),
    };
    let mut parts = planned(arguments, &form, limit, more, &rivals);
    let swap = match mechanism {
        Some(_) => swap(&mut session, &arguments.paging.make, &parts)?,
        None => Ok(None),
    };
    let mut cells: Vec<Cell> = parts.iter_mut().flat_map(|part| part.take()).collect();
    leave_out(&mut session, &mut cells, mechanism, &swap);
    let plan = Plan {
        rounds: form.rounds,
        mechanism,
        within: form.within,
    };
    let ran = measure(&mut session, &mut cells, plan, form.more_rounds);
    let removed = match swap {
        Ok(Some(swap)) => swap.remove(),
        _ => Ok(()),
    };
    let published = report(&mut session, arguments, &parts, &cells);
    ran.and(removed.map_err(failure)).and(published)
}

/// Runs all cells, and then those that could still decide something. The time that the plan has begins with the session:
/// allocators may have been built since.
fn measure(
    session: &mut Session,
    cells: &mut [Cell],
    plan: Plan,
    more: u32,
) -> Result<(), Failure> {
    let begun = session.begun;
    let left = || {
        let within = plan.within?;
        Some(within.saturating_sub(begun.elapsed()))
    };
    let done = session.run(
        cells,
        Plan {
            within: left(),
            ..plan
        },
    )?;
    let further = Plan {
        rounds: more,
        within: left(),
        ..plan
    };
    session.decide(cells, done, further)
}

fn check(arguments: &SuiteArguments) -> Result<(), Failure> {
    if arguments.resume.is_some() || arguments.estimate {
        return Err(Failure::usage(
            "the suite lgalloc can be neither resumed nor estimated; --quick takes 15 minutes at the \
             most, the usual form 40, and --rounds and --only make it shorter",
        ));
    }
    let unknown = |name: &&String| !PARTS.contains(&name.as_str());
    match arguments.only.iter().find(unknown) {
        Some(name) => Err(Failure::Usage(format!(
            "--only {name}: the suite lgalloc has {}",
            PARTS.join(", ")
        ))),
        None => Ok(()),
    }
}

/// Whether a part was asked for.
fn wanted(arguments: &SuiteArguments, name: &str) -> bool {
    let only = &arguments.only;
    only.is_empty() || only.iter().any(|one| one == name)
}

/// The parts that were asked for, in the document's order. `limit` is that of what needs no swap.
fn planned(
    arguments: &SuiteArguments,
    form: &Form,
    limit: Option<Limit>,
    more: Vec<Holding>,
    rivals: &[Holding],
) -> Vec<Part> {
    let measuring = Measuring {
        seconds: form.seconds,
        warm_up: form.warm_up,
        order: Order::Uniform,
        seed: arguments.seed.unwrap_or(1),
    };
    let own = [Holding::lgalloc()];
    let all: Vec<Holding> = own.iter().cloned().chain(more).collect();
    let [seconds, warm_up] = form.throughput;
    let choices: &[Option<&'static str>] = match arguments.paging.thp {
        true => &[Some("always"), Some("madvise"), Some("never")],
        false => &[None],
    };
    let three = |ram: u64| [ram, 3 * ram];
    let make = |name: &str| match name {
        "throughput" => parts::throughput(&[1, 2, 4, 8, 16], rivals, limit, warm_up, seconds),
        parts::PAGING => parts::random(parts::PAGING, three(form.paging), 1, &all, measuring),
        parts::HEAVY => parts::random(parts::HEAVY, three(form.paging / 4), 1, &own, measuring),
        "ratio-sweep" => parts::sweep(&document_sweep(form.total), &own, measuring),
        "strategies" => {
            let sizes = [form.total / 8, form.total];
            parts::strategies(sizes, 1, &parts::AHEAD, &own, measuring)
        }
        "burst" => parts::burst(limit),
        _ => parts::huge_pages(choices, limit, warm_up, seconds),
    };
    let names = PARTS.iter().filter(|name| wanted(arguments, name));
    names.map(|name| make(name)).collect()
}

/// The document's limits, and its numbers of threads where it published them.
fn document_sweep(total: u64) -> Sweep {
    let limits = halves(total).into_iter().enumerate();
    Sweep {
        total,
        limits: limits
            .map(|(place, ram)| match place {
                1 | 3 => (ram, vec![1, 4, 8, 16]),
                _ => (ram, vec![1]),
            })
            .collect(),
    }
}

/// Swap for the parts: what was asked for, else what is free, else a file; or why there is none.
fn swap(
    session: &mut Session,
    make: &MakeSwap,
    parts: &[Part],
) -> Result<Result<Option<Swap>, String>, Failure> {
    let needed = parts.iter().map(|part| part.swapped).max().unwrap_or(0);
    if needed == 0 {
        return Ok(Ok(None));
    }
    let mut make = make.clone();
    // A swap area more than half full is much slower; its first page is not for pages.
    let enough = 2 * needed + (1 << 20);
    if make.swap.is_none() && free_swap() < enough {
        make.swap = Some(SwapRequest {
            kind: SwapKind::File,
            bytes: enough.next_multiple_of(1 << 30),
        });
    }
    let asked = make.swap;
    match session.swap(&make, needed) {
        Ok(swap) => {
            if let Some(made) = asked {
                session
                    .remarks
                    .push(format!("swap: {made}, made and removed"));
            }
            Ok(Ok(swap))
        }
        Err(Failure::Machine(why)) => Ok(Err(why)),
        Err(failure) => Err(failure),
    }
}

/// Takes out the cells that cannot be run here, and says why.
fn leave_out(
    session: &mut Session,
    cells: &mut [Cell],
    mechanism: Option<Mechanism>,
    swap: &Result<Option<Swap>, String>,
) {
    let why = match (mechanism, swap) {
        (None, _) => "no memory limit can be made here",
        (_, Err(why)) => why,
        (Some(_), Ok(_)) => return,
    };
    session.remarks.push(format!(
        "left out, not measured: all that needs swap under a limit ({why})"
    ));
    for cell in cells {
        do_without(cell, mechanism, why);
    }
}

/// Takes a cell out that would need swap, and the limit from one that only fits into it.
fn do_without(cell: &mut Cell, mechanism: Option<Mechanism>, why: &str) {
    let total = match &cell.job {
        Job::Read(job) => job.total,
        Job::Recycle(job) => job.total,
        Job::Probe | Job::Throughput(_) | Job::Burst(_) => 0,
    };
    if cell.limit.is_some_and(|limit| total >= limit.memory) {
        cell.failure = Some(why.to_owned());
    }
    if mechanism.is_none() {
        cell.limit = None;
    } else if let Some(limit) = &mut cell.limit {
        limit.swap = limit.swap.min(free_swap());
    }
}

fn report(
    session: &mut Session,
    arguments: &SuiteArguments,
    parts: &[Part],
    cells: &[Cell],
) -> Result<(), Failure> {
    let all: Vec<&Cell> = cells.iter().collect();
    let mut tables = Vec::new();
    let mut left = cells;
    for part in parts {
        let (own, rest) = left.split_at(part.count.min(left.len()));
        tables.extend(part.tables(own));
        left = rest;
    }
    let minutes = session.begun.elapsed().as_secs_f64() / 60.0;
    session.remarks.push(format!("took {minutes:.1} minutes"));
    let publication = Publication {
        name: NAME,
        scale: arguments.scale(),
        output: &arguments.output,
        data: arguments.paging.data.as_deref(),
    };
    let mut judged = claims(&all, processors());
    judged.extend(targets(&all));
    session.publish(publication, tables, judged, &all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use heapdrome_record::Scale;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        suite: SuiteArguments,
    }

    /// What the suite runs.
    fn parts(words: &str) -> Vec<Part> {
        let line =
            Line::try_parse_from(words.split_whitespace()).expect("the command line is right");
        let form = Form::of(Scale::Usual);
        planned(&line.suite, &form, None, Vec::new(), &[])
    }

    fn cells(parts: &mut [Part]) -> Vec<Cell> {
        parts.iter_mut().flat_map(Part::take).collect()
    }

    #[test]
    fn what_needs_swap_is_left_out_and_the_rest_stays() {
        let mut parts = parts("suite lgalloc --only paging");
        let mut cells = cells(&mut parts);
        for cell in &mut cells {
            do_without(cell, None, "no swap");
        }
        let left: Vec<&str> = cells
            .iter()
            .filter(|cell| cell.failure.is_none())
            .map(|cell| cell.name.as_str())
            .collect();
        assert_eq!(left, ["random reads, all fits"]);
        assert!(cells.iter().all(|cell| cell.limit.is_none()));
        let tables = parts[0].tables(&cells);
        let told = tables.iter().flat_map(|table| &table.notes);
        assert!(
            told.clone()
                .any(|note| note.contains("not measured: no swap")),
            "{:?}",
            told.collect::<Vec<_>>()
        );
    }

    /// Every claim must find its cells, or nobody would see that it never can.
    #[test]
    fn every_claim_speaks_of_cells_that_there_are() {
        let cells = cells(&mut parts("suite lgalloc --thp"));
        let told = claims(&cells.iter().collect::<Vec<_>>(), 64);
        for claim in told {
            assert!(!claim.because.contains("not run"), "{claim:?}");
        }
    }

    /// A target whose cells are not there is not spoken of, so that nobody would miss it.
    #[test]
    fn every_target_speaks_of_cells_that_there_are() {
        let all = include_str!("../../../paging/data/targets.toml");
        let cells = cells(&mut parts("suite lgalloc"));
        let told = targets(&cells.iter().collect::<Vec<_>>());
        assert_eq!(told.len(), all.matches("[[claims]]").count());
    }
}
