//! Kernel counters, read before and after a measured part. Those from `/proc/vmstat` and
//! `/proc/stat` cover the whole machine. The fault counts cover only this process.

use std::collections::BTreeMap;

/// Names of the recorded lines of `/proc/vmstat`.
const VMSTAT: [&str; 6] = [
    "pswpin",
    "pswpout",
    "swap_ra",
    "swap_ra_hit",
    "thp_swpout",
    "oom_kill",
];

/// Counters at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters(BTreeMap<&'static str, u64>);

impl Counters {
    /// Reads the current values. Omits counters that this kernel lacks.
    #[must_use]
    pub fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let mut counters = Self::of(&read("/proc/vmstat"), &read("/proc/stat"));
        // SAFETY: all zeros is a valid `rusage`, which is plain data; the call below overwrites it.
        let mut used: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `used` is a valid, writable `rusage` that outlives the call.
        if unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut used) } == 0 {
            let mut put = |name, value: i64| counters.0.insert(name, value.unsigned_abs());
            put("majflt", used.ru_majflt);
            put("minflt", used.ru_minflt);
        }
        counters
    }

    fn of(vmstat: &str, stat: &str) -> Self {
        let mut counters = BTreeMap::new();
        for (name, value) in vmstat.lines().filter_map(|line| line.split_once(' ')) {
            let known = VMSTAT.iter().find(|known| **known == name);
            if let (Some(known), Ok(value)) = (known, value.trim().parse()) {
                counters.insert(*known, value);
            }
        }
        let steal = stat
            .lines()
            .find_map(|line| line.strip_prefix("cpu "))
            .and_then(|line| line.split_whitespace().nth(7)?.parse().ok());
        if let Some(steal) = steal {
            counters.insert("steal_ticks", steal);
        }
        Self(counters)
    }

    /// Returns one counter; `None` if it is not recorded or this kernel lacks it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Returns the increase since `before` of each counter that was read both times.
    #[must_use]
    pub fn since(&self, before: &Self) -> BTreeMap<String, f64> {
        let grown = |(name, value): (&&str, &u64)| {
            let grown = value.saturating_sub(before.get(name)?);
            Some(((*name).to_owned(), grown as f64))
        };
        self.0.iter().filter_map(grown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_differences() {
        let before = Counters::of(
            "pswpin 5\nother 3\nswap_ra 1\n",
            "cpu  1 2 3 4 5 6 7 80 0 0\n",
        );
        let after = Counters::of("pswpin 9\nswap_ra 1\n", "cpu  1 2 3 4 5 6 7 83 0 0\n");
        let since = after.since(&before);
        assert_eq!(since["pswpin"], 4.0);
        assert_eq!(since["swap_ra"], 0.0);
        assert_eq!(since["steal_ticks"], 3.0);
        assert!(!since.contains_key("other"));
    }

    #[test]
    fn faults_of_this_process_are_counted() {
        let before = Counters::now();
        let page = vec![1_u8; 32 << 20];
        assert!(page.iter().all(|byte| *byte == 1));
        assert!(Counters::now().since(&before)["minflt"] >= 1.0);
    }
}
