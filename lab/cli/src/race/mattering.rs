//! Whether malloc can matter for the time of a command at all.
//!
//! A program with an arena, a pool or a private allocator of its own is proven to be served, since its
//! few calls are. That no allocator is faster then says nothing about allocators.

use heapdrome_record::{EntrantResult, Role, Series, Status, Verdict};
use heapdrome_report::count;

use super::figures::{CPU, WALL};

/// Seconds that a call takes at most, as a rule: allocators take 5 to 50 ns for a pair of malloc and
/// free, and a miss of the cache is 100 ns.
const CALL: f64 = 100e-9;

/// Seconds that a page fault takes at most, as a rule: half a microsecond where the machine is real,
/// and 2 where it is virtual and the page must be cleared.
const FAULT: f64 = 2e-6;

/// Share of the processor time below which neither can change a verdict.
const SHARE: f64 = 0.01;

/// A remark where calls are too few to matter, no entrant takes more page faults than another, and
/// no difference in time was shown.
pub fn remark(entrants: &[EntrantResult]) -> Option<String> {
    let baseline = entrants.iter().find(|row| row.role == Role::Baseline)?;
    let rivals = || {
        let rivals = entrants.iter().filter(|row| row.role == Role::Rival);
        rivals.filter(|row| row.status == Status::Ok && row.wall_s.is_some())
    };
    let proof = baseline.proof.as_ref();
    let calls = proof.filter(|proof| proof.taken_in.is_none())?.calls;
    let cpu = median(&baseline.user_s)? + median(&baseline.system_s)?;
    let faults = median(&baseline.minor_faults)?;
    let same_faults = |rival: &EntrantResult| {
        let theirs = median(&rival.minor_faults).unwrap_or(f64::INFINITY);
        (theirs - faults).abs() * FAULT < SHARE * cpu
    };
    let share = calls as f64 * CALL / cpu;
    let hardly = share < SHARE && rivals().all(|rival| same_faults(rival) && !decided(rival));
    (hardly && rivals().next().is_some()).then(|| {
        format!(
            "malloc hardly matters for the time of this command: {} take less than 1% of its {:.2} s \
             of processor time, and page faults are nearly the same under every entrant; it may \
             manage most of its memory itself",
            count(calls, "call"),
            cpu
        )
    })
}

fn median(series: &Option<Series>) -> Option<f64> {
    series.as_ref().map(|series| series.median)
}

/// Whether a difference in time was shown: then something of the allocator does matter.
fn decided(rival: &EntrantResult) -> bool {
    let verdicts = [WALL, CPU].map(|figure| rival.versus_baseline.get(figure.name));
    let mut verdicts = verdicts.into_iter().flatten();
    verdicts.any(|versus| versus.verdict != Verdict::Undecided)
}
