//! The worker brings the events of each process into one order and writes the trace.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use heapdrome_trace::{Beginning, Finish, Process, Record, TraceError, Writer};

use crate::addresses::Addresses;
use crate::clock::Clock;
use crate::image::Image;
use crate::message::{Birth, Message};
use crate::process;
use crate::streams::Stream;
use crate::unwind::Unwindings;

/// Maximum number of ended programs whose blocks are kept for children that have not allocated yet.
const KEPT: usize = 64;

/// Maximum time until an idle worker notices its stop flag.
const LATENCY: Duration = Duration::from_millis(5);

/// The worker of a recording, which converts messages into a trace.
pub(crate) struct Worker<W: Write> {
    messages: Receiver<Message>,
    clock: Clock,
    writer: Writer<W>,
    /// Programs of running processes. The key is the identity of the program.
    running: BTreeMap<u64, Image>,
    /// Programs that have ended. The key is the identity of the program. The remaining blocks are
    /// kept for children that have not allocated yet.
    ended: BTreeMap<u64, Image>,
    /// Creator of each program's unwinding; `None` if no stacks are recorded.
    unwindings: Option<Unwindings>,
    written: Written,
}

/// Totals of the trace that a worker wrote.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    pub operations: u64,
    pub repaired: u64,
    /// Lower bound of the number of skipped stacks.
    pub stacks_lost: u64,
    /// Number of stacks with an address whose file is unknown.
    pub stacks_unplaced: u64,
}

impl<W: Write> Worker<W> {
    pub(crate) fn new(
        messages: Receiver<Message>,
        clock: Clock,
        writer: Writer<W>,
        unwindings: Option<Unwindings>,
    ) -> Self {
        Self {
            messages,
            clock,
            writer,
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
            unwindings,
            written: Written::default(),
        }
    }

    /// Works until `stop` is set or all senders of messages are gone.
    pub(crate) fn work_until(&mut self, stop: &AtomicBool) -> Result<(), TraceError> {
        // Relaxed: the flag publishes no other memory.
        while !stop.load(Ordering::Relaxed) {
            match self.messages.recv_timeout(LATENCY) {
                Ok(message) => self.take(message)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(())
    }

    /// Handles all remaining messages, and completes the trace.
    pub(crate) fn finish(mut self) -> Result<Written, TraceError> {
        while let Ok(message) = self.messages.recv() {
            self.take(message)?;
        }
        self.writer.repaired(self.written.repaired);
        self.writer.collector_time(process::own_time());
        self.written.operations = self.writer.operations();
        self.writer.finish()?;
        Ok(self.written)
    }

    fn take(&mut self, message: Message) -> Result<(), TraceError> {
        match message {
            Message::Begin(birth) => self.begin(birth)?,
            Message::Ring { image, path } => {
                if let Some(image) = self.running.get_mut(&image) {
                    image.streams.push(Stream::new(&path));
                }
            }
            Message::Entries { image, ring, batch } => {
                let image = self.running.get_mut(&image);
                if let Some(stream) = image.and_then(|image| image.streams.get_mut(ring)) {
                    stream.add(batch);
                }
            }
            Message::Until(stamp) => {
                for image in self.running.values_mut() {
                    image.emit(stamp, &mut self.writer)?;
                }
            }
            Message::Maps { image, text } => {
                let image = self.running.get_mut(&image);
                if let Some(unwinding) = image.and_then(|image| image.unwinding.as_mut()) {
                    unwinding.add_mappings(text);
                }
            }
            Message::Record(record) => self.writer.record(record)?,
            Message::Finish { image, finish } => self.end(image, finish)?,
        }
        Ok(())
    }

    /// Begins a new process, or a process that has executed another program.
    fn begin(&mut self, birth: Birth) -> Result<(), TraceError> {
        if let Some(parent) = self.running.get_mut(&birth.parent) {
            parent.emit(birth.forked, &mut self.writer)?;
        }
        let running = self.running.get_mut(&birth.parent);
        let parent = running.or_else(|| self.ended.get_mut(&birth.parent));
        let (beginning, addresses) = match parent {
            Some(parent) => {
                let addresses = parent.inherited(birth.forked);
                let beginning = Beginning::Forked {
                    parent: parent.number,
                    blocks: addresses.len() as u64,
                    bytes: addresses.bytes(),
                };
                (beginning, addresses)
            }
            None => (Beginning::Executed, Addresses::default()),
        };
        self.writer.record(Record::Process(Process {
            process: birth.number,
            pid: birth.pid,
            program: birth.program,
            allocator: birth.server,
            time: self.clock.time(birth.image),
            beginning,
        }))?;
        let mut image = Image::new(birth.number, self.clock, addresses);
        let begin = |all: &Unwindings| all.begin(birth.pid, birth.image, birth.is_known_here);
        image.unwinding = self.unwindings.as_ref().map(begin);
        self.running.insert(birth.image, image);
        Ok(())
    }

    fn end(&mut self, identity: u64, finish: Finish) -> Result<(), TraceError> {
        if let Some(mut image) = self.running.remove(&identity) {
            image.emit(u64::MAX, &mut self.writer)?;
            self.written.repaired += image.repaired;
            self.written.stacks_lost += image.stacks_lost;
            let unwinding = image.unwinding.take();
            self.written.stacks_unplaced += unwinding.map_or(0, |unwinding| unwinding.unplaced);
            image.streams.clear();
            self.ended.insert(identity, image);
            if self.ended.len() > KEPT {
                self.ended.pop_first();
            }
        }
        self.writer.record(Record::Finish(finish))
    }
}
