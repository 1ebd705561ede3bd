//! `heapdrome suite lgalloc`: every table of the document, and its sentences.

use std::time::{Duration, Instant};

use heapdrome_paging::{
    Cell, Job, Limit, Mechanism, Order, Plan, Swap, SwapKind, SwapRequest, claims, free_swap,
    targets,
};
use heapdrome_record::Scale;

use super::arguments::{MakeSwap, PagingSuiteArguments};
use super::experiments::{halves, rivals_of};
use super::holding::{Holding, holdings};
use super::parts::{self, Measuring, Part, Sweep};
use super::session::{Publication, Session, failure};
use crate::arguments::SuiteArguments;
use crate::failure::Failure;
use crate::suite::scale;

/// The suite's name.
pub const NAME: &str = "lgalloc";

/// The names of its parts, for `--only`.
const PARTS: [&str; 6] = [
    "throughput",
    "paging",
    "heavy",
    "ratio-sweep",
    "strategies",
    "thp",
];

/// How much of the document is run.
struct Form {
    rounds: u32,
    /// Rounds beyond these, of cells whose targets are open.
    more_rounds: u32,
    /// No round begins that would end later.
    within: Option<Duration>,
    /// Seconds of each cell in swap, and the longest warm-up before.
    seconds: f64,
    warm_up: f64,
    /// Seconds of each cell of the throughput benchmark, and of its warm-up.
    throughput: [f64; 2],
    /// The limit of the paging benchmark, whose working set is three times that; under heavier pressure
    /// both are a quarter.
    paging: u64,
    /// Bytes of the working set of the sweep and the strategies; the limit of the strategies is an
    /// eighth of it.
    total: u64,
}

impl Form {
    fn of(scale: Scale) -> Self {
        let minutes = |count: u64| Some(Duration::from_secs(60 * count));
        match scale {
            Scale::Quick => Self {
                rounds: 3,
                more_rounds: 12,
                within: minutes(13),
                seconds: 0.7,
                warm_up: 3.0,
                throughput: [0.2, 0.1],
                paging: 128 << 20,
                total: 512 << 20,
            },
            Scale::Usual => Self {
                rounds: 5,
                more_rounds: 20,
                within: minutes(38),
                seconds: 1.5,
                warm_up: 8.0,
                throughput: [0.6, 0.2],
                paging: 512 << 20,
                total: 1 << 30,
            },
            Scale::Published => Self {
                rounds: 5,
                more_rounds: 10,
                within: None,
                seconds: 5.0,
                warm_up: 15.0,
                throughput: [5.0, 1.0],
                paging: 512 << 20,
                total: 4 << 30,
            },
        }
    }
}

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
    let scale = scale(arguments);
    let mut form = Form::of(scale);
    if let Some(rounds) = arguments.rounds {
        (form.rounds, form.more_rounds) = (rounds, 0);
    }
    let more = match arguments.allocators.as_slice() {
        [] => Vec::new(),
        names => holdings(names)?,
    };
    let mut session = Session::open()?;
    let mechanism = session.mechanism_if_any()?;
    let only = &arguments.only;
    let rivals = if only.is_empty() || only.iter().any(|part| part == "throughput") {
        rivals_of(&arguments.allocators, &mut session)?
    } else {
        Vec::new()
    };
    let mut parts = planned(arguments, &form, mechanism, more, &rivals);
    let needed = parts.iter().map(|part| part.swapped).max().unwrap_or(0);
    let swap = match mechanism {
        Some(_) if needed > 0 => swap(&mut session, &arguments.paging.make, needed)?,
        _ => Ok(None),
    };
    let lack = match (&mechanism, &swap) {
        (None, _) => Some("no memory limit can be made here".to_owned()),
        (_, Err(why)) => Some(why.clone()),
        (Some(_), Ok(_)) => None,
    };
    let mut cells: Vec<Cell> = parts.iter_mut().flat_map(|part| part.take()).collect();
    if let Some(why) = &lack {
        session.remarks.push(format!(
            "left out, not measured: all that needs swap under a limit ({why})"
        ));
        cells
            .iter_mut()
            .for_each(|cell| leave_out(cell, mechanism, why));
    }
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

/// Runs all cells, and then those whose targets are open.
fn measure(
    session: &mut Session,
    cells: &mut [Cell],
    plan: Plan,
    more: u32,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let done = session.run(cells, plan)?;
    let left = plan
        .within
        .map(|within| within.saturating_sub(begun.elapsed()));
    let plan = Plan {
        rounds: more,
        within: left,
        ..plan
    };
    session.decide(cells, done, plan)
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

/// The parts that were asked for, in the document's order.
fn planned(
    arguments: &SuiteArguments,
    form: &Form,
    mechanism: Option<Mechanism>,
    more: Vec<Holding>,
    rivals: &[Holding],
) -> Vec<Part> {
    let measuring = Measuring {
        seconds: form.seconds,
        warm_up: form.warm_up,
        order: Order::Uniform,
        seed: arguments.seed.unwrap_or(1),
    };
    let limit = mechanism.map(|_| Limit {
        memory: 4 << 30,
        swap: 0,
        processors: Some(16.0),
    });
    let own = [Holding::lgalloc()];
    let all: Vec<Holding> = own.iter().cloned().chain(more).collect();
    let [seconds, warm_up] = form.throughput;
    let choices: &[Option<&'static str>] = match arguments.paging.thp {
        true => &[Some("always"), Some("madvise"), Some("never")],
        false => &[None],
    };
    let make = |name: &str| match name {
        "throughput" => parts::throughput(&[1, 2, 4, 8, 16], rivals, limit, warm_up, seconds),
        "paging" => parts::random("paging", [form.paging, 3 * form.paging], 1, &all, measuring),
        "heavy" => parts::random(
            "heavy",
            [form.paging / 4, 3 * form.paging / 4],
            1,
            &own,
            measuring,
        ),
        "ratio-sweep" => parts::sweep(&document_sweep(form.total), &own, measuring),
        "strategies" => parts::strategies([form.total / 8, form.total], 1, &own, measuring),
        _ => parts::huge_pages(choices, limit, warm_up, seconds),
    };
    let only = &arguments.only;
    let wanted = |name: &&&str| only.is_empty() || only.iter().any(|one| one == **name);
    PARTS.iter().filter(wanted).map(|name| make(name)).collect()
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

/// Swap for the suite: what was asked for, else what is free, else a file; or why there is none.
fn swap(
    session: &mut Session,
    make: &MakeSwap,
    needed: u64,
) -> Result<Result<Option<Swap>, String>, Failure> {
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

/// Takes a cell out that would need swap, and the limit from one that only fits into it.
fn leave_out(cell: &mut Cell, mechanism: Option<Mechanism>, why: &str) {
    let total = match &cell.job {
        Job::Read(job) => job.total,
        Job::Recycle(job) => job.total,
        Job::Probe | Job::Throughput(_) => 0,
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
    let processors = heapdrome_machine::processors_in_order().len();
    let minutes = session.begun.elapsed().as_secs_f64() / 60.0;
    session.remarks.push(format!("took {minutes:.1} minutes"));
    session.remarks.push(
        "a sentence holds here if every round of each comparison agrees, and there are three at least"
            .to_owned(),
    );
    let publication = Publication {
        name: NAME,
        scale: scale(arguments),
        output: &arguments.output,
        data: arguments.paging.data.as_deref(),
    };
    let mut judged = claims(&all, processors);
    judged.extend(targets(&all));
    session.publish(publication, tables, judged, &all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measuring() -> Measuring {
        Measuring {
            seconds: 1.0,
            warm_up: 1.0,
            order: Order::Uniform,
            seed: 1,
        }
    }

    #[test]
    fn what_needs_swap_is_left_out_and_the_rest_stays() {
        let own = [Holding::lgalloc()];
        let mut part = parts::random("paging", [64 << 20, 192 << 20], 1, &own, measuring());
        let mut cells = part.take();
        cells
            .iter_mut()
            .for_each(|cell| leave_out(cell, None, "no swap"));
        let left: Vec<&str> = cells
            .iter()
            .filter(|cell| cell.failure.is_none())
            .map(|cell| cell.name.as_str())
            .collect();
        assert_eq!(left, ["random reads, all fits"]);
        assert!(cells.iter().all(|cell| cell.limit.is_none()));
        let tables = part.tables(&cells);
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
        let own = [Holding::lgalloc()];
        let all = [Some("always"), Some("madvise"), Some("never")];
        let mut parts = [
            parts::throughput(&[1, 2, 4, 8, 16], &[], None, 0.1, 0.1),
            parts::random("paging", [512 << 20, 1536 << 20], 1, &own, measuring()),
            parts::sweep(&document_sweep(512 << 20), &own, measuring()),
            parts::strategies([64 << 20, 512 << 20], 1, &own, measuring()),
            parts::huge_pages(&all, None, 0.1, 0.1),
        ];
        let cells: Vec<Cell> = parts.iter_mut().flat_map(Part::take).collect();
        let told = claims(&cells.iter().collect::<Vec<_>>(), 64);
        for claim in told {
            assert!(!claim.because.contains("not run"), "{claim:?}");
        }
    }

    #[test]
    fn the_smaller_forms_end_in_time() {
        for (scale, most) in [(Scale::Quick, 15), (Scale::Usual, 40)] {
            let within = Form::of(scale).within.expect("it has an end");
            assert!(within + Duration::from_secs(120) <= Duration::from_secs(60 * most));
        }
    }
}
