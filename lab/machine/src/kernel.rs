//! Conditions of the kernel, the C library and the environment that affect measurements.

use std::io::Error;
use std::time::Duration;

use heapdrome_schema::Condition;

use crate::system;
use crate::tell::{good, note, read, unreadable, warning};

/// Returns all conditions of the kernel, of the C library and of this process's environment.
pub(crate) fn examine() -> Vec<Condition> {
    let clock = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    vec![
        release(),
        good(
            "C library",
            system::c_library(),
            "the system's allocator comes with it",
        ),
        layout(
            read("/proc/sys/kernel/randomize_va_space").as_deref(),
            system::layout_is_fixed(),
        ),
        perf(
            system::try_hardware_counter(),
            read("/proc/sys/kernel/perf_event_paranoid").as_deref(),
        ),
        tracing(
            system::try_trace(),
            read("/proc/sys/kernel/yama/ptrace_scope").as_deref(),
        ),
        clock_source(clock.as_deref(), system::clock_cost()),
        environment(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())),
    ]
}

/// Returns the distribution's name from the text of `os-release`.
pub(crate) fn distribution(os_release: &str) -> Option<String> {
    let field = |key: &str| {
        let value = os_release
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(value.trim().trim_matches(['"', '\'']).to_owned())
    };
    field("PRETTY_NAME").or_else(|| field("NAME"))
}

fn release() -> Condition {
    const MEANING: &str = "paging and the scheduler differ between kernels";
    good("kernel", system::kernel_release(), MEANING)
}

/// Checks whether address space layout randomisation (ASLR) is on, in the kernel and in this
/// process.
fn layout(mode: Option<&str>, fixed: Option<bool>) -> Condition {
    const NAME: &str = "random layout (ASLR)";
    const MEANING: &str =
        "without it all runs share one layout, whose chance effects look like a difference";
    const FIX: &str = "sudo sysctl kernel.randomize_va_space=2";
    if fixed == Some(true) {
        return warning(
            NAME,
            "off for this process",
            MEANING,
            "do not start under setarch -R",
        );
    }
    match mode {
        Some("2") => good(NAME, "on", MEANING),
        Some("1") => note(NAME, "on, except for the heap", MEANING, Some(FIX)),
        Some(_) => warning(NAME, "off", MEANING, FIX),
        None => unreadable(NAME, "/proc/sys/kernel/randomize_va_space", MEANING),
    }
}

/// Checks for hardware counters, by the outcome of opening one.
fn perf(tried: Result<(), Error>, paranoid: Option<&str>) -> Condition {
    const NAME: &str = "hardware counters (perf)";
    const MEANING: &str =
        "instructions, cycles and cache misses are reported only if counters exist";
    const FIX: &str = "sudo sysctl kernel.perf_event_paranoid=2";
    let level = paranoid.map_or_else(String::new, |level| {
        format!(" (perf_event_paranoid {level})")
    });
    let Err(error) = tried else {
        return good(NAME, format!("available{level}"), MEANING);
    };
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            note(NAME, format!("not permitted{level}"), MEANING, Some(FIX))
        }
        Some(libc::ENOSYS) => note(NAME, "not permitted or not in this kernel", MEANING, None),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            note(NAME, "this machine has none", MEANING, None)
        }
        _ => note(NAME, format!("none: {error}"), MEANING, None),
    }
}

/// Checks whether children can be traced, by the outcome of a trial. The proof requires tracing.
fn tracing(tried: Result<(), Error>, scope: Option<&str>) -> Condition {
    const NAME: &str = "tracing of children (ptrace)";
    const MEANING: &str = "without it there is no proof of which library served malloc";
    let yama = scope.map_or_else(String::new, |scope| format!(" (yama ptrace_scope {scope})"));
    match tried {
        Ok(()) => good(NAME, format!("works{yama}"), MEANING),
        Err(error) => {
            let fix = match scope {
                Some("3") => "boot with kernel.yama.ptrace_scope below 3",
                _ => "in a container, start it with --cap-add=SYS_PTRACE",
            };
            warning(NAME, format!("refused{yama}: {error}"), MEANING, fix)
        }
    }
}

/// Reports the clock source and the cost of one reading.
fn clock_source(source: Option<&str>, cost: Duration) -> Condition {
    const NAME: &str = "clock";
    const MEANING: &str =
        "a slow clock slows programs that read it often, equally under every allocator";
    let source = source.unwrap_or("source not readable here");
    let value = format!("{source}, {} ns a reading", cost.as_nanos());
    if cost <= Duration::from_nanos(200) {
        good(NAME, value, MEANING)
    } else {
        note(NAME, value, MEANING, None)
    }
}

/// Checks for environment variables that configure an allocator or preload a library.
fn environment(names: impl Iterator<Item = String>) -> Condition {
    const NAME: &str = "allocator settings in the environment";
    const MEANING: &str =
        "these variables reach every entrant and may change which library serves malloc";
    let steers = |name: &String| {
        let exact = ["LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "PYTHONMALLOC"];
        let families = [
            "MALLOC_",
            "_RJEM_",
            "MIMALLOC_",
            "SCUDO_OPTIONS",
            "TCMALLOC_",
            "TBB_MALLOC_",
        ];
        exact.contains(&name.as_str()) || families.iter().any(|family| name.starts_with(family))
    };
    let mut found: Vec<_> = names.filter(steers).collect();
    found.sort();
    if found.is_empty() {
        return good(NAME, "none", MEANING);
    }
    warning(
        NAME,
        found.join(", "),
        MEANING,
        &format!("unset {}", found.join(" ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_schema::Level;

    fn refused(number: i32) -> Result<(), Error> {
        Err(Error::from_raw_os_error(number))
    }

    #[test]
    fn the_distribution_is_read_with_and_without_quotes() {
        let debian = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(
            distribution(debian).as_deref(),
            Some("Debian GNU/Linux 12 (bookworm)")
        );
        assert_eq!(distribution("NAME=Void\n").as_deref(), Some("Void"));
        assert_eq!(distribution(""), None);
    }

    #[test]
    fn a_fixed_layout_of_this_process_outweighs_the_kernels_setting() {
        assert_eq!(layout(Some("2"), Some(true)).level, Level::Warning);
        assert_eq!(layout(Some("2"), Some(false)).level, Level::Good);
        assert_eq!(layout(Some("0"), None).level, Level::Warning);
        assert!(layout(None, None).value.starts_with("not readable here"));
    }

    #[test]
    fn a_counter_that_is_forbidden_is_told_from_one_that_is_not_there() {
        assert!(
            perf(refused(libc::EACCES), Some("4"))
                .value
                .contains("paranoid 4")
        );
        assert!(perf(refused(libc::EACCES), Some("4")).fix.is_some());
        assert_eq!(perf(refused(libc::ENOENT), Some("2")).fix, None);
        assert_eq!(perf(Ok(()), None).level, Level::Good);
    }

    #[test]
    fn refused_tracing_is_a_warning_with_a_mend() {
        let told = tracing(refused(libc::EPERM), Some("3"));
        assert_eq!(told.level, Level::Warning);
        assert!(told.fix.is_some_and(|fix| fix.contains("ptrace_scope")));
    }

    #[test]
    fn variables_that_steer_allocators_are_found() {
        let names = ["PATH", "MALLOC_ARENA_MAX", "LD_PRELOAD"].map(str::to_owned);
        assert_eq!(
            environment(names.into_iter()).value,
            "LD_PRELOAD, MALLOC_ARENA_MAX"
        );
        assert_eq!(
            environment(["HOME".to_owned()].into_iter()).level,
            Level::Good
        );
    }
}
