//! Options of a race and of its runs, checked before anything is built.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use heapdrome_engine::race::{JUDGED, check_judged, usual_options};
use heapdrome_engine::workload::Asked;
use heapdrome_replay::Speed;
use heapdrome_schema::{
    CPU, Claim, Metric, Nanoseconds, Options, PEAK_RSS, Role, Server, WALL, is_common_figure,
};

use crate::arguments::{RaceArguments, RunArguments};
use crate::failure::Failure;
use crate::replay::asked;
use crate::values::{MetricArgument, Processors, processors};

/// Maximum time until a server answers.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Returns the options of a race from the command line; a workload adds its own.
///
/// # Errors
/// Returns an error if an option is invalid.
pub fn options(arguments: &RaceArguments) -> Result<Options, Failure> {
    check_contradictions(arguments)?;
    check_metric_names(arguments)?;
    Ok(Options {
        warmup_rounds: arguments.stopping.warmup,
        metrics: arguments.metrics.iter().map(metric).collect(),
        judged: judged(arguments)?,
        server: server(arguments),
        as_is: Some(match arguments.baseline {
            None => Role::Baseline,
            Some(_) => Role::Rival,
        }),
        ..run_options(&arguments.runs)?
    })
}

/// Returns the options of each run.
///
/// # Errors
/// Returns an error if an option is invalid.
pub fn run_options(runs: &RunArguments) -> Result<Options, Failure> {
    let mut names = BTreeSet::new();
    let mut environment = runs.environment.iter();
    if let Some((name, _)) = environment.find(|(name, _)| !names.insert(name)) {
        return Err(Failure::Usage(format!("--env {name} is given twice")));
    }
    let options = Options {
        setup: runs.setup.clone(),
        prepare: runs.prepare.clone(),
        cleanup: runs.cleanup.clone(),
        check: runs.check.clone(),
        pin: runs.pin.clone().unwrap_or_default().0,
        timeout: runs.timeout.map(Nanoseconds::from),
        directory: absolute(runs.directory.as_deref())?,
        stdin: absolute(runs.stdin.as_deref())?,
        environment: runs.environment.iter().cloned().collect(),
        compare_output: !runs.discard_output,
        memory_runs: runs.memory_runs,
        success: runs.success.clone(),
        allow_different_work: runs.allow_different_work,
        unproven: runs.unproven,
        ..usual_options()
    };
    check_files(&options)?;
    check_processors(&options.pin)?;
    Ok(options)
}

fn server(arguments: &RaceArguments) -> Option<Server> {
    let (serve, ready) = (arguments.serve.as_ref()?, arguments.ready.as_ref()?);
    Some(Server {
        serve: serve.clone(),
        ready: ready.clone(),
        ready_within: READY_WITHIN.into(),
        idle: arguments.idle.map_or(Server::IDLE, Nanoseconds::from),
    })
}

/// Refuses options that contradict each other or would have no effect.
fn check_contradictions(arguments: &RaceArguments) -> Result<(), Failure> {
    let only_in_sweeps = [
        ("--knee", arguments.knee.is_some()),
        ("--work", arguments.work.is_some()),
    ];
    if let Some((option, _)) = only_in_sweeps.into_iter().find(|(_, given)| *given)
        && !arguments.is_sweep()
    {
        return Err(Failure::Usage(format!(
            "{option} is for sweeps; add --threads or --sweep"
        )));
    }
    if let (Some(option), None) = (arguments.how.given(), &arguments.trace) {
        return Err(Failure::Usage(format!(
            "{option} is for the replay of a trace; add --trace FILE"
        )));
    }
    let asked = &arguments.stopping;
    let limits = [
        ("--rounds", asked.rounds.is_some()),
        ("--max-rounds", asked.max_rounds.is_some()),
        ("--max-time", asked.max_time.is_some()),
        ("--precision", asked.precision.is_some()),
    ];
    // For a workload, --quick also reduces the work, so it may be combined with a limit.
    if let Some((option, _)) = limits.into_iter().find(|(_, given)| *given)
        && arguments.quick
        && arguments.workload.is_none()
    {
        return Err(Failure::Usage(format!(
            "--quick and {option} both limit the race; omit one of them"
        )));
    }
    if arguments.idle.is_some_and(|idle| !idle.is_zero()) && arguments.runs.memory_runs == 0 {
        return Err(Failure::usage(
            "--idle requires a run that watches memory; omit --memory-runs 0",
        ));
    }
    Ok(())
}

/// Returns the names of the judged figures, as results contain them. Refuses figures that the race
/// is already known to lack, and figures that a replay at this speed does not support.
fn judged(arguments: &RaceArguments) -> Result<Vec<String>, Failure> {
    let mut judged: Vec<String> = Vec::new();
    for name in &arguments.judge {
        let common = JUDGED.iter().find(|(short, _)| short == name);
        let figure = common.map_or(name.as_str(), |(_, figure)| figure);
        if !judged.iter().any(|known| known == figure) {
            judged.push(figure.to_owned());
        }
    }
    let how = arguments.how.speed.unwrap_or_default();
    if let (Some(_), Some(figure)) = (
        &arguments.trace,
        judged
            .iter()
            .find(|figure| !how.supports(Claim::of(figure))),
    ) {
        let claim = Claim::of(figure);
        return Err(Failure::Usage(format!(
            "--judge {}: a replay at speed {how} supports no claim on {}; use --speed {}",
            shown(figure),
            claim.spoken(),
            Speed::of(claim)
        )));
    }
    if judged.is_empty() && arguments.trace.is_some() && how == Speed::Paced {
        return Ok(vec![PEAK_RSS.to_owned()]);
    }
    if judged.is_empty() {
        return Ok(vec![WALL.to_owned(), CPU.to_owned()]);
    }
    let metrics = arguments.metrics.iter().map(|metric| metric.name.clone());
    let of_workload = match (&arguments.workload, &arguments.trace) {
        (Some(name), _) => Asked::parse(name, &[], arguments.quick)?.metric_names(),
        (None, Some(trace)) => Asked::from(asked(trace, &arguments.how)?).metric_names(),
        (None, None) => Some(Vec::new()),
    };
    // A program's own metrics are only known after its preparation, and are checked then.
    if let Some(more) = of_workload {
        check_judged(&judged, metrics.chain(more))?;
    }
    Ok(judged)
}

/// Returns the name by which `--judge` accepts a figure.
fn shown(figure: &str) -> &str {
    let common = JUDGED.iter().find(|(_, name)| *name == figure);
    common.map_or(figure, |(short, _)| short)
}

fn metric(metric: &MetricArgument) -> Metric {
    Metric {
        name: metric.name.clone(),
        pattern: metric.pattern.clone(),
        better: metric.better,
    }
}

/// Refuses a metric that is given twice, or that has the name of a figure that every race has.
fn check_metric_names(arguments: &RaceArguments) -> Result<(), Failure> {
    let mut names = BTreeSet::new();
    for MetricArgument { name, .. } in &arguments.metrics {
        if is_common_figure(name) {
            return Err(Failure::Usage(format!(
                "--metric {name}: every race has a figure of that name; choose another"
            )));
        }
        if !names.insert(name) {
            return Err(Failure::Usage(format!("--metric {name} is given twice")));
        }
    }
    Ok(())
}

/// Makes a path absolute, so that it stays valid after a change of folder.
fn absolute(path: Option<&Path>) -> Result<Option<std::path::PathBuf>, Failure> {
    path.map(std::path::absolute)
        .transpose()
        .map_err(Failure::usage)
}

fn check_files(options: &Options) -> Result<(), Failure> {
    if let Some(folder) = options.directory.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::Usage(format!(
            "--directory {}: no such folder",
            folder.display()
        )));
    }
    if let Some(file) = &options.stdin {
        std::fs::File::open(file).map_err(|error| {
            Failure::Usage(format!(
                "--stdin {}: cannot read it: {error}",
                file.display()
            ))
        })?;
    }
    Ok(())
}

/// Checks early whether the command can be pinned to these processors.
fn check_processors(pin: &[usize]) -> Result<(), Failure> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let Some(list) = list.map(str::trim) else {
        return Ok(());
    };
    let Ok(Processors(allowed)) = processors(list) else {
        return Ok(());
    };
    match pin.iter().find(|processor| !allowed.contains(processor)) {
        Some(missing) => Err(Failure::Usage(format!(
            "--pin {missing}: this process may use the processors {list} only"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::{Action, Arguments};

    fn read(words: &[&str]) -> Result<Options, Failure> {
        let all = ["heapdrome", "race"]
            .iter()
            .chain(words)
            .chain(&["--", "true"]);
        let read = Arguments::try_parse_from(all).unwrap_or_else(|error| panic!("{error}"));
        match read.action {
            Action::Race(arguments) => options(&arguments),
            other => panic!("{other:?}"),
        }
    }

    fn judged(words: &[&str]) -> Vec<String> {
        read(words).unwrap_or_else(|error| panic!("{error}")).judged
    }

    #[test]
    fn wall_and_processor_time_are_judged_unless_something_else_is_asked_for() {
        assert_eq!(judged(&[]), [WALL, CPU]);
        assert_eq!(judged(&["--judge", "memory"]), [PEAK_RSS]);
        assert_eq!(judged(&["--judge", "cpu,wall,cpu_s"]), [CPU, WALL]);
        let metric = ["--judge", "wall", "--metric", "ops=(.*)", "--judge", "ops"];
        assert_eq!(judged(&metric), [WALL, "ops"]);
    }

    #[test]
    fn what_cannot_be_judged_is_refused_with_what_can() {
        let refused = |words: &[&str]| read(words).expect_err("refused").to_string();
        let error = refused(&["--judge", "latency"]);
        assert!(error.contains("there are: wall, cpu, memory"), "{error}");
        let error = refused(&["--metric", "ops=(.*)", "--judge", "op"]);
        assert!(error.contains("did you mean ops?"), "{error}");
    }

    #[test]
    fn a_workload_has_figures_that_can_be_judged() {
        let words = ["-w", "rptest", "--quick", "--judge", "operations_per_cpu_s"];
        assert_eq!(judged(&words), ["operations_per_cpu_s"]);
        let error = read(&["-w", "rptest", "--judge", "nonsense"]);
        let error = error.expect_err("refused").to_string();
        assert!(error.contains("measured_wall_s"), "{error}");
    }
}
