//! Limits of a profile, and the meaning of its figures.

use heapdrome_profile::{ProcessProfile, Profile};
use heapdrome_trace::{Beginning, Ending};

use super::facts::FINEST;
use super::names;
use crate::foreign;
use crate::words::{self, count};

/// Maximum number of processes or files that are named for one reason. Further ones are only
/// counted.
const NAMES: usize = 8;

/// Returns the notes, each one or two sentences.
pub(crate) fn notes(profile: &Profile) -> Vec<String> {
    let mut notes = Vec::new();
    if let Ending::CutOff { offset } = profile.ending {
        notes.push(format!(
            "The trace ends without its last part, after byte {}: the recording was interrupted, or the \
             file cut short.",
            words::grouped(offset)
        ));
    }
    notes.extend(gave_up(profile));
    notes.extend(unfinished(profile));
    for bypass in profile.bypassed.iter().take(NAMES) {
        let program = match bypass.known_pid() {
            Some(pid) => names::program(&bypass.program, pid),
            None => "a process".to_owned(),
        };
        let reason = foreign::line(&bypass.reason);
        notes.push(format!("Not recorded: {program}: {reason}."));
    }
    if profile.bypassed.len() > NAMES {
        let more = (profile.bypassed.len() - NAMES) as u64;
        notes.push(format!("Not recorded: {}.", count(more, "more process")));
    }
    notes.extend(unnamed(profile));
    notes.extend(counted(profile));
    notes.extend(brief(profile));
    notes
}

/// Returns a note if some lifetimes are too short to be known.
fn brief(profile: &Profile) -> Option<String> {
    let mut steps = profile.all.counts.lived_time.steps();
    let is_brief = steps.any(|(below, lived)| below <= FINEST && lived.blocks > 0);
    is_brief.then(|| {
        "Lifetimes below a microsecond are not exact, because up to eight recorded calls in a row \
         share one time."
            .to_owned()
    })
}

fn listed<'a>(processes: impl Iterator<Item = &'a ProcessProfile>) -> Option<String> {
    let all: Vec<String> = processes.map(names::process).collect();
    let mut told: Vec<String> = all.iter().take(NAMES).cloned().collect();
    if all.len() > NAMES {
        told.push(count((all.len() - NAMES) as u64, "more process"));
    }
    (!told.is_empty()).then(|| words::listed(&told))
}

fn gave_up(profile: &Profile) -> Option<String> {
    let processes = profile.processes.iter();
    let listed =
        listed(processes.filter(|one| one.finish.as_ref().is_some_and(|end| end.gave_up)))?;
    Some(format!(
        "The recording stopped before the end of {listed}; later operations are not counted."
    ))
}

fn unfinished(profile: &Profile) -> Option<String> {
    let processes = profile.processes.iter();
    let listed = listed(processes.filter(|process| process.finish.is_none()))?;
    Some(format!("The trace lacks the end of {listed}."))
}

/// Returns notes on the code files whose functions have no names.
fn unnamed(profile: &Profile) -> Vec<String> {
    let all = &profile.symbols.notes;
    let told = |note: &heapdrome_symbols::Note| {
        let path = foreign::name(&note.path);
        let trouble = foreign::line(&note.trouble.to_string());
        format!("No names of functions in {path}: {trouble}.")
    };
    let mut notes: Vec<String> = all.iter().take(NAMES).map(told).collect();
    if all.len() > NAMES {
        let more = count((all.len() - NAMES) as u64, "more file");
        notes.push(format!("No names of functions in {more}."));
    }
    notes
}

/// Returns notes on calls and blocks that the figures omit or count in a special way, and on
/// inexact times.
fn counted(profile: &Profile) -> Vec<String> {
    let counts = &profile.all.counts;
    let mut notes = Vec::new();
    let mut note = |number: u64, text: &dyn Fn(String) -> String| {
        if number > 0 {
            notes.push(text(words::grouped(number)));
        }
    };
    note(counts.resizes.calls, &|_| {
        "A block that is resized counts as freed, and its successor as made.".to_owned()
    });
    let forked = |process: &&ProcessProfile| {
        let known = process.process.as_ref();
        known.is_some_and(|known| matches!(known.beginning, Beginning::Forked { .. }))
    };
    let forked = profile.processes.iter().filter(forked).count() as u64;
    note(forked, &|_| {
        "A forked process counts the blocks that it inherited as its own, although their pages are shared \
         until one of the two writes to them."
            .to_owned()
    });
    note(counts.foreign_frees, &|number| {
        format!(
            "Frees of blocks from before the recording: {number}. They change only the number of calls."
        )
    });
    note(counts.repeated_frees, &|number| {
        format!("Frees of blocks that were free already: {number}.")
    });
    if let Ending::Complete(totals) = profile.ending {
        note(totals.repaired, &|number| {
            format!("Operations whose order was repaired: {number}. Their times are not exact.")
        });
    }
    notes
}
