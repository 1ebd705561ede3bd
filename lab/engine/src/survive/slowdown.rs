//! Slowdown of a command under each limit that was tried: a table with bars, and figures for a
//! spreadsheet.

use heapdrome_report::survival::kind;
use heapdrome_schema::{Bytes, Survival, Table, Trial};
use heapdrome_statistics::{Slowdown, slowdown};

/// Number of marks in a bar that represent the time without a limit.
const MARKS: f64 = 4.0;
/// Number of marks in the longest bar.
const LONGEST: usize = 40;

/// Returns the slowdown of the runs under a limit; `None` if a run did not finish, or if there are
/// no runs to compare.
fn measured(row: &Survival, trial: &Trial) -> Option<Slowdown> {
    slowdown(&trial.wall_s, &row.unlimited_s).filter(|_| trial.survived())
}

/// Returns the slowdown of `trial`, if there are enough runs to show one.
pub fn shown(row: &Survival, trial: &Trial) -> Option<Slowdown> {
    measured(row, trial).filter(|_| row.shows_slowdown(trial))
}

/// Returns a table of all searches. Each search has one row for each limit that was tried, sorted
/// by size, and then one row without a limit. If `command` does not finish under a limit, the row
/// contains the reason.
pub fn table(rows: &[Survival], command: &str) -> Table {
    let heads = [
        "allocator",
        "swap",
        "limit",
        "runs",
        "time",
        "range",
        "limit hits",
        "plot",
    ];
    let most = LONGEST as f64 / MARKS;
    Table {
        title: format!(
            "Every limit that was tried for {command}: time relative to no limit (above 1 is slower), and \
             number of hits of the limit"
        ),
        published: None,
        heads: heads.map(str::to_owned).to_vec(),
        rows: rows.iter().flat_map(lines).collect(),
        notes: vec![
            format!(
                "medians of the runs, if all finished, and ranges of the runs, divided by the median without a \
                 limit; a bar of {MARKS} marks is the time without a limit, and a bar that ends in > is \
                 truncated: more than {most} times slower"
            ),
            hits_note(rows),
        ],
    }
}

/// Describes the column `limit hits`.
fn hits_note(rows: &[Survival]) -> String {
    let uncounted = match rows.iter().all(Survival::counts_hits) {
        true => "",
        false => "; - if the kernel does not count them, as under cgroup v1 without swap",
    };
    format!(
        "limit hits: requests for memory, in all runs, that exceeded the limit, so that the kernel reclaimed \
         memory or killed a process{uncounted}"
    )
}

/// Formats the hits of the limit; `unknown` if the kernel does not count them.
fn hits(row: &Survival, trial: &Trial, unknown: &str) -> String {
    match row.counts_hits() {
        true => trial.limit_hits.to_string(),
        false => unknown.to_owned(),
    }
}

fn lines(row: &Survival) -> Vec<Vec<String>> {
    let mut tried: Vec<Trial> = row.tried().into_iter().cloned().collect();
    if !row.unlimited_s.is_empty() {
        tried.push(unlimited(row));
    }
    tried.iter().map(|trial| line(row, trial)).collect()
}

/// Returns the runs without a limit, as a trial with a limit of zero.
fn unlimited(row: &Survival) -> Trial {
    Trial {
        wall_s: row.unlimited_s.clone(),
        // If no limit was tried, the failure is that of the runs without a limit.
        failure: row.failure.clone().filter(|_| row.trials.is_empty()),
        ..Trial::default()
    }
}

fn line(row: &Survival, trial: &Trial) -> Vec<String> {
    let dash = || "-".to_owned();
    let slower = shown(row, trial);
    let limit = match trial.limit_bytes {
        0 => "none".to_owned(),
        bytes => Bytes(bytes).to_string(),
    };
    vec![
        row.allocator.clone(),
        kind(row.swap).to_owned(),
        limit,
        trial.runs().to_string(),
        slower.map_or_else(dash, |slower| format!("{:.2}", slower.median)),
        slower.map_or_else(dash, |slower| {
            format!("{:.2} to {:.2}", slower.low, slower.high)
        }),
        hits(row, trial, "-"),
        trial
            .failure
            .clone()
            .or_else(|| Some(bar(slower?.median)))
            .unwrap_or_default(),
    ]
}

/// Formats a bar. A truncated bar ends in `>`.
fn bar(times: f64) -> String {
    let marks = (times * MARKS).round() as usize;
    match marks > LONGEST {
        true => format!("{}>", "#".repeat(LONGEST - 1)),
        false => "#".repeat(marks),
    }
}

/// Returns every limit that was tried, as plain figures. The first row of each search has no limit.
/// Runs that did not finish are counted, too.
pub fn samples(rows: &[Survival]) -> Table {
    let heads = [
        "allocator",
        "swap",
        "limit_bytes",
        "runs",
        "status",
        "slower",
        "slower_low",
        "slower_high",
        "limit_hits",
    ];
    Table {
        heads: heads.map(str::to_owned).to_vec(),
        rows: rows.iter().flat_map(of_search).collect(),
        ..Table::default()
    }
}

fn of_search(row: &Survival) -> Vec<Vec<String>> {
    std::iter::once(&unlimited(row))
        .chain(row.tried())
        .map(|trial| sample(row, trial))
        .collect()
}

fn sample(row: &Survival, trial: &Trial) -> Vec<String> {
    let slower = measured(row, trial);
    let figure =
        |part: fn(Slowdown) -> f64| slower.map_or_else(String::new, |s| part(s).to_string());
    let limit = Some(trial.limit_bytes).filter(|limit| *limit > 0);
    let status = trial.failure.as_deref().unwrap_or("finished");
    vec![
        row.allocator.clone(),
        kind(row.swap).to_owned(),
        limit.map_or_else(String::new, |limit| limit.to_string()),
        trial.runs().to_string(),
        status.to_owned(),
        figure(|slower| slower.median),
        figure(|slower| slower.low),
        figure(|slower| slower.high),
        hits(row, trial, ""),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(mebibytes: u64, wall: f64, failure: Option<&str>) -> Trial {
        Trial {
            limit_bytes: mebibytes << 20,
            wall_s: vec![wall, 2.0 * wall, 0.5 * wall],
            failure: failure.map(str::to_owned),
            limit_hits: 7,
            oom_kills: 0,
        }
    }

    fn search() -> Survival {
        Survival {
            allocator: "system".to_owned(),
            unlimited_s: vec![1.0, 1.5, 0.5],
            trials: vec![
                trial(40, 1.0, None),
                trial(10, 0.0, Some("killed")),
                trial(20, 3.0, None),
                trial(20, 3.0, None),
                trial(15, 10.3, None),
            ],
            ..Survival::default()
        }
    }

    #[test]
    fn limits_stand_in_order_each_once_and_failures_say_why() {
        let table = table(&[search()], "true");
        let limits: Vec<&str> = table.rows.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(
            limits,
            ["10.0 MiB", "15.0 MiB", "20.0 MiB", "40.0 MiB", "none"]
        );
        assert_eq!(table.rows[0][3..], ["4", "-", "-", "7", "killed"]);
        let bar = "############";
        let slow = ["3", "3.00", "1.50 to 6.00", "7", bar];
        assert_eq!(table.rows[2][3..], slow);
        let none = ["3", "1.00", "0.50 to 1.50", "0", "####"];
        assert_eq!(table.rows[4][3..], none);
        let width = table.heads.len();
        assert!(table.rows.iter().all(|row| row.len() == width));
    }

    /// Simulates a kernel that kills processes and counts no hits.
    #[test]
    fn hits_that_the_kernel_does_not_count_are_not_shown_as_zero() {
        let mut row = search();
        for trial in &mut row.trials {
            trial.limit_hits = 0;
        }
        row.trials[1].oom_kills = 1;
        let rows = [row];
        let table = table(&rows, "true");
        assert!(table.rows.iter().all(|row| row[6] == "-"));
        assert!(table.notes[1].contains("cgroup v1 without swap"));
        assert!(samples(&rows).rows.iter().all(|row| row[8].is_empty()));
        let counted = super::table(&[search()], "true");
        assert!(!counted.notes[1].contains("cgroup"));
    }

    #[test]
    fn a_bar_that_is_cut_off_is_marked() {
        let cut = format!("{}>", "#".repeat(39));
        assert_eq!(bar(10.0), "#".repeat(40));
        assert_eq!(bar(10.3), cut);
        assert_eq!(bar(27.51), cut);
    }

    #[test]
    fn single_runs_show_no_slowdown() {
        let mut row = search();
        for trial in &mut row.trials {
            trial.wall_s.truncate(1);
        }
        let table = table(&[row], "true");
        assert_eq!(table.rows[3][3..], ["1", "-", "-", "7", ""]);
    }

    #[test]
    fn every_limit_has_a_line_of_figures() {
        let lines = samples(&[search()]).rows;
        let kind = "without swap";
        let none = ["system", kind, "", "3", "finished", "1", "0.5", "1.5", "0"];
        assert_eq!(lines[0], none);
        let bytes = (10 << 20).to_string();
        let killed = ["system", kind, &bytes, "4", "killed", "", "", "", "7"];
        assert_eq!(lines[1], killed);
        let bytes = (20 << 20).to_string();
        let slow = [
            "system", kind, &bytes, "3", "finished", "3", "1.5", "6", "7",
        ];
        assert_eq!(lines[3], slow);
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn what_fails_without_a_limit_says_so_in_its_line() {
        let row = Survival {
            failure: Some("not served".to_owned()),
            ..Survival::default()
        };
        let lines = samples(&[row]).rows;
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0][3..5], ["1", "not served"]);
    }
}
