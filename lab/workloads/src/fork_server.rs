//! Fork server: a parent with a warm heap that forks children, which work on a copy of it.

mod record;
mod texts;

pub(crate) use texts::DESCRIPTION;

use heapdrome_schema::{Ending, WorkloadReport};

use crate::account::Account;
use crate::array::Array;
use crate::caller::Tally;
use crate::random_blocks::{Blocks, Kind, Sizes, Slot};
use crate::report::Outcome;
use crate::threads::{self, Halt, Team};
use crate::{Failure, Heap, Parameters};
use heapdrome_system::forks::Forks;
use heapdrome_system::process::OfChildren;
use record::Record;

/// Exit status of a child that found a failure.
const FAILED: u8 = 1;

/// Estimates the peak memory of the parent and of all children that are alive. Counts for each
/// child a copy of the blocks of its parent thread, and the child's own blocks.
fn needs(parameters: &Parameters) -> u64 {
    let value = |name| parameters.value(name) as f64;
    let of_each = Sizes::logarithmic(parameters).mean() + size_of::<Slot>() as f64;
    let of_children = value("alive") * (value("blocks") + value("allocates"));
    // The conversion saturates: a number that is too large becomes the maximum.
    ((value("threads") * value("blocks") + of_children) * of_each) as u64
}

/// Returns the number of operations of a run: blocks allocated plus blocks freed.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    let value = |name| parameters.value(name);
    let replaced = value("children").saturating_mul(value("replaces"));
    let of_parent = value("threads").saturating_mul(value("blocks").saturating_add(replaced));
    let of_children = value("children").saturating_mul(value("allocates"));
    of_parent.saturating_add(of_children).saturating_mul(2)
}

pub(crate) fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let kind = Kind::new(Sizes::logarithmic(parameters), parameters);
    let account = Account::default();
    let scene = Scene::of(parameters, heap, &kind, &account);
    let before = OfChildren::read();
    let finished = threads::run(
        parameters.value("threads") as usize,
        |number| Parent::new(&scene, number),
        |_, parent, team| parent.work(team),
        Parent::finish,
    )?;
    let used = OfChildren::read().since(before);
    let array = (scene.blocks + scene.allocates) * size_of::<Slot>() as u64;
    let bookkeeping = parameters.value("threads") * array;
    let mut outcome = Outcome::of(finished, &account, bookkeeping);
    outcome.add_children(used, scene.children);
    Ok(outcome.report(parameters))
}

/// State that the parent's threads share.
struct Scene<'a, H: Heap> {
    heap: &'a H,
    kind: &'a Kind,
    account: &'a Account,
    children: u64,
    alive: u64,
    blocks: u64,
    replaces: u64,
    touches: u64,
    allocates: u64,
}

impl<'a, H: Heap> Scene<'a, H> {
    fn of(parameters: &Parameters, heap: &'a H, kind: &'a Kind, account: &'a Account) -> Self {
        Self {
            heap,
            kind,
            account,
            children: parameters.value("children"),
            alive: parameters.value("alive"),
            blocks: parameters.value("blocks"),
            replaces: parameters.value("replaces"),
            touches: parameters.value("touches"),
            allocates: parameters.value("allocates"),
        }
    }
}

/// One thread of the parent. The first forks the children.
struct Parent<'a, H: Heap> {
    scene: &'a Scene<'a, H>,
    forks_children: bool,
    blocks: Blocks<'a, H>,
    /// Blocks of this thread. A child inherits the blocks of all threads, and writes to those of
    /// the first.
    slots: Array<Slot>,
    /// Slots for a child's own blocks, empty in the parent.
    own: Array<Slot>,
    /// Records of the children that are alive. The next child takes the place of the oldest.
    records: Array<Record>,
    forks: Forks,
    of_children: Tally,
}

impl<'a, H: Heap> Parent<'a, H> {
    fn new(scene: &'a Scene<'a, H>, number: usize) -> Result<Self, Failure> {
        let alive = scene.alive as usize;
        Ok(Self {
            scene,
            forks_children: number == 0,
            blocks: Blocks::new(scene.kind, scene.heap, scene.account, number),
            slots: Array::new(scene.blocks as usize)?,
            own: Array::new(scene.allocates as usize)?,
            records: Array::shared(alive)?,
            forks: Forks::new(alive),
            of_children: Tally::default(),
        })
    }

    fn work(&mut self, team: &Team) -> Result<(), Halt> {
        for slot in self.slots.iter_mut() {
            *slot = self.blocks.allocate()?;
        }
        team.meet()?;
        for number in 0..self.scene.children {
            team.go_on()?;
            if self.forks_children {
                if self.forks.count() == self.records.len() {
                    self.collect((number % self.scene.alive) as usize)?;
                }
                self.fork(number)?;
            }
            self.replace()?;
        }
        for left in (1..=self.forks.count() as u64).rev() {
            self.collect(((self.scene.children - left) % self.scene.alive) as usize)?;
        }
        for slot in self.slots.iter() {
            // SAFETY: every slot holds a block in use. Only this thread uses these blocks, and it
            // frees each only once.
            unsafe { self.blocks.free(*slot) }?;
        }
        Ok(())
    }

    /// Replaces blocks drawn at random, while the children work.
    fn replace(&mut self) -> Result<(), Failure> {
        for _ in 0..self.scene.replaces {
            let place = self.blocks.below(self.slots.len() as u64) as usize;
            // SAFETY: every slot holds a block in use, which only this thread uses. If the
            // allocation below fails, the run ends, and the slot is not read again.
            unsafe { self.blocks.free(self.slots[place]) }?;
            self.slots[place] = self.blocks.allocate()?;
        }
        Ok(())
    }

    fn fork(&mut self, number: u64) -> Result<(), Failure> {
        let place = (number % self.scene.alive) as usize;
        let Self {
            scene,
            slots,
            own,
            records,
            forks,
            ..
        } = self;
        let life = || {
            let done = child(scene, number, slots, own);
            records[place] = Record::of(&done);
            if done.is_ok() { 0 } else { FAILED }
        };
        // SAFETY: the child only calls the heap and writes into arrays. So the only locks that it
        // takes are those of the heap.
        let forked = unsafe { forks.fork(life) };
        forked.map_err(|error| Failure::Process(error.to_string()))
    }

    /// Waits for the oldest child, whose record is at this place.
    fn collect(&mut self, place: usize) -> Result<(), Failure> {
        let ended = self.forks.collect_oldest();
        let ended = ended.map_err(|error| Failure::Process(error.to_string()))?;
        match ended {
            None => Ok(()),
            Some(Ending::Exited(0)) => {
                self.of_children.merge(self.records[place].tally());
                Ok(())
            }
            Some(Ending::Exited(status)) if status == i32::from(FAILED) => {
                Err(Failure::Child(self.records[place].text()))
            }
            Some(other) => Err(Failure::Child(other.to_string())),
        }
    }

    fn finish(self) -> Tally {
        Tally::sum([self.of_children, self.blocks.finish()])
    }
}

/// Runs a child: it allocates blocks of its own, writes to some that it inherited, and frees its
/// own.
fn child<H: Heap>(
    scene: &Scene<'_, H>,
    number: u64,
    inherited: &[Slot],
    own: &mut [Slot],
) -> Result<Tally, Failure> {
    let mut blocks = Blocks::of_task(scene.kind, scene.heap, scene.account, number);
    for slot in own.iter_mut() {
        *slot = blocks.allocate()?;
    }
    for _ in 0..scene.touches {
        let place = blocks.below(inherited.len() as u64) as usize;
        // SAFETY: every inherited slot holds a block that `allocate` returned on this heap and that
        // has not been freed. This process has one thread.
        unsafe { blocks.rewrite(inherited[place]) }?;
    }
    for slot in own.iter() {
        // SAFETY: every slot holds a block that was allocated above and is not freed again, and
        // this process has one thread.
        unsafe { blocks.free(*slot) }?;
    }
    Ok(blocks.finish())
}
