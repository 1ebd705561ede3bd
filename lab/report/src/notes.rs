//! Notes on the entrants with valid rows. Each note appears once. If its figure differs between
//! entrants, the note lists the entrants with their figures.

use heapdrome_schema::{EntrantResult, Output, ProofSummary, Series, Unserved, UnservedReason};

use crate::entrant::{cpu, settings};
use crate::foreign;
use crate::words;

/// A note on one entrant: a sentence that may contain a figure. The figure may differ for other
/// entrants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    before: String,
    /// The figure; empty if the sentence contains no figure.
    figure: String,
    after: String,
}

impl Note {
    /// Returns a note without a figure.
    fn plain(text: impl Into<String>) -> Self {
        Self {
            before: text.into(),
            ..Self::default()
        }
    }

    /// Returns a note from a sentence. The figure is the first percentage of the sentence; empty if
    /// there is none.
    fn around_percentage(text: String) -> Self {
        let Some(end) = text.find('%') else {
            return Self::plain(text);
        };
        let before = text[..end].trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        Self {
            before: before.to_owned(),
            figure: text[before.len()..=end].to_owned(),
            after: text[end + 1..].to_owned(),
        }
    }

    /// Returns the whole sentence.
    pub(crate) fn text(&self) -> String {
        format!("{}{}{}", self.before, self.figure, self.after)
    }

    /// Returns whether the two notes are equal, except perhaps for their figures.
    fn says_the_same(&self, other: &Self) -> bool {
        (&self.before, &self.after) == (&other.before, &other.after)
    }
}

/// A note with all its entrants and their figures.
struct Joined {
    note: Note,
    of: Vec<(String, String)>,
}

impl Joined {
    /// Returns the sentence. If the figures differ, the sentence lists each figure after the names
    /// of its entrants.
    fn text(&self) -> String {
        let Note {
            before,
            figure,
            after,
        } = &self.note;
        if self.of.iter().all(|(_, other)| other == figure) {
            return self.note.text();
        }
        let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
        for (name, figure) in &self.of {
            match groups.iter_mut().find(|(known, _)| known == figure) {
                Some((_, names)) => names.push(name.clone()),
                None => groups.push((figure.as_str(), vec![name.clone()])),
            }
        }
        let has_commas =
            |(figure, names): &(&str, Vec<String>)| names.len() > 1 || figure.contains(',');
        let between = match groups.iter().any(has_commas) {
            true => "; ",
            false => ", ",
        };
        let told = groups
            .iter()
            .map(|(figure, names)| format!("{} {figure}", words::listed(names)));
        format!("{before}{}{after}", told.collect::<Vec<_>>().join(between))
    }
}

/// Notes of a race, in the order in which they first occur.
#[derive(Default)]
pub(crate) struct Notes(Vec<Joined>);

impl Notes {
    /// Adds the notes on this entrant and returns their numbers, which begin at 1. Entrants share
    /// notes that differ only in their figures.
    pub(crate) fn on(&mut self, entrant: &EntrantResult) -> Vec<usize> {
        let name = foreign::name(&entrant.allocator);
        let notes = on_entrant(entrant).into_iter();
        notes.map(|note| self.mark(&name, note)).collect()
    }

    fn mark(&mut self, name: &str, note: Note) -> usize {
        let of = (name.to_owned(), note.figure.clone());
        let known = self.0.iter().position(|old| old.note.says_the_same(&note));
        match known {
            Some(place) => {
                self.0[place].of.push(of);
                place + 1
            }
            None => {
                self.0.push(Joined { note, of: vec![of] });
                self.0.len()
            }
        }
    }

    /// Returns the sentences of the notes. The first has number 1.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.iter().map(Joined::text).collect()
    }
}

fn on_entrant(entrant: &EntrantResult) -> Vec<Note> {
    let mut notes = Vec::new();
    if !entrant.settings.is_empty() {
        notes.push(Note::plain(format!("runs with {}", settings(entrant))));
    }
    match &entrant.proof {
        Some(proof) => notes.extend(on_proof(proof)),
        None => notes.push(Note::plain("not proven which library served malloc")),
    }
    if entrant.output == Output::Different {
        notes.push(Note::plain(
            "its standard output differs from the baseline's; check its result",
        ));
    }
    notes.extend(outliers("wall", entrant.wall_s.as_ref()));
    notes.extend(outliers("processor", cpu(entrant).as_ref()));
    let faults = entrant.known_faults.iter();
    notes.extend(faults.map(|fault| Note::plain(format!("known fault: {}", foreign::line(fault)))));
    notes.extend(detached(entrant));
    notes
}

/// Returns a note on programs that outlived the command.
fn detached(entrant: &EntrantResult) -> Option<Note> {
    let names = entrant.detached.iter();
    let mut names: Vec<_> = names.map(|name| foreign::line(name)).collect();
    names.sort();
    names.dedup();
    let told = format!("outlived the command and was stopped: {}", names.join(", "));
    (!names.is_empty()).then(|| Note::plain(told))
}

/// Returns the notes on a proof: on unserved programs, on warnings, and on a proof from another
/// cell.
pub(crate) fn on_proof(proof: &ProofSummary) -> Vec<Note> {
    let mut notes: Vec<Note> = proof.unserved.iter().map(unserved).collect();
    let warnings = proof.warnings.iter();
    notes.extend(warnings.map(|warning| Note::around_percentage(foreign::line(warning))));
    notes.extend(proof.taken_in.iter().map(|cell| {
        Note::plain(format!(
            "the proof and its counts come from {}, with the same program, library and environment",
            foreign::line(cell)
        ))
    }));
    notes
}

/// Returns a note on a program that the allocator did not serve.
fn unserved(unserved: &Unserved) -> Note {
    let served_by = unserved.served_by.as_ref();
    let by = served_by.map_or_else(String::new, |path| {
        format!(", served by {}", foreign::line(path))
    });
    Note {
        before: format!("not served: {} (", foreign::line(&unserved.program)),
        figure: format!(
            "{}, {} of the processor time",
            words::count(unserved.processes, "process"),
            words::fraction(unserved.cpu_share)
        ),
        after: format!(
            "{by}): {}; {}",
            reason(unserved.reason),
            foreign::line(&unserved.advice)
        ),
    }
}

/// Returns the reason why a program was not served, in words.
pub(crate) fn reason(reason: UnservedReason) -> &'static str {
    match reason {
        UnservedReason::StaticBinary => "a static binary, which loads nothing",
        UnservedReason::RaisedRights => "runs with elevated privileges, so LD_PRELOAD is ignored",
        UnservedReason::BundledAllocator => "contains its own allocator",
        UnservedReason::ClearedEnvironment => "was started with a cleared environment",
        UnservedReason::DeepBind => "libraries loaded with RTLD_DEEPBIND use their own malloc",
        UnservedReason::OtherMachine => "built for another machine or word size",
        UnservedReason::NotLoaded => "the loader did not load the library",
    }
}

/// Returns a note on the outliers of a time; `None` if there are none.
fn outliers(of: &str, times: Option<&Series>) -> Option<Note> {
    let times = times?;
    let far = times.outliers.iter();
    let far = far.filter_map(|place| times.samples.get(*place));
    let distance = |time: &f64| (time - times.median).abs();
    let farthest = far
        .copied()
        .max_by(|one, other| distance(one).total_cmp(&distance(other)))?;
    // From ten rounds on, the estimate is trimmed, so few outliers hardly widen the interval; see
    // docs/statistics.md.
    let effect = match times.samples.len() {
        ..10 => "kept; with few rounds they widen the interval",
        _ => "kept",
    };
    Some(Note {
        before: format!("outliers in {of} time: "),
        figure: format!(
            "{} of {}, farthest {}",
            times.outliers.len(),
            times.samples.len(),
            heapdrome_schema::Nanoseconds::from_seconds(farthest),
        ),
        after: format!(" ({effect})"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(warnings: &[(&str, &str)]) -> (Vec<usize>, Vec<String>) {
        let mut notes = Notes::default();
        let marks = warnings
            .iter()
            .map(|(name, text)| notes.mark(name, Note::around_percentage((*text).to_owned())));
        (marks.collect(), notes.texts())
    }

    #[test]
    fn notes_that_differ_by_their_figure_are_one_that_names_all_of_them() {
        let (marks, told) = texts(&[
            ("system", "CPython (44% of the time) serves itself"),
            ("mimalloc2", "CPython (37% of the time) serves itself"),
            ("jemalloc", "CPython (30.5% of the time) serves itself"),
            ("jemalloc", "something else"),
        ]);
        assert_eq!(marks, [1, 1, 1, 2]);
        let joined =
            "CPython (system 44%, mimalloc2 37%, jemalloc 30.5% of the time) serves itself";
        assert_eq!(told, [joined, "something else"]);
    }

    #[test]
    fn those_with_the_same_figure_share_it() {
        let (_, told) = texts(&[("a", "5% far"), ("b", "6% far"), ("c", "5% far")]);
        assert_eq!(told, ["a and c 5%; b 6% far"]);
        let (marks, told) = texts(&[("a", "5% far"), ("b", "5% far")]);
        assert_eq!((marks, told), (vec![1, 1], vec!["5% far".to_owned()]));
    }

    #[test]
    fn a_sign_without_a_number_is_no_figure() {
        for text in [
            "",
            "%",
            "a % b",
            "/tmp/a%b also carries an allocator",
            "100%",
        ] {
            assert_eq!(Note::around_percentage(text.to_owned()).text(), text);
        }
        let (marks, _) = texts(&[("a", "/a%b"), ("b", "/a%b")]);
        assert_eq!(marks, [1, 1]);
    }
}
