//! The command lines of `heapdrome report` and `heapdrome plot`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

/// Arguments of `heapdrome report`.
#[derive(Args, Debug)]
pub struct ReportArguments {
    /// The results, as written by --json of race, suite, survive or paging, optionally compressed
    /// by gzip; `-` reads one from standard input; `latest` or the name of a race reads a stored
    /// race; or one folder, for every result in it
    #[arg(required = true, value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// The page to write; `-` prints it. For a folder of results: a folder for their pages and an
    /// index, which must be new, empty, or written by an earlier report
    #[arg(short, long, value_name = "REPORT.html")]
    pub output: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
    /// Replace the home and cache folders by $HOME and $CACHE, so that the page can be shared
    #[arg(long)]
    pub redact: bool,
}

/// Arguments of `heapdrome plot`.
#[derive(Args, Debug)]
pub struct PlotArguments {
    /// The results, as written by --json of race, suite, survive or paging, optionally compressed
    /// by gzip; `-` reads one from standard input; `latest` or the name of a race reads a stored
    /// race
    #[arg(required = true, value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// The folder for the plots, which is created if missing
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// File formats
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "FORM,...",
        default_value = "svg,png"
    )]
    pub format: Vec<Form>,
    /// Draw only plots with one of these in their names, such as ranking-wall, or random-reads for
    /// the tables of that title; case and separators do not matter
    #[arg(long, value_delimiter = ',', value_name = "WORD,...",
          value_parser = NonEmptyStringValueParser::new())]
    pub only: Vec<String>,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
    /// Replace the home and cache folders by $HOME and $CACHE, so that the plots can be shared
    #[arg(long)]
    pub redact: bool,
}

/// File format of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Vector graphics, for paper and the web
    Svg,
    /// Pixels, for everything else
    Png,
}
