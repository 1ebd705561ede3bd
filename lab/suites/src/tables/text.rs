//! Formatting of figures.

/// Content of a cell without a figure.
pub(crate) const NONE: &str = "-";

/// Formats a figure with three decimals, or fewer for larger figures. A tiny figure has an
/// exponent, and one that is not finite is a dash.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let size = value.abs();
    if size > 0.0 && size < 0.000_5 {
        return format!("{value:.1e}");
    }
    let decimals = match size {
        size if size >= 999.5 => 0,
        size if size >= 99.95 => 1,
        size if size >= 9.995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// Formats an estimate with its interval, such as `1.234 (1.100 to 1.400)`. An end that is not
/// finite is a dash.
pub(crate) fn interval(estimate: f64, low: f64, high: f64) -> String {
    format!("{} ({} to {})", number(estimate), number(low), number(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits() {
        assert_eq!(number(1.23456), "1.235");
        assert_eq!(number(75.3204), "75.32");
        assert_eq!(number(516_894.4), "516894");
        assert_eq!(number(0.000_012), "1.2e-5");
        assert_eq!(number(0.0), "0.000");
        assert_eq!(number(f64::NAN), "-");
        assert_eq!(interval(2.0, 1.5, 2.5), "2.000 (1.500 to 2.500)");
    }
}
