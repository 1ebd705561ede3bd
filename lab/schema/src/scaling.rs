//! Results of a sweep: the growth of each allocator's time with the work.

use serde::{Deserialize, Serialize};

use crate::Factor;

/// A parameter that is swept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweptParameter {
    /// Name: `threads`, a placeholder, a workload's parameter, or `env:` followed by a variable.
    pub name: String,
    /// Values of the parameter, in the requested order.
    pub values: Vec<String>,
}

/// One race of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingPoint {
    /// Cell of the race in its collection.
    pub cell: String,
    /// Value of the curve's parameter.
    pub value: String,
    /// Ratio of this race's work to that of the first race; NaN if unknown.
    #[serde(deserialize_with = "crate::result::number_or_null")]
    pub work: f64,
    /// Ratio of this race's time to that of the first race, divided by the ratio of their work;
    /// `None` without an interval.
    pub degradation: Option<Factor>,
    /// Degradation per processor: the degradation, multiplied by the ratio of this race's usable
    /// processors to the first race's.
    pub per_processor: Option<Factor>,
}

/// Knee of a curve: the last value up to which the degradation per processor stays within
/// [`SweepResult::share`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Lower bound of the knee: the last value up to which every interval lies completely within
    /// the permitted share.
    pub certain: String,
    /// Upper bound of the knee: the last value up to which no interval lies completely beyond the
    /// permitted share.
    pub possible: String,
}

/// Growth of one allocator's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingCurve {
    /// Name of the allocator.
    pub allocator: String,
    /// Values of the other parameters, such as `size=64`; empty if there are none.
    pub others: String,
    /// Races, in the order of the values.
    pub points: Vec<ScalingPoint>,
    /// The knee. `None` if the values are not rising numbers, every race does equal work, there are
    /// fewer than two races, or an interval is missing.
    pub knee: Option<Knee>,
}

/// Joint results of all races of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepResult {
    /// Swept parameters. Every combination of their values is a race.
    pub parameters: Vec<SweptParameter>,
    /// Parameter that the curves follow.
    pub along: String,
    /// Definition of work, in words.
    pub work: String,
    /// Maximum excess over 1 of the degradation per processor, up to the knee of a curve; 0.25 is
    /// 25%.
    pub share: f64,
    /// Whether the races alternated round by round, so that the rounds of two values form pairs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paired: bool,
    /// Curves, one for each allocator and combination of the other parameters.
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
