//! Jobs of a child process of the paging lab, and its reports.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Distribution;
use crate::{Bytes, Entrant};

/// Instructions for a child, which receives them as one argument in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instructions {
    /// Files to which the child writes its process id before anything else, in order to enter
    /// control groups.
    pub join: Vec<PathBuf>,
    /// Job that the child then runs.
    pub job: Job,
}

/// Job of one child process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Job {
    /// Reports the limits in force, and does nothing else.
    Probe,
    /// Allocates and releases regions.
    Throughput(Throughput),
    /// Reads random pages of a working set.
    Read(Read),
    /// Allocates regions from a pool whose memory may be in swap.
    Recycle(Recycle),
    /// Allocates a large amount of memory, then releases all of it.
    Burst(Burst),
}

impl Job {
    /// Returns the size of the job's working set; 0 for a job without a working set of fixed size.
    pub fn working_set(&self) -> Bytes {
        match self {
            Self::Read(job) => job.total,
            Self::Recycle(job) => job.total,
            Self::Probe | Self::Throughput(_) | Self::Burst(_) => Bytes(0),
        }
    }

    /// Returns the source of the job's memory; `None` for a job without this setting.
    pub fn holder(&self) -> Option<Holder> {
        match self {
            Self::Read(job) => Some(job.holder),
            Self::Recycle(job) => Some(job.holder),
            Self::Burst(job) => Some(job.holder),
            Self::Probe | Self::Throughput(_) => None,
        }
    }
}

/// Job that allocates and releases regions of 2 MiB for a period of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Method of allocation.
    pub variant: Variant,
    /// Number of concurrent threads.
    pub threads: usize,
    /// Duration of the warm-up.
    #[serde(with = "as_seconds")]
    pub warm_up: Duration,
    /// Duration of the measurement.
    #[serde(with = "as_seconds")]
    pub seconds: Duration,
}

/// Method of allocating and releasing a region. The variants are the ten methods of the published
/// document, two bounds (the clock alone, and a region that is never released), the published
/// crate, and plain `malloc`. As in the document's own program, `sysalloc` calls `posix_memalign`
/// for page-aligned blocks. The C library maps and unmaps such a block each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// No allocation, only two readings of the clock.
    Clock,
    /// One region of heapdrome's lgalloc that is never released, with one byte of each page
    /// written. This measures the cost of the memory itself.
    Preallocated,
    /// heapdrome's lgalloc.
    Lgalloc,
    /// heapdrome's lgalloc, with one byte of each page written.
    LgallocTouch,
    /// The published crate lgalloc 0.7.
    Published,
    /// The published crate lgalloc 0.7, with one byte of each page written.
    PublishedTouch,
    /// Page-aligned `posix_memalign`, and `free`.
    Sysalloc,
    /// Page-aligned `posix_memalign` and `free`, with one byte of each page written.
    SysallocTouch,
    /// Page-aligned `posix_memalign`, `MADV_NOHUGEPAGE`, and `free`.
    SysallocNohuge,
    /// Page-aligned `posix_memalign`, `MADV_NOHUGEPAGE`, and `free`, with one byte of each page
    /// written.
    SysallocNohugeTouch,
    /// `malloc` and `free`. From the first `free` on, the C library keeps an unaligned block of
    /// this size instead of unmapping it.
    Malloc,
    /// `malloc` and `free`, with one byte of each page written.
    MallocTouch,
    /// `mmap` and `munmap`.
    Mmap,
    /// `mmap` and `munmap`, with one byte of each page written.
    MmapTouch,
    /// `MADV_DONTNEED` on one mapping, whose pages are then written.
    MmapDontneed,
    /// `MADV_FREE` on one mapping, whose pages are then written.
    MmapFree,
}

impl Variant {
    /// Every variant, the bounds first.
    pub const ALL: [Self; 16] = [
        Self::Clock,
        Self::Preallocated,
        Self::Published,
        Self::PublishedTouch,
        Self::Lgalloc,
        Self::LgallocTouch,
        Self::Sysalloc,
        Self::SysallocTouch,
        Self::SysallocNohuge,
        Self::SysallocNohugeTouch,
        Self::Malloc,
        Self::MallocTouch,
        Self::Mmap,
        Self::MmapTouch,
        Self::MmapDontneed,
        Self::MmapFree,
    ];

    /// Returns the variant's name in tables. The variants of the published document have its names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clock => "(clock alone)",
            Self::Preallocated => "(preallocated+touch)",
            Self::Published => "lgalloc-published",
            Self::PublishedTouch => "lgalloc-published+touch",
            Self::Lgalloc => "lgalloc",
            Self::LgallocTouch => "lgalloc+touch",
            Self::Sysalloc => "sysalloc",
            Self::SysallocTouch => "sysalloc+touch",
            Self::SysallocNohuge => "sysalloc+nohuge",
            Self::SysallocNohugeTouch => "sysalloc+nohuge+touch",
            Self::Malloc => "malloc",
            Self::MallocTouch => "malloc+touch",
            Self::Mmap => "mmap/munmap",
            Self::MmapTouch => "mmap/munmap+touch",
            Self::MmapDontneed => "mmap/madvise_dontneed",
            Self::MmapFree => "mmap/madvise_free",
        }
    }
}

/// Job that reads random pages of a working set of incompressible pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Read {
    /// Size of the working set.
    pub total: Bytes,
    /// Number of reader threads.
    pub threads: usize,
    /// Advice to the kernel before pages are read.
    pub strategy: Strategy,
    /// Source of the memory of the working set.
    pub holder: Holder,
    /// Order in which a reader draws pages.
    pub order: Order,
    /// Seed of the page contents and of the draws.
    pub seed: u64,
    /// Maximum duration of the warm-up. After this time the warm-up ends, even if write-back has
    /// not settled.
    #[serde(with = "as_seconds")]
    pub warm_up: Duration,
    /// Duration of the measurement.
    #[serde(with = "as_seconds")]
    pub seconds: Duration,
}

/// Order in which a reader draws pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Independently and uniformly.
    #[default]
    Uniform,
    /// Every page once in a shuffled order, repeatedly.
    Permutation,
}

/// Source of a job's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holder {
    /// Regions of heapdrome's lgalloc.
    #[default]
    Lgalloc,
    /// Page-aligned blocks (`posix_memalign`) of the C library or of the preloaded allocator.
    Malloc,
    /// Anonymous mappings that the job keeps.
    Mapped,
    /// Regions of the published crate lgalloc 0.7, with its defaults.
    Published,
    /// Regions of the published crate lgalloc 0.7, with the background worker that its own
    /// benchmark enables.
    PublishedWorker,
}

impl Holder {
    /// Returns the holder's name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lgalloc => "lgalloc",
            Self::Malloc => "sysalloc",
            Self::Mapped => "mapped",
            Self::Published => "lgalloc-published",
            Self::PublishedWorker => "lgalloc-published+worker",
        }
    }

    /// Returns the name of `allocator`, which serves `malloc`; without one, the holder's name.
    pub fn name_of(self, allocator: Option<&Entrant>) -> &str {
        allocator.map_or(self.name(), |allocator| &allocator.name)
    }
}

/// Advice to the kernel before pages are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// No advice.
    #[default]
    Baseline,
    /// `MADV_RANDOM` on everything.
    Random,
    /// `MADV_SEQUENTIAL` on everything.
    Sequential,
    /// No advice on the whole working set. A second thread for each reader prefetches pages.
    Prefetch {
        /// Number of reads by which the second thread is ahead.
        ahead: usize,
    },
    /// The reader requests `pages` pages with `MADV_WILLNEED`, then reads them.
    Batch {
        /// Number of pages in a batch.
        pages: usize,
    },
    /// lgalloc's own reader, which prefetches `pages` pages before it reads them.
    Reader {
        /// Number of pages in a batch.
        pages: usize,
    },
    /// `MADV_RANDOM` on everything, and a second thread as in [`Strategy::Prefetch`].
    RandomPrefetch {
        /// Number of reads by which the second thread is ahead.
        ahead: usize,
    },
}

impl Strategy {
    /// Returns the strategy's name in the published document.
    pub fn name(self) -> String {
        match self {
            Self::Baseline => "baseline".to_owned(),
            Self::Random => "MADV_RANDOM".to_owned(),
            Self::Sequential => "MADV_SEQUENTIAL".to_owned(),
            Self::Prefetch { ahead } => format!("prefetch ({ahead} ahead)"),
            Self::Batch { pages } => format!("batch{pages}+WILLNEED"),
            Self::Reader { pages } => format!("Reader (batch {pages})"),
            Self::RandomPrefetch { ahead } => format!("MADV_RANDOM+pf ({ahead} ahead)"),
        }
    }

    /// Returns whether every read of a non-resident page must be a major fault of the reader,
    /// because nothing prefetches pages.
    pub fn leaves_faults_to_the_reader(self) -> bool {
        matches!(self, Self::Baseline | Self::Random | Self::Sequential)
    }
}

/// Job that fills regions and releases half of them to the allocator. It then allocates the
/// released regions again, first each region once, then one region at a time in each thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recycle {
    /// Total size of all regions. Each region has 2 MiB.
    pub total: Bytes,
    /// Thread counts, measured one after another in the same process. Each thread repeatedly
    /// allocates one region.
    pub threads: Vec<usize>,
    /// Source of the regions.
    pub holder: Holder,
    /// Seed of the page contents.
    pub seed: u64,
    /// Duration of the repeated allocations with each number of threads, and maximum duration of
    /// the first allocations.
    #[serde(with = "as_seconds")]
    pub seconds: Duration,
}

impl Recycle {
    /// Returns the name of the figure that counts allocations per second with `threads` threads.
    pub fn rate_figure(threads: usize) -> String {
        match threads {
            1 => "hot_per_s".to_owned(),
            more => format!("hot_per_s_x{more}"),
        }
    }
}

/// Job that allocates regions of several sizes in several threads, writes to all their pages, and
/// releases all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// Source of the regions: heapdrome's lgalloc, or the published crate.
    pub holder: Holder,
    /// Number of threads.
    pub threads: usize,
    /// Amount of memory that each thread allocates in regions of each size. At least one region of
    /// each size is allocated.
    pub each: Bytes,
}

/// Report of a child process on its job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PagingReport {
    /// Memory limit that the child read back.
    pub memory_limit: Option<Bytes>,
    /// Swap limit that the child read back.
    pub swap_limit: Option<Bytes>,
    /// Quota of processor time that the child read back, in processors.
    #[serde(default)]
    pub processors: Option<f64>,
    /// Figures by name. The name of a figure with a unit contains the unit.
    pub figures: BTreeMap<String, f64>,
    /// Latencies by the name of the timed operation.
    pub distributions: BTreeMap<String, Distribution>,
    /// Object that serves `malloc` in the child.
    #[serde(default)]
    pub malloc: Option<PathBuf>,
    /// Round in which the report was made, counted from 1.
    #[serde(default)]
    pub round: u32,
    /// Remarks for the reader.
    pub remarks: Vec<String>,
    /// Reason why the figures must not be used, if any.
    pub rejected: Option<String>,
}

/// Durations, stored as a number of seconds.
mod as_seconds {
    use std::time::Duration;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Longest accepted duration, one day. No part of an experiment takes longer.
    const LONGEST: Duration = Duration::from_secs(86_400);

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        time.as_secs_f64().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let time = Duration::try_from_secs_f64(f64::deserialize(from)?);
        let time = time.ok().filter(|time| *time <= LONGEST);
        time.ok_or_else(|| D::Error::custom("seconds are out of range"))
    }
}

#[cfg(test)]
mod tests;
