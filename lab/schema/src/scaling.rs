//! What a sweep found: how the time of each allocator grew with the work.

use serde::{Deserialize, Serialize};

use crate::Factor;

/// A parameter that is swept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweptParameter {
    /// `threads`, the name of a placeholder or of a workload's parameter, or `env:` and a variable.
    pub name: String,
    /// Its values in the order in which they were asked for.
    pub values: Vec<String>,
}

/// One race of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingPoint {
    /// The cell of the race.
    pub cell: String,
    /// The value of the parameter that is followed.
    pub value: String,
    /// The ratio of work to that of the first race; NaN where it is not known.
    #[serde(deserialize_with = "crate::result::number_or_null")]
    pub work: f64,
    /// The ratio of times to the first race over the ratio of work; `None` without an interval.
    pub degradation: Option<Factor>,
    /// The degradation by the work per processor that the command could use.
    pub per_processor: Option<Factor>,
}

/// The last values up to which time keeps up with the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Up to here every interval lies wholly within the share.
    pub certain: String,
    /// Up to here no interval lies wholly beyond it.
    pub possible: String,
}

/// How the time of one allocator grew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingCurve {
    /// The allocator.
    pub allocator: String,
    /// The values of the other parameters, such as `size=64`; empty where there are none.
    pub others: String,
    /// The races, from the first value on.
    pub points: Vec<ScalingPoint>,
    /// The knee; `None` where the values are not rising numbers, the work does not grow, or an
    /// interval is missing.
    pub knee: Option<Knee>,
}

/// What a sweep found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepResult {
    /// The parameters that were swept; every combination of their values is a race.
    pub parameters: Vec<SweptParameter>,
    /// The one that curves follow.
    pub along: String,
    /// What counts as work, in words.
    pub work: String,
    /// How much degradation per processor a curve may have before its knee: 0.25 is 25%.
    pub share: f64,
    /// Whether the races took turns round by round, so that the rounds of two values pair.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paired: bool,
    /// One curve for each allocator and combination of the other parameters.
    pub curves: Vec<ScalingCurve>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_is_not_known_is_read_back() {
        let point = ScalingPoint {
            cell: "jobs=x".to_owned(),
            value: "x".to_owned(),
            work: f64::NAN,
            degradation: None,
            per_processor: None,
        };
        let text = serde_json::to_string(&point).expect("JSON");
        assert!(text.contains(r#""work":null"#), "{text}");
        let read: ScalingPoint = serde_json::from_str(&text).expect("it reads back");
        assert!(read.work.is_nan());
        let known = ScalingPoint { work: 2.0, ..point };
        let text = serde_json::to_string(&known).expect("JSON");
        assert_eq!(
            serde_json::from_str::<ScalingPoint>(&text).expect("it reads back"),
            known
        );
    }
}
