//! The drainer finds rings, copies their entries, and checks the state of the processes.
//!
//! It does as little as possible, because a thread whose ring is full waits for it.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use heapdrome_trace::{Bypass, Finish, Record, Resident};
use heapdrome_witness::ring::ENTRIES;

use crate::backlog::Backlog;
use crate::clock::{Clock, ticks};
use crate::delivery::{Delivery, WorkerEnded};
use crate::message::{Birth, Message};
use crate::pace::{FullestStacks, Fullness, PAUSE, next_pause};
use crate::process::{self, Loaded, Usage};
use crate::rings::{RingFolder, Source};
use crate::shared::Closing;
use crate::timing;

/// Minimum time between two checks of the processes.
const LOOK: Duration = Duration::from_millis(20);

/// Minimum pause after a check of the processes, as a multiple of the check's own duration. A check
/// takes long if the processes have thousands of threads.
const PAUSE_AFTER_LOOK: u32 = 20;

/// Time without entries after which a process in another PID namespace counts as ended. Its process
/// id is not valid here, so its end cannot be observed. Applies only after all other processes have
/// ended.
const SILENCE: Duration = Duration::from_secs(1);

/// Nanoseconds for which events are held back. A thread that was interrupted within a call has
/// usually written the call's entry by then.
const LAG: u64 = 5_000_000;

/// A recorded process, and its state at the latest check.
struct Recorded {
    /// Number of the process in the trace.
    number: u32,
    pid: u32,
    sources: Vec<Source>,
    namespace: u64,
    /// Whether the process is in the recorder's PID namespace, so that `pid` is valid here.
    is_known_here: bool,
    heard: Instant,
    usage: Option<Usage>,
    /// Processor time of the process when its program began, in nanoseconds.
    began: u64,
    /// Processor time of the process when it had ended, in nanoseconds, if heapdrome is its parent.
    ended: Option<u64>,
    peak_resident: u64,
    /// Text of the process's `/proc/PID/maps` that was last sent to the worker; empty if none was.
    maps: String,
}

/// The drainer of a recording, which sends the entries of all rings to the worker.
pub(crate) struct Drainer {
    control: Closing,
    folder: RingFolder,
    library: PathBuf,
    clock: Clock,
    backlog: Backlog,
    messages: Sender<Message>,
    fullest_stacks: FullestStacks,
    /// Recorded processes. The key is the identity of their current program.
    recorded: BTreeMap<u64, Recorded>,
    /// The processor's counter at the start of the last round that copied all rings.
    drained: u64,
    pause: Duration,
    next_look: Instant,
    /// Number of checks at which each process without a ring was seen, by process id.
    strangers: HashMap<u32, u32>,
    counts: Counts,
}

/// Totals over all processes of the recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub processes: u32,
    pub waited: u64,
    pub gave_up: u32,
    pub left_out: u64,
    pub stacks_left_out: u64,
    pub bypassed: Vec<Bypass>,
}

impl Drainer {
    pub(crate) fn new(
        control: Closing,
        folder: RingFolder,
        library: PathBuf,
        clock: Clock,
        (backlog, messages): (Backlog, Sender<Message>),
        fullest_stacks: FullestStacks,
    ) -> Self {
        Self {
            control,
            folder,
            library,
            clock,
            backlog,
            messages,
            fullest_stacks,
            recorded: BTreeMap::new(),
            drained: 0,
            pause: PAUSE,
            next_look: Instant::now(),
            strangers: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// Copies at most one lap of each ring if the backlog has room, and checks the processes if a
    /// check is due. Returns the pause before the next round.
    pub(crate) fn round(&mut self) -> Result<Duration, WorkerEnded> {
        let (now, until) = (ticks(), self.clock.stamp_before(LAG));
        // Relaxed: the beat publishes no other memory.
        self.control.0.beat.store(now, Ordering::Relaxed);
        self.discover()?;
        let fullest = self.drain()?;
        let until = match fullest {
            Some(_) => {
                self.drained = now;
                until
            }
            // Let the worker write the events that it holds back, to make room. The last complete
            // round has copied all entries from before its start, except those that threads were
            // still writing.
            None => self.drained,
        };
        self.messages.send(Message::Until(until))?;
        let began = Instant::now();
        if began >= self.next_look {
            self.look()?;
            let pause = began.elapsed() * PAUSE_AFTER_LOOK;
            self.next_look = Instant::now() + pause.max(LOOK);
        }
        self.pause = next_pause(self.pause, fullest);
        Ok(self.pause)
    }

    /// Copies at most one lap of each ring. Returns the fullness of the fullest ring, including the
    /// rings of stacks; `None` if the backlog is full and no ring was copied.
    ///
    /// Completes the pass over all rings even if the backlog becomes full meanwhile: the worker can
    /// write events only up to the beginning of a complete pass, and makes room only by writing.
    fn drain(&mut self) -> Result<Option<Fullness>, WorkerEnded> {
        let rings = self.recorded.values().map(|it| it.sources.len()).sum();
        if self.backlog.is_full(rings) {
            return Ok(None);
        }
        let mut fullest = self.fullest_stacks.take();
        for (&image, recorded) in &mut self.recorded {
            for (ring, source) in recorded.sources.iter_mut().enumerate() {
                let mut to = Delivery::new(&self.messages, image, ring);
                let drained = source.drain(&self.backlog, |batch| to.send(batch));
                to.result?;
                if drained > 0 {
                    recorded.heard = Instant::now();
                }
                fullest = fullest.max(Fullness::of(drained, ENTRIES));
            }
        }
        Ok(Some(fullest))
    }

    /// Opens the rings that were made since the previous call.
    fn discover(&mut self) -> Result<(), WorkerEnded> {
        // Acquire pairs with the release of a process that has made a ring, so the ring's file
        // exists.
        let announced = self.control.0.rings.load(Ordering::Acquire);
        let fresh = self.folder.fresh(announced);
        fresh.into_iter().try_for_each(|source| self.add(source))
    }

    fn add(&mut self, source: Source) -> Result<(), WorkerEnded> {
        let image = source.ring().image;
        if !self.recorded.contains_key(&image) {
            self.begin(&source)?;
        }
        if let Some(recorded) = self.recorded.get_mut(&image) {
            let path = source.path().to_owned();
            recorded.sources.push(source);
            self.messages.send(Message::Ring { image, path })?;
        }
        Ok(())
    }

    /// Begins the recording of a new process, or of a process that has executed another program.
    fn begin(&mut self, source: &Source) -> Result<(), WorkerEnded> {
        let ring = source.ring();
        let (number, pid) = (self.counts.processes, ring.pid);
        self.counts.processes += 1;
        let namespace = ring.namespace;
        let is_known_here = namespace == process::namespace();
        let is_before = |it: &Recorded| it.namespace == namespace && it.pid == pid;
        let before = self.recorded.iter().find(|(_, it)| is_before(it));
        if let Some((&identity, _)) = before {
            // If the new process was forked, the earlier one has ended, and its process id was
            // reused. Otherwise assume that the earlier one has executed another program.
            let executed = (ring.parent == 0).then_some(ring.began);
            self.finish(identity, executed)?;
        }
        if let Some(parent) = self.recorded.get_mut(&ring.parent) {
            // The child inherits the blocks that its parent made before the fork. Copy the parent's
            // entries, even if the backlog is full, so that the worker knows these blocks.
            for (place, source) in parent.sources.iter_mut().enumerate() {
                let mut to = Delivery::new(&self.messages, ring.parent, place);
                source.drain(&self.backlog, |batch| to.send(batch));
                to.result?;
            }
        }
        self.strangers.remove(&pid);
        self.messages.send(Message::Begin(Birth {
            image: ring.image,
            parent: ring.parent,
            forked: ring.forked,
            number,
            pid,
            is_known_here,
            program: source.program(),
            server: source.server(),
        }))?;
        let recorded = Recorded {
            number,
            pid,
            sources: Vec::new(),
            namespace,
            is_known_here,
            heard: Instant::now(),
            usage: None,
            began: ring.began,
            ended: None,
            peak_resident: 0,
            maps: String::new(),
        };
        self.recorded.insert(ring.image, recorded);
        Ok(())
    }

    /// Finishes the recordings of processes that have ended, samples the resident memory and the
    /// mappings of the others, and looks for unrecorded processes.
    fn look(&mut self) -> Result<(), WorkerEnded> {
        let mut ended = Vec::new();
        // Relaxed: the word was written before the command was started.
        let unwinds = self.control.0.stack_bytes.load(Ordering::Relaxed) != 0;
        for (&identity, recorded) in &mut self.recorded {
            let pid = recorded.pid;
            if !recorded.is_known_here {
                continue;
            }
            if !process::lives(pid) {
                ended.push(identity);
            } else if let Some(usage) = process::usage(pid) {
                recorded.usage = Some(usage);
                recorded.peak_resident = recorded.peak_resident.max(usage.resident);
                let (process, time) = (recorded.number, self.clock.now());
                let bytes = usage.resident;
                let resident = Resident {
                    process,
                    time,
                    bytes,
                };
                self.messages
                    .send(Message::Record(Record::Resident(resident)))?;
                let text = unwinds.then(|| process::maps(pid)).flatten();
                if let Some(text) = text.filter(|text| *text != recorded.maps) {
                    recorded.maps.clone_from(&text);
                    let image = identity;
                    self.messages.send(Message::Maps { image, text })?;
                }
            }
        }
        // Open new rings before the parent is finished: a child may have created rings and ended
        // before its parent's end was noticed.
        self.discover()?;
        ended
            .into_iter()
            .try_for_each(|identity| self.finish(identity, None))?;
        self.look_at_strangers()
    }

    /// Records the processor time of a process that has ended and is about to be reaped.
    pub(crate) fn note_end(&mut self, pid: u32) -> Result<(), WorkerEnded> {
        self.discover()?;
        let is_it = |it: &&mut Recorded| it.is_known_here && it.pid == pid;
        if let Some(recorded) = self.recorded.values_mut().find(is_it) {
            recorded.ended = process::processor_time(pid);
        }
        Ok(())
    }

    /// Copies the remaining entries of a program that has ended or is no longer recorded, and sends
    /// its end to the worker. If the process has executed another program, `executed` is the
    /// processor time of the process when that program began.
    fn finish(&mut self, image: u64, executed: Option<u64>) -> Result<(), WorkerEnded> {
        let Some(mut recorded) = self.recorded.remove(&image) else {
            return Ok(());
        };
        for (place, source) in recorded.sources.iter_mut().enumerate() {
            let mut to = Delivery::new(&self.messages, image, place);
            source.drain_ended(&self.backlog, |batch| to.send(batch));
            to.result?;
        }
        let rings = || recorded.sources.iter().map(Source::ring);
        let ticks = rings().map(|ring| ring.waited.load(Ordering::Relaxed));
        let waited = self.clock.nanoseconds(ticks.sum());
        let gave_up = rings().any(|ring| ring.gave_up.load(Ordering::Relaxed) != 0);
        self.counts.waited += waited;
        self.counts.gave_up += u32::from(gave_up);
        let usage = recorded.usage;
        let timings = || rings().map(|ring| &ring.timing);
        let latest = usage.map(|usage| usage.processor_time);
        let latest = latest.max(timing::at_call(timings()));
        let processor = executed.or_else(|| timing::at_exit(timings()));
        let processor = processor.or(recorded.ended).or(latest);
        let finish = Finish {
            process: recorded.number,
            time: self.clock.now(),
            peak_resident: usage.map(|_| recorded.peak_resident),
            minor_faults: usage.map(|usage| usage.minor_faults),
            processor_time: processor.map(|time| time.saturating_sub(recorded.began)),
            waited,
            gave_up,
            timed: timing::of_rings(timings(), self.clock),
        };
        Ok(self.messages.send(Message::Finish { image, finish })?)
    }

    /// Reports running descendants that did not load the recording library.
    fn look_at_strangers(&mut self) -> Result<(), WorkerEnded> {
        for pid in process::descendants(std::process::id()) {
            if self
                .recorded
                .values()
                .any(|it| it.is_known_here && it.pid == pid)
            {
                continue;
            }
            let seen = self.strangers.entry(pid).or_default();
            *seen += 1;
            // Check each process once, when it is seen for the second time. Before that, it may not
            // have executed its command yet.
            if *seen != 2 {
                continue;
            }
            if let Loaded::No(reason) = process::loaded(pid, &self.library) {
                self.bypass(pid, reason)?;
            }
        }
        Ok(())
    }

    /// Reports the processes that loaded the recording library but could not get a ring.
    fn name_those_without_ring(&mut self) -> Result<(), WorkerEnded> {
        let control = &self.control.0;
        // Relaxed: these numbers publish no other memory.
        let without_ring = control.without_ring.load(Ordering::Relaxed);
        let forked_in_sandbox = control.forked_in_sandbox.load(Ordering::Relaxed);
        let failures = [
            (
                without_ring,
                "shared memory, file descriptors or address space ran out",
            ),
            (forked_in_sandbox, "it was forked in a sandbox"),
        ];
        failures
            .into_iter()
            .try_for_each(|(number, reason)| (0..number).try_for_each(|_| self.bypass(0, reason)))
    }

    fn bypass(&mut self, pid: u32, reason: &str) -> Result<(), WorkerEnded> {
        let program = process::program(pid).unwrap_or_default();
        let reason = reason.to_owned();
        let bypass = Bypass {
            pid,
            program,
            reason,
        };
        self.counts.bypassed.push(bypass.clone());
        let message = Message::Record(Record::Bypass(bypass));
        Ok(self.messages.send(message)?)
    }

    /// Returns whether any process is still recorded. A process in another PID namespace counts
    /// only if it has written entries within [`SILENCE`].
    pub(crate) fn is_recording(&self) -> bool {
        self.recorded
            .values()
            .any(|it| it.is_known_here || it.heard.elapsed() < SILENCE)
    }

    /// Ends the recording. Processes that are still running continue without being recorded.
    pub(crate) fn finish_all(mut self) -> Result<Counts, WorkerEnded> {
        self.round()?;
        self.control.close();
        let images: Vec<_> = self.recorded.keys().copied().collect();
        images
            .into_iter()
            .try_for_each(|image| self.finish(image, None))?;
        self.name_those_without_ring()?;
        let control = &self.control.0;
        self.counts.left_out = control.left_out.load(Ordering::Relaxed);
        self.counts.stacks_left_out = control.stacks_left_out.load(Ordering::Relaxed);
        Ok(self.counts)
    }
}

#[cfg(test)]
mod tests;
