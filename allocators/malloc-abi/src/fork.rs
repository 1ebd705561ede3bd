//! Handlers around a fork, and at the start and the end of the library or the program.

use core::ffi::{c_int, c_void};

use heapdrome_pages::Linux;

use crate::contract::keeping_errno;
use crate::{ForkGate, MallocAbi};

type Handler = extern "C" fn();

unsafe extern "C" {
    // pthread_atfork is this function with the caller's __dso_handle, which removes the handlers
    // when the caller is unloaded. An allocator is never unloaded, and needs no handle.
    fn __register_atfork(
        prepare: Option<Handler>,
        parent: Option<Handler>,
        child: Option<Handler>,
        object: *mut c_void,
    ) -> c_int;
}

extern "C" fn prepare<A: MallocAbi>() {
    keeping_errno(|| A::fork_gate().close(A::presence(), |visit| A::each_presence(visit)));
}

extern "C" fn parent<A: MallocAbi>() {
    // SAFETY: this thread closed the gate in `prepare`.
    keeping_errno(|| unsafe { A::fork_gate().open(A::presence(), &Linux) });
}

extern "C" fn child<A: MallocAbi>() {
    keeping_errno(|| {
        A::free_locks_in_child();
        // SAFETY: this thread is the copy of the one that closed the gate in `prepare`.
        unsafe {
            A::fork_gate().open_in_child(A::presence(), &Linux, |visit| A::each_presence(visit));
        }
        A::fork_child();
    });
}

impl ForkGate {
    /// Registers the handlers of `A`, whose gate this is, at the first call. The first allocation
    /// calls it once the allocator can serve others, since registering may allocate.
    /// [`MallocAbi::start`] calls it, too.
    ///
    /// Before a fork, the C library calls handlers in the reverse order of their registration.
    /// Another library's handler may wait for a lock whose holder allocates, which takes longest
    /// behind a closed gate. So the allocator's handlers should be called last, and registered
    /// first: at the first allocation. The constructor of a preloaded library is too late, since it
    /// runs after those of the program's libraries.
    pub fn register<A: MallocAbi>(&self) {
        if !self.is_first_to_register() {
            return;
        }
        // SAFETY: the handlers stay in place as long as the process lives. If there is no memory
        // for them, forks of a program with several threads are as safe as without handlers.
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

/// Registers the start and the stop of an allocator with the binary that it is linked into. Shared
/// by `export!` and `global_allocator!`.
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

/// Runs `A::stop` from `.fini_array`, when the process calls `exit`.
pub extern "C" fn stop<A: MallocAbi>() {
    keeping_errno(A::stop);
}

/// Runs `A::start` from `.init_array`.
pub extern "C" fn start<A: MallocAbi>() {
    keeping_errno(A::start);
}
