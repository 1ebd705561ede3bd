//! Sizes and times as people write them.

use heapdrome_record::Nanoseconds;

/// Reads a size such as `512M`, `4G` or a number of MiB.
///
/// # Errors
/// When the text is none, or out of range.
pub fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (digits, shift) = match text.chars().last() {
        Some('K' | 'k') => (&text[..text.len() - 1], 10),
        Some('M' | 'm') => (&text[..text.len() - 1], 20),
        Some('G' | 'g') => (&text[..text.len() - 1], 30),
        _ => (text, 20),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("'{text}' is no size; write 512M, 4G, or a number of MiB"))?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0 && *bytes <= 1 << 46)
        .ok_or_else(|| format!("'{text}' is out of range"))
}

/// A number of bytes, as short as it is exact to MiB.
#[must_use]
pub fn size(bytes: u64) -> String {
    match bytes {
        0..=0xf_ffff => format!("{}K", bytes >> 10),
        _ if bytes.is_multiple_of(1 << 30) => format!("{}G", bytes >> 30),
        _ => format!("{}M", bytes >> 20),
    }
}

/// A time in nanoseconds with three significant digits.
#[must_use]
pub fn time(nanoseconds: f64) -> String {
    Nanoseconds(nanoseconds.round() as u64).to_string()
}

/// A rate with its thousands set apart.
pub(crate) fn rate(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How much of a working set a limit holds, as the document writes it.
#[must_use]
pub fn ratio(limit: u64, total: u64) -> String {
    let times = total as f64 / limit.max(1) as f64;
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
        assert_eq!(bytes("512M"), Ok(512 << 20));
        assert_eq!(bytes("4G"), Ok(4 << 30));
        assert_eq!(bytes("256"), Ok(256 << 20));
        assert!(bytes("").is_err() && bytes("0").is_err() && bytes("1T").is_err());
        assert!(bytes("18446744073709551615G").is_err());
        assert_eq!(size(1536 << 20), "1536M");
        assert_eq!(size(8 << 30), "8G");
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
        assert_eq!(ratio(512 << 20, 4 << 30), "1:8");
        assert_eq!(ratio(1 << 30, 1 << 30), "1:1");
        assert_eq!(ratio(4 << 30, 1 << 30), "all fits");
    }
}
