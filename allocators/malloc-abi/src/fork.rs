//! What happens around a fork, and when the library is loaded, or the program started.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::MallocAbi;
use crate::contract::keeping_errno;

type Handler = extern "C" fn();

unsafe extern "C" {
    // pthread_atfork is this function with the caller's __dso_handle, so that the handlers go when
    // the caller is unloaded. An allocator is never unloaded, and needs no handle.
    fn __register_atfork(
        prepare: Option<Handler>,
        parent: Option<Handler>,
        child: Option<Handler>,
        object: *mut c_void,
    ) -> c_int;
}

extern "C" fn prepare<A: MallocAbi>() {
    keeping_errno(A::fork_prepare);
}

extern "C" fn parent<A: MallocAbi>() {
    keeping_errno(A::fork_parent);
}

extern "C" fn child<A: MallocAbi>() {
    keeping_errno(A::fork_child);
}

/// An allocator's handlers of forks, registered once.
///
/// Before a fork the C library calls handlers in the opposite order to that of their registration. Somebody else's
/// handler may wait for a lock whose holder allocates; with the allocator's own locks held by then, both would
/// wait for ever. So the allocator's are to be called last, and registered first: at the first allocation. The
/// constructor of a preloaded library is too late, since it runs after those of the program's libraries.
#[derive(Debug)]
pub struct ForkHandlers(AtomicBool);

impl ForkHandlers {
    /// Nothing is registered.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Registers the handlers of `A`, if nobody has: to be called by the first allocation, when it can serve
    /// others (registering may allocate), and by [`MallocAbi::start`].
    pub fn register<A: MallocAbi>(&self) {
        // Relaxed: who is second has nothing to wait for; forks meanwhile are the program's own race.
        if self.0.load(Relaxed) || self.0.swap(true, Relaxed) {
            return;
        }
        // SAFETY: the handlers stay where they are as long as the process lives. Without memory for
        // them, forks of a program with several threads are as safe as without handlers.
        unsafe {
            __register_atfork(
                Some(prepare::<A>),
                Some(parent::<A>),
                Some(child::<A>),
                core::ptr::null_mut(),
            )
        };
    }
}

impl Default for ForkHandlers {
    fn default() -> Self {
        Self::new()
    }
}

/// Has an allocator started and stopped with what it is linked into: what `export!` and `global_allocator!` have in common.
#[doc(hidden)]
#[macro_export]
macro_rules! register {
    ($allocator:ty) => {
        const _: () = {
            #[used]
            #[unsafe(link_section = ".init_array")]
            static START: extern "C" fn() = $crate::exported::start::<$allocator>;
            #[used]
            #[unsafe(link_section = ".fini_array")]
            static STOP: extern "C" fn() = $crate::exported::stop::<$allocator>;
        };
    };
}

/// Runs from `.fini_array`, when the process calls `exit`.
pub extern "C" fn stop<A: MallocAbi>() {
    keeping_errno(A::stop);
}

/// Runs from `.init_array`.
pub extern "C" fn start<A: MallocAbi>() {
    keeping_errno(A::start);
}
