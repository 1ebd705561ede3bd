//! Parsers of the distances between the sample points of a recording.

/// Maximum mean distance between sample points, in bytes. No program requests more in one
/// recording.
const MAX_BYTES: u64 = 1 << 50;

/// Parses the mean distance between sample points, and returns it in requested bytes. Accepts a
/// size, such as `512KiB`, or a rate in points per byte: `1e-3` is one point in 1000 bytes.
pub fn sample(text: &str) -> Result<u64, String> {
    let wrong = || {
        "expected a rate above 0 and below 1, such as 1e-3, or a number of bytes above 1, such as \
         512KiB"
            .to_owned()
    };
    let bytes = match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate < 1.0 => (1.0 / rate).round(),
        _ => size(text).ok_or_else(wrong)?,
    };
    match bytes {
        2.0.. if bytes <= MAX_BYTES as f64 => Ok(bytes as u64),
        _ => Err(wrong()),
    }
}

/// Parses the distance of points at which a stack is recorded, as a mean number of requested bytes;
/// 1 means every recorded call.
pub fn stacks(text: &str) -> Result<u64, String> {
    match size(text) {
        Some(1.0) => Ok(1),
        _ => sample(text).map_err(|_| {
            "expected a number of bytes, such as 512KiB, or 1 for the stack of every recorded call"
                .to_owned()
        }),
    }
}

/// Parses a number of bytes, with a unit or without.
fn size(text: &str) -> Option<f64> {
    let digits = text.find(|it: char| !it.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let number: u64 = number.parse().ok()?;
    let shift = match unit.trim() {
        "" | "B" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "m" | "MiB" => 20,
        "G" | "g" | "GiB" => 30,
        _ => return None,
    };
    Some(number as f64 * f64::from(1_u32 << shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_may_be_those_of_every_call() {
        assert_eq!(stacks("1"), Ok(1));
        assert_eq!(stacks("64K"), Ok(64 << 10));
        assert!(stacks("0").is_err());
    }

    #[test]
    fn a_sample_is_a_rate_or_a_size() {
        assert_eq!(sample("1e-3"), Ok(1000));
        assert_eq!(sample("0.25"), Ok(4));
        assert_eq!(sample("512KiB"), Ok(512 << 10));
        assert_eq!(sample("512k"), Ok(512 << 10));
        assert_eq!(sample("2 MiB"), Ok(2 << 20));
        assert_eq!(sample("4096"), Ok(4096));
        for wrong in [
            "", "0", "1", "-1", "1.5", "0.9", "nan", "inf", "1e-300", "1e3", "512KB", "often",
            "9999999G",
        ] {
            assert!(sample(wrong).is_err(), "{wrong}");
        }
    }
}
