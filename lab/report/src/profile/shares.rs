//! Shares of a whole.

use crate::words::fraction;

/// Returns a part of a whole as a percentage. Only an empty part reads `0%`, and only the whole
/// reads `100%`. Returns `0%` if both are zero.
pub(crate) fn share(part: u64, whole: u64) -> String {
    let fraction_of = part as f64 / whole.max(1) as f64;
    match fraction_of {
        0.0 => "0%".to_owned(),
        small if small < 0.000_05 => "<0.01%".to_owned(),
        large if large >= 0.995 && part < whole => ">99%".to_owned(),
        known => fraction(known),
    }
}
