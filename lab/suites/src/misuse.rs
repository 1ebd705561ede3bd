//! The misuse suite: its kinds, and the tables that are made of what each allocator did about them.

use heapdrome_record::{Ending, MisuseOutcome, MisuseRun, MisuseStage, Table};

use crate::SuiteError;

/// The suite's name.
pub const MISUSE: &str = "misuse";

/// A kind of misuse, as `lab/catalogue/checks` commits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name, and the head of its column.
    pub name: &'static str,
    /// What the program does.
    pub what: &'static str,
}

const fn kind(name: &'static str, what: &'static str) -> Kind {
    Kind { name, what }
}

/// Kinds that stand in one table.
type Group = (&'static str, &'static [Kind]);

const GROUPS: [Group; 6] = [
    (
        "freed twice",
        &[
            kind(
                "twice",
                "a block of 100 bytes is freed twice, nothing between",
            ),
            kind("twice-between", "another block is freed between"),
            kind("twice-later", "10,000 others come and go between"),
            kind(
                "twice-reused",
                "200 others of the size are allocated between, and live",
            ),
            kind("twice-thread", "another thread frees it first"),
            kind("twice-middle", "a block of 9000 bytes"),
            kind("twice-large", "a block of 1 MiB"),
            kind("twice-aligned", "a block of 9000 bytes from posix_memalign"),
        ],
    ),
    (
        "freed, and no block begins there",
        &[
            kind("interior", "16 bytes into a block of 100"),
            kind("interior-odd", "8 bytes into it"),
            kind("interior-middle", "64 bytes into a block of 9000"),
            kind("interior-large", "a page into a block of 1 MiB"),
            kind(
                "interior-aligned",
                "64 bytes into a block from posix_memalign",
            ),
            kind("stack", "an array in a frame"),
            kind("static", "an array of the program's"),
            kind("mapping", "a page of a mapping of the program's own"),
            kind("unmapped", "a page that was unmapped"),
        ],
    ),
    (
        "written out of bounds",
        &[
            kind("over-one", "the byte behind 100 bytes"),
            kind("over-full", "the byte behind 64 bytes"),
            kind("over-zero", "the same, with the zero that ends a string"),
            kind("over-many", "64 bytes behind 64"),
            kind("over-beyond", "one byte, 64 behind the end of 64"),
            kind("over-middle", "20 bytes behind 9000"),
            kind(
                "over-aligned",
                "the byte behind 100 bytes from posix_memalign",
            ),
            kind("over-large", "the byte behind 200,000 bytes"),
            kind("over-large-many", "8192 bytes behind 200,000"),
            kind("under-one", "the byte before 64 bytes"),
            kind("under-many", "16 bytes before 64 bytes"),
            kind("under-large", "the byte before 200,000 bytes"),
            kind("under-large-many", "8192 bytes before 200,000"),
        ],
    ),
    (
        "used after it was freed",
        &[
            kind("read", "64 of 100 bytes are read"),
            kind("read-middle", "64 of 9000 bytes"),
            kind("read-large", "64 bytes of 1 MiB"),
            kind("read-aligned", "64 of 100 bytes from posix_memalign"),
            kind("write", "the first 16 of 100 bytes are written"),
            kind("write-inside", "16 bytes in the middle of 9000"),
            kind("write-large", "16 bytes in the middle of 1 MiB"),
            kind(
                "write-aligned",
                "the first 16 of 100 bytes from posix_memalign",
            ),
            kind(
                "write-reused",
                "the first 16 of 100 bytes, after 200 others of the size were allocated",
            ),
        ],
    ),
    (
        "handed to realloc",
        &[
            kind("re-freed", "a block of 100 bytes that was freed"),
            kind("re-large", "a block of 1 MiB that was freed"),
            kind("re-aligned", "a block from posix_memalign that was freed"),
            kind("re-interior", "16 bytes into a block of 100"),
            kind("re-inner-large", "a page into a block of 1 MiB"),
            kind(
                "re-inner-aligned",
                "64 bytes into a block from posix_memalign",
            ),
            kind("re-stack", "an array in a frame"),
            kind("re-static", "an array of the program's"),
            kind("re-mapping", "a page of a mapping of the program's own"),
            kind("re-unmapped", "a page that was unmapped"),
        ],
    ),
    (
        "deleted as what it is not",
        &[
            kind("delete-twice", "deleted twice"),
            kind("delete-size", "new of 64 bytes, sized delete of 4096"),
            kind("delete-array", "new[] and delete"),
            kind("delete-malloc", "malloc and delete"),
            kind("delete-free", "new and free"),
            kind(
                "delete-aligned",
                "new of an alignment of 256, and plain delete",
            ),
        ],
    ),
];

/// The kinds that `only` names, or all.
///
/// # Errors
/// When there is none of a name.
pub fn kinds(only: &[String]) -> Result<Vec<Kind>, SuiteError> {
    let all: Vec<Kind> = GROUPS
        .iter()
        .flat_map(|(_, kinds)| *kinds)
        .copied()
        .collect();
    let unknown = only
        .iter()
        .find(|name| !all.iter().any(|kind| kind.name == *name));
    if let Some(asked) = unknown {
        let names: Vec<_> = all.iter().map(|kind| kind.name).collect();
        return Err(SuiteError::UnknownCell {
            asked: asked.clone(),
            known: names.join(", "),
        });
    }
    let wanted = |kind: &Kind| only.is_empty() || only.iter().any(|name| name == kind.name);
    Ok(all.into_iter().filter(wanted).collect())
}

/// The score of each allocator, the best first, and a table for each group of kinds.
pub fn misuse_tables(runs: &[MisuseRun]) -> Vec<Table> {
    let allocators = by_score(runs);
    let mut tables = vec![scores(runs, &allocators)];
    tables.extend(
        GROUPS
            .iter()
            .filter_map(|group| of_group(*group, runs, &allocators)),
    );
    tables
}

/// How many runs of an allocator ended in one of these ways.
fn count(runs: &[MisuseRun], allocator: &str, outcomes: &[MisuseOutcome]) -> usize {
    let of = runs.iter().filter(|run| run.allocator == allocator);
    of.filter(|run| outcomes.contains(&run.outcome)).count()
}

const DETECTED: &[MisuseOutcome] = &[MisuseOutcome::Detected, MisuseOutcome::Warned];

/// Most detected first; of equals the one under which the program was stopped more often, then the
/// one with less harm.
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

fn scores(runs: &[MisuseRun], allocators: &[&str]) -> Table {
    let columns: [(&str, &[MisuseOutcome]); 6] = [
        ("detected", DETECTED),
        ("killed", &[MisuseOutcome::Killed]),
        ("no harm seen", &[MisuseOutcome::Unharmed]),
        ("harm", &[MisuseOutcome::Harmed]),
        ("hung", &[MisuseOutcome::Hung]),
        ("not tried", &[MisuseOutcome::NotTried]),
    ];
    let row = |name: &&str| {
        let mut cells = vec![(*name).to_owned()];
        for (_, outcomes) in columns {
            cells.push(count(runs, name, outcomes).to_string());
        }
        let of = runs.iter().filter(|run| run.allocator == **name).count();
        cells.push(of.to_string());
        cells
    };
    let mut heads = vec!["allocator".to_owned()];
    heads.extend(columns.iter().map(|(head, _)| (*head).to_owned()));
    heads.push("kinds".to_owned());
    Table {
        title: "what became of how many kinds of misuse".to_owned(),
        published: None,
        heads,
        rows: allocators.iter().map(row).collect(),
        notes: LEGEND.map(str::to_owned).to_vec(),
    }
}

const LEGEND: [&str; 5] = [
    "detected: the allocator wrote a message. Below: 'misuse' at the misuse itself, 'free' when the \
     blocks concerned were freed, 'later' while other blocks came and went, 'exit' at the end. With a \
     '!', the program had seen harm by then; with a '+', it was not ended",
    "killed: the program was ended without a message; below by the name of the signal: ABRT, ILL and \
     TRAP are how allocators end a program on purpose, SEGV is a guard page or an accident",
    "harm: another block's contents changed, two blocks overlapped, or what a freed block held could \
     still be read",
    "'-': the program went on to its end, and saw no harm",
    "hung: more than 5 s or 1 GiB. '?': the program did not come as far as the misuse",
];

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

/// What the legend explains.
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

/// `SEGV` for `killed by SIGSEGV`.
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
        let tables = misuse_tables(&runs);
        assert_eq!(tables.len(), 3);
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
