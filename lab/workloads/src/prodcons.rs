//! Producers and consumers: one thread allocates, another frees.

mod roles;
mod texts;

pub(crate) use texts::DESCRIPTION;

use std::sync::atomic::{AtomicU64, Ordering};

use heapdrome_schema::WorkloadReport;

use crate::account::Account;
use crate::array::occupied;
use crate::hand_over::{Parcel, Parcels, Post, Rest};
use crate::random_blocks::{Blocks, Kind, Shape, Sizes, Slot, check_align, check_sizes};
use crate::report::Outcome;
use crate::threads::{self, Halt, Team};
use crate::{Failure, Heap, Parameters};
use roles::{Cast, Role};

fn check(parameters: &Parameters) -> Result<(), String> {
    check_sizes(parameters)?;
    check_align(parameters)?;
    Cast::of(parameters).map(|_| ())
}

/// Estimates the peak memory: all queues full, and the workload's arrays.
fn needs(parameters: &Parameters) -> u64 {
    let cast = Cast::of(parameters).unwrap_or(Cast::Alone);
    let parcels = cast.senders() as f64 * parcels_of_each(cast, parameters) as f64;
    let objects = parameters.value("objects");
    let array = occupied(objects.saturating_mul(size_of::<Slot>() as u64));
    let blocks = objects as f64 * sizes(parameters).mean();
    // The conversion saturates: a number that is too large becomes the maximum.
    (parcels * (blocks + array as f64)) as u64
}

/// Returns the number of operations of a run: blocks allocated plus blocks freed.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    let senders = Cast::of(parameters).unwrap_or(Cast::Alone).senders() as u64;
    let each = parameters
        .value("batches")
        .saturating_mul(parameters.value("objects"));
    each.saturating_mul(2 * senders)
}

/// Returns the number of parcels per sender. A single thread has one parcel in hand; a producer has
/// one in hand, and the others in the queue.
fn parcels_of_each(cast: Cast, parameters: &Parameters) -> u64 {
    match cast {
        Cast::Alone => 1,
        Cast::Apart { .. } => parameters.value("queue").saturating_add(1),
    }
}

fn sizes(parameters: &Parameters) -> Sizes {
    let shape = Shape::of(0, parameters.value("distribution"));
    Sizes::of(shape, parameters)
}

pub(crate) fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let cast = Cast::of(parameters).unwrap_or(Cast::Alone);
    let parcels = parcels_of_each(cast, parameters) as usize;
    let room = parameters.value("objects") as usize;
    let post = Post::new(cast.receivers(), cast.senders(), parcels, room)?;
    let kind = Kind::new(sizes(parameters), parameters);
    let account = Account::default();
    let scene = Scene {
        cast,
        batches: parameters.value("batches"),
        post: &post,
        ended: AtomicU64::new(0),
    };
    let finished = threads::run(
        cast.threads(),
        |number| {
            Ok(Worker {
                scene: &scene,
                role: cast.role(number),
                spare: Parcels::none(),
                blocks: Blocks::new(&kind, heap, &account, number),
            })
        },
        |_, worker, team| worker.work(team),
        |worker| worker.blocks.finish(),
    )?;
    Ok(Outcome::of(finished, &account, post.bytes()).report(parameters))
}

/// State that all threads share.
struct Scene<'a> {
    cast: Cast,
    batches: u64,
    post: &'a Post,
    /// Number of producers that will send nothing more.
    ended: AtomicU64,
}

struct Worker<'a, H: Heap> {
    scene: &'a Scene<'a>,
    role: Role,
    spare: Parcels,
    blocks: Blocks<'a, H>,
}

impl<H: Heap> Worker<'_, H> {
    fn work(&mut self, team: &Team) -> Result<(), Halt> {
        match self.role {
            Role::Both => self.alternate(team),
            Role::Producer(number) => self.produce(number, team),
            Role::Consumer(number) => self.consume(number, team),
        }
    }

    fn alternate(&mut self, team: &Team) -> Result<(), Halt> {
        for _ in 0..self.scene.batches {
            team.go_on()?;
            let mut parcel = self.empty_parcel(0, team)?;
            self.fill(&mut parcel)?;
            self.empty(parcel)?;
        }
        Ok(())
    }

    fn produce(&mut self, number: usize, team: &Team) -> Result<(), Halt> {
        for batch in 0..self.scene.batches {
            team.go_on()?;
            let mut parcel = self.empty_parcel(number, team)?;
            self.fill(&mut parcel)?;
            // Publish the count of requested bytes before a batch changes hands, on both sides. The
            // count is then off by at most the batches that threads are working on.
            self.blocks.flush();
            let receiver = self.scene.cast.receiver(number, batch);
            self.scene.post.send(receiver, parcel);
        }
        // Release: a consumer that reads this count finds all earlier parcels in its inbox.
        self.scene.ended.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn consume(&mut self, number: usize, team: &Team) -> Result<(), Halt> {
        let mut rest = Rest::default();
        loop {
            // Read the count before emptying the inbox: if all producers have ended by then, the
            // inbox already holds their last parcels. Acquire: pairs with the release in `produce`.
            let ended = self.scene.ended.load(Ordering::Acquire);
            let mut came = false;
            for parcel in self.scene.post.receive(number) {
                self.empty(parcel)?;
                came = true;
            }
            match came {
                true => rest = Rest::default(),
                false if ended == self.scene.cast.senders() as u64 => return Ok(()),
                false => {
                    team.go_on()?;
                    rest.take();
                }
            }
        }
    }

    /// Returns an empty parcel; waits while the queue is full.
    fn empty_parcel(&mut self, number: usize, team: &Team) -> Result<Box<Parcel>, Halt> {
        let mut rest = Rest::default();
        loop {
            if let Some(parcel) = self.spare.next() {
                return Ok(parcel);
            }
            self.spare = self.scene.post.returned(number);
            if let Some(parcel) = self.spare.next() {
                return Ok(parcel);
            }
            team.go_on()?;
            rest.take();
        }
    }

    fn fill(&mut self, parcel: &mut Parcel) -> Result<(), Failure> {
        for slot in parcel.slots.iter_mut() {
            *slot = self.blocks.allocate()?;
        }
        Ok(())
    }

    fn empty(&mut self, parcel: Box<Parcel>) -> Result<(), Failure> {
        for slot in parcel.slots.iter() {
            // SAFETY: `fill` stored a block in every slot. The thread that filled the parcel no
            // longer uses the blocks. It fills the parcel again before the parcel is emptied again,
            // so no block is freed twice.
            unsafe { self.blocks.free(*slot) }?;
        }
        self.blocks.flush();
        self.scene.post.give_back(parcel);
        Ok(())
    }
}
