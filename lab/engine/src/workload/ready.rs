//! Conversion of a workload to the command that races, with its options and metrics.

use std::collections::BTreeMap;
use std::path::PathBuf;

use heapdrome_programs::Prepared;
use heapdrome_schema::{Better, Metric, Options, Replayed, Server, is_common_figure};
use heapdrome_workloads::{Description, Parameters};

use super::companion::Companion;
use super::{Asked, What, catalog, trace};
use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;

/// A workload that is ready to race. Its resources stay locked while this value lives.
pub struct Ready {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Notes for the report: for a program, [`Prepared::notes`]; for a trace, the validity of its
    /// figures, its latest check, and the parts that were not replayed.
    pub notes: Vec<String>,
    /// Number of leading words of the command that identify the program. The other words change
    /// only the program's load, so commands that differ in them share a proof.
    pub program_words: usize,
    prepare: Option<String>,
    directory: Option<PathBuf>,
    environment: BTreeMap<String, String>,
    server: Option<Server>,
    metrics: Vec<Metric>,
    figures: Vec<String>,
    masked: Vec<String>,
    success: Option<Vec<i32>>,
    same_output_required: bool,
    replay: Option<Replayed>,
    _kept: Kept,
}

/// Resources that stay locked during a race.
enum Kept {
    Nothing,
    Program { _prepared: Prepared },
    Data { _data: catalog::Data },
    Replay { _program: trace::Program },
}

/// Figures that every built-in load and every replay report. The flag states whether a higher value
/// is better.
const COMMON: [(&str, bool); 6] = [
    ("operations_per_cpu_s", true),
    ("overhead", false),
    ("peak_requested_bytes", false),
    ("peak_resident_bytes", false),
    ("wall_s", false),
    ("cpu_s", false),
];

/// Regular expression for the part of a report that differs between runs with equal parameters.
const FIGURES_OF_REPORT: &str = r#""figures":\{[^}]*\}"#;

impl Asked {
    /// Checks that the companion of a built-in load or a replay exists, and that the beginning of a
    /// trace is valid. A program of the system is not checked. This check precedes all builds.
    ///
    /// # Errors
    /// When the companion does not exist, or the trace is unusable.
    pub fn check_program(&self) -> Result<(), Failure> {
        match &self.what {
            What::Own(_, companion) => companion.find().map(|_| ()),
            What::Program(..) => Ok(()),
            What::Trace(replay) => replay.check(),
        }
    }

    /// Returns whether the workload is the replay of a trace.
    pub fn is_trace(&self) -> bool {
        matches!(self.what, What::Trace(_))
    }

    /// Returns the names of the figures that the workload reports; `None` for a program, whose
    /// figures are known only after its preparation.
    pub fn metric_names(&self) -> Option<Vec<String>> {
        let own = match &self.what {
            What::Own(parameters, _) => figures(parameters.description()),
            What::Program(..) => return None,
            What::Trace(_) => figures_of_replays(),
        };
        Some(own.iter().map(|(name, _)| metric_name(name)).collect())
    }

    /// Prepares the workload: finds its program, and writes its files, if any, into the cache.
    ///
    /// # Errors
    /// When the workload's program or a file that it needs is unavailable, the cache cannot be
    /// written, or the user interrupts.
    pub fn ready(&self, engine: &Engine) -> Result<Ready, Failure> {
        match &self.what {
            What::Own(parameters, Companion::Runner) => synthetic(parameters),
            What::Own(parameters, Companion::Catalog) => of_catalog(parameters, engine),
            What::Program(program, settings) => {
                let mut say = |event| engine.tell(Event::Preparing(&event));
                let prepared = program.prepare(&engine.folders.cache, settings, &mut say);
                engine.check()?;
                prepared.map(program_ready).map_err(Failure::machine)
            }
            What::Trace(replay) => of_trace(replay, engine),
        }
    }
}

impl Ready {
    /// Adds to the options of a race the settings that the workload needs. `--prepare`, environment
    /// variables and metrics of the command line take precedence.
    pub fn apply(&self, options: &mut Options) {
        options.directory.clone_from(&self.directory);
        if options.prepare.is_none() {
            options.prepare.clone_from(&self.prepare);
        }
        for (name, value) in &self.environment {
            let theirs = options.environment.entry(name.clone());
            theirs.or_insert_with(|| value.clone());
        }
        if self.server.is_some() {
            options.server.clone_from(&self.server);
        }
        let asked = |metric: &&Metric| !options.metrics.iter().any(|one| one.name == metric.name);
        let more: Vec<_> = self.metrics.iter().filter(asked).cloned().collect();
        options.metrics.extend(more);
        options.figures.clone_from(&self.figures);
        options.masked.clone_from(&self.masked);
        if let Some(success) = &self.success {
            options.success.clone_from(success);
        }
        options.same_output_required = self.same_output_required && options.compare_output;
        options.replay.clone_from(&self.replay);
    }
}

fn synthetic(parameters: &Parameters) -> Result<Ready, Failure> {
    let description = parameters.description();
    let runner = Companion::Runner.find()?;
    let mut command = vec![
        runner.to_string_lossy().into_owned(),
        description.name.to_owned(),
    ];
    let program_words = command.len();
    command.extend(parameters.words());
    let figures = figures(description);
    Ok(reporting(command, program_words, &figures, Kept::Nothing))
}

fn of_catalog(parameters: &Parameters, engine: &Engine) -> Result<Ready, Failure> {
    let settings = heapdrome_catalog_load::Settings::of(parameters);
    let data = catalog::data(&settings, engine)?;
    let (command, program_words) = data.command(&settings);
    let kept = Kept::Data { _data: data };
    let figures = figures(parameters.description());
    Ok(reporting(command, program_words, &figures, kept))
}

fn of_trace(replay: &trace::Replay, engine: &Engine) -> Result<Ready, Failure> {
    let program = replay.compiled(engine)?;
    let (command, notes) = (program.command(replay.touch), program.notes());
    let replayed = Some(program.replayed());
    let words = command.len();
    let kept = Kept::Replay { _program: program };
    Ok(Ready {
        notes,
        replay: replayed,
        ..reporting(command, words, &figures_of_replays(), kept)
    })
}

fn figures_of_replays() -> Vec<(&'static str, bool)> {
    [&COMMON[..], &heapdrome_replay::FIGURES].concat()
}

/// Returns a workload whose command prints one report and nothing else.
fn reporting(
    command: Vec<String>,
    program_words: usize,
    figures: &[(&str, bool)],
    kept: Kept,
) -> Ready {
    let metrics = metrics_of(figures);
    Ready {
        command,
        notes: Vec::new(),
        program_words,
        prepare: None,
        directory: None,
        environment: BTreeMap::new(),
        server: None,
        figures: metrics.iter().map(|metric| metric.name.clone()).collect(),
        metrics,
        masked: vec![FIGURES_OF_REPORT.to_owned()],
        success: None,
        same_output_required: true,
        replay: None,
        _kept: kept,
    }
}

fn program_ready(prepared: Prepared) -> Ready {
    Ready {
        command: prepared.command.clone(),
        notes: prepared.notes.clone(),
        program_words: prepared.command.len(),
        prepare: prepared.prepare.clone(),
        directory: Some(prepared.directory.clone()),
        environment: prepared.environment.clone(),
        server: prepared.server.clone(),
        metrics: prepared.metrics.clone(),
        figures: Vec::new(),
        masked: Vec::new(),
        success: Some(prepared.success.clone()),
        same_output_required: prepared.repeatable_output,
        replay: None,
        _kept: Kept::Program {
            _prepared: prepared,
        },
    }
}

/// Returns the names of the figures that a built-in load reports, common ones first. The flag
/// states whether a higher value is better.
fn figures(description: &Description) -> Vec<(&'static str, bool)> {
    let mut figures = COMMON.to_vec();
    for figure in description.figures {
        if !figures.iter().any(|(name, _)| *name == figure.name) {
            figures.push((figure.name, figure.more_is_better));
        }
    }
    figures
}

/// Returns the metrics of the race that read these figures from the report's JSON line.
fn metrics_of(figures: &[(&str, bool)]) -> Vec<Metric> {
    let metric = |(name, more): &(&str, bool)| Metric {
        name: metric_name(name),
        pattern: format!(r#""figures":\{{(?:[^}}]*,)?"{name}":([-+.eE0-9]+)"#),
        better: if *more { Better::Higher } else { Better::Lower },
    };
    figures.iter().map(metric).collect()
}

/// Returns the metric's name for a figure of the workload. Names such as `wall_s` mean figures of
/// the whole command, so a workload's figure of such a name gets a prefix.
fn metric_name(figure: &str) -> String {
    match is_common_figure(figure) {
        true => format!("measured_{figure}"),
        false => figure.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_the_report_and_only_there() {
        let report = heapdrome_schema::WorkloadReport {
            workload: "overhead".to_owned(),
            parameters: "wall_s=1".to_owned(),
            operations: 7,
            checksum: "ab".to_owned(),
            figures: [("cpu_s", 0.5), ("overhead", 1.25), ("wall_s", 1e-7)]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
        };
        let line = serde_json::to_string(&report).expect("JSON");
        let found = |name: &str| {
            let metrics = metrics_of(&[(name, false)]);
            let pattern = regex::Regex::new(&metrics[0].pattern).expect("a pattern");
            let number = pattern.captures(&line)?.get(1)?.as_str().parse();
            number.ok() as Option<f64>
        };
        assert_eq!(found("cpu_s"), Some(0.5));
        assert_eq!(found("overhead"), Some(1.25));
        assert_eq!(found("wall_s"), Some(1e-7));
        assert_eq!(found("operations"), None);
        let masked = regex::Regex::new(FIGURES_OF_REPORT).expect("a pattern");
        assert!(masked.replace(&line, "").contains("checksum"));
        assert!(!masked.replace(&line, "").contains("0.5"));
    }
}
