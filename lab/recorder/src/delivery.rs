//! Transfer of a ring's copied entries to the worker.

use std::sync::mpsc::{SendError, Sender};

use crate::backlog::Batch;
use crate::message::Message;

/// Error of sending to a worker that has ended because it could not write the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerEnded;

impl From<SendError<Message>> for WorkerEnded {
    fn from(_: SendError<Message>) -> Self {
        Self
    }
}

/// Sender of one ring's batches to the worker.
pub(crate) struct Delivery<'a> {
    messages: &'a Sender<Message>,
    image: u64,
    ring: usize,
    /// `Err` if the worker had ended before one of the batches was sent.
    pub result: Result<(), WorkerEnded>,
}

impl<'a> Delivery<'a> {
    pub(crate) fn new(messages: &'a Sender<Message>, image: u64, ring: usize) -> Self {
        Self {
            messages,
            image,
            ring,
            result: Ok(()),
        }
    }

    pub(crate) fn send(&mut self, batch: Batch) {
        let (image, ring) = (self.image, self.ring);
        let sent = self.messages.send(Message::Entries { image, ring, batch });
        self.result = self.result.and(sent.map_err(WorkerEnded::from));
    }
}
