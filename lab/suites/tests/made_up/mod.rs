//! Helpers that invent races and suites.

#![allow(dead_code)] // Each test program uses a different part.

use heapdrome_schema::{
    Collection, EntrantResult, Machine, Member, Options, Purpose, RaceResult, Role, SCHEMA, Scale,
    Series, Status,
};
use heapdrome_suites::Suite;

/// A row of an invented race.
pub struct Row(EntrantResult);

impl Row {
    pub fn new(allocator: &str, wall: Vec<f64>) -> Self {
        let text = format!(
            r#"{{"allocator": "{allocator}", "role": "rival", "version": "", "library": null,
                "sha256": null, "settings": {{}}, "status": "ok", "proof": null,
                "output": "same", "versus_baseline": {{}}}}"#
        );
        let mut row: EntrantResult = serde_json::from_str(&text).expect("a row");
        row.wall_s = Some(series(wall));
        Self(row)
    }

    pub fn system(mut self, samples: Vec<f64>) -> Self {
        self.0.system_s = Some(series(samples));
        self
    }

    pub fn rss(mut self, samples: Vec<f64>) -> Self {
        self.0.peak_rss_bytes = Some(series(samples));
        self
    }

    pub fn metric(mut self, name: &str, samples: Vec<f64>) -> Self {
        self.0.metrics.insert(name.to_owned(), series(samples));
        self
    }

    /// Replaces the times of a row in a race with the times of this row.
    pub fn times_to(self, row: &mut EntrantResult) {
        row.wall_s = self.0.wall_s;
    }

    pub fn sha256(mut self, digest: &str) -> Self {
        self.0.sha256 = Some(digest.to_owned());
        self
    }

    pub fn failed(mut self) -> Self {
        self.0.status = Status::Failed;
        self
    }
}

fn series(samples: Vec<f64>) -> Series {
    Series {
        median: samples.iter().sum::<f64>() / samples.len() as f64,
        samples,
        outliers: Vec::new(),
        method: None,
    }
}

/// Returns a race whose first row is the baseline. The twin has a second name and is slower than
/// all others, so that a test notices if the twin is used as a row.
pub fn member(cell: &str, swept: Option<u64>, rows: &[Row]) -> Member {
    let mut entrants: Vec<EntrantResult> = rows.iter().map(|row| row.0.clone()).collect();
    let mut twin = entrants[0].clone();
    entrants[0].role = Role::Baseline;
    twin.role = Role::Twin;
    twin.allocator = format!("{} (again)", twin.allocator);
    twin.wall_s = Some(series(vec![99.0; 10]));
    entrants.insert(1, twin);
    Member {
        cell: cell.to_owned(),
        workload: "w".to_owned(),
        parameters: Vec::new(),
        swept,
        processors: Vec::new(),
        factor: None,
        result: RaceResult {
            schema: SCHEMA,
            heapdrome: String::new(),
            started: String::new(),
            command: Vec::new(),
            asked: Vec::new(),
            options: Options::default(),
            baseline: entrants[0].allocator.clone(),
            seed: 1,
            rounds: 10,
            least_rounds: None,
            ended: String::new(),
            alpha: 0.05,
            machine: Machine::default(),
            noise_floor: None,
            remarks: Vec::new(),
            entrants,
        },
    }
}

/// Returns a collection of races.
pub fn collection(races: Vec<Member>) -> Collection {
    Collection {
        schema: SCHEMA,
        name: "t".to_owned(),
        purpose: Purpose::suite(Scale::Quick),
        races,
        ..Collection::default()
    }
}

const SUITE: &str = r#"
name = "t"
title = "T"
summary = "made up"
baseline = "system"
[document]
title = "D"
machine = "M"
[[entrant]]
name = "libc"
allocator = "system"
[[entrant]]
name = "quick"
allocator = "a"
[[entrant]]
name = "slow"
allocator = "b"
[[entrant]]
name = "lost"
absent = "in no registry"
[[entrant]]
name = "modern"
allocator = "c"
added = true
[[cell]]
name = "one"
title = "one"
workload = "w"
quick = { rounds = 5 }
[[cell]]
name = "two"
title = "two"
workload = "w"
quick = { rounds = 5 }
[[cell]]
name = "swept"
title = "swept"
workload = "w"
sweep = { parameter = "threads", values = [1, 2] }
quick = { rounds = 5 }
"#;

/// Returns a suite of three cells and five entrants, extended by `more`.
pub fn suite(more: &str) -> Suite {
    Suite::read(&text(more)).expect("a suite")
}

/// Returns the data file of [`suite`] as text.
pub fn text(more: &str) -> String {
    format!("{SUITE}\n{more}")
}
