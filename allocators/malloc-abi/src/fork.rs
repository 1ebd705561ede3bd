//! Handlers for forks, and for the start and the end of the library or program.

use core::ffi::{c_int, c_void};

use heapdrome_pages::Linux;

use crate::contract::keeping_errno;
use crate::{ForkGate, MallocAbi};

type Handler = extern "C" fn();

unsafe extern "C" {
    // pthread_atfork calls this function with the caller's __dso_handle, so that the handlers are
    // removed when the caller is unloaded. An allocator is never unloaded, so it passes no handle.
    fn __register_atfork(
        prepare: Option<Handler>,
        parent: Option<Handler>,
        child: Option<Handler>,
        object: *mut c_void,
    ) -> c_int;
}

#[cold]
extern "C" fn prepare<A: MallocAbi>() {
    keeping_errno(|| A::fork_gate().close(A::presence(), |visit| A::each_presence(visit)));
}

#[cold]
extern "C" fn parent<A: MallocAbi>() {
    // SAFETY: this thread closed the gate in `prepare`. If another handler of this fork has itself
    // forked, this may also be the child's copy of that thread.
    keeping_errno(|| unsafe { A::fork_gate().open(A::presence(), &Linux) });
}

#[cold]
extern "C" fn child<A: MallocAbi>() {
    keeping_errno(|| {
        A::free_locks_in_child();
        // SAFETY: this thread is the copy of the thread that closed the gate in `prepare`.
        unsafe {
            A::fork_gate().open_in_child(A::presence(), &Linux, |visit| A::each_presence(visit));
        }
        A::fork_child();
    });
}

impl ForkGate {
    /// Registers the fork handlers of `A`, to which this gate belongs. Only the first call does so.
    /// Registration may allocate, so the first allocation makes this call only when the allocator
    /// is ready. [`MallocAbi::start`] also calls it.
    ///
    /// Before a fork, the C library calls the prepare handlers in the reverse order of their
    /// registration. Another library's handler may wait long for a lock whose holder allocates. The
    /// gate should close after all other handlers have run, so that these allocations need no
    /// fallback. The allocator's handlers must therefore be registered first, at the first
    /// allocation. The constructor of a preloaded library would be too late, because it runs after
    /// the constructors of the program's libraries.
    pub fn register<A: MallocAbi>(&self) {
        if !self.is_first_to_register() {
            return;
        }
        // SAFETY: the handlers are never unloaded. If out of memory, forks of a multithreaded
        // program are as unsafe as without handlers.
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

/// Registers the start and stop functions of an allocator in the binary that contains it. Used by
/// `export!` and `global_allocator!`.
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

/// Runs `A::stop`; called from `.fini_array` when the process calls `exit`.
pub extern "C" fn stop<A: MallocAbi>() {
    keeping_errno(A::stop);
}

/// Runs `A::start`; called from `.init_array`.
pub extern "C" fn start<A: MallocAbi>() {
    keeping_errno(A::start);
}
