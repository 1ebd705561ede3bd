//! Rank correlation (Spearman 1904), with ties.

/// Returns the rank of each of `count` items, from 1 for the least. `is_less(a, b)` returns whether
/// item `a` was shown to be less than item `b`.
///
/// If neither of two items is less, they are tied. An item's rank is 1 more than the number of
/// lesser items, plus half of the number of its ties: the mean rank of a group of equal items
/// (Kendall 1945). The definition also holds where ties are not transitive, as with intervals that
/// overlap in a chain.
pub fn ranks(count: usize, is_less: impl Fn(usize, usize) -> bool) -> Vec<f64> {
    let rank = |own: usize| {
        let others = (0..count).filter(|other| *other != own);
        let above = others.map(|other| match (is_less(other, own), is_less(own, other)) {
            (true, _) => 1.0,
            (false, true) => 0.0,
            (false, false) => 0.5,
        });
        1.0 + above.sum::<f64>()
    };
    (0..count).map(rank).collect()
}

/// Returns Spearman's rank correlation of two series of ranks, from -1 to 1. It is the
/// product-moment correlation of the ranks, which allows for ties. Returns `None` if the lengths
/// differ, there are fewer than two ranks, or all ranks of a series are equal, so that there is no
/// order to compare.
pub fn rank_correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    if one.len() != other.len() || one.len() < 2 {
        return None;
    }
    let [own, theirs] = [one, other].map(centred);
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let spread = product(&own, &own) * product(&theirs, &theirs);
    (spread > 0.0).then(|| (product(&own, &theirs) / spread.sqrt()).clamp(-1.0, 1.0))
}

fn centred(ranks: &[f64]) -> Vec<f64> {
    let mean = ranks.iter().sum::<f64>() / ranks.len() as f64;
    ranks.iter().map(|rank| rank - mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Vec<f64> {
        ranks(values.len(), |a, b| values[a] < values[b])
    }

    fn spearman(one: &[f64], other: &[f64]) -> Option<f64> {
        rank_correlation(&of(one), &of(other))
    }

    #[track_caller]
    fn assert_near(found: Option<f64>, expected: f64) {
        let found = found.expect("a correlation");
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    /// The example of the article "Spearman's rank correlation coefficient" in Wikipedia: IQ and
    /// hours of television of ten people, -29/165.
    #[test]
    fn a_published_example_without_ties_has_the_published_value() {
        let iq = [106., 100., 86., 101., 99., 103., 97., 113., 112., 110.];
        let hours = [7., 27., 2., 50., 28., 29., 20., 12., 6., 17.];
        assert_near(spearman(&iq, &hours), -29.0 / 165.0);
    }

    #[test]
    fn equal_items_share_the_mean_of_their_ranks() {
        assert_eq!(of(&[3., 1., 3., 2., 3.]), [4., 1., 4., 2., 4.]);
        assert_eq!(of(&[5.0; 4]), [2.5; 4]);
        assert!(of(&[]).is_empty());
    }

    /// Without the correction for ties, the rank-difference formula gives 0.95 for the first pair
    /// of series.
    #[test]
    fn ties_are_corrected_for() {
        assert_near(
            spearman(&[1., 2., 2., 4.], &[1., 2., 3., 4.]),
            0.9_f64.sqrt(),
        );
        assert_near(spearman(&[1., 2., 2., 4.], &[1., 3., 3., 9.]), 1.0);
    }

    #[test]
    fn the_ends_are_the_same_order_and_the_reverse() {
        let up = [1., 2., 3., 4., 5.];
        let down = [9., 7., 5., 3., 1.];
        assert_near(spearman(&up, &up), 1.0);
        assert_near(spearman(&up, &down), -1.0);
    }

    #[test]
    fn without_an_order_there_is_no_correlation() {
        assert_eq!(spearman(&[1., 1., 1.], &[1., 2., 3.]), None);
        assert_eq!(spearman(&[1.], &[1.]), None);
        assert_eq!(rank_correlation(&[1., 2.], &[1., 2., 3.]), None);
    }

    /// Of three items, the first and the last differ, and both overlap with the middle one.
    #[test]
    fn a_chain_of_overlaps_has_ranks_too() {
        let found = ranks(3, |a, b| a == 0 && b == 2);
        assert_eq!(found, [1.5, 2.0, 2.5]);
    }
}
