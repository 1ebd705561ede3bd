//! loom's atomics with core's interface. The allocators' own sources can use them in models,
//! because they can be created in constants, lie in zeroed memory, and be used as futexes.
//!
//! A cell holds only its initial value. At its first use, the cell gets an atomic of loom. This
//! atomic is looked up by the cell's address until the next execution of the [`model`]. So within
//! an execution, a cell must not move, and its memory must not be reused for another cell.
//!
//! An atomic of loom must be created before the threads that use it. So [`spawn`] creates some in
//! advance. Each holds the difference between the current and the initial value, which is zero at
//! first.

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

/// Number of cells that threads may use for the first time after a [`spawn`].
const IN_ADVANCE: usize = 256;
/// Stack size of a thread in a model, in words.
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
    // loom runs all threads of a model on one operating-system thread.
    static EXECUTION: RefCell<Execution> = RefCell::default();
}

impl Execution {
    fn take(&mut self) -> (Rc<Distance>, Rc<Futex>) {
        let new = || (Rc::new(Distance::new(0)), Rc::default());
        self.in_advance.pop().unwrap_or_else(new)
    }
}

/// Runs `body` in every order of its threads' steps with at most `preemptions` preemptions. Each
/// execution begins with new cells.
pub fn model(preemptions: usize, body: impl Fn() + Sync + Send + Copy + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        EXECUTION.with_borrow_mut(|execution| *execution = Execution::default());
        keys::forget_all();
        // loom's first thread has only a small stack, so run the body in another thread.
        join(spawn(body));
    });
}

/// Starts a thread of the model.
///
/// # Panics
///
/// If loom allows no more threads.
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    EXECUTION.with_borrow_mut(|execution| {
        let new = || (Rc::new(Distance::new(0)), Rc::default());
        execution.in_advance.resize_with(IN_ADVANCE, new);
    });
    let thread = Builder::new().stack_size(STACK).spawn(body);
    thread.expect("loom allows for five threads")
}

/// Discards the atomics that were created in advance, until the next [`spawn`]. From then on, the
/// first use of a cell counts as a write. If another thread uses the cell without being ordered
/// after that write, the model fails.
pub fn nothing_in_advance() {
    drop(EXECUTION.with_borrow_mut(|execution| std::mem::take(&mut execution.in_advance)));
}

/// Waits for a thread of the model to end, and returns its result.
///
/// # Panics
///
/// If the thread panicked.
pub fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("a thread of the model")
}

/// Returns a number that is unique to the calling thread of the model.
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

/// Records that the calling thread uses the data of a lock with the state `word`. The model fails
/// if two threads do so without an order between them.
pub fn note_use(word: &AtomicU32) {
    futex(word).used.with_mut(|_| ());
}

/// If `word` is `value`, sleeps until a wakeup. The check and the start of the sleep are one step,
/// as in the kernel.
///
/// # Panics
///
/// If loom's lock is poisoned, which never happens.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    let futex = futex(word);
    let turn = futex.turn.lock().expect("loom's lock");
    if word.load(Ordering::SeqCst) == value {
        drop(futex.awake.wait(turn));
    }
}

/// Wakes one thread that sleeps on `word`.
///
/// # Panics
///
/// If loom's lock is poisoned.
pub fn futex_wake(word: &AtomicU32) {
    let futex = futex(word);
    let _turn = futex.turn.lock().expect("loom's lock");
    futex.awake.notify_one();
}

/// Contents of an atomic, as a number that wraps.
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

/// Initial value of an atomic. The address of this cell identifies the atomic of loom.
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
        /// Atomic of loom with core's interface.
        #[repr(transparent)]
        pub struct $name $(<$type>)? {
            cell: Cell<$value>,
            $(pointee: PhantomData<*mut $type>,)?
        }

        // SAFETY: the initial value is never written, and only the operating-system thread that
        // runs the model uses loom's atomic.
        unsafe impl $(<$type>)? Sync for $name $(<$type>)? {}
        // SAFETY: the initial value is never written, and only the operating-system thread that
        // runs the model uses loom's atomic.
        unsafe impl $(<$type>)? Send for $name $(<$type>)? {}

        impl $(<$type>)? std::fmt::Debug for $name $(<$type>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }

        impl $(<$type>)? $name $(<$type>)? {
            /// Creates a cell with this value.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self {
                    cell: Cell { initial: UnsafeCell::new(value) },
                    $(pointee: PhantomData::<*mut $type>,)?
                }
            }

            /// Loads the value like core's atomic.
            pub fn load(&self, order: Ordering) -> $value {
                let (distance, initial) = self.cell.modelled();
                Bits::from_bits(distance.load(order).wrapping_add(initial))
            }

            /// Stores a value like core's atomic.
            pub fn store(&self, value: $value, order: Ordering) {
                let (distance, initial) = self.cell.modelled();
                distance.store(value.to_bits().wrapping_sub(initial), order);
            }

            /// Exchanges the value like core's atomic, and returns the old value.
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                let (distance, initial) = self.cell.modelled();
                let old = distance.swap(value.to_bits().wrapping_sub(initial), order);
                Bits::from_bits(old.wrapping_add(initial))
            }

            /// Exchanges the value like core's atomic if it is `current`.
            ///
            /// # Errors
            ///
            /// The value found, if it differs from `current`.
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
            /// Adds to the value like core's atomic, and returns the old value.
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                let (distance, initial) = self.cell.modelled();
                let old = distance.fetch_add(value.to_bits(), order);
                Bits::from_bits(old.wrapping_add(initial))
            }

            /// Subtracts from the value like core's atomic, and returns the old value.
            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.fetch_add(value.wrapping_neg(), order)
            }

            /// Raises the value to at least `value`, like core's atomic but in a loop, and returns
            /// the old value.
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

impl AtomicU64 {
    /// Sets the bits of `mask` like core's atomic but in a loop, and returns the old value.
    pub fn fetch_or(&self, mask: u64, order: Ordering) -> u64 {
        self.change(|old| old | mask, order)
    }

    /// Clears the bits outside `mask` like core's atomic but in a loop, and returns the old value.
    pub fn fetch_and(&self, mask: u64, order: Ordering) -> u64 {
        self.change(|old| old & mask, order)
    }

    fn change(&self, new: impl Fn(u64) -> u64, order: Ordering) -> u64 {
        let mut old = self.load(Ordering::Relaxed);
        loop {
            match self.compare_exchange(old, new(old), order, Ordering::Relaxed) {
                Ok(_) => return old,
                Err(found) => old = found,
            }
        }
    }
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
