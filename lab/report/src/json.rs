//! A result as JSON, without loss.

use heapdrome_schema::to_json;
use serde::Serialize;

use crate::{Exporter, ReportError};

/// A result of any kind as JSON.
#[derive(Clone, Copy, Debug)]
pub struct Json;

impl<R: Serialize> Exporter<R> for Json {
    fn export(&self, result: &R) -> Result<Vec<u8>, ReportError> {
        to_json(result).map_err(|error| ReportError::Json(error.to_string()))
    }
}
