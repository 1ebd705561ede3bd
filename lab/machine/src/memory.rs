//! Memory: its amount, huge pages, swap, overcommit and limits. Also free disk space.

use heapdrome_schema::{Bytes, Condition};

use heapdrome_system::kernel::{HUGE_PAGES, chosen, keyed};

use crate::tell::{good, note, read, unreadable, warning};

/// Returns all conditions of memory that require no observation over time.
pub(crate) fn examine() -> Vec<Condition> {
    let meminfo = read("/proc/meminfo").unwrap_or_default();
    vec![
        huge_pages(read(HUGE_PAGES).as_deref()),
        free_memory(&meminfo),
        overcommit(read("/proc/sys/vm/overcommit_memory").as_deref()),
        address_space(heapdrome_system::room::address_space_limit()),
    ]
}

/// Returns the machine's memory in bytes, or 0 if it is unknown.
pub(crate) fn total(meminfo: &str) -> u64 {
    keyed(meminfo, "MemTotal:").map_or(0, |kib| Bytes::from_kib(kib).0)
}

/// Checks the kernel's policy for transparent huge pages.
fn huge_pages(enabled: Option<&str>) -> Condition {
    const NAME: &str = "transparent huge pages";
    const ALWAYS: &str =
        "the kernel uses huge pages for every program: faster, but peak memory varies by chance";
    const MADVISE: &str = "only allocators that request huge pages get them";
    const NEVER: &str =
        "allocators that request huge pages do not get them, and may lose on this machine only";
    let fix = format!("echo madvise | sudo tee {HUGE_PAGES}");
    let fix = Some(fix.as_str());
    match enabled.and_then(chosen) {
        Some("always") => note(NAME, "always", ALWAYS, fix),
        Some("madvise") => good(NAME, "madvise", MADVISE),
        Some(other) => note(NAME, other, NEVER, fix),
        None => unreadable(NAME, HUGE_PAGES, ALWAYS),
    }
}

/// Checks the memory that is available without swapping.
fn free_memory(meminfo: &str) -> Condition {
    const NAME: &str = "free memory";
    const MEANING: &str = "when memory is short, the kernel reclaims pages during timed runs";
    let both = (keyed(meminfo, "MemAvailable:"), keyed(meminfo, "MemTotal:"));
    let (Some(available), Some(all)) = both else {
        return unreadable(NAME, "/proc/meminfo", MEANING);
    };
    let value = format!("{} of {}", Bytes::from_kib(available), Bytes::from_kib(all));
    if available < 512 * 1024 || available < all / 10 {
        let fix = "stop processes that use much memory: ps -eo pid,rss,comm --sort=-rss | head";
        return warning(NAME, value, MEANING, fix);
    }
    good(NAME, value, MEANING)
}

/// Checks for swap in use and for swapping during the observation. `moved` is the number of pages
/// swapped in or out; `None` if `/proc/vmstat` does not show it.
pub(crate) fn swap(meminfo: &str, moved: Option<u64>) -> Condition {
    const NAME: &str = "swap";
    const MEANING: &str = "swapped pages are missing from peaks of resident memory, and cost time";
    let both = (keyed(meminfo, "SwapTotal:"), keyed(meminfo, "SwapFree:"));
    let (Some(all), Some(free)) = both else {
        return unreadable(NAME, "/proc/meminfo", MEANING);
    };
    if all == 0 {
        return good(NAME, "none", MEANING);
    }
    let used = Bytes::from_kib(all.saturating_sub(free));
    let value = format!("{used} of {} used", Bytes::from_kib(all));
    let fix = "sudo swapoff -a";
    match moved {
        Some(0) => note(NAME, value, MEANING, Some(fix)),
        Some(pages) => warning(
            NAME,
            format!("{value}, {pages} pages moved just now"),
            MEANING,
            fix,
        ),
        None => note(
            NAME,
            format!("{value}; swap activity is not readable here"),
            MEANING,
            Some(fix),
        ),
    }
}

/// Checks whether processes may reserve more memory than the machine has.
fn overcommit(mode: Option<&str>) -> Condition {
    const NAME: &str = "overcommit";
    const MEANING: &str =
        "allocators that reserve large address ranges need the kernel to overcommit memory";
    match mode {
        Some("0") => good(NAME, "0, heuristic (the default)", MEANING),
        Some("1") => good(NAME, "1, always", MEANING),
        Some(other) => {
            let value = format!("{other}, never");
            warning(NAME, value, MEANING, "sudo sysctl vm.overcommit_memory=0")
        }
        None => unreadable(NAME, "/proc/sys/vm/overcommit_memory", MEANING),
    }
}

/// Checks for a limit on the address space of a process.
fn address_space(limit: Option<Bytes>) -> Condition {
    const NAME: &str = "address space limit (ulimit -v)";
    const MEANING: &str =
        "allocators that reserve large address ranges fail under limits that others respect";
    match limit {
        None => good(NAME, "none", MEANING),
        Some(bytes) => warning(NAME, bytes.to_string(), MEANING, "ulimit -v unlimited"),
    }
}

/// Checks the free space in a folder's file system.
pub(crate) fn free_disk(label: &str, free: Option<u64>) -> Condition {
    const MEANING: &str =
        "sources, built allocators and the journal of a race need a few hundred MiB";
    let name = format!("free disk ({label})");
    match free {
        None => unreadable(&name, "the file system does not report it", MEANING),
        Some(bytes) if bytes < 1 << 30 => warning(
            &name,
            Bytes(bytes).to_string(),
            MEANING,
            "free some space; `df -h` shows where",
        ),
        Some(bytes) => good(&name, Bytes(bytes).to_string(), MEANING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_schema::Level;

    const MEMINFO: &str = "MemTotal:       24683484 kB\nMemFree:        24000000 kB\nMemAvailable:   24318976 kB\nSwapTotal:       2097148 kB\nSwapFree:        1048572 kB\n";

    #[test]
    fn swap_in_use_is_a_note_and_moving_pages_a_warning() {
        assert_eq!(swap(MEMINFO, Some(0)).level, Level::Note);
        assert_eq!(swap(MEMINFO, Some(0)).value, "1.00 GiB of 2.00 GiB used");
        assert_eq!(swap(MEMINFO, Some(7)).level, Level::Warning);
        assert_eq!(
            swap("SwapTotal: 0 kB\nSwapFree: 0 kB\n", Some(0)).value,
            "none"
        );
        assert!(swap("", Some(0)).value.starts_with("not readable here"));
    }

    #[test]
    fn little_free_memory_is_a_warning() {
        assert_eq!(free_memory(MEMINFO).level, Level::Good);
        let short = "MemTotal: 24683484 kB\nMemAvailable: 400000 kB\n";
        assert_eq!(free_memory(short).level, Level::Warning);
        assert_eq!(total(MEMINFO), 24_683_484 * 1024);
        assert_eq!(total(""), 0);
    }

    #[test]
    fn the_chosen_word_is_read_from_its_brackets() {
        assert_eq!(huge_pages(Some("[always] madvise never")).value, "always");
        assert_eq!(
            huge_pages(Some("always [madvise] never")).level,
            Level::Good
        );
        assert_eq!(huge_pages(Some("always madvise [never]")).value, "never");
        assert!(huge_pages(None).value.starts_with("not readable here"));
    }

    #[test]
    fn limits_that_break_allocators_are_warnings() {
        assert_eq!(overcommit(Some("2")).level, Level::Warning);
        assert_eq!(overcommit(Some("0")).level, Level::Good);
        assert_eq!(address_space(Some(Bytes(4 << 30))).value, "4.00 GiB");
        assert_eq!(free_disk("x", Some(1 << 20)).level, Level::Warning);
    }
}
