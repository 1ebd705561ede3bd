//! Macros that export the symbols of the ABI.

/// Defines a panic handler that aborts, for a crate without the standard library that calls
/// [`export!`](crate::export). The crate should begin with `#![cfg_attr(panic = "abort", no_std)]`.
/// If panics abort, the crate then depends on no shared library except the C library. If panics
/// unwind, as in debug builds of a workspace, it needs std.
#[macro_export]
macro_rules! panic_handler {
    () => {
        #[cfg(panic = "abort")]
        #[panic_handler]
        fn panic(_: &::core::panic::PanicInfo<'_>) -> ! {
            $crate::exported::abort()
        }
    };
}

/// Exports the whole C and C++ allocation ABI for an allocator, and registers its
/// [`start`](crate::MallocAbi::start) and [`stop`](crate::MallocAbi::stop) functions. For a
/// `cdylib` crate.
#[macro_export]
macro_rules! export {
    ($allocator:ty) => {
        $crate::export!(@functions $allocator, "C-unwind";
            throwing_new "_Znwm" (size: usize) -> *mut c_void = new_or_throw(size);
            throwing_new_array "_Znam" (size: usize) -> *mut c_void = new_or_throw(size);
            throwing_aligned_new "_ZnwmSt11align_val_t" (size: usize, alignment: usize)
                -> *mut c_void = align_or_throw(size, alignment);
            throwing_aligned_new_array "_ZnamSt11align_val_t" (size: usize, alignment: usize)
                -> *mut c_void = align_or_throw(size, alignment);
        );
        $crate::export!(@functions $allocator, "C";
            malloc "malloc" (size: usize) -> *mut c_void = malloc(size);
            calloc "calloc" (count: usize, size: usize) -> *mut c_void = calloc(count, size);
            realloc "realloc" (block: *mut c_void, size: usize) -> *mut c_void
                = realloc(block, size);
            reallocarray "reallocarray" (block: *mut c_void, count: usize, size: usize)
                -> *mut c_void = reallocarray(block, count, size);
            free "free" (block: *mut c_void) -> () = free(block);
            cfree "cfree" (block: *mut c_void) -> () = free(block);
            free_sized "free_sized" (block: *mut c_void, size: usize) -> ()
                = free_sized(block, size, 0);
            free_aligned_sized "free_aligned_sized"
                (block: *mut c_void, alignment: usize, size: usize) -> ()
                = free_sized(block, size, alignment);
            memalign "memalign" (alignment: usize, size: usize) -> *mut c_void
                = memalign(alignment, size);
            aligned_alloc "aligned_alloc" (alignment: usize, size: usize) -> *mut c_void
                = aligned_alloc(alignment, size);
            posix_memalign "posix_memalign"
                (place: *mut *mut c_void, alignment: usize, size: usize) -> c_int
                = posix_memalign(place, alignment, size);
            valloc "valloc" (size: usize) -> *mut c_void = valloc(size);
            pvalloc "pvalloc" (size: usize) -> *mut c_void = pvalloc(size);
            malloc_usable_size "malloc_usable_size" (block: *mut c_void) -> usize
                = malloc_usable_size(block);
        );
        $crate::export!(@functions $allocator, "C";
            mallinfo "mallinfo" () -> libc::mallinfo = mallinfo();
            mallinfo2 "mallinfo2" () -> libc::mallinfo2 = mallinfo2();
            malloc_trim "malloc_trim" (keep: usize) -> c_int = malloc_trim(keep);
            mallopt "mallopt" (option: c_int, value: c_int) -> c_int = mallopt(option, value);
            malloc_info "malloc_info" (options: c_int, stream: *mut c_void) -> c_int
                = malloc_info(options, stream);
            malloc_stats "malloc_stats" () -> () = malloc_stats();
            libc_malloc "__libc_malloc" (size: usize) -> *mut c_void = malloc(size);
            libc_calloc "__libc_calloc" (count: usize, size: usize) -> *mut c_void
                = calloc(count, size);
            libc_realloc "__libc_realloc" (block: *mut c_void, size: usize) -> *mut c_void
                = realloc(block, size);
            libc_free "__libc_free" (block: *mut c_void) -> () = free(block);
            libc_cfree "__libc_cfree" (block: *mut c_void) -> () = free(block);
            libc_memalign "__libc_memalign" (alignment: usize, size: usize) -> *mut c_void
                = memalign(alignment, size);
            libc_valloc "__libc_valloc" (size: usize) -> *mut c_void = valloc(size);
            libc_pvalloc "__libc_pvalloc" (size: usize) -> *mut c_void = pvalloc(size);
            libc_posix_memalign "__posix_memalign"
                (place: *mut *mut c_void, alignment: usize, size: usize) -> c_int
                = posix_memalign(place, alignment, size);
        );
        $crate::export!(@functions $allocator, "C";
            new_nothrow "_ZnwmRKSt9nothrow_t" (size: usize, _tag: *const c_void) -> *mut c_void
                = new_or_null(size);
            new_array_nothrow "_ZnamRKSt9nothrow_t" (size: usize, _tag: *const c_void)
                -> *mut c_void = new_or_null(size);
            aligned_new_nothrow "_ZnwmSt11align_val_tRKSt9nothrow_t"
                (size: usize, alignment: usize, _tag: *const c_void) -> *mut c_void
                = align_or_null(size, alignment);
            aligned_new_array_nothrow "_ZnamSt11align_val_tRKSt9nothrow_t"
                (size: usize, alignment: usize, _tag: *const c_void) -> *mut c_void
                = align_or_null(size, alignment);
            delete "_ZdlPv" (block: *mut c_void) -> () = free(block);
            delete_array "_ZdaPv" (block: *mut c_void) -> () = free(block);
            delete_nothrow "_ZdlPvRKSt9nothrow_t" (block: *mut c_void, _tag: *const c_void) -> ()
                = free(block);
            delete_array_nothrow "_ZdaPvRKSt9nothrow_t"
                (block: *mut c_void, _tag: *const c_void) -> () = free(block);
            delete_aligned "_ZdlPvSt11align_val_t" (block: *mut c_void, _alignment: usize) -> ()
                = free(block);
            delete_array_aligned "_ZdaPvSt11align_val_t"
                (block: *mut c_void, _alignment: usize) -> () = free(block);
            delete_aligned_nothrow "_ZdlPvSt11align_val_tRKSt9nothrow_t"
                (block: *mut c_void, _alignment: usize, _tag: *const c_void) -> () = free(block);
            delete_array_aligned_nothrow "_ZdaPvSt11align_val_tRKSt9nothrow_t"
                (block: *mut c_void, _alignment: usize, _tag: *const c_void) -> () = free(block);
            delete_sized "_ZdlPvm" (block: *mut c_void, size: usize) -> ()
                = free_sized(block, size, 0);
            delete_array_sized "_ZdaPvm" (block: *mut c_void, size: usize) -> ()
                = free_sized(block, size, 0);
            delete_sized_aligned "_ZdlPvmSt11align_val_t"
                (block: *mut c_void, size: usize, alignment: usize) -> ()
                = free_sized(block, size, alignment);
            delete_array_sized_aligned "_ZdaPvmSt11align_val_t"
                (block: *mut c_void, size: usize, alignment: usize) -> ()
                = free_sized(block, size, alignment);
        );
        $crate::register!($allocator);
    };
    (@functions $allocator:ty, $abi:literal; $(
        $name:ident $symbol:literal ($($argument:ident: $type:ty),*) -> $result:ty
            = $function:ident($($passed:expr),*);
    )*) => {
        const _: () = {
            #[allow(unused_imports)]
            use $crate::exported::{libc, libc::{c_int, c_void}};
            $(
                #[unsafe(export_name = $symbol)]
                unsafe extern $abi fn $name($($argument: $type),*) -> $result {
                    // SAFETY: the program calls this symbol under the contract of the C or C++
                    // standard library, which is the contract of the called function.
                    #[allow(unused_unsafe)]
                    unsafe { $crate::exported::$function::<$allocator>($($passed),*) }
                }
            )*
        };
    };
}
