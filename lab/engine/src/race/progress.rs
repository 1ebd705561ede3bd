//! What a person sees while a race goes on; nothing where standard error is not a terminal.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use heapdrome_measure::Event;
use heapdrome_record::Plan;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

/// The steps of the bar: it shows a share, since the number of rounds is not known beforehand.
const STEPS: u64 = 1000;

/// Between two looks of the bar.
const TICK: Duration = Duration::from_millis(500);

/// A bar with the round, the entrant that runs, and the time left at most.
pub struct Progress {
    bar: ProgressBar,
    names: Vec<String>,
    max_rounds: u32,
    max_time: Option<Duration>,
    started: Option<Instant>,
    round: u32,
    runs_in_round: usize,
    runs_done: usize,
    told: BTreeSet<String>,
    title: String,
    untold: Option<&'static str>,
}

impl Progress {
    /// A bar for the race of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let bar = ProgressBar::new(STEPS);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Self {
            bar,
            names: names(plan),
            max_rounds: plan.stopping.max_rounds,
            max_time: None,
            started: None,
            round: 0,
            runs_in_round: 1,
            runs_done: 0,
            told: BTreeSet::new(),
            title: String::new(),
            untold: None,
        }
    }

    /// Follows `plan` from now on, which took the place of the one before.
    pub fn follow_plan(&mut self, plan: &Plan) {
        self.names = names(plan);
        self.max_rounds = plan.stopping.max_rounds;
    }

    /// The rounds take this long at most.
    pub fn limit(&mut self, time: Duration) {
        self.max_time = Some(time);
    }

    /// Puts `title` before every line. That the metric `untold` is missing is told by another, once for all races.
    pub fn entitle(&mut self, title: &str, untold: Option<&'static str>) {
        self.title = format!("{title}: ");
        self.untold = untold;
    }

    /// Whether lines have a title, as they do in a collection of races.
    pub fn has_title(&self) -> bool {
        !self.title.is_empty()
    }

    fn message(&self, text: &str) {
        self.bar.set_message(format!("{}{text}", self.title));
    }

    /// Says what is going on besides rounds.
    pub fn say(&self, what: &str, entrant: usize) {
        self.message(&format!("{what}: {}", self.name(entrant)));
    }

    /// Follows the race.
    pub fn follow(&mut self, event: Event<'_>) {
        match event {
            Event::WarmupStarted { round, of } => {
                self.message(&format!("warm-up round {} of {of}", round + 1));
            }
            Event::RoundStarted { round, runs } => {
                self.started.get_or_insert_with(Instant::now);
                (self.round, self.runs_in_round, self.runs_done) = (round, runs.max(1), 0);
            }
            Event::RunStarted { entrant } if self.started.is_some() => self.show_round(entrant),
            Event::RunEnded(_) => self.runs_done += 1,
            Event::MemoryRunStarted { entrant } => self.say("watching memory", entrant),
            Event::EntrantFailed(failure) => {
                let name = self.name(failure.entrant);
                self.line(&format!(
                    "{name} leaves the race: {} in {}",
                    failure.ending, failure.during
                ));
            }
            Event::MetricMissing { name, .. } if self.untold == Some(name) => {}
            Event::MetricMissing { entrant, name } => {
                let told = format!("metric {name} was not found in the output under ");
                let told = told + self.name(entrant);
                if self.told.insert(told.clone()) {
                    self.line(&told);
                }
            }
            _ => {}
        }
    }

    /// Prints a line above the bar, on standard error; also where there is no terminal.
    pub fn line(&self, text: &str) {
        self.bar
            .suspend(|| output::tell(format_args!("{}{text}", self.title)));
    }

    /// Runs `print` with the bar out of the way.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the bar away.
    pub fn close(&self) {
        self.bar.finish_and_clear();
    }

    /// Puts a bar back that was taken away: of races that take turns, one is shown.
    pub fn open(&self) {
        self.bar.reset();
        self.bar.enable_steady_tick(TICK);
    }

    fn name(&self, entrant: usize) -> &str {
        self.names.get(entrant).map_or("?", String::as_str)
    }

    fn show_round(&self, entrant: usize) {
        let elapsed = self
            .started
            .map_or(Duration::ZERO, |started| started.elapsed());
        let within = self.runs_done as f64 / self.runs_in_round as f64;
        let by_rounds = (f64::from(self.round) + within) / f64::from(self.max_rounds.max(1));
        let by_time = self
            .max_time
            .map_or(0.0, |most| elapsed.as_secs_f64() / most.as_secs_f64());
        let share = by_rounds.max(by_time).clamp(0.0, 1.0);
        self.bar.set_position((share * STEPS as f64) as u64);
        let left = match share {
            s if s > 0.0 => Duration::from_secs_f64(elapsed.as_secs_f64() * (1.0 - s) / s),
            _ => self.max_time.unwrap_or_default(),
        };
        let left = match left.as_secs() {
            0 => String::new(),
            seconds => {
                let left = humantime::format_duration(Duration::from_secs(seconds));
                format!(", at most {left} left")
            }
        };
        self.message(&format!(
            "round {}, {}{left}",
            self.round + 1,
            self.name(entrant)
        ));
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
