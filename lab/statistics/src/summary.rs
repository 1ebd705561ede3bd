//! Summaries of a single series. Undefined samples are omitted.

/// Distance from the median, in robust standard deviations, beyond which a sample is an outlier.
const FAR: f64 = 5.0;

/// Ratio of the standard deviation to the median absolute deviation of normal samples.
const MAD_TO_DEVIATION: f64 = 1.482_602_218_505_602;

fn finite(values: &[f64]) -> Vec<f64> {
    values
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .collect()
}

/// Returns the median: the middle sample, or the mean of the two middle ones; `None` without
/// samples.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = finite(values);
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    let lower = if sorted.len().is_multiple_of(2) {
        sorted[middle - 1]
    } else {
        upper
    };
    Some(lower + (upper - lower) / 2.0)
}

/// Returns the arithmetic mean; `None` without samples.
pub fn mean(values: &[f64]) -> Option<f64> {
    let values = finite(values);
    let count = values.len() as f64;
    (!values.is_empty()).then(|| values.iter().map(|value| value / count).sum())
}

/// Returns the standard deviation of the population from which the samples come (divisor n - 1).
/// Returns `None` with fewer than two samples.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let values = finite(values);
    let centre = mean(&values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// Returns the median distance from the median; `None` without samples.
pub fn median_absolute_deviation(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&distances)
}

/// Returns the positions of samples that are further from the median than five robust standard
/// deviations (1.4826 times the median absolute deviation). Such outliers are marked, and never
/// removed.
///
/// If more than half of the samples are equal, this deviation is zero. It is then replaced by
/// 1.2533 times the mean absolute deviation, so that a difference of one page does not easily make
/// an outlier.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let (Some(centre), Some(spread)) = (median(values), median_absolute_deviation(values)) else {
        return Vec::new();
    };
    let distance = |value: &f64| (value - centre).abs();
    let deviation = if spread > 0.0 {
        spread * MAD_TO_DEVIATION
    } else {
        let distances: Vec<f64> = values.iter().map(distance).collect();
        mean(&distances).unwrap_or(0.0) * 1.253_314
    };
    let far = |(place, value): (usize, &f64)| {
        (value.is_finite() && distance(value) > FAR * deviation).then_some(place)
    };
    values.iter().enumerate().filter_map(far).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_nothing_are_none() {
        for values in [&[][..], &[f64::NAN, f64::INFINITY]] {
            assert_eq!(median(values), None);
            assert_eq!(mean(values), None);
            assert_eq!(standard_deviation(values), None);
            assert_eq!(median_absolute_deviation(values), None);
            assert_eq!(outliers(values), Vec::<usize>::new());
        }
        assert_eq!(standard_deviation(&[1.0]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn summaries_are_those_computed_by_hand() {
        let values = [4.0, 1.0, f64::NAN, 3.0, 10.0];
        assert_eq!(median(&values), Some(3.5));
        assert_eq!(mean(&values), Some(4.5));
        // The distances from 3.5 are 0.5, 2.5, 0.5, 6.5.
        assert_eq!(median_absolute_deviation(&values), Some(1.5));
        // The squared distances from 4.5 sum to 0.25 + 12.25 + 2.25 + 30.25 = 45. The variance is
        // 45 / 3.
        assert_eq!(standard_deviation(&values), Some(15.0_f64.sqrt()));
        assert_eq!(median(&[2.0, 9.0, 4.0]), Some(4.0));
    }

    #[test]
    fn an_outlier_is_flagged_by_its_place_among_all_samples() {
        // The median is 10.5 and the robust deviation 1.4826, so samples more than 7.4 from 10.5
        // are outliers.
        let values = [9.0, f64::NAN, 10.0, 11.0, 17.0, 18.0, 10.0, 9.0, 11.0];
        assert_eq!(outliers(&values), vec![5]);
    }

    #[test]
    fn equal_samples_have_no_outlier_and_one_stray_is_one() {
        assert_eq!(outliers(&[4096.0; 9]), Vec::<usize>::new());
        let mut values = vec![4096.0; 20];
        values[3] = 8192.0;
        assert_eq!(outliers(&values), vec![3]);
        // A frequent second value does not count as an outlier.
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 2.0, 2.0]), Vec::<usize>::new());
    }
}
