//! Parsing of sizes, and formatting of sizes, times, rates and ratios.

use heapdrome_schema::{Bytes, Nanoseconds, grouped};

/// Parses a size such as `512M` or `4G`. A number without a unit is in MiB.
///
/// # Errors
/// When the text is not a size, or out of range.
pub fn bytes(text: &str) -> Result<Bytes, String> {
    let text = text.trim();
    let (digits, shift) = match text.chars().last() {
        Some('K' | 'k') => (&text[..text.len() - 1], 10),
        Some('M' | 'm') => (&text[..text.len() - 1], 20),
        Some('G' | 'g') => (&text[..text.len() - 1], 30),
        _ => (text, 20),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("invalid size '{text}': write 512M, 4G, or a number of MiB"))?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0 && *bytes <= 1 << 46)
        .map(Bytes)
        .ok_or_else(|| format!("size '{text}' is out of range"))
}

/// Formats a size in whole GiB if it is a multiple of 1 GiB. Otherwise rounds it down to whole MiB
/// or, below 1 MiB, to whole KiB.
#[must_use]
pub fn size(Bytes(bytes): Bytes) -> String {
    match bytes {
        0..=0xf_ffff => format!("{}K", bytes >> 10),
        _ if bytes.is_multiple_of(1 << 30) => format!("{}G", bytes >> 30),
        _ => format!("{}M", bytes >> 20),
    }
}

/// Formats a time in nanoseconds with at most three significant digits.
pub(crate) fn time(nanoseconds: f64) -> String {
    Nanoseconds(nanoseconds.round() as u64).to_string()
}

/// Formats a rate with grouped thousands.
pub(crate) fn rate(number: f64) -> String {
    grouped(number.round_ties_even() as u64)
}

/// Formats the ratio of a limit to a working set in the document's notation, or as "all fits".
pub(crate) fn ratio(limit: Bytes, total: Bytes) -> String {
    let times = total.as_f64() / limit.as_f64().max(1.0);
    if times < 1.0 {
        "all fits".to_owned()
    } else {
        format!("1:{}", (times * 10.0).round() / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        assert_eq!(bytes("512M"), Ok(Bytes::from_mib(512)));
        assert_eq!(bytes("4G"), Ok(Bytes::from_gib(4)));
        assert_eq!(bytes("256"), Ok(Bytes::from_mib(256)));
        assert!(bytes("").is_err() && bytes("0").is_err() && bytes("1T").is_err());
        assert!(bytes("18446744073709551615G").is_err());
        assert_eq!(size(Bytes::from_mib(1536)), "1536M");
        assert_eq!(size(Bytes::from_gib(8)), "8G");
    }

    #[test]
    fn times_have_three_digits() {
        assert_eq!(time(2.0), "2 ns");
        assert_eq!(time(1_230.0), "1.23 µs");
        assert_eq!(time(76_200.0), "76.2 µs");
        assert_eq!(time(240_500.0), "240 µs");
        assert_eq!(time(3.7e6), "3.70 ms");
        assert_eq!(rate(1_234_567.8), "1,234,568");
        assert_eq!(rate(12.0), "12");
        assert_eq!(ratio(Bytes::from_mib(512), Bytes::from_gib(4)), "1:8");
        assert_eq!(ratio(Bytes::from_gib(1), Bytes::from_gib(1)), "1:1");
        assert_eq!(ratio(Bytes::from_gib(4), Bytes::from_gib(1)), "all fits");
    }
}
