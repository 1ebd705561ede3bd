//! Where a result goes, as the command line names it.

use std::path::{Path, PathBuf};

use clap::Args;

/// The name that stands for standard output.
pub const STDOUT: &str = "-";

/// Whether a path stands for standard output. A file that is called `-` is written as `./-`.
pub fn is_stdout(path: &Path) -> bool {
    [STDOUT, "/dev/stdout"].contains(&path.as_os_str().to_str().unwrap_or_default())
}

/// Where a result is written.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Where the result goes")]
pub struct OutputArguments {
    /// Write the result as JSON, compressed by gzip where FILE ends in .gz; `-` prints it in place
    /// of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write every sample as CSV, compressed in the same way; `-` prints it in place of the table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the table as Markdown; `-` prints it in place of the table
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write $HOME and $CACHE for these folders in the files, so that they can be shared
    #[arg(long)]
    pub redact: bool,
}

impl OutputArguments {
    /// Resolves relative paths against `folder`; standard output stays as it is.
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

    /// These files, and for what names none here those of `other`.
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
