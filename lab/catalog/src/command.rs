//! The command line.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde::Serialize;

use crate::error::CatalogError;
use crate::generation::{self, Written};
use crate::settings::{Settings, expected_peak, with_margin};
use crate::{available, interrupt, measure, sizes};

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
        /// Data sets
        #[arg(short, default_value_t = 8)]
        n: u32,
        /// Size of each, relative to 100; bytes grow with its square
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
        /// Data sets to use, at most as many as were written
        #[arg(short, default_value_t = 8)]
        n: u32,
        /// Data sets that are loaded at a time and live at the same time
        #[arg(long, default_value_t = 8)]
        parallel: u32,
        /// Threads of the executor
        #[arg(long, default_value_t = 16)]
        threads: u32,
        /// The seed that the data must have [default: any]
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Print how large data sets are, as JSON
    Size {
        /// The folder that gen-data wrote
        folder: PathBuf,
        /// Data sets
        #[arg(short, default_value_t = 8)]
        n: u32,
        /// Data sets that would live at the same time
        #[arg(long, default_value_t = 8)]
        parallel: u32,
    },
}

/// Runs the command line of the workload's binary.
pub fn main() -> ExitCode {
    end("heapdrome-catalog", run())
}

/// Runs the command line of the counting binary.
pub fn count_main() -> ExitCode {
    end("heapdrome-catalog-count", crate::count::main())
}

fn end(program: &str, result: Result<(), CatalogError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("{program}: {error}"));
            ExitCode::from(error.exit_status())
        }
    }
}

/// One line on standard error; nobody is left to hear that it is closed.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The arguments; help is printed, and what is wrong is said in one line with exit status 2.
pub(crate) fn parse<T: Parser>() -> T {
    T::try_parse().unwrap_or_else(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        let text = error.to_string();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        // The first paragraph; usage and hints follow after an empty line.
        let first = lines.split(|line| line.is_empty()).next().unwrap_or(&[]);
        let line = first.join(" ");
        let what = line.strip_prefix("error: ").unwrap_or(&line);
        tell(&format!("heapdrome-catalog: {what}; see --help"));
        std::process::exit(2)
    })
}

/// Prints a value as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CatalogError> {
    let print = || {
        let line = serde_json::to_string(value)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}")?;
        out.flush()
    };
    print().map_err(|source| CatalogError::Machine {
        what: "write to standard output",
        source,
    })
}

fn run() -> Result<(), CatalogError> {
    match parse::<Arguments>().command {
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
    let stop = interrupt::flag()?;
    let shown = folder.display();
    match generation::write(folder, settings, &stop)? {
        Written::Before(manifest) => tell(&format!(
            "heapdrome-catalog: {shown} already holds these data ({} sets); they are kept",
            manifest.sets.len()
        )),
        Written::Now(_, unknown) => {
            let sizes = sizes::sizes(folder, settings.n, settings.parallel)?;
            tell(&format!(
                "heapdrome-catalog: {shown} holds {} data sets: {} serialised, {} on the disk",
                sizes.n, sizes.data_bytes, sizes.file_bytes
            ));
            if let Some(reason) = unknown {
                tell(&format!(
                    "heapdrome-catalog: what they request of an allocator was not counted, so \
                     overhead will not be reported: {reason}"
                ));
            }
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
    let room = available::available();
    tell(&format!(
        "heapdrome-catalog: {} takes about {peak} of memory at its peak under glibc's malloc, up \
         to {} under others; {} can be had",
        settings.words(),
        with_margin(peak),
        room.map_or_else(|| "an unknown amount".to_owned(), |bytes| bytes.to_string())
    ));
    crate::settings::check(settings)?;
    print_json(&measure::measure(folder, &prepared)?)
}
