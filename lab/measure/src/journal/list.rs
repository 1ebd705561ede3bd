//! The races that journals tell of.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use heapdrome_record::{JournalLine, Plan};

use super::{FILE_NAME, is_locked, read};
use crate::state::State;

/// A race as its journal tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct RaceSummary {
    /// The race's folder.
    pub folder: PathBuf,
    /// When its journal was last written.
    pub written: SystemTime,
    /// What it was going to do.
    pub plan: Box<Plan>,
    /// The runs that are recorded.
    pub runs: usize,
    /// The rounds that are whole.
    pub rounds: u32,
    /// Whether the race ended by itself.
    pub finished: bool,
}

/// The races whose folders lie in `races`, the latest first; what cannot be read is left out.
pub fn list(races: &Path) -> Vec<RaceSummary> {
    let Ok(folders) = std::fs::read_dir(races) else {
        return Vec::new();
    };
    let mut found: Vec<_> = folders
        .flatten()
        .filter_map(|folder| summary(&folder.path()))
        .collect();
    found.sort_by(|one, other| {
        other
            .written
            .cmp(&one.written)
            .then(other.folder.cmp(&one.folder))
    });
    found
}

fn summary(folder: &Path) -> Option<RaceSummary> {
    let path = folder.join(FILE_NAME);
    let written = std::fs::metadata(&path).ok()?.modified().ok()?;
    let (lines, _) = read(&path).ok()?;
    let mut lines = lines.into_iter();
    let JournalLine::Plan { plan, machine, .. } = lines.next()? else {
        return None;
    };
    let mut state = State::new(*plan, *machine);
    lines.for_each(|line| state.apply(line));
    Some(RaceSummary {
        folder: folder.to_owned(),
        written,
        runs: state.runs.len(),
        rounds: state.complete_rounds(),
        finished: state.finished.is_some(),
        plan: Box::new(state.plan),
    })
}

/// The races in `races` that are not finished and that no heapdrome runs, the latest first.
pub fn unfinished(races: &Path) -> Vec<RaceSummary> {
    list(races)
        .into_iter()
        .filter(|race| !race.finished && !is_locked(&race.folder.join(FILE_NAME)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Journal;
    use crate::journal::tests::{finished, first};

    #[test]
    fn races_are_listed_the_latest_first() {
        let races = tempfile::tempdir().expect("a folder");
        assert!(unfinished(races.path()).is_empty());
        for name in ["1", "2", "3"] {
            let mut journal =
                Journal::create(&races.path().join(name), &first()).expect("a journal");
            if name == "3" {
                journal.append(&finished("all rounds")).expect("a line");
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        std::fs::create_dir(races.path().join("empty")).expect("a folder");
        let names: Vec<_> = list(races.path())
            .into_iter()
            .map(|race| race.folder)
            .collect();
        assert_eq!(names, ["3", "2", "1"].map(|name| races.path().join(name)));
        let latest = unfinished(races.path()).remove(0);
        assert_eq!(latest.folder, races.path().join("2"));
        assert_eq!((latest.runs, latest.rounds), (0, 0));
    }

    #[test]
    fn a_race_that_runs_is_not_taken_for_one_to_resume() {
        let races = tempfile::tempdir().expect("a folder");
        let ended = races.path().join("ended");
        drop(Journal::create(&ended, &first()).expect("a journal"));
        std::thread::sleep(std::time::Duration::from_millis(20));
        let running = Journal::create(&races.path().join("running"), &first());
        let running = running.expect("a journal");
        assert_eq!(list(races.path()).len(), 2);
        let latest = unfinished(races.path()).remove(0);
        assert_eq!(latest.folder, ended);
        drop(running);
        let latest = unfinished(races.path()).remove(0);
        assert_eq!(latest.folder, races.path().join("running"));
    }
}
