//! Burst: the memory that stays resident after most or all of a large amount is freed.

mod texts;

pub(crate) use texts::DESCRIPTION;

use std::time::{Duration, Instant};

use heapdrome_schema::WorkloadReport;

use crate::account::Account;
use crate::array::Array;
use crate::caller::Tally;
use crate::random_blocks::{Blocks, Kind, Shape, Sizes, Slot, check_align, check_sizes};
use crate::report::Outcome;
use crate::threads::{self, Finished, Halt, Team};
use crate::{Failure, Heap, Parameters};
use heapdrome_system::process::Memory;

/// Number of bursts in a run. The first is followed by silence, the second by activity, and some
/// blocks of the third survive.
const BURSTS: u64 = 3;

/// Number of pulses in a phase of activity, in which the leading thread allocates and frees while
/// the others sleep.
const PULSES: u32 = 100;

/// Number of blocks that the active thread allocates and frees in one pulse.
const IN_PULSE: usize = 8;

fn check(parameters: &Parameters) -> Result<(), String> {
    check_sizes(parameters)?;
    check_align(parameters)
}

fn sizes(parameters: &Parameters) -> Sizes {
    let shape = Shape::of(0, parameters.value("distribution"));
    Sizes::of(shape, parameters)
}

/// Returns the number of blocks of each thread in a burst, from the size of the burst and the mean
/// size of a block.
fn blocks_of_thread(parameters: &Parameters) -> u64 {
    let bytes = (parameters.value("mebibytes") << 20) as f64;
    let blocks = bytes / sizes(parameters).mean() / parameters.value("threads") as f64;
    (blocks as u64).max(1)
}

fn needs(parameters: &Parameters) -> u64 {
    let slots = blocks_of_thread(parameters).saturating_mul(parameters.value("threads"));
    let array = slots.saturating_mul(size_of::<Slot>() as u64);
    (parameters.value("mebibytes") << 20).saturating_add(array)
}

/// Returns the number of operations of a run: blocks allocated plus blocks freed.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    let of_bursts = blocks_of_thread(parameters)
        .saturating_mul(parameters.value("threads"))
        .saturating_mul(BURSTS);
    let of_pulses = 2 * u64::from(PULSES) * IN_PULSE as u64;
    of_bursts.saturating_add(of_pulses).saturating_mul(2)
}

pub(crate) fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let scene = Scene {
        heap,
        account: Account::default(),
        kind: Kind::new(sizes(parameters), parameters),
        silence: Duration::from_millis(parameters.value("silence")),
        activity: Duration::from_millis(parameters.value("activity")),
        one_in: parameters.value("survivors"),
    };
    let blocks = blocks_of_thread(parameters) as usize;
    let finished = threads::run(
        parameters.value("threads") as usize,
        |number| {
            Ok(Worker {
                scene: &scene,
                leads: number == 0,
                slots: Array::new(blocks)?,
                blocks: Blocks::new(&scene.kind, heap, &scene.account, number),
                notes: Notes::default(),
            })
        },
        |_, worker, team| worker.work(team),
        |worker| (worker.slots.bytes(), worker.notes, worker.blocks.finish()),
    )?;
    Ok(outcome(finished, &scene.account).report(parameters))
}

fn outcome(finished: Finished<(u64, Notes, Tally)>, account: &Account) -> Outcome {
    let bookkeeping = finished.results.iter().map(|(bytes, ..)| bytes).sum();
    let notes = finished.results.first().map(|(_, notes, _)| *notes);
    let own = notes.unwrap_or_default().figures(finished.before.resident);
    let finished = finished.map(|(.., tally)| tally);
    Outcome {
        own,
        ..Outcome::of(finished, account, bookkeeping)
    }
}

/// State that all threads share.
struct Scene<'a, H: Heap> {
    heap: &'a H,
    account: Account,
    kind: Kind,
    silence: Duration,
    activity: Duration,
    one_in: u64,
}

struct Worker<'a, H: Heap> {
    scene: &'a Scene<'a, H>,
    /// Whether this thread runs the pulses and reads the resident memory.
    leads: bool,
    slots: Array<Slot>,
    blocks: Blocks<'a, H>,
    notes: Notes,
}

/// Resident memory at the reported moments, read by the leading thread.
#[derive(Clone, Copy, Debug, Default)]
struct Notes {
    silent: u64,
    silent_trimmed: Option<u64>,
    active: u64,
    survivors: u64,
    survivors_trimmed: Option<u64>,
    /// Requested bytes of the survivors.
    live: u64,
}

impl Notes {
    /// Returns the figures: the growth of memory above `start`, and for the survivors the ratio of
    /// this growth to their requested bytes.
    fn figures(self, start: u64) -> Vec<(&'static str, f64)> {
        let above = |resident: u64| resident as f64 - start as f64;
        let over_live = |resident: u64| above(resident) / self.live.max(1) as f64;
        let mut figures = vec![
            ("left_silent_bytes", above(self.silent)),
            ("left_active_bytes", above(self.active)),
            ("survivor_bytes", self.live as f64),
            ("survivor_overhead", over_live(self.survivors)),
        ];
        let trimmed = self.silent_trimmed.map(above);
        figures.extend(trimmed.map(|bytes| ("left_trimmed_bytes", bytes)));
        let trimmed = self.survivors_trimmed.map(over_live);
        figures.extend(trimmed.map(|ratio| ("survivor_overhead_trimmed", ratio)));
        figures
    }
}

impl<H: Heap> Worker<'_, H> {
    fn work(&mut self, team: &Team) -> Result<(), Halt> {
        self.burst(team)?;
        self.free_all()?;
        self.alone(team, Self::be_silent)?;
        self.burst(team)?;
        self.free_all()?;
        self.alone(team, Self::be_active)?;
        self.burst(team)?;
        self.free_most()?;
        self.alone(team, Self::be_active_among_survivors)?;
        self.free_all()?;
        Ok(())
    }

    /// Fills every slot of this thread, and waits until the other threads have filled theirs.
    fn burst(&mut self, team: &Team) -> Result<(), Halt> {
        for slot in self.slots.iter_mut() {
            *slot = self.blocks.allocate()?;
        }
        self.blocks.flush();
        team.meet()
    }

    fn free_all(&mut self) -> Result<(), Failure> {
        self.free_where(|_, _| true)
    }

    /// Frees all but one block, drawn at random, of each run of `one_in` blocks. May free all
    /// blocks of an incomplete last run.
    fn free_most(&mut self) -> Result<(), Failure> {
        let one_in = self.scene.one_in as usize;
        let mut kept = 0;
        self.free_where(|place, bits| {
            if place % one_in == 0 {
                kept = place + (bits % one_in as u64) as usize;
            }
            place != kept
        })
    }

    /// Frees the blocks in use for which `goes` returns true, given their index and random bits.
    fn free_where(&mut self, mut goes: impl FnMut(usize, u64) -> bool) -> Result<(), Failure> {
        for place in 0..self.slots.len() {
            let slot = self.slots[place];
            if !slot.block.is_null() && goes(place, self.blocks.bits()) {
                // SAFETY: a slot that is not null holds a block that `burst` stored and that has
                // not been freed. Only this thread uses it, and the slot is set to null here.
                unsafe { self.blocks.free(slot) }?;
                self.slots[place] = Slot::EMPTY;
            }
        }
        self.blocks.flush();
        Ok(())
    }

    /// Runs `what` on the leading thread while the others sleep, after all threads have freed.
    fn alone(
        &mut self,
        team: &Team,
        what: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Halt> {
        team.meet()?;
        if self.leads {
            what(self)?;
        }
        team.meet()
    }

    fn be_silent(&mut self) -> Result<(), Failure> {
        std::thread::sleep(self.scene.silence);
        self.notes.silent = Memory::read().resident;
        self.notes.silent_trimmed = self.trimmed();
        Ok(())
    }

    fn be_active(&mut self) -> Result<(), Failure> {
        self.pulse()?;
        self.notes.active = Memory::read().resident;
        Ok(())
    }

    fn be_active_among_survivors(&mut self) -> Result<(), Failure> {
        // This count is exact, because every thread has published its count before the threads met.
        self.notes.live = self.scene.account.current();
        self.pulse()?;
        self.notes.survivors = Memory::read().resident;
        self.notes.survivors_trimmed = self.trimmed();
        Ok(())
    }

    /// Allocates and frees a few blocks at even steps of the active time. The number of steps is
    /// fixed, so that a slow machine runs the same operations.
    fn pulse(&mut self) -> Result<(), Failure> {
        let begin = Instant::now();
        for pulse in 1..=PULSES {
            let mut few = [Slot::EMPTY; IN_PULSE];
            for slot in &mut few {
                *slot = self.blocks.allocate()?;
            }
            for slot in few {
                // SAFETY: the block was allocated above, and only this thread uses it. It is not
                // used afterwards.
                unsafe { self.blocks.free(slot) }?;
            }
            let due = self.scene.activity * pulse / PULSES;
            std::thread::sleep(due.saturating_sub(begin.elapsed()));
        }
        Ok(())
    }

    /// Returns the resident memory after a call to `malloc_trim`, or `None` if the allocator has no
    /// such function.
    fn trimmed(&self) -> Option<u64> {
        self.scene.heap.trim().then(|| Memory::read().resident)
    }
}
