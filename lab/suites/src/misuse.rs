//! The misuse suite: its kinds, and the tables of each allocator's responses.

mod kind;

use std::fmt;
use std::time::Duration;

use heapdrome_schema::{Bytes, Ending, MisuseOutcome, MisuseRun, MisuseStage, Nanoseconds, Table};

use kind::{GROUPS, Group};
pub use kind::{Kind, kinds};

/// The name of the misuse suite.
pub const MISUSE: &str = "misuse";

/// Returns a table of scores, the best allocator first, and a table for each group of kinds in
/// `runs`. `time` and `memory` are the limits of each program.
pub fn misuse_tables(runs: &[MisuseRun], time: Duration, memory: Bytes) -> Vec<Table> {
    let allocators = by_score(runs);
    let (heads, rows) = scores(runs);
    let mut tables = vec![Table {
        title: "number of misuse kinds by outcome".to_owned(),
        published: None,
        heads,
        rows,
        notes: legend(time, memory),
    }];
    tables.extend(
        GROUPS
            .iter()
            .filter_map(|group| of_group(*group, runs, &allocators)),
    );
    tables
}

/// Returns the number of an allocator's runs that had one of these outcomes.
fn count(runs: &[MisuseRun], allocator: &str, outcomes: &[MisuseOutcome]) -> usize {
    let of = runs.iter().filter(|run| run.allocator == allocator);
    of.filter(|run| outcomes.contains(&run.outcome)).count()
}

const DETECTED: &[MisuseOutcome] = &[MisuseOutcome::Detected, MisuseOutcome::Warned];

/// Returns the allocators, the best first: those with the most detected kinds, then those with the
/// most kinds for which the program was killed, then those with the fewest harmful kinds.
fn by_score(runs: &[MisuseRun]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.allocator.as_str()) {
            names.push(&run.allocator);
        }
    }
    let key = |name: &&str| {
        let detected = count(runs, name, DETECTED);
        let killed = count(runs, name, &[MisuseOutcome::Killed]);
        let harmed = count(runs, name, &[MisuseOutcome::Harmed]);
        (std::cmp::Reverse((detected, killed)), harmed)
    };
    names.sort_by_key(key);
    names
}

/// Number of kinds of misuse that an allocator caught, and number of kinds that were run with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caught {
    detected: usize,
    killed: usize,
    kinds: usize,
}

impl Caught {
    /// Returns the number of kinds that the allocator detected or for which the program was killed.
    pub(crate) fn all(self) -> usize {
        self.detected + self.killed
    }
}

impl fmt::Display for Caught {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            detected, kinds, ..
        } = self;
        write!(
            out,
            "{} of {kinds} kinds, {detected} with a message",
            self.all()
        )
    }
}

/// Returns the numbers of kinds that an allocator caught and that were run with it; `None` if none
/// was run.
pub(crate) fn caught(runs: &[MisuseRun], allocator: &str) -> Option<Caught> {
    let kinds = runs.iter().filter(|run| run.allocator == allocator).count();
    (kinds > 0).then(|| Caught {
        detected: count(runs, allocator, DETECTED),
        killed: count(runs, allocator, &[MisuseOutcome::Killed]),
        kinds,
    })
}

/// Returns the heads and the rows of a table: the number of kinds by outcome under each allocator,
/// the best allocator first.
pub(crate) fn scores(runs: &[MisuseRun]) -> (Vec<String>, Vec<Vec<String>>) {
    let columns: [(&str, &[MisuseOutcome]); 6] = [
        ("detected", DETECTED),
        ("killed", &[MisuseOutcome::Killed]),
        ("no harm seen", &[MisuseOutcome::Unharmed]),
        ("harm", &[MisuseOutcome::Harmed]),
        ("hung", &[MisuseOutcome::Hung]),
        ("not tried", &[MisuseOutcome::NotTried]),
    ];
    let row = |name: &str| {
        let mut cells = vec![name.to_owned()];
        for (_, outcomes) in columns {
            cells.push(count(runs, name, outcomes).to_string());
        }
        let of = runs.iter().filter(|run| run.allocator == name).count();
        cells.push(of.to_string());
        cells
    };
    let mut heads = vec!["allocator".to_owned()];
    heads.extend(columns.iter().map(|(head, _)| (*head).to_owned()));
    heads.push("kinds".to_owned());
    (heads, by_score(runs).into_iter().map(row).collect())
}

const LEGEND: [&str; 4] = [
    "detected: the allocator wrote a message. The table shows when: 'misuse' at the misuse itself, 'free' \
     when the blocks concerned were freed, 'later' while other blocks were allocated and freed, 'exit' \
     at the end. '!': the program had already seen harm; '+': the program was not ended",
    "killed: the program was ended without a message. The table shows the signal: allocators end a \
     program on purpose with ABRT, ILL or TRAP; SEGV is a guard page or an accident",
    "harm: another block's contents changed, two blocks overlapped, or the contents of a freed \
     block could still be read",
    "'-': the program ran to its end and saw no harm",
];

fn legend(time: Duration, memory: Bytes) -> Vec<String> {
    let time = Nanoseconds::from(time);
    let mut lines = LEGEND.map(str::to_owned).to_vec();
    lines.push(format!(
        "hung: more than {time} or {memory}. '?': the program did not reach the misuse"
    ));
    lines
}

fn of_group((title, kinds): Group, runs: &[MisuseRun], allocators: &[&str]) -> Option<Table> {
    let tried = |kind: &&Kind| runs.iter().any(|run| run.kind == kind.name);
    let kinds: Vec<&Kind> = kinds.iter().filter(tried).collect();
    if kinds.is_empty() {
        return None;
    }
    let row = |name: &&str| {
        let run_of = |kind: &&Kind| {
            let mut of = runs.iter();
            of.find(|run| run.allocator == **name && run.kind == kind.name)
        };
        let cells = kinds.iter().map(|kind| run_of(kind).map(cell));
        let mut row = vec![(*name).to_owned()];
        row.extend(cells.map(Option::unwrap_or_default));
        row
    };
    let mut heads = vec!["allocator".to_owned()];
    heads.extend(kinds.iter().map(|kind| kind.name.to_owned()));
    let note = |kind: &&Kind| format!("{}: {}", kind.name, kind.what);
    Some(Table {
        title: title.to_owned(),
        published: None,
        heads,
        rows: allocators.iter().map(row).collect(),
        notes: kinds.iter().map(note).collect(),
    })
}

/// Formats the outcome of a run in the words of the legend.
fn cell(run: &MisuseRun) -> String {
    let harmed = if run.harm.is_some() { "!" } else { "" };
    let stage = match run.stage {
        Some(MisuseStage::Misuse) => "misuse",
        Some(MisuseStage::Free) => "free",
        Some(MisuseStage::Later) => "later",
        Some(MisuseStage::Exit) => "exit",
        None => "?",
    };
    match run.outcome {
        MisuseOutcome::Detected => format!("{stage}{harmed}"),
        MisuseOutcome::Warned => format!("{stage}{harmed}+"),
        MisuseOutcome::Killed => format!("{}{harmed}", short(run.ending)),
        MisuseOutcome::Harmed => "harm".to_owned(),
        MisuseOutcome::Unharmed => "-".to_owned(),
        MisuseOutcome::Hung => "hung".to_owned(),
        MisuseOutcome::NotTried => "?".to_owned(),
    }
}

/// Shortens `killed by SIGSEGV` to `SEGV`, and any other ending to `status` with its last word.
fn short(ending: Ending) -> String {
    let text = ending.to_string();
    let last = text.rsplit(' ').next().unwrap_or_default();
    match ending {
        Ending::Killed(_) => last.trim_start_matches("SIG").to_owned(),
        _ => format!("status {last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(allocator: &str, kind: &str, outcome: MisuseOutcome, ending: Ending) -> MisuseRun {
        MisuseRun {
            allocator: allocator.to_owned(),
            kind: kind.to_owned(),
            outcome,
            stage: Some(MisuseStage::Later),
            ending,
            said: None,
            harm: None,
        }
    }

    #[test]
    fn the_documentation_says_how_many_kinds_there_are() {
        let page = include_str!("../../../docs/suites.md");
        let count = kinds(&[]).expect("all").len();
        assert!(page.contains(&format!("commits {count} kinds of misuse")));
    }

    #[test]
    fn no_two_kinds_have_one_name() {
        let mut names: Vec<_> = kinds(&[]).expect("all").iter().map(|it| it.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_best_score_stands_first_and_each_outcome_has_its_word() {
        let (ended, aborted) = (Ending::Exited(0), Ending::Killed(6));
        let mut warned = run("good", "stack", MisuseOutcome::Warned, ended);
        warned.harm = Some("overlap".to_owned());
        let runs = [
            run("poor", "twice", MisuseOutcome::Harmed, ended),
            run("poor", "stack", MisuseOutcome::Killed, Ending::Killed(11)),
            run("good", "twice", MisuseOutcome::Detected, aborted),
            warned,
            run("odd", "twice", MisuseOutcome::Hung, Ending::TimedOut),
            run("odd", "stack", MisuseOutcome::Killed, Ending::Exited(7)),
        ];
        let tables = misuse_tables(&runs, Duration::from_secs(7), Bytes(1 << 20));
        assert_eq!(tables.len(), 3);
        assert!(tables[0].notes[4].starts_with("hung: more than 7.00 s or 1.00 MiB."));
        let row = |table: usize, row: usize| tables[table].rows[row].join(" ");
        assert_eq!(row(0, 0), "good 2 0 0 0 0 0 2");
        assert_eq!(row(0, 1), "odd 0 1 0 0 1 0 2");
        assert_eq!(row(0, 2), "poor 0 1 0 1 0 0 2");
        assert_eq!(tables[1].heads, ["allocator", "twice"]);
        assert_eq!(
            (row(1, 0), row(2, 0)),
            ("good later".into(), "good later!+".into())
        );
        assert_eq!(
            (row(1, 1), row(2, 1)),
            ("odd hung".into(), "odd status 7".into())
        );
        assert_eq!(
            (row(1, 2), row(2, 2)),
            ("poor harm".into(), "poor SEGV".into())
        );
    }
}
