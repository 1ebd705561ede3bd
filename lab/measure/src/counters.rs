//! Counters of the processor and the kernel, as far as they are available.

use std::collections::BTreeMap;
use std::io;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Software};
use perf_event::{Builder, Counter};

/// A counter and its availability on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// Name of the counter in perf, with `:u` if it counts only user mode.
    pub name: String,
    /// Reason why the counter is unavailable; `None` if it is available.
    pub missing: Option<String>,
}

/// Returns the availability of every counter that heapdrome reads.
pub fn available() -> Vec<Availability> {
    let tried = KINDS.iter().map(|kind| match open(*kind) {
        Ok((name, _)) => Availability {
            name,
            missing: None,
        },
        Err(error) => Availability {
            name: kind.name().to_owned(),
            missing: Some(reason(*kind, &error)),
        },
    });
    tried.collect()
}

/// Kind of counter. Context switches are missing here, because `wait4` reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Instructions,
    Cycles,
    CacheMisses,
    DataTlbLoadMisses,
    TaskClock,
    PageFaults,
    CpuMigrations,
}

const KINDS: [Kind; 7] = [
    Kind::Instructions,
    Kind::Cycles,
    Kind::CacheMisses,
    Kind::DataTlbLoadMisses,
    Kind::TaskClock,
    Kind::PageFaults,
    Kind::CpuMigrations,
];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Cycles => "cycles",
            Self::CacheMisses => "cache-misses",
            Self::DataTlbLoadMisses => "dTLB-load-misses",
            Self::TaskClock => "task-clock",
            Self::PageFaults => "page-faults",
            Self::CpuMigrations => "cpu-migrations",
        }
    }

    fn is_of_the_processor(self) -> bool {
        !matches!(
            self,
            Self::TaskClock | Self::PageFaults | Self::CpuMigrations
        )
    }

    fn builder(self) -> Builder<'static> {
        match self {
            Self::Instructions => Builder::new(Hardware::INSTRUCTIONS),
            Self::Cycles => Builder::new(Hardware::CPU_CYCLES),
            Self::CacheMisses => Builder::new(Hardware::CACHE_MISSES),
            Self::DataTlbLoadMisses => Builder::new(Cache {
                which: CacheId::DTLB,
                operation: CacheOp::READ,
                result: CacheResult::MISS,
            }),
            Self::TaskClock => Builder::new(Software::TASK_CLOCK),
            Self::PageFaults => Builder::new(Software::PAGE_FAULTS),
            Self::CpuMigrations => Builder::new(Software::CPU_MIGRATIONS),
        }
    }
}

/// Opens a counter for children that start later. Counting starts at a child's exec, and therefore
/// never in this process, which does not exec. If counting in the kernel is forbidden, the counter
/// covers user mode only, and its name ends in `:u`.
fn open(kind: Kind) -> io::Result<(String, Counter)> {
    let mut builder = kind.builder();
    builder
        .inherit(true)
        .enable_on_exec(true)
        .exclude_kernel(false)
        .exclude_hv(false);
    match builder.build() {
        Ok(counter) => Ok((kind.name().to_owned(), counter)),
        Err(error) if is_forbidden(&error) => {
            let counter = builder.exclude_kernel(true).exclude_hv(true).build()?;
            Ok((format!("{}:u", kind.name()), counter))
        }
        Err(error) => Err(error),
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn reason(kind: Kind, error: &io::Error) -> String {
    if is_forbidden(error) {
        return "forbidden; lower kernel.perf_event_paranoid, or allow perf_event_open".to_owned();
    }
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) if kind.is_of_the_processor() => {
            "this processor, or the virtual machine, has no such counter".to_owned()
        }
        Some(libc::ENOSYS) => "this kernel has no perf_event_open".to_owned(),
        _ => error.to_string(),
    }
}

/// Counters of one run.
pub(crate) struct Counters(Vec<(String, Counter)>);

impl Counters {
    /// Opens all available counters if `wanted`, otherwise none.
    pub(crate) fn open(wanted: bool) -> Self {
        if !wanted {
            return Self(Vec::new());
        }
        Self(KINDS.iter().filter_map(|kind| open(*kind).ok()).collect())
    }

    /// Returns the counts of the children that have ended. A counter that shared the processor's
    /// registers with others is scaled to the whole time, as in perf. A counter that never ran is
    /// omitted.
    pub(crate) fn read(&mut self) -> BTreeMap<String, u64> {
        let read = self.0.iter_mut().filter_map(|(name, counter)| {
            let data = counter.read_full().ok()?;
            let (enabled, running) = (data.time_enabled()?, data.time_running()?);
            let scale = enabled.as_secs_f64() / running.as_secs_f64();
            if !scale.is_finite() {
                return None;
            }
            let count = if enabled == running {
                data.count()
            } else {
                (data.count() as f64 * scale).round() as u64
            };
            Some((name.clone(), count))
        });
        read.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_there_or_says_why_not() {
        let all = available();
        assert_eq!(all.len(), KINDS.len());
        assert!(
            all.iter()
                .all(|one| one.missing.as_ref().is_none_or(|why| !why.is_empty()))
        );
    }

    #[test]
    fn what_a_child_does_is_counted_and_what_this_process_does_is_not() {
        let mut counters = Counters::open(true);
        let pages = vec![1_u8; 64 << 20];
        let status = std::process::Command::new("/bin/true")
            .status()
            .expect("true runs");
        assert!(status.success());
        assert!(pages.iter().step_by(4096).all(|&byte| byte == 1));
        let faults = counters
            .read()
            .into_iter()
            .find(|(name, _)| name.starts_with("page-faults"));
        if let Some((_, faults)) = faults {
            assert!((10..5000).contains(&faults), "{faults}");
        }
    }
}
