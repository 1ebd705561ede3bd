//! Settings of a run, and the check that this machine can run them.

use heapdrome_schema::Bytes;
use heapdrome_system::room;

use crate::error::CatalogError;

/// Reference size, to which all other sizes are relative.
pub const DEFAULT_SIZE: u32 = 100;

/// Maximum number of data sets.
pub(crate) const MOST_SETS: u32 = 256;

/// Maximum size of a data set, relative to [`DEFAULT_SIZE`].
pub(crate) const MOST_SIZE: u32 = 1000;

/// Maximum number of threads, and maximum number of sets at a time.
pub(crate) const MOST_THREADS: u32 = 1024;

/// Resident memory of one data set of the default size while it is loaded and joined under glibc's
/// malloc. This value was measured. Only the estimate of the peak depends on it.
const SET_BYTES: f64 = 0.765 * (1 << 30) as f64;

/// Memory of the process without its data sets: the program, its threads and its buffers.
const BASE_BYTES: f64 = (24 << 20) as f64;

/// Largest published ratio of another allocator's memory to that of glibc's malloc.
const MARGIN: f64 = 4.0 / 3.0;

/// Parameters of a run of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Number of data sets.
    pub n: u32,
    /// Size of each data set, relative to [`DEFAULT_SIZE`]. Bytes grow quadratically with the size.
    pub size: u32,
    /// Number of data sets that are loaded and in memory at the same time.
    pub parallel: u32,
    /// Number of threads of the executor.
    pub threads: u32,
    /// Seed of the data.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            n: 8,
            size: DEFAULT_SIZE,
            parallel: 8,
            threads: 16,
            seed: 1,
        }
    }
}

impl Settings {
    /// Formats the settings as `name=value` words in a fixed order.
    pub fn words(&self) -> String {
        format!(
            "n={} size={} parallel={} threads={} seed={}",
            self.n, self.size, self.parallel, self.threads, self.seed
        )
    }

    /// Checks whether every value is in its range, on any machine.
    ///
    /// # Errors
    /// Returns an error for the first value that is out of range.
    pub fn check_limits(&self) -> Result<(), CatalogError> {
        let limits = [
            ("-n", self.n, MOST_SETS),
            ("-s", self.size, MOST_SIZE),
            ("--parallel", self.parallel, MOST_THREADS),
            ("--threads", self.threads, MOST_THREADS),
        ];
        for (option, value, most) in limits {
            if value == 0 || value > most {
                return Err(CatalogError::Parameter {
                    option,
                    value,
                    most,
                });
            }
        }
        Ok(())
    }
}

/// Checks whether this machine can run these settings now.
///
/// # Errors
/// Returns an error if a value is out of range, or there is too little memory.
pub(crate) fn check(settings: &Settings) -> Result<(), CatalogError> {
    settings.check_limits()?;
    let needed = with_margin(expected_peak(settings));
    require(&settings.words(), needed)
}

/// Checks whether `needed` bytes of memory are available for `what`. Succeeds if the available
/// memory is unknown.
///
/// # Errors
/// Returns an error if fewer bytes are available.
pub(crate) fn require(what: &str, needed: Bytes) -> Result<(), CatalogError> {
    match room::available() {
        Some(room) if room.bytes < needed => Err(CatalogError::Memory {
            what: what.to_owned(),
            needed,
            available: room.bytes,
            limit: room.limit,
        }),
        _ => Ok(()),
    }
}

/// Returns the name of the folder with the data for these settings.
pub fn data_folder_name(settings: &Settings) -> String {
    format!(
        "catalog-s{}-seed{}-n{}",
        settings.size, settings.seed, settings.n
    )
}

/// Estimates the peak of resident memory of a run under glibc's malloc.
pub fn expected_peak(settings: &Settings) -> Bytes {
    let together = f64::from(settings.n.min(settings.parallel));
    let scale = f64::from(settings.size) / f64::from(DEFAULT_SIZE);
    Bytes((together * SET_BYTES * scale * scale + BASE_BYTES) as u64)
}

/// Returns the memory that must be available for an expected peak under glibc's malloc: the peak
/// plus a margin for other allocators.
pub(crate) fn with_margin(peak: Bytes) -> Bytes {
    Bytes((peak.as_f64() * MARGIN) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_grows_with_the_sets_at_a_time_and_the_square_of_the_size() {
        let peak = |n, parallel, size| {
            let settings = Settings {
                n,
                parallel,
                size,
                ..Settings::default()
            };
            expected_peak(&settings).as_f64() - BASE_BYTES
        };
        let one = peak(1, 1, 100);
        let near = |left: f64, right: f64| (left - right).abs() < 10.0;
        assert!(near(peak(8, 8, 100), 8.0 * one));
        assert!(near(peak(8, 2, 100), 2.0 * one));
        assert!(near(peak(2, 8, 100), 2.0 * one));
        assert!(near(peak(1, 1, 50), one / 4.0));
    }

    #[test]
    fn values_out_of_their_limits_are_refused() {
        let right = Settings::default();
        right.check_limits().expect("the default is within limits");
        for wrong in [
            Settings { n: 0, ..right },
            Settings { n: 257, ..right },
            Settings { size: 0, ..right },
            Settings {
                size: 1001,
                ..right
            },
            Settings {
                parallel: 0,
                ..right
            },
            Settings {
                threads: 0,
                ..right
            },
            Settings {
                threads: 1025,
                ..right
            },
        ] {
            assert!(matches!(check(&wrong), Err(CatalogError::Parameter { .. })));
        }
    }

    #[test]
    fn what_no_machine_has_is_refused() {
        let huge = Settings {
            n: MOST_SETS,
            size: MOST_SIZE,
            parallel: MOST_SETS,
            ..Settings::default()
        };
        assert!(matches!(check(&huge), Err(CatalogError::Memory { .. })));
    }

    #[test]
    fn what_cannot_be_had_is_refused_with_its_reason() {
        require("nothing", Bytes(0)).expect("nothing can always be had");
        let refused = require("n=8", Bytes(u64::MAX)).expect_err("too much");
        assert!(refused.to_string().starts_with("n=8 may take up to"));
        assert_eq!(refused.exit_status(), 2);
    }

    #[test]
    fn a_folder_is_named_after_what_its_data_depend_on() {
        assert_eq!(
            data_folder_name(&Settings::default()),
            "catalog-s100-seed1-n8"
        );
    }
}
