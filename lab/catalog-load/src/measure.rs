//! `test`: runs the workload, checks its results, and reports them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use heapdrome_schema::WorkloadReport;

use crate::data;
use crate::error::CatalogError;
use crate::file::Set;
use crate::join::Tally;
use crate::process::{self, Used};
use crate::run::{Outcome, Workers};
use crate::settings::Settings;
use crate::sizes::{Sizes, sizes};

/// Run whose data have been checked. `size` and `seed` of its settings are those of the data.
pub(crate) struct Prepared {
    pub(crate) settings: Settings,
    pub(crate) sizes: Sizes,
    sets: Vec<Set>,
    expected: Tally,
}

/// Checks that a folder holds the data for a run. The returned settings have the size and the seed
/// of the data. A requested seed must equal that of the data.
///
/// # Errors
/// Returns an error if a value is out of range, or the data are missing, unreadable, incomplete,
/// foreign, visibly damaged, too few, or of another version or seed.
pub(crate) fn prepare(
    folder: &Path,
    asked: Settings,
    seed: Option<u64>,
) -> Result<Prepared, CatalogError> {
    asked.check_limits()?;
    let sets = data::first(folder, asked.n)?;
    let found = sets[0].place.identity;
    if let Some(asked) = seed.filter(|seed| *seed != found.seed) {
        return Err(CatalogError::OtherSeed {
            path: folder.to_owned(),
            found: found.seed,
            asked,
        });
    }
    let mut expected = Tally::default();
    sets.iter().for_each(|set| expected.add(set.facts.tally));
    let settings = Settings {
        size: found.size,
        seed: found.seed,
        ..asked
    };
    // Check the limits again with the size of the data, because a header can claim any size.
    settings.check_limits()?;
    Ok(Prepared {
        sizes: sizes(folder, settings.n, settings.parallel)?,
        settings,
        sets,
        expected,
    })
}

/// Runs the workload and reports it.
///
/// # Errors
/// Returns an error if the threads cannot be started, a data file cannot be read, is foreign,
/// damaged or of another version, or memory has changed.
pub(crate) fn measure(prepared: &Prepared) -> Result<WorkloadReport, CatalogError> {
    let settings = &prepared.settings;
    let workers = Workers::start(settings.threads)?;
    #[cfg(feature = "stats")]
    let counts = crate::stats::Counts::start();
    let (started, before) = (Instant::now(), Used::now());
    let outcome = workers.run(&prepared.sets, settings.parallel)?;
    let (wall, used) = (started.elapsed().as_secs_f64(), before.since());
    compare(&outcome, &prepared.expected)?;
    let mut figures = figures(prepared, &outcome, wall, used);
    #[cfg(feature = "stats")]
    crate::stats::tell(&counts.so_far(), &mut figures);
    overhead(&mut figures);
    Ok(WorkloadReport {
        workload: "catalog".to_owned(),
        parameters: settings.words(),
        operations: outcome.tally.records,
        checksum: format!("{:016x}", outcome.tally.checksum),
        figures,
    })
}

/// Checks that the records read back from memory have the checksum that gen-data stored, and that
/// no mismatch was found when the data were dropped.
fn compare(found: &Outcome, expected: &Tally) -> Result<(), CatalogError> {
    let what = if found.tally != *expected {
        format!(
            "{} records read back from memory have checksum {:016x}, the {} of the data \
             have {:016x}",
            found.tally.records, found.tally.checksum, expected.records, expected.checksum
        )
    } else if found.strays > 0 {
        format!("{} joined entries or items do not match", found.strays)
    } else {
        return Ok(());
    };
    Err(CatalogError::Corrupted { what })
}

fn figures(prepared: &Prepared, outcome: &Outcome, wall: f64, used: Used) -> BTreeMap<String, f64> {
    let cpu = used.user + used.system;
    let records = outcome.tally.records as f64;
    let share = outcome.dropped_elsewhere as f64 / outcome.dropped.max(1) as f64;
    let mut figures = BTreeMap::from([
        ("wall_s".to_owned(), wall),
        ("cpu_s".to_owned(), cpu),
        ("user_s".to_owned(), used.user),
        ("system_s".to_owned(), used.system),
        ("data_bytes".to_owned(), prepared.sizes.data_bytes.as_f64()),
        (
            "peak_requested_bytes".to_owned(),
            prepared.sizes.peak_requested_bytes.as_f64(),
        ),
        ("dropped_elsewhere_share".to_owned(), share),
    ]);
    if cpu > 0.0 {
        figures.insert("operations_per_cpu_s".to_owned(), records / cpu);
    }
    if let Some(bytes) = process::peak_resident() {
        figures.insert("peak_resident_bytes".to_owned(), bytes.as_f64());
    }
    figures
}

/// Adds the ratio of peak resident memory to peak requested bytes, if both are known.
fn overhead(figures: &mut BTreeMap<String, f64>) {
    let peak = |what: &str| figures.get(what).copied().filter(|bytes| *bytes > 0.0);
    let both = (peak("peak_resident_bytes"), peak("peak_requested_bytes"));
    if let (Some(resident), Some(requested)) = both {
        figures.insert("overhead".to_owned(), resident / requested);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_bytes_in_memory_are_the_fault_of_the_allocator() {
        let tally = Tally {
            records: 3,
            checksum: 5,
        };
        let found = |tally, strays| Outcome {
            tally,
            strays,
            ..Outcome::default()
        };
        compare(&found(tally, 0), &tally).expect("the same");
        let other = Tally {
            checksum: 6,
            ..tally
        };
        for wrong in [found(other, 0), found(tally, 1)] {
            let error = compare(&wrong, &tally).expect_err("changed");
            assert_eq!(error.exit_status(), 1);
            assert!(error.to_string().starts_with("the allocator failed: "));
        }
    }

    #[test]
    fn overhead_is_there_only_where_both_peaks_are_known() {
        let mut figures = BTreeMap::from([("peak_resident_bytes".to_owned(), 6.0)]);
        overhead(&mut figures);
        assert_eq!(figures.get("overhead"), None);
        figures.insert("peak_requested_bytes".to_owned(), 4.0);
        overhead(&mut figures);
        assert_eq!(figures.get("overhead"), Some(&1.5));
    }
}
