//! The command line of the workload's binary.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde::Serialize;

use heapdrome_system::{companion, interrupt, room};

use crate::error::CatalogError;
use crate::generation::{self, Written};
use crate::settings::{Settings, expected_peak, with_margin};
use crate::{measure, sizes};

/// The catalog workload: loads data sets in parallel on an async executor, joins them, formats
/// names and URLs, and drops everything across threads.
#[derive(Parser)]
#[command(name = "heapdrome-catalog", version)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write data sets into a folder, which must not exist yet
    GenData {
        /// The folder to write
        folder: PathBuf,
        /// Number of data sets
        #[arg(short, default_value_t = 8)]
        n: u32,
        /// Size of each, relative to 100; bytes grow quadratically with it
        #[arg(short, long, value_name = "SZ", default_value_t = 100)]
        size: u32,
        /// Seed of the data
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Run the workload on data sets and print one line of JSON
    Test {
        /// The folder that gen-data wrote
        folder: PathBuf,
        /// Number of data sets to use, at most as many as were written
        #[arg(short, default_value_t = 8)]
        n: u32,
        /// Number of data sets that are loaded and in memory at the same time
        #[arg(long, default_value_t = 8)]
        parallel: u32,
        /// Threads of the executor
        #[arg(long, default_value_t = 16)]
        threads: u32,
        /// Required seed of the data [default: any]
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Print how large data sets are, as JSON
    Size {
        /// The folder that gen-data wrote
        folder: PathBuf,
        /// Number of data sets
        #[arg(short, default_value_t = 8)]
        n: u32,
        /// Number of data sets that would be in memory at the same time
        #[arg(long, default_value_t = 8)]
        parallel: u32,
    },
}

/// Runs the command line of the workload's binary.
pub fn main() -> ExitCode {
    let outcome = run().map_err(|error| (error.exit_status(), error.to_string()));
    companion::end(PROGRAM, outcome)
}

const PROGRAM: &str = "heapdrome-catalog";

fn tell(line: &str) {
    companion::tell(PROGRAM, line);
}

/// Parses the arguments. On a request for help or the version, prints it and exits. On an error,
/// prints one line and exits with status 2.
fn parse() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        let text = error.to_string();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        // The first paragraph is the error. Usage and hints follow after an empty line.
        let first = lines.split(|line| line.is_empty()).next().unwrap_or(&[]);
        let line = first.join(" ");
        let what = line.strip_prefix("error: ").unwrap_or(&line);
        tell(&format!("{what}; see --help"));
        std::process::exit(2)
    })
}

/// Prints a value as one line of JSON.
fn print_json(value: &impl Serialize) -> Result<(), CatalogError> {
    let line = serde_json::to_string(value).map_err(std::io::Error::from);
    let printed = line.and_then(|line| companion::print(&line));
    printed.map_err(|source| CatalogError::Machine {
        what: "write to standard output",
        source,
    })
}

fn run() -> Result<(), CatalogError> {
    match parse().command {
        Task::GenData {
            folder,
            n,
            size,
            seed,
        } => {
            let settings = Settings {
                n,
                size,
                seed,
                ..Settings::default()
            };
            generate(&folder, &settings)
        }
        Task::Test {
            folder,
            n,
            parallel,
            threads,
            seed,
        } => {
            let settings = Settings {
                n,
                parallel,
                threads,
                ..Settings::default()
            };
            test(&folder, settings, seed)
        }
        Task::Size {
            folder,
            n,
            parallel,
        } => {
            let settings = Settings {
                n,
                parallel,
                ..Settings::default()
            };
            settings.check_limits()?;
            print_json(&sizes::sizes(&folder, n, parallel)?)
        }
    }
}

fn generate(folder: &std::path::Path, settings: &Settings) -> Result<(), CatalogError> {
    let stop = interrupt::flag().map_err(|source| CatalogError::Machine {
        what: "handle signals",
        source,
    })?;
    let shown = folder.display();
    match generation::write(folder, settings, &stop)? {
        Written::Before(sets) => tell(&format!(
            "{shown} already holds these data ({sets} sets); keeping them"
        )),
        Written::Now => {
            let sizes = sizes::sizes(folder, settings.n, settings.parallel)?;
            tell(&format!(
                "{shown} holds {} data sets: {} serialised, {} on disk",
                sizes.n, sizes.data_bytes, sizes.file_bytes
            ));
        }
    }
    Ok(())
}

fn test(
    folder: &std::path::Path,
    settings: Settings,
    seed: Option<u64>,
) -> Result<(), CatalogError> {
    let prepared = measure::prepare(folder, settings, seed)?;
    let (settings, peak) = (&prepared.settings, expected_peak(&prepared.settings));
    let room = room::available();
    tell(&format!(
        "{} takes about {peak} of memory at its peak under glibc's malloc, up \
         to {} under others; {} available",
        settings.words(),
        with_margin(peak),
        room.map_or_else(
            || "an unknown amount".to_owned(),
            |room| room.bytes.to_string()
        )
    ));
    crate::settings::check(settings)?;
    print_json(&measure::measure(&prepared)?)
}
