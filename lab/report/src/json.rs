//! The result as JSON, the form that loses nothing.

use heapdrome_record::{RaceResult, result_to_json};

use crate::{Exporter, ReportError};

/// The result as JSON, schema version 1.
#[derive(Clone, Copy, Debug)]
pub struct Json;

impl Exporter for Json {
    fn export(&self, result: &RaceResult) -> Result<Vec<u8>, ReportError> {
        result_to_json(result).map_err(|error| ReportError::Json(error.to_string()))
    }
}
