//! Whether malloc can matter for a command at all.
//!
//! A program with an arena, a pool or a private allocator of its own is proven to be served, since
//! its few calls are. That no allocator is faster or smaller then says nothing about allocators.

use heapdrome_schema::{Bytes, CPU, EntrantResult, ProofSummary, Role, Status, Verdict, WALL};

use crate::entrant::median;
use crate::words::count;

/// Seconds that a call takes at most, as a rule: allocators take 5 to 50 ns for a pair of malloc
/// and free, and a miss of the cache is 100 ns.
const CALL: f64 = 100e-9;

/// Seconds that a page fault takes at most, as a rule: half a microsecond where the machine is
/// real, and 2 where it is virtual and the page must be cleared.
const FAULT: f64 = 2e-6;

/// Bytes that a page fault makes resident.
const PAGE: f64 = 4096.0;

/// Share of the processor time below which neither can change a verdict.
const SHARE: f64 = 0.01;

/// Anonymous memory of a process that asks for nothing: its stack, its data, its libraries' and the
/// allocator's own.
const AT_START: f64 = (2 << 20) as f64;

/// How many times the requested bytes, and what processes have at their start, must be resident
/// before the rest cannot come from malloc. An allocator's own overhead stays far below.
const FAR_MORE: f64 = 3.0;

/// Remarks on a command that hardly uses malloc, by its time and by its memory.
pub fn remarks(entrants: &[EntrantResult]) -> Vec<String> {
    let memory = known(entrants).and_then(|(row, proof)| memory_of_its_own(row, proof));
    let remarks = [little_time_remark(entrants), memory];
    remarks.into_iter().flatten().collect()
}

/// Whether malloc hardly matters for the time of the command.
pub(crate) fn hardly_matters(entrants: &[EntrantResult]) -> bool {
    little_time_remark(entrants).is_some()
}

/// The baseline, and a proof that counted its calls.
fn known(entrants: &[EntrantResult]) -> Option<(&EntrantResult, &ProofSummary)> {
    let baseline = entrants.iter().find(|row| row.role == Role::Baseline)?;
    let proof = baseline.proof.as_ref()?;
    // The calls of another cell are those of other parameters.
    proof.taken_in.is_none().then_some((baseline, proof))
}

/// A remark on a command for whose time malloc hardly matters; `None` where it may matter.
fn little_time_remark(entrants: &[EntrantResult]) -> Option<String> {
    let (baseline, proof) = known(entrants)?;
    let rivals: Vec<_> = entrants
        .iter()
        .filter(|row| row.role == Role::Rival)
        .filter(|row| row.status == Status::Ok && row.wall_s.is_some())
        .collect();
    little_time(baseline, proof, &rivals)
}

/// Calls are too few to matter, and so are the bytes that they ask for, or no entrant takes more
/// page faults than another; and no difference in time was shown.
fn little_time(
    baseline: &EntrantResult,
    proof: &ProofSummary,
    rivals: &[&EntrantResult],
) -> Option<String> {
    let cpu = median(baseline.user_s.as_ref())? + median(baseline.system_s.as_ref())?;
    let faults = median(baseline.minor_faults.as_ref())?;
    let is_little = |seconds: f64| seconds < SHARE * cpu;
    let same_faults = |rival: &&EntrantResult| {
        let theirs = median(rival.minor_faults.as_ref()).unwrap_or(f64::INFINITY);
        is_little((theirs - faults).abs() * FAULT)
    };
    let bytes = proof.requested_bytes;
    let few_bytes = bytes > 0 && is_little(bytes as f64 / PAGE * FAULT);
    let hardly = is_little(proof.calls as f64 * CALL)
        && (few_bytes || rivals.iter().all(same_faults))
        && !rivals.iter().any(|rival| decided(rival));
    let why = match few_bytes {
        true => format!(
            "page faults on the {} that they ask for take as little",
            Bytes(bytes)
        ),
        false => "page faults are nearly the same under every entrant".to_owned(),
    };
    (hardly && !rivals.is_empty()).then(|| {
        format!(
            "malloc hardly matters for the time of this command: {} take less than 1% of its {cpu:.2} s \
             of processor time, and {why}; it may manage most of its memory itself",
            count(proof.calls, "call"),
        )
    })
}

/// Far more anonymous memory is resident than was ever requested from malloc.
fn memory_of_its_own(baseline: &EntrantResult, proof: &ProofSummary) -> Option<String> {
    let peak = median(baseline.peak_tree_bytes.as_ref())?;
    // An older heapdrome did not count them.
    let requested = Some(proof.requested_bytes).filter(|bytes| *bytes > 0)?;
    let explained = requested as f64 + proof.processes as f64 * AT_START;
    (peak > FAR_MORE * explained).then(|| {
        format!(
            "far more memory is resident than was ever requested from malloc: {} at the peak, and {} \
             requested in all; the command manages most of its memory itself, where no preloaded \
             allocator serves it",
            Bytes(peak as u64),
            Bytes(requested),
        )
    })
}

/// Whether a difference in time was shown: then something of the allocator does matter.
fn decided(rival: &EntrantResult) -> bool {
    let verdicts = [WALL, CPU].map(|figure| rival.versus_baseline.get(figure));
    let mut verdicts = verdicts.into_iter().flatten();
    verdicts.any(|versus| versus.verdict != Verdict::Undecided)
}
