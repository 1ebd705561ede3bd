//! The relevance of malloc to a command.
//!
//! The proof accepts even a program with its own arena, pool or private allocator, because its few
//! calls of malloc are served. If no allocator makes such a program faster or smaller, this says
//! nothing about the allocators.

use heapdrome_schema::{Bytes, CPU, EntrantResult, ProofSummary, Role, Status, Verdict, WALL};

use crate::entrant::median;
use crate::words::count;

/// Upper estimate of the seconds that a call takes. A pair of malloc and free takes 5 to 50 ns, and
/// a cache miss takes 100 ns.
const CALL: f64 = 100e-9;

/// Upper estimate of the seconds that a page fault takes: 0.5 µs on a physical machine, and 2 µs on
/// a virtual machine, in which the page must be cleared.
const FAULT: f64 = 2e-6;

/// Number of bytes that a page fault makes resident.
const PAGE: f64 = 4096.0;

/// Share of the processor time below which calls and page faults cannot change a verdict.
const SHARE: f64 = 0.01;

/// Anonymous memory of a process that requests none: its stack, its data, and the data of its
/// libraries and its allocator.
const AT_START: f64 = (2 << 20) as f64;

/// Maximum ratio of resident memory to the sum of requested bytes and initial memory that malloc
/// can explain. An allocator's own overhead is far smaller.
const FAR_MORE: f64 = 3.0;

/// Returns remarks on a command that hardly uses malloc, judged by its time and by its memory.
pub fn remarks(entrants: &[EntrantResult]) -> Vec<String> {
    let memory = known(entrants).and_then(|(row, proof)| memory_of_its_own(row, proof));
    let remarks = [little_time_remark(entrants), memory];
    remarks.into_iter().flatten().collect()
}

/// Returns whether malloc hardly affects the time of the command.
pub(crate) fn hardly_matters(entrants: &[EntrantResult]) -> bool {
    little_time_remark(entrants).is_some()
}

/// Returns the baseline and its proof; `None` if the proof is missing or comes from another cell.
fn known(entrants: &[EntrantResult]) -> Option<(&EntrantResult, &ProofSummary)> {
    let baseline = entrants.iter().find(|row| row.role == Role::Baseline)?;
    let proof = baseline.proof.as_ref()?;
    // A proof from another cell counted calls with other parameters, so it does not count here.
    proof.taken_in.is_none().then_some((baseline, proof))
}

/// Returns a remark if malloc hardly affects the command's time.
fn little_time_remark(entrants: &[EntrantResult]) -> Option<String> {
    let (baseline, proof) = known(entrants)?;
    let rivals: Vec<_> = entrants
        .iter()
        .filter(|row| row.role == Role::Rival)
        .filter(|row| row.status == Status::Ok && row.wall_s.is_some())
        .collect();
    little_time(baseline, proof, &rivals)
}

/// Returns the reason why malloc hardly affects time; `None` if it may affect time, or if there are
/// no `rivals`. The reason requires three conditions: there are few calls; few bytes are requested,
/// or all entrants have nearly equal page faults; and no difference in time was shown.
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
            "page faults on the {} that they request take as little",
            Bytes(bytes)
        ),
        false => "page faults are nearly the same under every allocator".to_owned(),
    };
    (hardly && !rivals.is_empty()).then(|| {
        format!(
            "malloc hardly matters for the time of this command: {} take less than 1% of its {cpu:.2} s \
             of processor time, and {why}; it may manage most of its memory itself",
            count(proof.calls, "call"),
        )
    })
}

/// Returns a remark if far more anonymous memory is resident than was ever requested from malloc.
fn memory_of_its_own(baseline: &EntrantResult, proof: &ProofSummary) -> Option<String> {
    let peak = median(baseline.peak_tree_bytes.as_ref())?;
    // Older versions of heapdrome did not count requested bytes, so their results get no such
    // remark.
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

/// Returns whether a difference in time was shown, which proves that a property of the allocator
/// matters.
fn decided(rival: &EntrantResult) -> bool {
    let verdicts = [WALL, CPU].map(|figure| rival.versus_baseline.get(figure));
    let mut verdicts = verdicts.into_iter().flatten();
    verdicts.any(|versus| !matches!(versus.verdict, Verdict::Undecided | Verdict::NotJudged))
}
