//! Tables of a search for limits.

use heapdrome_report::survival;
use heapdrome_schema::{Bytes, Survival, Table};

use super::slowdown::{self, shown};
use crate::failure::Failure;
use crate::program;

/// Mark that follows a smallest limit that was tried only once.
const ONCE: &str = " *";

/// Returns the tables of the smallest limits, and of every limit that was tried.
pub fn tables(rows: &[Survival], command: &[String]) -> Vec<Table> {
    let command = program::short(command);
    vec![table(rows, &command), slowdown::table(rows, &command)]
}

/// Returns heapdrome's outcome for a search. The report already contains the details.
///
/// # Errors
/// When the command finishes under no allocator, or fails under one of them.
pub fn outcome(rows: &[Survival]) -> Result<(), Failure> {
    let failed: Vec<&Survival> = rows.iter().filter(|row| row.failure.is_some()).collect();
    let Some(first) = failed.first() else {
        return Ok(());
    };
    let why = first.failure.as_deref().unwrap_or_default();
    let told = format!("{}: {why}", first.allocator);
    Err(match failed.len() == rows.len() {
        true => Failure::Baseline(told),
        false => Failure::Entrant(told),
    })
}

/// Returns a table with one row for each allocator. The columns without swap precede those with
/// swap.
fn table(rows: &[Survival], command: &str) -> Table {
    let mut names: Vec<&str> = rows.iter().map(|row| row.allocator.as_str()).collect();
    names.dedup();
    let of = |name: &str, swap: bool| {
        let right = |row: &&Survival| row.allocator == name && row.swap == swap;
        rows.iter().find(right)
    };
    let line = |name: &&str| {
        let (plain, swapped) = (of(name, false), of(name, true));
        let peak = plain.map(|row| row.peak_bytes).filter(|peak| *peak > 0);
        let mut line = vec![(*name).to_owned(), or_dash(peak.map(told))];
        line.extend(cells(plain));
        line.extend(cells(swapped));
        line
    };
    let heads = [
        "allocator",
        "peak",
        "no swap",
        "at 1x",
        "at 1.5x",
        "at 2x",
        "with swap",
        "at 1x",
        "at 1.5x",
        "at 2x",
    ];
    Table {
        title: format!(
            "Smallest memory limit under which {command} finishes, and its time at that limit, at 1.5 \
             times and at twice that, relative to no limit (above 1 is slower)"
        ),
        published: None,
        heads: heads.iter().map(|head| (*head).to_owned()).collect(),
        rows: names.iter().map(line).collect(),
        notes: notes(rows),
    }
}

fn told(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// Formats the smallest limit, and the slowdown at multiples of it.
fn cells(row: Option<&Survival>) -> Vec<String> {
    let smallest = row.and_then(|row| {
        let once = if row.tried_once() { ONCE } else { "" };
        Some(format!("{}{once}", told(row.smallest_bytes?)))
    });
    let slower = |place: usize| {
        let slower = shown(row?, &row?.at.get(place)?.trial)?;
        Some(format!("{:.2}", slower.median))
    };
    let first = or_dash(smallest);
    let rest = (0..3).map(|place| or_dash(slower(place)));
    std::iter::once(first).chain(rest).collect()
}

/// Returns a note if there are too few runs to show a slowdown.
fn too_few(rows: &[Survival]) -> Option<String> {
    let fewest = Survival::FEWEST_RUNS;
    let few = |row: &Survival| (1..fewest).contains(&row.unlimited_s.len());
    rows.iter().any(few).then(|| {
        format!(
            "fewer than {fewest} runs cannot show a slowdown, because times vary by chance; use --runs {fewest}"
        )
    })
}

/// Returns the legend for [`ONCE`], if a smallest limit was tried only once.
fn once(rows: &[Survival]) -> Option<String> {
    let enough = Survival::FEWEST_RUNS;
    rows.iter().any(Survival::tried_once).then(|| {
        format!(
            "* tried once: another run under this limit might not finish; --runs {enough} tries each limit \
             {enough} times"
        )
    })
}

/// Returns notes for the reader: the allocator that needs the least memory, the legend for
/// [`ONCE`], a warning about too few runs, and the failures.
fn notes(rows: &[Survival]) -> Vec<String> {
    let mut notes = survival::needs_least(rows);
    notes.extend(once(rows));
    notes.extend(too_few(rows));
    for row in rows {
        if let Some(why) = &row.failure {
            notes.push(format!(
                "{}, {}: {why}",
                row.allocator,
                survival::kind(row.swap)
            ));
        }
        for at in &row.at {
            if let Some(why) = &at.trial.failure {
                notes.push(format!(
                    "{}, {}, at {} times the smallest limit: {why}",
                    row.allocator,
                    survival::kind(row.swap),
                    at.times
                ));
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_schema::{Multiple, Trial};

    fn row(name: &str, swap: bool, smallest: Option<u64>) -> Survival {
        let at = |times: f64| Multiple {
            times,
            trial: Trial {
                limit_bytes: 1 << 20,
                wall_s: vec![2.0 / times; Survival::FEWEST_RUNS],
                ..Trial::default()
            },
            slower: Some(2.0 / times),
            range: Some([1.0 / times, 3.0 / times]),
        };
        Survival {
            allocator: name.to_owned(),
            swap,
            peak_bytes: 40 << 20,
            unlimited_s: vec![1.0; Survival::FEWEST_RUNS],
            smallest_bytes: smallest,
            at: smallest.map_or_else(Vec::new, |_| [1.0, 1.5, 2.0].map(at).to_vec()),
            trials: smallest.into_iter().map(too_small).collect(),
            failure: smallest.is_none().then(|| "never finishes".to_owned()),
        }
    }

    /// Returns a failed trial whose limit is 5% below `smallest`, and thus bounds the smallest
    /// limit from below.
    fn too_small(smallest: u64) -> Trial {
        Trial {
            limit_bytes: smallest - smallest / 20,
            failure: Some("killed".to_owned()),
            ..Trial::default()
        }
    }

    #[test]
    fn each_allocator_has_one_row_and_the_least_is_named() {
        let rows = [
            row("system", false, Some(30 << 20)),
            row("system", true, Some(3 << 20)),
            row("mine", false, Some(20 << 20)),
        ];
        let table = table(&rows, "true");
        assert_eq!(table.rows.len(), 2);
        assert_eq!(
            table.rows[0],
            [
                "system", "40.0 MiB", "30.0 MiB", "2.00", "1.33", "1.00", "3.00 MiB", "2.00",
                "1.33", "1.00"
            ]
        );
        assert_eq!(table.rows[1][6..], ["-", "-", "-", "-"]);
        assert_eq!(
            table.notes[0],
            "without swap mine needs the least: 20.0 MiB"
        );
        assert_eq!(
            table.notes.len(),
            1,
            "one row with swap is the least of none"
        );
        assert!(outcome(&rows).is_ok());
    }

    #[test]
    fn single_runs_are_marked_and_show_no_slowdown() {
        let mut row = row("system", false, Some(30 << 20));
        row.unlimited_s.truncate(1);
        for at in &mut row.at {
            at.trial.limit_bytes = (30.0 * at.times) as u64 * (1 << 20);
            at.trial.wall_s.truncate(1);
        }
        let table = table(&[row], "true");
        assert_eq!(table.rows[0][2..6], ["30.0 MiB *", "-", "-", "-"]);
        assert!(
            table.notes[0].starts_with("* tried once"),
            "{:?}",
            table.notes
        );
        assert!(table.notes[1].starts_with("fewer than 3 runs"));
    }

    #[test]
    fn what_never_finishes_ends_with_its_own_status() {
        let one = [row("system", false, Some(1 << 20)), row("bad", false, None)];
        assert!(matches!(outcome(&one), Err(Failure::Entrant(_))));
        assert!(matches!(outcome(&one[1..]), Err(Failure::Baseline(_))));
        assert!(
            table(&one, "true")
                .notes
                .iter()
                .any(|note| note.contains("bad, without swap"))
        );
    }
}
