//! What a child is asked to do, and what it answers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Distribution;
use crate::{Bytes, Entrant};

/// Everything that a child is told, as one argument of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instructions {
    /// Files into which the child writes its process id before anything else, to enter groups.
    pub join: Vec<PathBuf>,
    /// What to do then.
    pub job: Job,
}

/// One experiment in one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Job {
    /// Tell which limits hold, and nothing else.
    Probe,
    /// Take and return regions.
    Throughput(Throughput),
    /// Read random pages of a working set.
    Read(Read),
    /// Take regions from a pool whose memory may be in swap.
    Recycle(Recycle),
    /// Take much at once and return all of it.
    Burst(Burst),
}

impl Job {
    /// How much memory it needs at once, where it is told.
    pub fn working_set(&self) -> Bytes {
        match self {
            Self::Read(job) => job.total,
            Self::Recycle(job) => job.total,
            Self::Probe | Self::Throughput(_) | Self::Burst(_) => Bytes(0),
        }
    }

    /// Where its memory comes from, where that does not follow from its variant.
    pub fn holder(&self) -> Option<Holder> {
        match self {
            Self::Read(job) => Some(job.holder),
            Self::Recycle(job) => Some(job.holder),
            Self::Burst(job) => Some(job.holder),
            Self::Probe | Self::Throughput(_) => None,
        }
    }
}

/// Takes and returns regions of 2 MiB for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// How.
    pub variant: Variant,
    /// In how many threads at once.
    pub threads: usize,
    /// The time before anything counts.
    #[serde(with = "as_seconds")]
    pub warm_up: Duration,
    /// The time that counts.
    #[serde(with = "as_seconds")]
    pub seconds: Duration,
}

/// The ways in which a region can be taken and returned: the document's ten, what bounds them (the
/// clock alone, and a region that is never given back), the crate that the document measured, and
/// plain `malloc`. As in the document's program, `sysalloc` asks for blocks that are aligned to a
/// page (`posix_memalign`), which the C library maps and unmaps each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Nothing: what reading the clock twice costs.
    Clock,
    /// One region of heapdrome's lgalloc that is kept, one byte of each page written: what the
    /// memory itself costs.
    Preallocated,
    /// heapdrome's lgalloc.
    Lgalloc,
    /// heapdrome's lgalloc, with one byte of each page written.
    LgallocTouch,
    /// The published crate lgalloc 0.7.
    Published,
    /// The published crate lgalloc 0.7, with one byte of each page written.
    PublishedTouch,
    /// `posix_memalign` to a page, and `free`.
    Sysalloc,
    /// `posix_memalign` to a page and `free`, with one byte of each page written.
    SysallocTouch,
    /// `posix_memalign` to a page, `MADV_NOHUGEPAGE` and `free`.
    SysallocNohuge,
    /// `posix_memalign` to a page, `MADV_NOHUGEPAGE` and `free`, with one byte of each page
    /// written.
    SysallocNohugeTouch,
    /// `malloc` and `free`: without an alignment, the C library keeps a block of this size after
    /// the first.
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
    /// Every variant, in the document's order, what bounds them first.
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

    /// The document's name.
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

/// Reads pages drawn at random from a working set of incompressible pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Read {
    /// The size of the working set.
    pub total: Bytes,
    /// Readers.
    pub threads: usize,
    /// What is told to the system before pages are read.
    pub strategy: Strategy,
    /// Where the working set lies.
    pub holder: Holder,
    /// Whether draws are independent.
    pub order: Order,
    /// The seed of contents and draws.
    pub seed: u64,
    /// The time after which the warm-up ends although write-back has not settled.
    #[serde(with = "as_seconds")]
    pub warm_up: Duration,
    /// The time that counts.
    #[serde(with = "as_seconds")]
    pub seconds: Duration,
}

/// How pages are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Independently and uniformly.
    #[default]
    Uniform,
    /// Every page once in a shuffled order, then in another.
    Permutation,
}

/// Where memory comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holder {
    /// Regions of heapdrome's lgalloc.
    #[default]
    Lgalloc,
    /// Blocks aligned to a page (`posix_memalign`) of the C library, or of what is preloaded.
    Malloc,
    /// Anonymous mappings that are kept.
    Mapped,
    /// Regions of the published crate lgalloc 0.7, with its defaults.
    Published,
    /// Regions of the published crate lgalloc 0.7, with the background worker that its own
    /// benchmark asks for.
    PublishedWorker,
}

impl Holder {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lgalloc => "lgalloc",
            Self::Malloc => "sysalloc",
            Self::Mapped => "mapped",
            Self::Published => "lgalloc-published",
            Self::PublishedWorker => "lgalloc-published+worker",
        }
    }

    /// Its name where this allocator serves `malloc`, if any does but the C library.
    pub fn name_of(self, allocator: Option<&Entrant>) -> &str {
        allocator.map_or(self.name(), |allocator| &allocator.name)
    }
}

/// What is told to the system before pages are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Nothing.
    #[default]
    Baseline,
    /// `MADV_RANDOM` on everything.
    Random,
    /// `MADV_SEQUENTIAL` on everything.
    Sequential,
    /// A second thread per reader asks for pages (`MADV_WILLNEED`) so many reads ahead, and sleeps
    /// when it is there.
    Prefetch {
        /// Reads ahead.
        ahead: usize,
    },
    /// The reader asks for so many pages, then reads them.
    Batch {
        /// Pages in a batch.
        pages: usize,
    },
    /// lgalloc's own reader, which asks for so many pages before it reads them.
    Reader {
        /// Pages in a batch.
        pages: usize,
    },
    /// `MADV_RANDOM`, and a second thread as above.
    RandomPrefetch {
        /// Reads ahead.
        ahead: usize,
    },
}

impl Strategy {
    /// The document's name.
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

    /// Whether every page that is not resident must be a major fault of the reader.
    pub fn leaves_faults_to_the_reader(self) -> bool {
        matches!(self, Self::Baseline | Self::Random | Self::Sequential)
    }
}

/// Fills regions, returns half of them to the allocator, and takes them again: first each once,
/// then each thread one at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recycle {
    /// The size of all regions of 2 MiB together.
    pub total: Bytes,
    /// How many threads take one region again and again: each number in turn, in the same process.
    pub threads: Vec<usize>,
    /// Whose regions.
    pub holder: Holder,
    /// The seed of contents.
    pub seed: u64,
    /// The time that counts, of each part.
    #[serde(with = "as_seconds")]
    pub seconds: Duration,
}

impl Recycle {
    /// The figure that tells how often so many threads took a region in a second.
    pub fn rate_figure(threads: usize) -> String {
        match threads {
            1 => "hot_per_s".to_owned(),
            more => format!("hot_per_s_x{more}"),
        }
    }
}

/// Takes regions of several sizes in several threads at once, writes to every page of all of them,
/// and returns all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// Whose regions: heapdrome's lgalloc, or the published crate.
    pub holder: Holder,
    /// How many threads.
    pub threads: usize,
    /// How much of each size in each thread; where a region is larger, one region.
    pub each: Bytes,
}

/// What came of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PagingReport {
    /// The memory limit that the child read back.
    pub memory_limit: Option<Bytes>,
    /// The limit of swap that it read back.
    pub swap_limit: Option<Bytes>,
    /// The quota of processor time that it read back, in processors.
    #[serde(default)]
    pub processors: Option<f64>,
    /// Name to number; names end in their unit.
    pub figures: BTreeMap<String, f64>,
    /// Latencies in nanoseconds.
    pub distributions: BTreeMap<String, Distribution>,
    /// The object that serves `malloc` in the child.
    #[serde(default)]
    pub malloc: Option<PathBuf>,
    /// The round in which it was made, from 1.
    #[serde(default)]
    pub round: u32,
    /// What a reader should know.
    pub remarks: Vec<String>,
    /// Why the figures must not be used, if so.
    pub rejected: Option<String>,
}

/// Times as a number of seconds.
mod as_seconds {
    use std::time::Duration;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// A day: no part of an experiment takes longer.
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
