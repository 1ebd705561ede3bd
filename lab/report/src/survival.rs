//! The allocators that need the least memory, from searches for the smallest limits.

use heapdrome_schema::{Bytes, Survival};

/// Names of the two kinds of search.
pub(crate) const KINDS: [&str; 2] = ["without swap", "with swap"];

/// Returns `with swap` or `without swap`, the name of the kind of search.
#[must_use]
pub fn kind(swap: bool) -> &'static str {
    KINDS[usize::from(swap)]
}

/// Returns at most two remarks, on the allocators that need the least memory without swap and with
/// swap. A single limit is not compared.
#[must_use]
pub fn needs_least(rows: &[Survival]) -> Vec<String> {
    let of = |swap: bool| rows.iter().filter(move |row| row.swap == swap);
    let remarks = [false, true].map(|swap| least(&of(swap).collect::<Vec<_>>()));
    remarks.into_iter().flatten().collect()
}

/// Names every allocator of `rows` whose limit is indistinguishable from the smallest one. `None`
/// if fewer than two limits are known.
fn least(rows: &[&Survival]) -> Option<String> {
    let known: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((*row, row.smallest_bytes?)))
        .collect();
    let least = known.iter().map(|(_, bytes)| *bytes).min()?;
    let alike = known
        .iter()
        .filter(|(row, _)| row.insufficient_bytes() < least);
    let alike: Vec<_> = alike.collect();
    let names: Vec<&str> = alike
        .iter()
        .map(|(row, _)| row.allocator.as_str())
        .collect();
    let most = alike.iter().map(|(_, bytes)| *bytes).max()?;
    let kind = kind(rows.first()?.swap);
    match (known.len(), names.as_slice()) {
        (1, _) => None,
        (_, [name]) => Some(format!("{kind} {name} needs the least: {}", Bytes(least))),
        (_, names) => Some(format!(
            "{kind} these need the least, and about the same within the precision of the search: {} ({} \
             to {})",
            names.join(", "),
            Bytes(least),
            Bytes(most)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_schema::Trial;

    const MIB: u64 = 1 << 20;

    /// Returns a search in which the limit `smallest` sufficed, and `failed` did not.
    fn row(name: &str, failed: u64, smallest: u64) -> Survival {
        let trial = |limit_bytes: u64, failure: Option<&str>| Trial {
            limit_bytes,
            failure: failure.map(str::to_owned),
            ..Trial::default()
        };
        Survival {
            allocator: name.to_owned(),
            smallest_bytes: Some(smallest),
            trials: vec![
                trial(2 * smallest, None),
                trial(failed / 2, Some("killed")),
                trial(failed, Some("killed")),
                trial(smallest, None),
            ],
            ..Survival::default()
        }
    }

    #[test]
    fn limits_that_the_precision_cannot_tell_apart_are_named_together() {
        let rows = [
            row("system", 29 * MIB, 30 * MIB),
            row("mine", 19 * MIB, 20 * MIB),
            row("yours", 19 * MIB + MIB / 2, 20 * MIB + MIB / 2),
        ];
        assert_eq!(
            needs_least(&rows),
            [
                "without swap these need the least, and about the same within the precision of the \
                 search: mine, yours (20.0 MiB to 20.5 MiB)"
            ]
        );
    }

    /// Each allocator may need any limit above the largest one under which it failed. Only `far`
    /// failed under a limit at which `least` succeeded.
    #[test]
    fn a_coarse_search_tells_only_far_limits_apart() {
        let rows = [
            row("near", 10 * MIB - MIB / 2, 19 * MIB),
            row("least", 5 * MIB, 10 * MIB),
            row("far", 10 * MIB, 20 * MIB),
        ];
        let told = needs_least(&rows).join("");
        assert!(
            told.ends_with("near, least (10.0 MiB to 19.0 MiB)"),
            "{told}"
        );
    }

    #[test]
    fn limits_are_compared_with_the_same_kind_of_swap_only() {
        let with_swap = |row: Survival| Survival { swap: true, ..row };
        let rows = [
            row("mine", 19 * MIB, 20 * MIB),
            row("yours", 9 * MIB, 10 * MIB),
            with_swap(row("mine", 4 * MIB, 5 * MIB)),
        ];
        assert_eq!(
            needs_least(&rows),
            ["without swap yours needs the least: 10.0 MiB"]
        );
    }
}
