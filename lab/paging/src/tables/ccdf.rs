//! Distributions as tables.

use heapdrome_schema::{Distribution, Table};

use super::table;

/// Length of the longest bar in characters.
const LONGEST: f64 = 30.0;

/// Makes the table of the complementary cumulative distribution. Each row shows the number of
/// values above a bound, and a bar whose length is linear in the logarithm of their share.
#[must_use]
pub fn ccdf_table(title: &str, distribution: &Distribution) -> Table {
    let smallest = (distribution.count().max(10) as f64).log10();
    let bar = |share: f64| {
        let length = if share > 0.0 {
            1.0 + share.log10() / smallest
        } else {
            0.0
        };
        "#".repeat((length * LONGEST).round() as usize)
    };
    let rows = distribution.ccdf().into_iter().map(|point| {
        vec![
            point.time.to_string(),
            format!("{:.6}", point.share),
            point.above.to_string(),
            bar(point.share),
        ]
    });
    let heads = ["latency x", "P(X>x)", "count", "log P"];
    let mut made = table(title, &heads, rows.collect(), &[]);
    made.notes.push(format!("{} samples", distribution.count()));
    made
}

#[cfg(test)]
mod tests {
    use heapdrome_schema::Nanoseconds;

    use super::*;

    #[test]
    fn the_bar_of_a_ccdf_shortens_to_nothing() {
        let table = ccdf_table(
            "x",
            &Distribution::new(
                [(1, 900), (2, 90), (3, 10)].map(|(time, count)| (Nanoseconds(time), count)),
            ),
        );
        let lengths: Vec<usize> = table.rows.iter().map(|row| row[3].len()).collect();
        assert!(lengths.windows(2).all(|two| two[0] > two[1]), "{lengths:?}");
        assert_eq!(lengths.last(), Some(&0));
    }
}
