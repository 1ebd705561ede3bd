//! Sweeps such as `heapdrome race -t 1,2,4` or `--sweep jobs=1,4`: one race for each combination of
//! values.

mod points;
mod scaling;
mod whole;

use heapdrome_schema::{
    Better, Collection, Member, Metric, Options, Purpose, RaceResult, SCHEMA, Status, Stopping,
    SweptParameter,
};

use super::WITHOUT_PROOF;
use super::cell::{CellRequest, Load, run_cell};
use super::options::check_command;
use super::store::ProofStore;
use super::turns;
use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;

use points::Point;
use scaling::{Found, WORK, Work, scaling, work_not_found};

pub use points::check_parameters;
pub use whole::Whole;

/// Default maximum degradation per processor up to the knee of a curve. At this maximum, the
/// product of processors and wall time per unit of work is a quarter above its value in the first
/// race, so the efficiency is 80%.
const SHARE: f64 = 0.25;

/// Definition of work that the user gave for a sweep.
#[derive(Clone, Debug, PartialEq)]
pub enum AskedWork {
    /// The work is the swept value.
    Value,
    /// Every race does an equal amount of work.
    Same,
    /// The work is the number that the last match of a regular expression in the output contains.
    Printed(String),
}

/// Request for a sweep.
pub struct SweepRequest {
    /// Command or workload, with placeholders in a command.
    pub load: Load,
    /// Swept parameters, checked by [`check_parameters`].
    pub parameters: Vec<SweptParameter>,
    /// Definition of work, if the user gave one.
    pub work: Option<AskedWork>,
    /// Maximum degradation per processor up to the knee, if the user set it; 0.25 is 25%.
    pub knee: Option<f64>,
    /// Names, paths or groups of allocators. The baseline need not be among them.
    pub allocators: Vec<String>,
    /// Allocator with which the others are compared.
    pub baseline: String,
    /// Settings of each run.
    pub options: Options,
    /// Conditions under which each race ends.
    pub stopping: Stopping,
}

/// A sweep that is ready to run.
pub struct Sweep {
    request: SweepRequest,
    whole: Whole,
    points: Vec<Point>,
    work: Work,
    /// Whether new limits replace those of races that have begun.
    new_limits: bool,
}

impl Sweep {
    /// Creates a sweep, and reports errors in its values and commands before anything is built.
    ///
    /// # Errors
    /// When a value is invalid, or a command does not exist.
    pub fn new(mut request: SweepRequest, whole: Whole) -> Result<Self, Failure> {
        let work = work(&mut request)?;
        let points = points::points(&request.load, &request.parameters, &request.options)?;
        for point in &points {
            if let Load::Command(command) = &point.load {
                check_command(command, &point.options)?;
            }
        }
        Ok(Self {
            request,
            whole,
            points,
            work,
            new_limits: false,
        })
    }

    /// Returns whether every race has ended.
    pub fn has_ended(&self) -> bool {
        self.whole.ended >= self.points.len()
    }

    /// Replaces the limits of the races, including those that had ended.
    pub fn limit(&mut self, stopping: Stopping) {
        self.request.stopping = stopping;
        self.new_limits = true;
    }

    /// Reports that the sweep is resumed, before any race continues. Reports nothing if no race is
    /// left.
    pub fn announce(&self, engine: &Engine) {
        if self.has_ended() && !self.new_limits {
            return;
        }
        let load = self.points.first().map(|point| point.load.name());
        let raced = format!("{}, {}", load.unwrap_or_default(), empty(self).name);
        let stopping = &self.request.stopping;
        self.whole
            .announce(&raced, self.points.len(), stopping, engine);
    }

    /// Runs the remaining races. Returns a collection of the results of all races, including those
    /// done before an interrupt, or `None` if no race has a result.
    ///
    /// # Errors
    /// Returns the errors of [`run_cell`]. Of several failures, returns the first.
    pub fn run(&self, engine: &Engine) -> (Option<Collection>, Result<(), Failure>) {
        let requests = requests(self);
        let mut collection = empty(self);
        let paired = turns::can_be_taken(&requests);
        let (done, ended) = match paired {
            true => turns::in_turns(&requests, engine),
            false => one_after_the_other(&requests, engine),
        };
        if done.is_empty() {
            return (None, ended);
        }
        collection.remarks = unfinished(self, &done, &ended, engine);
        let values = done.iter();
        let values: Vec<_> = values
            .map(|(place, _)| self.points[*place].values.clone())
            .collect();
        join(&mut collection, self, &requests, done);
        let missing = missing(&collection, self.request.work.as_ref(), engine);
        collection.remarks.extend(missing);
        let found = Found {
            values: &values,
            work: self.work,
            share: self.request.knee.unwrap_or(SHARE),
            paired,
        };
        collection.purpose =
            Purpose::Sweep(Some(scaling(&collection, &self.request.parameters, found)));
        (Some(collection), ended)
    }
}

/// Returns the definition of work. If the work is printed, adds the metric that reads it.
fn work(request: &mut SweepRequest) -> Result<Work, Failure> {
    let SweepRequest {
        parameters,
        options,
        ..
    } = request;
    let along = &parameters[points::along(parameters)];
    let positive = |value: &String| value.parse().is_ok_and(|number: f64| number > 0.0);
    let numeric = along.values.iter().all(positive);
    match &request.work {
        Some(AskedWork::Value) if !numeric => Err(Failure::Usage(format!(
            "--work value: the values of {} must all be numbers above 0",
            along.name
        ))),
        Some(AskedWork::Value) => Ok(Work::Value),
        Some(AskedWork::Same) => Ok(Work::Same),
        Some(AskedWork::Printed(_)) if options.metrics.iter().any(|one| one.name == WORK) => Err(
            Failure::usage("--work and --metric work: there can be only one figure 'work'"),
        ),
        Some(AskedWork::Printed(pattern)) => {
            options.metrics.push(Metric {
                name: WORK.to_owned(),
                pattern: pattern.clone(),
                better: Better::Higher,
            });
            Ok(Work::Printed)
        }
        None if matches!(request.load, Load::Workload { .. }) => Ok(Work::Operations),
        None if numeric && !along.name.starts_with(points::VARIABLE) => Ok(Work::Value),
        None => Ok(Work::Same),
    }
}

fn requests(sweep: &Sweep) -> Vec<CellRequest> {
    let (asked, whole) = (&sweep.request, &sweep.whole);
    let of = sweep.points.len();
    let request = |(place, point): (usize, &Point)| CellRequest {
        cell: point.cell.clone(),
        title: format!(
            "[{} of {of}] {}, {}",
            place + 1,
            point.load.name(),
            point.cell
        ),
        load: point.load.clone(),
        allocators: asked.allocators.clone(),
        baseline: asked.baseline.clone(),
        stopping: asked.stopping.clone(),
        judge: None,
        options: point.options.clone(),
        seed: whole.seed,
        asked: whole.asked.clone(),
        untold: (sweep.work == Work::Printed).then_some(WORK),
        part_of: Some(whole.name.clone()),
        new_limits: sweep.new_limits,
        begun: whole.begun.get(&point.cell).cloned(),
    };
    sweep.points.iter().enumerate().map(request).collect()
}

/// Returns remarks for the reader on an unfinished sweep, and reports to the user that the sweep is
/// unfinished. Does nothing for a finished sweep.
fn unfinished(
    sweep: &Sweep,
    done: &[(usize, RaceResult)],
    ended: &Result<(), Failure>,
    engine: &Engine,
) -> Vec<String> {
    let mut remarks = Vec::new();
    if ended.is_ok() {
        return remarks;
    }
    if matches!(ended, Err(Failure::Interrupted)) {
        remarks.push("interrupted before all rounds were run".to_owned());
    }
    let points = sweep.points.iter().enumerate();
    let left = points.filter(|(place, _)| !done.iter().any(|(other, _)| other == place));
    let left: Vec<_> = left.map(|(_, point)| point.cell.as_str()).collect();
    let interrupted = matches!(ended, Err(Failure::Interrupted));
    engine.tell(Event::SweepUnfinished {
        resume: interrupted.then_some(&sweep.whole.name),
        left: &left,
    });
    if !left.is_empty() {
        remarks.push(format!("not raced: {}", left.join(", ")));
    }
    remarks
}

/// Runs the races one after another. Returns those that have a result, each with its position in
/// `requests`, and the failure that ended the sweep.
fn one_after_the_other(
    requests: &[CellRequest],
    engine: &Engine,
) -> (Vec<(usize, RaceResult)>, Result<(), Failure>) {
    let mut proofs = ProofStore::default();
    let mut done = Vec::new();
    for (place, request) in requests.iter().enumerate() {
        let result = engine.check().and_then(|()| {
            engine.tell(Event::CellStarted(&request.title));
            run_cell(request, engine, Some(&mut proofs))
        });
        match result {
            Ok(result) => done.push((place, result)),
            Err(failure) => return (done, Err(failure)),
        }
    }
    (done, Ok(()))
}

/// Adds the results of the races to the collection.
fn join(
    collection: &mut Collection,
    sweep: &Sweep,
    requests: &[CellRequest],
    done: Vec<(usize, RaceResult)>,
) {
    let along = points::along(&sweep.request.parameters);
    for (place, result) in done {
        let (request, point) = (&requests[place], &sweep.points[place]);
        if collection.races.is_empty() {
            collection.machine = result.machine.clone();
        }
        let named = sweep.request.parameters.iter().zip(&point.values);
        let named = named.map(|(parameter, value)| format!("{}={value}", parameter.name));
        collection.races.push(Member {
            cell: request.cell.clone(),
            workload: request.load.name(),
            parameters: match &request.load {
                Load::Workload { words, .. } => words.clone(),
                Load::Command(_) => named.collect(),
            },
            swept: point.values[along].parse().ok(),
            processors: request.options.pin.clone(),
            factor: None,
            result,
        });
    }
}

fn empty(sweep: &Sweep) -> Collection {
    let names = sweep.request.parameters.iter().map(|one| one.name.as_str());
    let names: Vec<_> = names.collect();
    Collection {
        schema: SCHEMA,
        heapdrome: env!("CARGO_PKG_VERSION").to_owned(),
        started: sweep.whole.started.clone(),
        asked: sweep.whole.asked.clone(),
        name: format!("sweep {}", names.join(" and ")),
        ..Collection::default()
    }
}

/// Returns remarks on races without rounds, and on runs whose output contained no work. The latter
/// are also reported to the user.
fn missing(collection: &Collection, work: Option<&AskedWork>, engine: &Engine) -> Vec<String> {
    let mut remarks = without_rounds(collection);
    if let Some(AskedWork::Printed(pattern)) = work
        && let Some(told) = work_not_found(collection, pattern)
    {
        engine.tell(Event::Remark(&told));
        remarks.push(told);
    }
    remarks
}

/// Returns the reasons for races without rounds: each reason once, with the cells to which it
/// applies.
fn without_rounds(collection: &Collection) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    let idle = collection.races.iter();
    for race in idle.filter(|race| race.result.rounds == 0) {
        let (reason, cell) = (race.result.ended.as_str(), race.cell.as_str());
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, cells)) => cells.push(cell),
            None => reasons.push((reason, vec![cell])),
        }
    }
    let told = |(reason, cells): (&str, Vec<&str>)| format!("{reason} ({})", cells.join(", "));
    reasons.into_iter().map(told).collect()
}

/// Returns heapdrome's outcome for a sweep. The report already contains the details.
///
/// # Errors
/// When an entrant's row is invalid, a race has no round, or no proof was taken.
pub fn outcome(collection: &Collection) -> Result<(), Failure> {
    let out = |result: &RaceResult| {
        let rows = result.entrants.iter();
        let failed = rows.filter(|row| row.status != Status::Ok);
        failed
            .map(|row| row.allocator.clone())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let raced = collection.races.iter();
    let named: Vec<_> = raced
        .filter(|race| race.result.rounds > 0)
        .map(|race| (&race.cell, out(&race.result)))
        .filter(|(_, names)| !names.is_empty())
        .map(|(cell, names)| format!("{names} ({cell})"))
        .collect();
    let mut told = without_rounds(collection);
    if !named.is_empty() {
        told.push(format!("not in the race: {}", named.join("; ")));
    }
    if collection
        .races
        .iter()
        .any(|race| race.result.options.unproven)
    {
        told.push(WITHOUT_PROOF.to_owned());
    }
    match told.as_slice() {
        [] => Ok(()),
        told => Err(Failure::Entrant(told.join("; "))),
    }
}
