//! Sentences about the estimates from a sampled trace.

use heapdrome_profile::Profile;
use heapdrome_schema::Bytes;

use crate::words::{count, grouped};

/// Returns the word that precedes an estimated amount; empty if the amount is exact.
pub(crate) fn about(profile: &Profile) -> &'static str {
    match profile.sampling().is_whole() {
        true => "",
        false => "about ",
    }
}

/// Returns the interval of an estimate from half of its width: `240 MiB to 260 MiB`.
pub(crate) fn interval(estimate: u64, half: u64, tell: impl Fn(u64) -> String) -> String {
    let [low, high] = [estimate.saturating_sub(half), estimate.saturating_add(half)];
    format!("{} to {}", tell(low), tell(high))
}

/// Returns bytes, followed by their interval in parentheses if they are an estimate.
pub(crate) fn with_interval(profile: &Profile, bytes: u64, half: u64) -> String {
    let tell = |bytes: u64| Bytes(bytes).to_string();
    match profile.sampling().is_whole() {
        true => tell(bytes),
        false => format!("about {} ({})", tell(bytes), interval(bytes, half, tell)),
    }
}

/// Returns sentences on the number of recorded blocks and the accuracy of the figures; `None` if
/// every block was recorded.
pub(crate) fn sampled(profile: &Profile) -> Option<String> {
    let sampling = profile.sampling();
    if sampling.is_whole() {
        return None;
    }
    let counts = &profile.all.counts;
    let half = counts.made_variance.half_width();
    let made = interval(counts.made.blocks, half.blocks, grouped);
    Some(format!(
        "{} of {made} were recorded: one for every {} requested. All amounts of blocks and bytes are \
         estimates, with 95% intervals in parentheses; the program requested {}. A sample shows \
         neither resizes nor which calls followed each other.",
        count(counts.recorded, "block"),
        Bytes(sampling.mean()),
        with_interval(profile, counts.made.bytes, half.bytes),
    ))
}
