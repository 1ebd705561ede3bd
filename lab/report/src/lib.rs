//! Exporters of results, and the texts that accompany them. Most output formats implement
//! [`Exporter`]; functions return the HTML pages.
//!
//! This crate reads no clock, no file and no environment variable. The caller chooses the width,
//! the colours, and the destination of the bytes.

pub mod adopt;
mod bars;
mod brief;
mod changes;
mod collection;
mod conclusion;
mod csv;
pub mod doctor;
mod entrant;
mod evidence;
mod foreign;
mod glance;
mod grid;
mod json;
mod list;
mod markdown;
mod memory;
mod notes;
mod page;
mod paint;
mod plot;
mod profile;
mod prose;
mod reason;
pub mod relevance;
mod reproduce;
mod scaling;
mod sheet;
mod sparkline;
pub mod survival;
mod sweep;
mod table;
mod terminal;
mod words;

pub use brief::Brief;
pub use conclusion::{Advice, Conclusion, Figure};
pub use csv::Csv;
pub use evidence::evidence;
pub use foreign::shorten;
pub use json::Json;
pub use list::{listing, wrapped};
pub use markdown::Markdown;
pub use page::{Entry, Source, index, page, profile_page};
pub use plot::{Plot, plots, stem};
pub use profile::{Perfetto, Pprof};
pub use reason::{Cause, Gain, Reason, Setting, reason, reason_for};
pub use terminal::{Terminal, interim};
pub use words::count;

use heapdrome_schema::RaceResult;

/// An output format for one kind of result, such as a race, a collection, or a comparison.
pub trait Exporter<R = RaceResult> {
    /// Exports the whole of `result`.
    ///
    /// # Errors
    /// When a value of the result cannot be represented.
    fn export(&self, result: &R) -> Result<Vec<u8>, ReportError>;
}

/// The reason why a result could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The CSV writer failed.
    #[error("cannot write the result as CSV: {0}; --json holds the same figures")]
    Csv(String),
    /// JSON could not be written, or could not be compressed for a page.
    #[error("cannot write the result as JSON: {0}; --csv holds the same figures")]
    Json(String),
    /// The profile could not be compressed.
    #[error("cannot write the profile for pprof: {0}; --csv holds the same figures")]
    Pprof(String),
    /// A drawing could not be rendered as an image.
    #[error("cannot draw the plot as PNG: {0}; its SVG holds the same drawing")]
    Png(String),
}
