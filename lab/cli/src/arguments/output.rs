//! Destinations of a result on the command line.

use std::path::{Path, PathBuf};

use clap::Args;

/// Name of standard output on the command line.
pub const STDOUT: &str = "-";

/// Returns whether a path means standard output. A file named `-` is written as `./-`.
pub fn is_stdout(path: &Path) -> bool {
    [STDOUT, "/dev/stdout"].contains(&path.as_os_str().to_str().unwrap_or_default())
}

/// Destinations of a result.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Where the result goes")]
pub struct OutputArguments {
    /// Write the result as JSON, compressed by gzip if FILE ends in .gz; `-` prints it instead of
    /// the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write every sample as CSV, compressed by gzip if FILE ends in .gz; `-` prints it instead of
    /// the table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the table as Markdown; `-` prints it instead of the table
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Replace the home and cache folders by $HOME and $CACHE in the files, so that they can be
    /// shared
    #[arg(long)]
    pub redact: bool,
}

impl OutputArguments {
    /// Returns the destinations with relative paths resolved against `folder`. Standard output
    /// stays unchanged.
    pub fn seen_from(&self, folder: &Path) -> Self {
        let seen = |path: &Option<PathBuf>| {
            let path = path.as_ref()?;
            match is_stdout(path) {
                true => Some(path.clone()),
                false => Some(folder.join(path)),
            }
        };
        Self {
            json: seen(&self.json),
            csv: seen(&self.csv),
            markdown: seen(&self.markdown),
            redact: self.redact,
        }
    }

    /// Returns these destinations. Takes each missing one from `other`, and redacts if either
    /// requests it.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            json: self.json.or(other.json),
            csv: self.csv.or(other.csv),
            markdown: self.markdown.or(other.markdown),
            redact: self.redact || other.redact,
        }
    }
}
