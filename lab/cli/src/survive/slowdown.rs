//! How slow a command is under each limit that was tried, as a table with bars.

use heapdrome_paging::{Survival, Trial};
use heapdrome_record::{Bytes, Table};

use super::report::kind;

/// Marks of a bar for each time that a command takes as long as without a limit.
const MARKS: f64 = 4.0;
/// The longest bar.
const LONGEST: f64 = 40.0;

/// One row for each limit that was tried, by size; those under which the command does not finish tell
/// why.
pub fn table(rows: &[Survival]) -> Table {
    let heads = ["allocator", "swap", "limit", "slower", "limit met", "plot"];
    Table {
        title: "Every limit that was tried: how many times slower the command is, and how often it met \
                the limit"
            .to_owned(),
        published: None,
        heads: heads.map(str::to_owned).to_vec(),
        rows: rows.iter().flat_map(lines).collect(),
        notes: vec![
            "medians of the runs that all finished; a bar of four marks is as fast as without a limit"
                .to_owned(),
        ],
    }
}

fn lines(row: &Survival) -> Vec<Vec<String>> {
    let multiples = row.at.iter().map(|at| &at.trial);
    let mut trials: Vec<&Trial> = row.trials.iter().chain(multiples).collect();
    // Two of one limit, as where a search ends on a limit that it has tried, are told of once.
    trials.sort_by_key(|trial| trial.limit_bytes);
    trials.dedup_by_key(|trial| trial.limit_bytes);
    trials.into_iter().map(|trial| line(row, trial)).collect()
}

fn line(row: &Survival, trial: &Trial) -> Vec<String> {
    let slower = row.slower(trial);
    let end = match (&trial.failure, slower) {
        (Some(why), _) => why.clone(),
        (None, Some(times)) => "#".repeat((times * MARKS).min(LONGEST).round() as usize),
        (None, None) => String::new(),
    };
    vec![
        row.allocator.clone(),
        kind(row.swap).to_owned(),
        Bytes(trial.limit_bytes).to_string(),
        slower.map_or_else(|| "-".to_owned(), |times| format!("{times:.2}")),
        trial.limit_hits.to_string(),
        end,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(mebibytes: u64, wall: f64, failure: Option<&str>) -> Trial {
        Trial {
            limit_bytes: mebibytes << 20,
            wall_s: vec![wall],
            failure: failure.map(str::to_owned),
            limit_hits: 7,
            oom_kills: 0,
        }
    }

    #[test]
    fn limits_stand_in_order_each_once_and_failures_say_why() {
        let row = Survival {
            allocator: "system".to_owned(),
            unlimited_s: vec![1.0],
            trials: vec![
                trial(40, 1.0, None),
                trial(10, 0.0, Some("killed")),
                trial(20, 3.0, None),
                trial(20, 3.0, None),
            ],
            ..Survival::default()
        };
        let table = table(&[row]);
        let limits: Vec<&str> = table.rows.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(limits, ["10.0 MiB", "20.0 MiB", "40.0 MiB"]);
        assert_eq!(table.rows[0][3..], ["-", "7", "killed"]);
        assert_eq!(table.rows[1][3..], ["3.00", "7", "############"]);
        assert_eq!(table.rows[2][5], "####");
        let width = table.heads.len();
        assert!(table.rows.iter().all(|row| row.len() == width));
    }
}
