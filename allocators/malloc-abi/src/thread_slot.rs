//! Thread-local pointers that cost two instructions on x86-64, and five on AArch64.
//!
//! std's `thread_local!` may allocate when a thread first uses a variable with a destructor, and in
//! a shared library each use may be a call. An allocator needs a symbol of the initial-exec model,
//! which stable Rust can access only through assembly.
//!
//! Libraries that are loaded by `dlopen` share a small reserve for such symbols, so an allocator
//! should use less than 64 bytes in total.

/// Defines a thread-local pointer: `thread_slot!(pub(crate) HEAP: Heap = EMPTY, "elfmalloc_heap")`
/// defines a module `HEAP`, whose `get()` and `set(*mut Heap)` read and write the calling thread's
/// pointer. Its initial value is the address of the static `EMPTY`, or null after `= null`. All
/// threads share this static, so it must have interior mutability or never be written to. The
/// string is the name of the symbol, which is hidden and must be unique among all code that is
/// linked together.
#[macro_export]
macro_rules! thread_slot {
    ($(#[$about:meta])* $visibility:vis $name:ident: $type:ty = null, $symbol:literal) => {
        $crate::thread_slot!(@define $(#[$about])*, $visibility, $name, $type, $symbol,
            (::core::ptr::null_mut()), ("0"), ());
    };
    ($(#[$about:meta])* $visibility:vis $name:ident: $type:ty = $initial:path, $symbol:literal) => {
        $crate::thread_slot!(@define $(#[$about])*, $visibility, $name, $type, $symbol,
            ((&raw const $initial).cast_mut()), ("{initial}"), (initial = sym $initial,));
    };
    (@define $(#[$about:meta])*, $visibility:vis, $name:ident, $type:ty, $symbol:literal,
        ($pointer:expr), ($word:literal), ($($operand:tt)*)) => {
        $(#[$about])*
        #[allow(non_snake_case)]
        $visibility mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
            ::core::arch::global_asm!(
                concat!(".pushsection .tdata.", $symbol, ", \"awT\", %progbits"),
                concat!(".globl ", $symbol),
                concat!(".hidden ", $symbol),
                concat!(".type ", $symbol, ", %object"),
                concat!(".size ", $symbol, ", 8"),
                ".p2align 3",
                concat!($symbol, ":"),
                concat!(".quad ", $word),
                ".popsection",
                $($operand)*
            );

            /// Returns the calling thread's pointer.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            #[inline(always)]
            pub fn get() -> *mut $type {
                let pointer: *mut $type;
                // SAFETY: the symbol is a thread-local word, defined above; reading it has no
                // effect.
                unsafe {
                    ::core::arch::asm!(
                        concat!("mov {0}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        "mov {0}, qword ptr fs:[{0}]",
                        out(reg) pointer,
                        options(pure, readonly, nostack, preserves_flags)
                    );
                }
                pointer
            }

            /// Sets the calling thread's pointer.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            #[inline(always)]
            pub fn set(pointer: *mut $type) {
                // SAFETY: the symbol is a thread-local word, defined above, that only `get` reads.
                unsafe {
                    ::core::arch::asm!(
                        concat!("mov {0}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        "mov qword ptr fs:[{0}], {1}",
                        out(reg) _,
                        in(reg) pointer,
                        options(nostack, preserves_flags)
                    );
                }
            }

            #[cfg(all(target_arch = "aarch64", not(miri)))]
            #[inline(always)]
            fn place() -> *mut *mut $type {
                let place: *mut *mut $type;
                // SAFETY: computing the address of the thread-local word has no effect.
                unsafe {
                    ::core::arch::asm!(
                        concat!("adrp {0}, :gottprel:", $symbol),
                        concat!("ldr {0}, [{0}, :gottprel_lo12:", $symbol, "]"),
                        "mrs {1}, tpidr_el0",
                        "add {0}, {0}, {1}",
                        out(reg) place,
                        out(reg) _,
                        options(pure, readonly, nostack, preserves_flags)
                    );
                }
                place
            }

            /// Returns the calling thread's pointer.
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            #[inline(always)]
            pub fn get() -> *mut $type {
                // SAFETY: the word is the calling thread's own.
                unsafe { place().read() }
            }

            /// Sets the calling thread's pointer.
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            #[inline(always)]
            pub fn set(pointer: *mut $type) {
                // SAFETY: the word is the calling thread's own.
                unsafe { place().write(pointer) };
            }

            #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
            mod portable {
                extern crate std;
                #[allow(unused_imports)]
                use super::*;

                std::thread_local! {
                    static WORD: ::core::cell::Cell<*mut $type> =
                        const { ::core::cell::Cell::new($pointer) };
                }

                /// Returns the calling thread's pointer.
                pub fn get() -> *mut $type {
                    WORD.get()
                }

                /// Sets the calling thread's pointer.
                pub fn set(pointer: *mut $type) {
                    WORD.set(pointer);
                }
            }
            #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
            pub use portable::{get, set};
        }
    };
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicUsize;

    static START: AtomicUsize = AtomicUsize::new(7);

    thread_slot!(FIRST: AtomicUsize = START, "heapdrome_test_first");
    thread_slot!(SECOND: u64 = null, "heapdrome_test_second");

    #[test]
    fn every_thread_begins_with_the_initial_pointer_and_changes_only_its_own() {
        let start = (&raw const START).cast_mut();
        let mut mine = 5_u64;
        SECOND::set(&raw mut mine);
        let other = std::thread::spawn(move || {
            assert!(SECOND::get().is_null());
            let begun = FIRST::get().addr();
            FIRST::set(core::ptr::null_mut());
            assert!(FIRST::get().is_null());
            begun
        });
        assert_eq!(other.join().ok(), Some(start.addr()));
        assert_eq!(FIRST::get(), start);
        assert_eq!(SECOND::get(), &raw mut mine);
        SECOND::set(core::ptr::null_mut());
        assert!(SECOND::get().is_null());
    }
}
