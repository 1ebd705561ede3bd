//! Tests that the description of the schema contains the fields of races, collections and
//! comparisons, and the values of `output`. Another test checks that the text of a comparison fits
//! into the terminal.

mod races;
#[path = "races/watched.rs"]
mod watched;
#[path = "races/workload.rs"]
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use heapdrome_report::{Exporter, Json};
use heapdrome_schema::{
    Absent, Better, CallTime, Ccdf, CcdfPoint, Change, Changes, ClaimResult, Collection,
    ComparedResult, Ending, Evidence, Factor, Holds, Judged, Metric, MisuseOutcome, MisuseRun,
    MisuseStage, Multiple, Nanoseconds, Outcome, Output, Purpose, RacePair, RaceResult, Role,
    Scale, Series, Server, SizeCount, Survival, SystemCalls, Table, Trial,
};
use serde_json::Value;

const DESCRIPTION: &str = include_str!("../../../docs/result-schema.md");

/// Returns a result with most optional fields.
fn whole() -> RaceResult {
    let mut result = races::usual();
    result.machine.fault_s = Some(1e-6);
    let (name, pattern) = ("ops".to_owned(), "x".to_owned());
    result.options.metrics = vec![Metric {
        name,
        pattern,
        better: Better::Higher,
    }];
    let (serve, ready) = ("s".to_owned(), "r".to_owned());
    result.options.server = Some(Server {
        serve,
        ready,
        ready_within: Nanoseconds(1),
        idle: Nanoseconds(1),
    });
    result.options.as_is = Some(Role::Baseline);
    result.options.unproven = true;
    for entrant in &mut result.entrants {
        entrant.known_faults = vec!["fault".to_owned()];
        entrant.detached = vec!["program".to_owned()];
        watched::watch_closely(entrant, 1);
        let method = Some("how".to_owned());
        let series = Series {
            median: 1.0,
            samples: vec![1.0],
            outliers: vec![0],
            method,
        };
        entrant.counters = BTreeMap::from([("COUNTER".to_owned(), series.clone())]);
        entrant.metrics = BTreeMap::from([("METRIC".to_owned(), series)]);
        entrant.evidence = Some(Evidence {
            sizes: vec![SizeCount::default()],
            system_calls: Some(SystemCalls::default()),
            call_time: Some(CallTime::default()),
            ..Evidence::default()
        });
        if let Some(proof) = &mut entrant.proof {
            proof.warnings = vec!["warning".to_owned()];
            proof.taken_in = Some("cell".to_owned());
        }
    }
    result
}

/// Returns a collection with races, claims, absent entrants, tables and remarks.
fn collection() -> Collection {
    let text = |text: &str| text.to_owned();
    let mut collection = workload::sweep();
    // A workload chooses the names of its figures, so they are not in the schema. The results of
    // the sweep contain such names and are replaced.
    for race in &mut collection.races {
        race.result = whole();
    }
    collection.claims = vec![ClaimResult {
        claim: text("c"),
        source: text("s"),
        holds: Holds::Held,
        because: text("b"),
        target: true,
    }];
    collection.absent = vec![Absent {
        name: text("n"),
        reason: text("r"),
    }];
    collection.tables = vec![Table {
        title: text("t"),
        published: None,
        heads: vec![text("h")],
        rows: vec![vec![text("c")]],
        notes: vec![text("n")],
    }];
    collection
}

/// Returns the purposes of a sweep without findings, a suite, an experiment and a search.
fn purposes() -> [Purpose; 4] {
    let scale = Scale::Quick;
    let text = |text: &str| text.to_owned();
    let misuse = vec![MisuseRun {
        allocator: text("a"),
        kind: text("k"),
        outcome: MisuseOutcome::Detected,
        stage: Some(MisuseStage::Free),
        ending: Ending::Killed(6),
        said: Some(text("s")),
        harm: Some(text("h")),
    }];
    let ccdfs = vec![Ccdf {
        kind: text("k"),
        cell: text("c"),
        count: 1,
        points: vec![CcdfPoint {
            time: Nanoseconds(1),
            above: 0.5,
        }],
    }];
    let (cells, time) = (Vec::new(), Some(Nanoseconds(1)));
    [
        workload::sweep().purpose,
        Purpose::Suite { scale, misuse },
        Purpose::Paging {
            scale,
            cells,
            time,
            ccdfs,
        },
        Purpose::Survival {
            scale,
            searches: vec![survival()],
        },
    ]
}

fn survival() -> Survival {
    let trial = Trial {
        limit_bytes: 1,
        wall_s: vec![1.0],
        failure: None,
        limit_hits: 1,
        oom_kills: 0,
    };
    Survival {
        at: vec![Multiple {
            times: 1.0,
            trial: trial.clone(),
            slower: None,
            range: None,
        }],
        trials: vec![trial],
        ..Survival::default()
    }
}

/// Returns a comparison of two results with one judged condition and one change.
fn changes() -> Changes {
    let side = || ComparedResult {
        file: "r.json".to_owned(),
        started: String::new(),
        heapdrome: String::new(),
        machine: heapdrome_schema::Machine::default(),
    };
    let factor = Some(Factor {
        ratio: 1.1,
        low: 1.0,
        high: 1.2,
    });
    let change = Change {
        allocator: "a".to_owned(),
        figure: "wall_s".to_owned(),
        old: 1.0,
        new: 1.1,
        itself: factor,
        beside_baseline: factor,
        verdict: None,
    };
    let judged = Judged {
        condition: "c".to_owned(),
        outcome: Outcome::Undecided,
        because: Vec::new(),
    };
    let pair = RacePair {
        cell: None,
        command: Vec::new(),
        baseline: None,
        old_rounds: 5,
        new_rounds: 5,
        changes: vec![change],
        differs: Vec::new(),
        not_compared: Vec::new(),
    };
    Changes {
        schema: heapdrome_schema::SCHEMA,
        heapdrome: String::new(),
        old: side(),
        new: side(),
        same_machine: true,
        rests_on: Vec::new(),
        alpha: 0.05,
        pairs: vec![pair],
        conditions: vec![judged],
        unmatched: Vec::new(),
    }
}

#[test]
fn a_comparison_fits_into_every_terminal() {
    use unicode_width::UnicodeWidthStr;
    for width in 40..=140 {
        let terminal = heapdrome_report::Terminal {
            width,
            colour: false,
        };
        let told = terminal.export(&changes()).expect("it exports");
        let told = String::from_utf8(told).expect("UTF-8");
        for line in told.lines() {
            assert!(line.width() <= width, "{width}: {line}");
        }
    }
}

/// Collects the names of all fields in `value`.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, inner) in object {
                found.insert(name.clone());
                fields(inner, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        _ => {}
    }
}

#[test]
fn every_field_is_described() {
    let text = Json.export(&whole()).expect("it exports");
    let value: Value = serde_json::from_slice(&text).expect("JSON");
    let mut found = BTreeSet::new();
    fields(&value, &mut found);
    for purpose in purposes() {
        let collection = Collection {
            purpose,
            ..collection()
        };
        let value = serde_json::to_value(&collection).expect("JSON");
        fields(&value, &mut found);
        let again: Collection = serde_json::from_value(value).expect("a collection");
        assert_eq!(again, collection);
    }
    let compared = serde_json::to_value(changes()).expect("JSON");
    fields(&compared, &mut found);
    assert!(found.len() > 90, "{}", found.len());
    let described = |name: &String| {
        let in_example = name == "killed" && DESCRIPTION.contains("{\"killed\": SIGNAL}");
        in_example
            || ["COUNTER", "METRIC"].contains(&name.as_str())
            || DESCRIPTION.contains(&format!("`{name}`"))
    };
    let missing: Vec<_> = found.into_iter().filter(|name| !described(name)).collect();
    assert!(
        missing.is_empty(),
        "not in docs/result-schema.md: {missing:?}"
    );
}

#[test]
fn every_way_to_compare_outputs_keeps_its_word() {
    let row = DESCRIPTION
        .lines()
        .find(|line| line.starts_with("| `output` "));
    let row = row.expect("the description of `output`");
    let words = [
        (Output::Same, "same"),
        (Output::Different, "different"),
        (Output::Varies, "output varies"),
        (Output::NotCompared, "not compared"),
    ];
    for (output, word) in words {
        assert_eq!(serde_json::to_value(output).expect("JSON"), word);
        assert!(row.contains(&format!("`{word}`")), "{word} in {row}");
    }
}
