//! The command lines of `heapdrome report` and `heapdrome plot`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

/// `heapdrome report`.
#[derive(Args, Debug)]
pub struct ReportArguments {
    /// The results, as written by --json of race, suite, survive or paging, compressed by gzip or
    /// not; `-` reads one from standard input. Or one folder: every result in it
    #[arg(required = true, value_name = "RESULT.json")]
    pub results: Vec<PathBuf>,
    /// The page to write; `-` prints it. For a folder of results: a folder for their pages and an
    /// index, new, empty, or filled by an earlier report
    #[arg(short, long, value_name = "REPORT.html")]
    pub output: PathBuf,
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,
    /// Write $HOME and $CACHE for these folders, so that the page can be shared
    #[arg(long)]
    pub redact: bool,
}

/// `heapdrome plot`.
#[derive(Args, Debug)]
pub struct PlotArguments {
    /// The results, as written by --json of race, suite, survive or paging, compressed by gzip or
    /// not; `-` reads one from standard input
    #[arg(required = true, value_name = "RESULT.json")]
    pub results: Vec<PathBuf>,
    /// The folder for the plots; it is made if it is missing
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// The forms of the files
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "FORM,...",
        default_value = "svg,png"
    )]
    pub format: Vec<Form>,
    /// Draw only plots with one of these in their names, such as ranking-wall, or random-reads for
    /// the tables of that title; capitals and what stands between words do not matter
    #[arg(long, value_delimiter = ',', value_name = "WORD,...",
          value_parser = NonEmptyStringValueParser::new())]
    pub only: Vec<String>,
    /// Write over files that are there
    #[arg(long)]
    pub force: bool,
    /// Write $HOME and $CACHE for these folders, so that the plots can be shared
    #[arg(long)]
    pub redact: bool,
}

/// A form of a plot's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Lines and text, for paper and the web
    Svg,
    /// Points, for everything else
    Png,
}
