//! Number of threads that can work on data sets in parallel.

use heapdrome_schema::Bytes;
use heapdrome_system::room;

use crate::error::CatalogError;
use crate::settings::require;

/// Returns the number of threads: the minimum of the number of processors, the number of jobs, and
/// the number of jobs of `each` bytes that fit in memory. Returns at least 1, and 1 if the
/// available memory is unknown.
///
/// # Errors
/// Returns an error if there is too little memory for one job.
pub(crate) fn threads(jobs: usize, each: Bytes, what: &str) -> Result<usize, CatalogError> {
    require(what, each)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let fitting = room::available().map_or(1, |room| (room.bytes.0 / each.0.max(1)) as usize);
    Ok(processors.min(jobs).min(fitting).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_threads_than_jobs_and_none_without_memory() {
        assert_eq!(threads(1, Bytes(1), "x").expect("fits"), 1);
        assert!(threads(9, Bytes(1), "x").expect("fits") >= 1);
        assert!(threads(9, Bytes(u64::MAX), "x").is_err());
    }
}
