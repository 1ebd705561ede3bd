//! Progress of a race, as events.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use heapdrome_measure::Event as Measured;
use heapdrome_schema::{Plan, RaceResult};

use crate::event::{Aim, Event, Found, Sink, Step};

/// Observer of a race that sends its progress to the sink.
pub struct Progress {
    sink: Rc<dyn Sink>,
    names: Vec<String>,
    max_rounds: u32,
    max_time: Option<Duration>,
    started: Option<Instant>,
    round: u32,
    runs_in_round: usize,
    runs_done: usize,
    told: BTreeSet<(String, String)>,
    title: Option<String>,
    untold: Option<&'static str>,
}

impl Progress {
    /// Starts to observe the race of `plan`, and reports that the race works.
    pub fn new(plan: &Plan, sink: Rc<dyn Sink>) -> Self {
        sink.event(Event::RaceOpened);
        Self {
            sink,
            names: names(plan),
            max_rounds: plan.stopping.max_rounds,
            max_time: None,
            started: None,
            round: 0,
            runs_in_round: 1,
            runs_done: 0,
            told: BTreeSet::new(),
            title: None,
            untold: None,
        }
    }

    /// Replaces the observed plan with `plan`.
    pub fn follow_plan(&mut self, plan: &Plan) {
        self.names = names(plan);
        self.max_rounds = plan.stopping.max_rounds;
    }

    /// Sets the maximum time of the rounds and the memory runs.
    pub fn limit(&mut self, time: Duration) {
        self.max_time = Some(time);
    }

    /// Gives the events a `title`. A missing metric `untold` is not reported, because the
    /// collection reports it once.
    pub fn entitle(&mut self, title: &str, untold: Option<&'static str>) {
        self.title = Some(title.to_owned());
        self.untold = untold;
    }

    /// Returns whether the race has a title. Only races of a collection have one.
    pub fn has_title(&self) -> bool {
        self.title.is_some()
    }

    fn step(&self, step: Step<'_>) {
        let title = self.title.as_deref();
        self.sink.event(Event::RaceDoes { title, step });
    }

    /// Reports an untimed run of an entrant.
    pub fn untimed(&self, aim: Aim, entrant: usize) {
        let entrant = self.name(entrant);
        self.step(Step::Untimed { aim, entrant });
    }

    /// Reports an event of the measurer as progress.
    pub fn follow(&mut self, event: Measured<'_>) {
        match event {
            Measured::WarmupStarted { round, of } => self.step(Step::WarmUp { round, of }),
            Measured::RoundStarted { round, runs } => {
                self.started.get_or_insert_with(Instant::now);
                (self.round, self.runs_in_round, self.runs_done) = (round, runs.max(1), 0);
            }
            Measured::RunStarted { entrant } if self.started.is_some() => self.run_started(entrant),
            Measured::RunEnded(_) => self.runs_done += 1,
            Measured::MemoryRunStarted { entrant } => self.untimed(Aim::Memory, entrant),
            Measured::EntrantFailed(failure) => self.found(Found::Left {
                entrant: self.name(failure.entrant),
                ending: failure.ending,
                during: &failure.during,
            }),
            Measured::MetricMissing { name, .. } if self.untold == Some(name) => {}
            Measured::MetricMissing { entrant, name } => {
                let entrant = self.name(entrant).to_owned();
                if self.told.insert((entrant.clone(), name.to_owned())) {
                    self.found(Found::MetricMissing {
                        metric: name,
                        entrant: &entrant,
                    });
                }
            }
            _ => {}
        }
    }

    /// Reports a finding.
    pub fn found(&self, finding: Found<'_>) {
        let title = self.title.as_deref();
        self.sink.event(Event::RaceFound { title, finding });
    }

    /// Reports an interim result.
    pub fn interim(&self, result: &RaceResult) {
        self.sink.event(Event::Interim(result));
    }

    /// Reports that the race stops working.
    pub fn close(&self) {
        self.sink.event(Event::RaceClosed);
    }

    /// Reports that the race works again. Only one of several alternating races is shown at a time.
    pub fn open(&self) {
        self.sink.event(Event::RaceOpened);
    }

    fn name(&self, entrant: usize) -> &str {
        self.names.get(entrant).map_or("?", String::as_str)
    }

    fn run_started(&self, entrant: usize) {
        let elapsed = self
            .started
            .map_or(Duration::ZERO, |started| started.elapsed());
        let within = self.runs_done as f64 / self.runs_in_round as f64;
        let by_rounds = (f64::from(self.round) + within) / f64::from(self.max_rounds.max(1));
        let by_time = self
            .max_time
            .map_or(0.0, |most| elapsed.as_secs_f64() / most.as_secs_f64());
        let share = by_rounds.max(by_time).clamp(0.0, 1.0);
        let left = match share {
            s if s > 0.0 => Duration::from_secs_f64(elapsed.as_secs_f64() * (1.0 - s) / s),
            _ => self.max_time.unwrap_or_default(),
        };
        self.step(Step::Round {
            round: self.round,
            entrant: self.name(entrant),
            share,
            left,
        });
    }
}

fn names(plan: &Plan) -> Vec<String> {
    let entrants = plan.entrants.iter();
    entrants.map(|entrant| entrant.name.clone()).collect()
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.close();
    }
}
