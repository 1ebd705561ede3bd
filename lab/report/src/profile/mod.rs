//! A profile of a trace: its sentences, its tables, and its exporters.

pub(crate) mod code;
mod csv;
pub(crate) mod estimates;
pub(crate) mod facts;
mod names;
pub(crate) mod notes;
mod perfetto;
mod pprof;
mod protobuf;
pub(crate) mod requested;
mod shares;
pub(crate) mod tables;
mod terminal;
mod time;

pub(crate) use names::process as process_name;
pub use perfetto::Perfetto;
pub use pprof::Pprof;
