//! Measurements that a check compares: those of the program, and those of its replays.
//!
//! The peak of a process includes its image: its binary, its libraries and its stack. The peak of a
//! replay also includes the replay's own tables. The check subtracts all of these. The remaining
//! memory comes from malloc or from the program's own mappings. A replay of malloc calls cannot
//! reproduce such mappings, so the replay's peak is too low if the program maps much memory.

use heapdrome_replay::{FAULTS, TABLES};
use heapdrome_schema::{EntrantResult, PEAK_RSS, RaceResult, Role, Status};
use heapdrome_statistics::median;

/// Size of a page in bytes.
const PAGE: f64 = 4096.0;

/// Number of file pages that the kernel maps at one page fault by default. These pages fill the
/// 64 KiB that the kernel's setting `fault_around_bytes` contains by default.
const AROUND: f64 = 16.0;

/// Rows of one entrant in the races of the program and of the two replays.
pub(super) struct Entrant<'a> {
    pub(super) name: &'a str,
    pub(super) is_recorded: bool,
    pub(super) program: &'a EntrantResult,
    pub(super) paced: &'a EntrantResult,
    pub(super) dependencies: &'a EntrantResult,
}

/// Entrants with valid rows in all three races of a check, and the names of all other entrants.
pub(super) struct Facts<'a> {
    pub(super) entrants: Vec<Entrant<'a>>,
    left: Vec<&'a str>,
}

impl<'a> Facts<'a> {
    /// Matches the rows of the three races. Leaves out an entrant that lacks a valid row in any of
    /// them.
    pub(super) fn new(
        program: &'a RaceResult,
        paced: &'a RaceResult,
        dependencies: &'a RaceResult,
    ) -> Self {
        let (mut entrants, mut left) = (Vec::new(), Vec::new());
        for row in program.entrants.iter().filter(|row| row.role != Role::Twin) {
            let others = [paced, dependencies].map(|race| own(race, row));
            match others {
                [Some(paced), Some(dependencies)] if row.status == Status::Ok => {
                    entrants.push(Entrant {
                        name: &row.allocator,
                        is_recorded: row.role == Role::Baseline,
                        program: row,
                        paced,
                        dependencies,
                    });
                }
                _ => left.push(row.allocator.as_str()),
            }
        }
        Self { entrants, left }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.entrants.iter().map(|one| one.name)
    }

    /// Returns the rows of the baseline, if they are valid. The trace was recorded under the
    /// baseline's allocator.
    pub(super) fn recorded(&self) -> Option<&Entrant<'a>> {
        self.entrants.iter().find(|one| one.is_recorded)
    }

    /// Returns a remark that lists the entrants left out, if there are any.
    pub(super) fn remarks(&self) -> Vec<String> {
        let left = &self.left;
        let told = format!(
            "not compared, because they have no valid row in at least one race: {}",
            left.join(", ")
        );
        (!left.is_empty()).then_some(told).into_iter().collect()
    }
}

/// Returns the row of another race that corresponds to `row`, if that other row is valid.
fn own<'a>(race: &'a RaceResult, row: &EntrantResult) -> Option<&'a EntrantResult> {
    let mut rows = race.entrants.iter();
    let found = rows.find(|other| match row.role {
        // If the program chooses an allocator itself, the baseline of its race is named
        // differently from that of the replays. Therefore baselines are matched by their role.
        Role::Baseline => other.role == Role::Baseline,
        role => other.role == role && other.allocator == row.allocator,
    });
    found.filter(|other| other.status == Status::Ok)
}

/// Returns the peak memory of each round in bytes, without the image of the process and the tables
/// of a replay. Returns `None` if the image or the peak was not measured.
pub(super) fn heap(row: &EntrantResult) -> Option<Vec<f64>> {
    let image = row.image?.resident().as_f64();
    let tables = row.metrics.get(TABLES).map_or(0.0, |tables| tables.median);
    let peaks = row.samples(PEAK_RSS)?;
    Some(peaks.iter().map(|peak| peak - image - tables).collect())
}

/// Returns the median number of page faults. For a replay, returns the faults that it counted in
/// its operations. For a program, subtracts the faults of its image from all faults. The image
/// causes about one fault for each written page, and one for each group of file pages that the
/// kernel maps together. Returns `None` if the image or the faults of a program were not measured.
pub(super) fn faults(row: &EntrantResult) -> Option<f64> {
    if let Some(counted) = row.metrics.get(FAULTS) {
        return Some(counted.median);
    }
    let image = row.image?;
    let of_image = image.written.as_f64() / PAGE + image.files.as_f64() / PAGE / AROUND;
    Some(median(&row.samples("minor_faults")?)? - of_image)
}
