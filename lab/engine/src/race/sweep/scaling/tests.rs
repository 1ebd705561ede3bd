use heapdrome_schema::{Machine, Options};
use serde_json::json;

use super::*;

fn at(value: &str, low: f64, high: f64) -> ScalingPoint {
    let found = Some(Factor {
        ratio: (low * high).sqrt(),
        low,
        high,
    });
    ScalingPoint {
        cell: format!("threads={value}"),
        value: value.to_owned(),
        work: 1.0,
        degradation: found,
        per_processor: found,
    }
}

fn knee_of(points: &[ScalingPoint]) -> Option<(String, String)> {
    let knee = knee(points, 0.25, Work::Operations)?;
    Some((knee.certain, knee.possible))
}

#[test]
fn the_knee_lies_between_what_is_sure_and_what_is_possible() {
    let curve = [
        at("1", 1.0, 1.0),
        at("2", 0.98, 1.04),
        at("4", 1.1, 1.4),
        at("8", 1.6, 1.9),
        at("16", 0.9, 1.0),
    ];
    let told = |certain: &str, possible: &str| Some((certain.to_owned(), possible.to_owned()));
    assert_eq!(knee_of(&curve), told("2", "4"));
    assert_eq!(knee_of(&curve[..2]), told("2", "2"));
    let steep = [at("1", 1.0, 1.0), at("2", 1.5, 1.6)];
    assert_eq!(knee_of(&steep), told("1", "1"));
}

#[test]
fn only_rising_work_has_a_knee() {
    let named = [at("small", 1.0, 1.0), at("large", 1.0, 1.1)];
    assert_eq!(knee_of(&named), None);
    let falling = [at("4", 1.0, 1.0), at("2", 1.0, 1.1)];
    assert_eq!(knee_of(&falling), None);
    let one = [at("1", 1.0, 1.0), at("2", 1.0, 1.0)];
    assert_eq!(knee(&one, 0.25, Work::Same), None);
    let mut unknown = one;
    unknown[1].per_processor = None;
    assert_eq!(knee_of(&unknown), None);
}

/// Factors that are symmetric about 1 on a logarithmic scale. The second race uses them in reversed
/// order, so that the ratios within rounds also scatter and have a proper interval.
const NOISE: [f64; 6] = [0.97, 0.98, 0.99, 1.0 / 0.99, 1.0 / 0.98, 1.0 / 0.97];

/// Creates a race of the system's allocator alone. Its runs take `wall` seconds and do `work` units
/// of work.
fn member(value: &str, processors: &[usize], wall: [f64; 6], work: f64) -> Member {
    let series = |samples: [f64; 6]| json!({"median": median(&samples), "samples": samples});
    let result = json!({
        "schema": 1, "heapdrome": "", "started": "", "command": [], "options": Options::default(),
        "baseline": "system", "seed": 1, "rounds": 6, "ended": "", "alpha": 0.05,
        "machine": Machine::default(), "noise_floor": null, "remarks": [],
        "entrants": [{
            "allocator": "system", "role": "baseline", "version": "", "settings": {}, "status": "ok",
            "output": "same", "versus_baseline": {}, "wall_s": series(wall),
            "metrics": {
                "operations_per_cpu_s": series([10.0 * work; 6]), "measured_cpu_s": series([0.1; 6]),
                WORK: series([work; 6]),
            },
        }],
    });
    Member {
        cell: format!("threads={value}"),
        workload: String::new(),
        parameters: Vec::new(),
        swept: value.parse().ok(),
        processors: processors.to_vec(),
        factor: None,
        result: serde_json::from_value(result).expect("a race"),
    }
}

/// Returns the second point of a curve on which twice the work on twice the processors takes 1.5
/// times as long.
fn second_point(work: Work, paired: bool) -> ScalingPoint {
    let parameters = [SweptParameter {
        name: "threads".to_owned(),
        values: vec!["1".to_owned(), "2".to_owned()],
    }];
    let mut backwards = NOISE.map(|noise| 1.5 * noise);
    backwards.reverse();
    let collection = json!({
        "schema": 1, "heapdrome": "", "started": "", "asked": [], "name": "sweep threads", "scale": null,
        "machine": Machine::default(), "claims": [], "absent": [], "remarks": [],
        "races": [
            member("1", &[0], NOISE, 1.0),
            member("2", &[0, 1], backwards, 2.0),
        ],
    });
    let collection: Collection = serde_json::from_value(collection).expect("a collection");
    let values = ["1", "2"].map(|value| vec![value.to_owned()]);
    let found = Found {
        values: &values,
        work,
        share: 0.25,
        paired,
    };
    let sweep = scaling(&collection, &parameters, found);
    let [curve] = sweep.curves.as_slice() else {
        panic!("one curve: {sweep:?}");
    };
    let [first, second] = curve.points.as_slice() else {
        panic!("two points: {curve:?}");
    };
    let itself = Some(Factor {
        ratio: 1.0,
        low: 1.0,
        high: 1.0,
    });
    assert_eq!([first.degradation, first.per_processor], [itself; 2]);
    second.clone()
}

/// Checks that the estimate equals `expected` and lies within a proper interval.
#[track_caller]
fn is_about(found: Option<Factor>, expected: f64) {
    let found = found.expect("an interval");
    assert!(
        (found.ratio - expected).abs() < 1e-9,
        "{found:?}: {expected}"
    );
    assert!(found.low < expected && expected < found.high, "{found:?}");
    assert!(
        found.low > 0.5 * expected && found.high < 2.0 * expected,
        "{found:?}"
    );
}

#[test]
fn degradation_is_time_over_work_and_that_per_processor() {
    for paired in [true, false] {
        for work in [Work::Value, Work::Operations, Work::Printed] {
            let point = second_point(work, paired);
            assert!((point.work - 2.0).abs() < 1e-9, "{work:?}: {point:?}");
            is_about(point.degradation, 0.75);
            is_about(point.per_processor, 1.5);
        }
        let point = second_point(Work::Same, paired);
        assert_eq!(point.work, 1.0);
        is_about(point.degradation, 1.5);
        is_about(point.per_processor, 3.0);
    }
}
