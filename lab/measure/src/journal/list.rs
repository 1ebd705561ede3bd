//! Lists of races, read from their journals.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use heapdrome_schema::{JournalLine, Plan};

use super::{FILE_NAME, is_locked, read};
use crate::state::State;

/// Summary of a race, read from its journal.
#[derive(Clone, Debug, PartialEq)]
pub struct RaceSummary {
    /// Folder of the race.
    pub folder: PathBuf,
    /// Time at which the race's journal was last written.
    pub written: SystemTime,
    /// Plan of the race.
    pub plan: Box<Plan>,
    /// Number of recorded runs.
    pub runs: usize,
    /// Number of complete rounds.
    pub rounds: u32,
    /// Whether the journal records the end of the race.
    pub finished: bool,
}

/// Returns the races in the folder `races`, the most recently written first. Unreadable races are
/// omitted.
pub fn list(races: &Path) -> Vec<RaceSummary> {
    by_age(races).filter_map(summary).collect()
}

/// Returns the most recently written race in `races` for which `wanted` returns true and that no
/// heapdrome is running. Older journals are not read.
pub fn latest(races: &Path, wanted: impl Fn(&RaceSummary) -> bool) -> Option<RaceSummary> {
    let free = |race: &RaceSummary| !is_locked(&race.folder.join(FILE_NAME));
    by_age(races)
        .filter_map(summary)
        .find(|race| wanted(race) && free(race))
}

/// Returns the folders of races and the time of the last write to each journal, the most recent
/// first.
fn by_age(races: &Path) -> impl Iterator<Item = (SystemTime, PathBuf)> + use<> {
    let folders = std::fs::read_dir(races).into_iter().flatten().flatten();
    let dated = folders.filter_map(|folder| {
        let folder = folder.path();
        let journal = std::fs::metadata(folder.join(FILE_NAME)).ok()?;
        Some((journal.modified().ok()?, folder))
    });
    let mut dated: Vec<_> = dated.collect();
    dated.sort_by(|one, other| other.cmp(one));
    dated.into_iter()
}

fn summary((written, folder): (SystemTime, PathBuf)) -> Option<RaceSummary> {
    let (lines, _) = read(&folder.join(FILE_NAME)).ok()?;
    let mut lines = lines.into_iter();
    let JournalLine::Plan { plan, machine, .. } = lines.next()? else {
        return None;
    };
    let mut state = State::new(*plan, *machine);
    lines.for_each(|line| state.apply(line));
    Some(RaceSummary {
        folder,
        written,
        runs: state.runs.len(),
        rounds: state.complete_rounds(),
        finished: state.finished.is_some(),
        plan: Box::new(state.plan),
    })
}

/// Returns the unfinished races in `races` that no heapdrome is running, the most recently written
/// first.
pub fn unfinished(races: &Path) -> Vec<RaceSummary> {
    list(races)
        .into_iter()
        .filter(|race| !race.finished && !is_locked(&race.folder.join(FILE_NAME)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::Duration;

    use crate::journal::Journal;
    use crate::journal::tests::{finished, first};

    /// Sets the modification time of a race's journal, in seconds after the epoch.
    fn written_at(race: &Path, seconds: u64) {
        let journal = File::options().write(true).open(race.join(FILE_NAME));
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        journal
            .and_then(|journal| journal.set_modified(then))
            .expect("it can be dated");
    }

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
            drop(journal);
            written_at(&races.path().join(name), name.parse().expect("a number"));
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
    fn the_latest_is_the_one_that_is_wanted_and_does_not_run() {
        let races = tempfile::tempdir().expect("a folder");
        let mut journals = Vec::new();
        for name in ["1", "2", "3"] {
            let journal = Journal::create(&races.path().join(name), &first());
            journals.push(journal.expect("a journal"));
        }
        journals.truncate(1);
        let found = |name: &str| {
            let found = latest(races.path(), |race| !race.folder.ends_with(name))?;
            found.folder.file_name()?.to_str().map(str::to_owned)
        };
        assert_eq!(found("none").as_deref(), Some("3"));
        assert_eq!(found("3").as_deref(), Some("2"));
        assert_eq!(
            latest(races.path(), |race| race.folder.ends_with("1")),
            None
        );
    }

    #[test]
    fn a_race_that_runs_is_not_taken_for_one_to_resume() {
        let races = tempfile::tempdir().expect("a folder");
        let ended = races.path().join("ended");
        drop(Journal::create(&ended, &first()).expect("a journal"));
        written_at(&ended, 1);
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
