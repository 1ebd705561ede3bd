//! How each run of a race is made, checked before anything is built.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use heapdrome_record::{Metric, Nanoseconds, Options, Server, is_common_figure};

use crate::arguments::RaceArguments;
use crate::failure::Failure;
use crate::program;
use crate::values::{Processors, processors};

/// How long a server may take to answer.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// What is done where nothing is said: output compared, one memory run, status 0 is success.
pub fn usual_options() -> Options {
    Options {
        compare_output: true,
        memory_runs: 1,
        success: vec![0],
        ..Options::default()
    }
}

/// The options of a race as the command line gives them; a workload adds its own.
///
/// # Errors
/// When one of them is wrong.
pub fn options(arguments: &RaceArguments) -> Result<Options, Failure> {
    let runs = &arguments.runs;
    let server = match (&arguments.serve, &arguments.ready) {
        (Some(serve), Some(ready)) => Some(Server {
            serve: serve.clone(),
            ready: ready.clone(),
            ready_within: READY_WITHIN.into(),
            idle: arguments.idle.map_or(Server::IDLE, Nanoseconds::from),
        }),
        _ => None,
    };
    check_metric_names(arguments)?;
    let mut names = BTreeSet::new();
    if let Some(twice) = arguments
        .metrics
        .iter()
        .find(|metric| !names.insert(&metric.name))
    {
        return Err(Failure::Usage(format!(
            "--metric {} is given twice",
            twice.name
        )));
    }
    let metric = |metric: &crate::values::MetricArgument| Metric {
        name: metric.name.clone(),
        pattern: metric.pattern.clone(),
        better: metric.better,
    };
    let options = Options {
        workload: None,
        warmup_rounds: arguments.stopping.warmup,
        setup: runs.setup.clone(),
        prepare: runs.prepare.clone(),
        cleanup: runs.cleanup.clone(),
        check: runs.check.clone(),
        pin: runs.pin.clone().unwrap_or_default().0,
        timeout: runs.timeout.map(Nanoseconds::from),
        directory: absolute(runs.directory.as_deref())?,
        stdin: absolute(runs.stdin.as_deref())?,
        environment: runs.environment.iter().cloned().collect(),
        metrics: arguments.metrics.iter().map(metric).collect(),
        server,
        compare_output: !runs.discard_output,
        memory_runs: runs.memory_runs,
        success: runs.success.clone(),
        allow_different_work: runs.allow_different_work,
        ..usual_options()
    };
    check_files(&options)?;
    check_processors(&options.pin)?;
    Ok(options)
}

/// The figures that every race has keep their names for themselves.
fn check_metric_names(arguments: &RaceArguments) -> Result<(), Failure> {
    match arguments
        .metrics
        .iter()
        .find(|metric| is_common_figure(&metric.name))
    {
        Some(taken) => Err(Failure::Usage(format!(
            "--metric {}: every race has a figure of that name; choose another",
            taken.name
        ))),
        None => Ok(()),
    }
}

/// A path that means the same after a change of folder.
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

/// Finds out early whether the command can be pinned where it should be.
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

/// Finds out before anything is built whether the command is there.
///
/// # Errors
/// When it is not, or may not be executed.
pub fn check_command(name: &str, options: &Options) -> Result<(), Failure> {
    let folder = options.directory.as_deref().unwrap_or(Path::new("."));
    if program::find(name, folder).is_some() {
        return Ok(());
    }
    let path = folder.join(name);
    let what = if name.contains('/') && path.is_dir() {
        format!("cannot run {name}: it is a folder")
    } else if name.contains('/') && path.exists() {
        format!("cannot run {name}: it is there, but may not be executed; see chmod +x")
    } else if name.contains([' ', '|', '&', ';', '>']) {
        format!("cannot find the command {name}; for a shell write: -- sh -c 'COMMAND LINE'")
    } else {
        format!("cannot find the command {name}; check its name and PATH")
    };
    Err(Failure::Usage(what))
}
