//! Scales from values to positions on paper, and the choice of ticks.

/// Minimum number of ticks on a readable scale.
pub(crate) const FEWEST_TICKS: usize = 3;

/// A scale from values to coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Scale {
    /// Returns a linear scale for values from `low` to `high` on coordinates from `from` to `to`.
    pub(crate) fn linear([low, high]: [f64; 2], [from, to]: [f64; 2]) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            low,
            high,
            from,
            to,
            logarithmic: false,
        }
    }

    /// Returns a logarithmic scale. `low` and `high` must be positive.
    pub(crate) fn logarithmic([low, high]: [f64; 2], [from, to]: [f64; 2]) -> Self {
        let high = if high > low { high } else { low * 2.0 };
        Self {
            low,
            high,
            from,
            to,
            logarithmic: true,
        }
    }

    /// Returns the coordinate of `value`. A value beyond the scale is placed on its edge.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + part * (self.to - self.from)
    }

    /// Returns the smallest value of the scale.
    pub(crate) fn start(&self) -> f64 {
        self.low
    }

    /// Returns the greatest value of the scale.
    pub(crate) fn end(&self) -> f64 {
        self.high
    }

    /// Returns whether `value` lies on the scale.
    pub(crate) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns ticks for ratios, choosing the roundest first and keeping them at least `apart` from
    /// each other. If few round ratios lie on the scale, returns ticks at even steps instead,
    /// unless these are even fewer.
    pub(crate) fn ratio_ticks(&self, apart: f64) -> Vec<f64> {
        let far = |one: f64, other: f64| (self.at(one) - self.at(other)).abs() >= apart;
        let mut chosen: Vec<f64> = Vec::new();
        for candidate in ratio_candidates() {
            if self.holds(candidate) && chosen.iter().all(|other| far(*other, candidate)) {
                chosen.push(candidate);
            }
        }
        chosen.sort_by(f64::total_cmp);
        if chosen.len() >= FEWEST_TICKS {
            return chosen;
        }
        let apart = |ticks: &Vec<f64>| ticks.windows(2).all(|pair| far(pair[0], pair[1]));
        // A round step may be up to 2.5 times as wide as an even division into `count` steps, so
        // several counts are tried.
        let even = [4.0, 6.0, 8.0].map(|count| self.round_ticks(count));
        let even = even.into_iter().filter(apart);
        even.chain([chosen])
            .max_by_key(Vec::len)
            .unwrap_or_default()
    }

    /// Returns about `count` round values in steps of 1, 2 or 5 times a power of ten.
    pub(crate) fn round_ticks(&self, count: f64) -> Vec<f64> {
        let raw = (self.high - self.low) / count.max(1.0);
        let power = 10_f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= raw * 0.999)
            .unwrap_or(10.0 * power);
        if !step.is_finite() || step <= 0.0 {
            return vec![self.low];
        }
        let first = (self.low / step - 1e-9).ceil();
        (0..50)
            .map(|place| (first + f64::from(place)) * step)
            .take_while(|tick| *tick <= self.high + step * 1e-9)
            .collect()
    }
}

/// Returns ratios that may have a tick, the roundest first.
fn ratio_candidates() -> Vec<f64> {
    let mut all = vec![1.0];
    for power in 1..=13 {
        all.extend([10_f64.powi(power), 10_f64.powi(-power)]);
    }
    let decades = |mantissas: &[f64]| -> Vec<f64> {
        let powers = (-9..=9).map(|power| 10_f64.powi(power));
        powers
            .flat_map(|power| mantissas.iter().map(move |mantissa| mantissa * power))
            .collect()
    };
    all.extend(decades(&[2.0, 5.0]));
    all.extend([0.8, 1.25, 1.5, 3.0, 0.9, 1.1, 4.0, 0.7, 0.3]);
    all.extend([
        0.95, 1.05, 0.85, 1.15, 1.2, 0.98, 1.02, 0.99, 1.01, 0.97, 1.03, 0.96, 1.04,
    ]);
    all.extend([0.995, 1.005, 0.998, 1.002, 0.999, 1.001]);
    all
}

/// Formats a tick of a ratio, with as few decimals as possible.
pub(crate) fn ratio_text(value: f64) -> String {
    let text = format!("{value:.9}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_lie_on_the_edges_and_what_is_outside_too() {
        let scale = Scale::logarithmic([0.5, 2.0], [100.0, 300.0]);
        assert_eq!(
            [0.5, 1.0, 2.0, 9.0].map(|v| scale.at(v).round()),
            [100.0, 200.0, 300.0, 300.0]
        );
    }

    #[test]
    fn ticks_of_ratios_are_round_and_apart() {
        let scale = Scale::logarithmic([0.4, 3.0], [0.0, 320.0]);
        let ticks = scale.ratio_ticks(42.0);
        assert!(
            ticks.contains(&1.0) && ticks.contains(&2.0) && ticks.contains(&0.5),
            "{ticks:?}"
        );
        assert!(
            ticks
                .windows(2)
                .all(|pair| scale.at(pair[1]) - scale.at(pair[0]) >= 42.0)
        );
    }

    #[test]
    fn ticks_of_a_narrow_scale_are_more_than_one() {
        let ticks = Scale::logarithmic([0.99, 1.02], [0.0, 320.0]).ratio_ticks(42.0);
        assert!(ticks.len() >= 3, "{ticks:?}");
    }

    #[test]
    fn a_scale_without_round_ratios_has_ticks_too() {
        for ends in [
            [0.311, 0.363],
            [1.13, 1.181],
            [20.9, 23.1],
            [0.000_623, 0.000_715],
            [6.2, 9.3],
        ] {
            let scale = Scale::logarithmic(ends, [344.0, 34.0]);
            let ticks = scale.ratio_ticks(30.0);
            assert!(ticks.len() >= FEWEST_TICKS, "{ends:?}: {ticks:?}");
            let apart = |pair: &[f64]| (scale.at(pair[0]) - scale.at(pair[1])).abs() >= 30.0;
            assert!(ticks.windows(2).all(apart), "{ends:?}: {ticks:?}");
            assert!(
                ticks.iter().all(|tick| scale.holds(*tick)),
                "{ends:?}: {ticks:?}"
            );
        }
    }

    #[test]
    fn round_ticks_cover_the_scale() {
        let scale = Scale::linear([0.0, 13.7], [0.0, 100.0]);
        assert_eq!(scale.round_ticks(5.0), [0.0, 5.0, 10.0]);
    }

    #[test]
    fn ticks_are_written_as_they_are() {
        assert_eq!(
            [0.5, 1.0, 20.0, 0.995].map(ratio_text),
            ["0.5", "1", "20", "0.995"]
        );
    }
}
