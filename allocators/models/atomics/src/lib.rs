//! loom's atomics in the shape of core's: they can be made in constants, lie in zeroed memory, and
//! be used as futexes, as the allocators need it. So the allocators' own sources run in models.
//!
//! A cell holds nothing but the value that it was made with. loom's atomic for it is found by the
//! cell's address, when it is first used, and forgotten when the next execution of the [`model`]
//! begins. A cell must therefore not move, nor its memory be used for another, within an execution.
//!
//! loom's atomic must be older than the threads that use it. [`spawn`] therefore makes a few in
//! advance; they hold not the value but its distance from the first one, which is zero for all of
//! them.

mod keys;

use std::cell::{RefCell, UnsafeCell};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::rc::Rc;

pub use keys::{create_key, delete_key, end_of_thread, keys, set_key};
use loom::sync::atomic::AtomicU64 as Distance;
pub use loom::sync::atomic::{Ordering, fence};
pub use loom::thread::yield_now;
use loom::thread::{Builder, JoinHandle};

/// How many cells threads may use for the first time after a [`spawn`].
const IN_ADVANCE: usize = 128;
/// Words of stack that a thread of a model has.
const STACK: usize = 1 << 16;

#[derive(Default)]
struct Execution {
    cells: HashMap<usize, Rc<Distance>>,
    futexes: HashMap<usize, Rc<Futex>>,
    in_advance: Vec<(Rc<Distance>, Rc<Futex>)>,
}

#[derive(Default)]
struct Futex {
    turn: loom::sync::Mutex<()>,
    awake: loom::sync::Condvar,
    used: loom::cell::UnsafeCell<()>,
}

thread_local! {
    // loom runs all threads of a model on one thread of the system.
    static EXECUTION: RefCell<Execution> = RefCell::default();
}

impl Execution {
    fn take(&mut self) -> (Rc<Distance>, Rc<Futex>) {
        let new = || (Rc::new(Distance::new(0)), Rc::default());
        self.in_advance.pop().unwrap_or_else(new)
    }
}

/// Runs `body` in every order of its threads' steps in which threads that could go on are
/// interrupted at most `preemptions` times; each time with cells as new.
pub fn model(preemptions: usize, body: impl Fn() + Sync + Send + Copy + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        EXECUTION.with_borrow_mut(|execution| *execution = Execution::default());
        keys::forget_all();
        // The first thread has a small stack.
        join(spawn(body));
    });
}

/// Begins a thread of the model.
///
/// # Panics
///
/// If loom allows for no more threads.
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    EXECUTION.with_borrow_mut(|execution| {
        let new = || (Rc::new(Distance::new(0)), Rc::default());
        execution.in_advance.resize_with(IN_ADVANCE, new);
    });
    let thread = Builder::new().stack_size(STACK).spawn(body);
    thread.expect("loom allows for five threads")
}

/// Makes no more in advance, until the next [`spawn`]: a cell that a thread is the first to use
/// from here on is like memory that it wrote to. Another thread that uses it without an order
/// behind that ends the model with a failure.
pub fn nothing_in_advance() {
    drop(EXECUTION.with_borrow_mut(|execution| std::mem::take(&mut execution.in_advance)));
}

/// What a thread of the model returns, when it has ended.
///
/// # Panics
///
/// If it panicked.
pub fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("a thread of the model")
}

/// A number that no other thread of the model has.
#[must_use]
pub fn thread_number() -> usize {
    use std::hash::{Hash, Hasher};
    let mut hasher = std::hash::DefaultHasher::new();
    loom::thread::current().id().hash(&mut hasher);
    hasher.finish() as usize | 1
}

fn cell(address: usize) -> Rc<Distance> {
    EXECUTION.with_borrow_mut(|execution| {
        if let Some(known) = execution.cells.get(&address) {
            return known.clone();
        }
        let (distance, futex) = execution.take();
        execution.cells.insert(address, distance.clone());
        execution.futexes.insert(address, futex);
        distance
    })
}

fn futex(word: &AtomicU32) -> Rc<Futex> {
    let address = (&raw const *word).addr();
    cell(address);
    EXECUTION.with_borrow(|execution| execution.futexes[&address].clone())
}

/// Notes that the calling thread uses what a lock guards, whose word is `word`: loom ends the model
/// where two threads do so without an order between them.
pub fn note_use(word: &AtomicU32) {
    futex(word).used.with_mut(|_| ());
}

/// Sleeps if `word` is `value`, until it is woken: the two are one step, as in the kernel.
///
/// # Panics
///
/// If loom's lock is poisoned, which it never is.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    let futex = futex(word);
    let turn = futex.turn.lock().expect("loom's lock");
    if word.load(Ordering::SeqCst) == value {
        drop(futex.awake.wait(turn));
    }
}

/// Wakes one that sleeps on `word`.
///
/// # Panics
///
/// If loom's lock is poisoned.
pub fn futex_wake(word: &AtomicU32) {
    let futex = futex(word);
    let _turn = futex.turn.lock().expect("loom's lock");
    futex.awake.notify_one();
}

/// What an atomic can hold, as a number that wraps.
trait Bits: Copy {
    fn to_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
}

macro_rules! bits {
    ($($type:ty),*) => {
        $(impl Bits for $type {
            fn to_bits(self) -> u64 {
                self as u64
            }

            fn from_bits(bits: u64) -> Self {
                bits as $type
            }
        })*
    };
}

bits!(u8, u16, u32, u64, usize);

impl Bits for bool {
    fn to_bits(self) -> u64 {
        self.into()
    }

    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
}

impl<T> Bits for *mut T {
    fn to_bits(self) -> u64 {
        self.expose_provenance() as u64
    }

    fn from_bits(bits: u64) -> Self {
        std::ptr::with_exposed_provenance_mut(bits as usize)
    }
}

/// What all of them have in common.
#[repr(transparent)]
struct Cell<V> {
    initial: UnsafeCell<V>,
}

impl<V: Bits> Cell<V> {
    fn modelled(&self) -> (Rc<Distance>, u64) {
        // SAFETY: the initial value is never written.
        let initial = unsafe { *self.initial.get() };
        (cell((&raw const *self).addr()), initial.to_bits())
    }
}

macro_rules! shared {
    ($name:ident $(<$type:ident>)?, $value:ty) => {
        /// An atomic.
        #[repr(transparent)]
        pub struct $name $(<$type>)? {
            cell: Cell<$value>,
            $(pointee: PhantomData<*mut $type>,)?
        }

        // SAFETY: the initial value is never written, and loom's atomic is only used on the one
        // thread of the system that runs the model.
        unsafe impl $(<$type>)? Sync for $name $(<$type>)? {}
        // SAFETY: as above.
        unsafe impl $(<$type>)? Send for $name $(<$type>)? {}

        impl $(<$type>)? std::fmt::Debug for $name $(<$type>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }

        impl $(<$type>)? $name $(<$type>)? {
            /// A cell of this value.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self {
                    cell: Cell { initial: UnsafeCell::new(value) },
                    $(pointee: PhantomData::<*mut $type>,)?
                }
            }

            /// As core's.
            pub fn load(&self, order: Ordering) -> $value {
                let (distance, initial) = self.cell.modelled();
                Bits::from_bits(distance.load(order).wrapping_add(initial))
            }

            /// As core's.
            pub fn store(&self, value: $value, order: Ordering) {
                let (distance, initial) = self.cell.modelled();
                distance.store(value.to_bits().wrapping_sub(initial), order);
            }

            /// As core's.
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                let (distance, initial) = self.cell.modelled();
                let old = distance.swap(value.to_bits().wrapping_sub(initial), order);
                Bits::from_bits(old.wrapping_add(initial))
            }

            /// As core's.
            ///
            /// # Errors
            ///
            /// The value found, if it is another than `current`.
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let (distance, initial) = self.cell.modelled();
                let [current, new] = [current, new].map(|value| value.to_bits().wrapping_sub(initial));
                let value = |bits: u64| Bits::from_bits(bits.wrapping_add(initial));
                let found = distance.compare_exchange(current, new, success, failure);
                found.map(value).map_err(value)
            }
        }
    };
}

macro_rules! counted {
    ($name:ident, $value:ty) => {
        impl $name {
            /// As core's.
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                let (distance, initial) = self.cell.modelled();
                let old = distance.fetch_add(value.to_bits(), order);
                Bits::from_bits(old.wrapping_add(initial))
            }

            /// As core's.
            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.fetch_add(value.wrapping_neg(), order)
            }

            /// As core's, in as many steps as it takes.
            pub fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                let mut old = self.load(Ordering::Relaxed);
                while old < value {
                    match self.compare_exchange(old, value, order, Ordering::Relaxed) {
                        Ok(_) => break,
                        Err(found) => old = found,
                    }
                }
                old
            }
        }
    };
}

shared!(AtomicU8, u8);
shared!(AtomicU16, u16);
shared!(AtomicU32, u32);
shared!(AtomicU64, u64);
shared!(AtomicUsize, usize);
shared!(AtomicBool, bool);
shared!(AtomicPtr<T>, *mut T);
counted!(AtomicU32, u32);
counted!(AtomicU64, u64);
counted!(AtomicUsize, usize);
