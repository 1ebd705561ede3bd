//! The collector: finds rings, drains them, and writes the trace.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use heapdrome_trace::{Beginning, Bypass, Finish, Process, Record, Resident, TraceError, Writer};
use heapdrome_witness::ring::{Control, PREFIX};

use crate::addresses::Addresses;
use crate::clock::Clock;
use crate::image::Image;
use crate::process::{self, Loaded, Usage};
use crate::rings::Source;
use crate::shared::Shared;
use crate::unwind::Unwindings;

/// Minimum time between two looks at the processes.
const LOOK: Duration = Duration::from_millis(20);

/// A look that takes long, as with thousands of threads, is followed by a pause of this many times
/// its length.
const PAUSE_AFTER_LOOK: u32 = 20;

/// For how long a process must be silent before it counts as ended, if its number says nothing here
/// because it is of another namespace. This counts only after all other processes have ended.
const SILENCE: Duration = Duration::from_secs(1);

/// Nanoseconds for which events are held back. A child that allocates soon after its fork finds the
/// blocks of its parent as they were then.
const LAG: u64 = 5_000_000;

/// Number of ended processes whose blocks are kept for children that have not allocated yet.
const KEPT: usize = 64;

/// A recorded process, and what was last seen of it.
struct Recorded {
    image: Image,
    namespace: u64,
    /// Whether the system knows it here by the number that it has for itself.
    is_known_here: bool,
    heard: Instant,
    usage: Option<Usage>,
    peak_resident: u64,
}

/// What all processes share. They record until it is dropped, whatever ends the collector.
pub(crate) struct Closing(pub Shared<Control>);

impl Closing {
    fn close(&self) {
        self.0.closed.store(1, Ordering::Relaxed);
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.close();
    }
}

/// Drains the rings of all processes into a trace.
pub(crate) struct Collector<W: Write> {
    control: Closing,
    folder: PathBuf,
    library: PathBuf,
    clock: Clock,
    writer: Writer<W>,
    /// Recorded processes by the identity of their image.
    recorded: BTreeMap<u64, Recorded>,
    /// Processes that have ended, with the blocks that they left, by the identity of their image.
    ended: BTreeMap<u64, Image>,
    /// Files of rings that were seen.
    known: BTreeSet<PathBuf>,
    /// Number of rings that were announced when the folder was last read.
    announced: u32,
    next_look: Instant,
    /// Processes without a ring, and how often they were seen.
    strangers: HashMap<u32, u32>,
    unwindings: Unwindings,
    pub counts: Counts,
}

/// What was recorded so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub processes: u32,
    pub operations: u64,
    pub repaired: u64,
    pub waited: u64,
    pub gave_up: u32,
    pub left_out: u64,
    pub stacks_lost: u64,
    pub stacks_unplaced: u64,
    pub bypassed: Vec<Bypass>,
}

impl<W: Write> Collector<W> {
    pub(crate) fn new(
        control: Closing,
        folder: &Path,
        library: PathBuf,
        clock: Clock,
        writer: Writer<W>,
    ) -> Self {
        let unwindings = Unwindings::new(&control.0, folder, &library);
        Self {
            control,
            folder: folder.to_owned(),
            library,
            clock,
            writer,
            recorded: BTreeMap::new(),
            ended: BTreeMap::new(),
            known: BTreeSet::new(),
            announced: 0,
            next_look: Instant::now(),
            strangers: HashMap::new(),
            unwindings,
            counts: Counts::default(),
        }
    }

    /// Drains all rings once, and returns how many operations they had.
    pub(crate) fn round(&mut self) -> Result<u64, TraceError> {
        // Relaxed: the beat only has to change.
        self.control.0.beat.fetch_add(1, Ordering::Relaxed);
        let until = self.clock.stamp_before(LAG);
        self.discover()?;
        let mut drained = 0;
        for recorded in self.recorded.values_mut() {
            let before = drained;
            for source in &mut recorded.image.sources {
                drained += source.drain();
            }
            if drained > before {
                recorded.heard = Instant::now();
            }
            recorded.image.emit(until, &mut self.writer)?;
        }
        let began = Instant::now();
        if began >= self.next_look {
            self.look()?;
            let pause = began.elapsed() * PAUSE_AFTER_LOOK;
            self.next_look = Instant::now() + pause.max(LOOK);
        }
        Ok(drained)
    }

    /// Opens the rings that are new.
    fn discover(&mut self) -> Result<(), TraceError> {
        // Acquire pairs with the release of a process that has made a ring: its file is there.
        let announced = self.control.0.rings.load(Ordering::Acquire);
        if announced == self.announced {
            return Ok(());
        }
        self.announced = announced;
        let mut fresh = Vec::new();
        for entry in std::fs::read_dir(&self.folder)?.flatten() {
            let named = entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(PREFIX));
            let path = entry.path();
            if named
                && !self.known.contains(&path)
                && let Some(source) = Source::open(&path)
            {
                self.known.insert(path);
                fresh.push(source);
            }
        }
        // Parents before their children.
        fresh.sort_by_key(|source| source.ring().image);
        fresh.into_iter().try_for_each(|source| self.add(source))
    }

    fn add(&mut self, source: Source) -> Result<(), TraceError> {
        let identity = source.ring().image;
        if !self.recorded.contains_key(&identity) {
            self.begin(&source)?;
        }
        if let Some(recorded) = self.recorded.get_mut(&identity) {
            recorded.image.sources.push(source);
        }
        Ok(())
    }

    /// A process is new, or executes another program.
    fn begin(&mut self, source: &Source) -> Result<(), TraceError> {
        let ring = source.ring();
        let (number, pid) = (self.counts.processes, ring.pid);
        self.counts.processes += 1;
        let namespace = ring.namespace;
        let is_known_here = namespace == process::namespace();
        let is_before = |it: &Recorded| it.namespace == namespace && it.image.pid == pid;
        let before = self.recorded.iter().find(|(_, it)| is_before(it));
        if let Some(identity) = before.map(|(&identity, _)| identity) {
            self.finish(identity)?;
        }
        if let Some(parent) = self.recorded.get_mut(&ring.parent) {
            parent.image.sources.iter_mut().for_each(|source| {
                source.drain();
            });
            parent.image.emit(ring.forked, &mut self.writer)?;
        }
        let running = self.recorded.get(&ring.parent).map(|parent| &parent.image);
        let parent = running.or_else(|| self.ended.get(&ring.parent));
        let addresses = parent.map(inherited).unwrap_or_default();
        let beginning = match parent {
            Some(parent) => Beginning::Forked {
                parent: parent.number,
                blocks: addresses.len() as u64,
                bytes: addresses.values().map(|block| block.size).sum(),
            },
            None => Beginning::Executed,
        };
        self.strangers.remove(&pid);
        self.writer.record(Record::Process(Process {
            process: number,
            pid,
            program: source.program(),
            allocator: source.server(),
            time: self.clock.time(ring.image),
            beginning,
        }))?;
        let mut image = Image::new(number, pid, self.clock, addresses);
        image.unwinding = self.unwindings.begin(ring, is_known_here);
        let (usage, peak_resident, heard) = (None, 0, Instant::now());
        let recorded = Recorded {
            image,
            namespace,
            is_known_here,
            heard,
            usage,
            peak_resident,
        };
        self.recorded.insert(ring.image, recorded);
        Ok(())
    }

    /// Looks at the processes: who has ended, who is not recorded, how much memory they have.
    fn look(&mut self) -> Result<(), TraceError> {
        let mut ended = Vec::new();
        for (&identity, recorded) in &mut self.recorded {
            let pid = recorded.image.pid;
            if !recorded.is_known_here {
                continue;
            }
            if !process::lives(pid) {
                ended.push(identity);
            } else if let Some(usage) = process::usage(pid) {
                recorded.usage = Some(usage);
                recorded.peak_resident = recorded.peak_resident.max(usage.resident);
                let (process, time) = (recorded.image.number, self.clock.now());
                let bytes = usage.resident;
                self.writer.record(Record::Resident(Resident {
                    process,
                    time,
                    bytes,
                }))?;
            }
        }
        // A child that has ended may have rings that were not seen when its parent's end was.
        self.discover()?;
        ended
            .into_iter()
            .try_for_each(|identity| self.finish(identity))?;
        self.look_at_strangers()
    }

    /// A process has ended: writes what it left.
    fn finish(&mut self, identity: u64) -> Result<(), TraceError> {
        let Some(mut recorded) = self.recorded.remove(&identity) else {
            return Ok(());
        };
        let image = &mut recorded.image;
        image.sources.iter_mut().for_each(Source::drain_ended);
        image.emit(u64::MAX, &mut self.writer)?;
        let rings = || image.sources.iter().map(Source::ring);
        let waited = rings()
            .map(|ring| ring.waited.load(Ordering::Relaxed))
            .sum();
        let gave_up = rings().any(|ring| ring.gave_up.load(Ordering::Relaxed) != 0);
        self.counts.waited += waited;
        self.counts.gave_up += u32::from(gave_up);
        self.counts.repaired += image.repaired;
        self.counts.stacks_lost += image.stacks_lost;
        let unwinding = image.unwinding.take();
        self.counts.stacks_unplaced += unwinding.map_or(0, |unwinding| unwinding.unplaced);
        self.writer.repaired(image.repaired);
        let usage = recorded.usage;
        let finish = Finish {
            process: image.number,
            time: self.clock.now(),
            peak_resident: usage.map(|_| recorded.peak_resident),
            minor_faults: usage.map(|usage| usage.minor_faults),
            processor_time: usage.map(|usage| usage.processor_time),
            waited,
            gave_up,
        };
        recorded.image.sources.clear();
        self.ended.insert(identity, recorded.image);
        if self.ended.len() > KEPT {
            self.ended.pop_first();
        }
        self.writer.record(Record::Finish(finish))
    }

    /// Names the processes that cannot be recorded.
    fn look_at_strangers(&mut self) -> Result<(), TraceError> {
        for pid in process::descendants(std::process::id()) {
            if self
                .recorded
                .values()
                .any(|it| it.is_known_here && it.image.pid == pid)
            {
                continue;
            }
            let seen = self.strangers.entry(pid).or_default();
            *seen += 1;
            // At its first look a process may be on its way to the command.
            if *seen != 2 {
                continue;
            }
            if let Loaded::No(reason) = process::loaded(pid, &self.library) {
                self.bypass(pid, reason)?;
            }
        }
        Ok(())
    }

    /// Names the processes that could not be recorded although they tried.
    fn name_those_without_ring(&mut self) -> Result<(), TraceError> {
        let number = self.control.0.without_ring.load(Ordering::Relaxed);
        (0..number).try_for_each(|_| {
            self.bypass(
                0,
                "shared memory, file descriptors or address space ran out",
            )
        })
    }

    fn bypass(&mut self, pid: u32, reason: &str) -> Result<(), TraceError> {
        let program = process::program(pid).unwrap_or_default();
        let reason = reason.to_owned();
        let bypass = Bypass {
            pid,
            program,
            reason,
        };
        self.counts.bypassed.push(bypass.clone());
        self.writer.record(Record::Bypass(bypass))
    }

    /// Whether a process is still recorded.
    pub(crate) fn is_recording(&self) -> bool {
        self.recorded
            .values()
            .any(|it| it.is_known_here || it.heard.elapsed() < SILENCE)
    }

    /// Ends the recording: processes that go on do so without.
    pub(crate) fn finish_all(mut self) -> Result<(W, Counts), TraceError> {
        self.round()?;
        self.control.close();
        let identities: Vec<_> = self.recorded.keys().copied().collect();
        identities
            .into_iter()
            .try_for_each(|identity| self.finish(identity))?;
        self.name_those_without_ring()?;
        let control = &self.control.0;
        self.counts.left_out = control.left_out.load(Ordering::Relaxed);
        self.counts.stacks_lost += control.stacks_left_out.load(Ordering::Relaxed);
        self.writer.collector_time(own_time());
        self.counts.operations = self.writer.operations();
        Ok((self.writer.finish()?, self.counts))
    }
}

/// The blocks of a parent as its child has them.
fn inherited(parent: &Image) -> Addresses {
    let mut addresses = parent.addresses.clone();
    addresses.values_mut().for_each(|block| block.number = None);
    addresses
}

/// Processor time of this process in nanoseconds.
fn own_time() -> u64 {
    process::usage(std::process::id()).map_or(0, |usage| usage.processor_time)
}
