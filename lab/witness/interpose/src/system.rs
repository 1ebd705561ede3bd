//! Declares the parts of the C library that this library needs, so that it depends on no crate.
//! Also reads the processor's counter.

use core::ffi::{c_char, c_int, c_ulong, c_void};

pub const O_RDWR_CREAT_EXCL_CLOEXEC: c_int = 0o2 | 0o100 | 0o200 | 0o2_000_000;
pub const O_RDWR_CLOEXEC: c_int = 0o2 | 0o2_000_000;
pub const PROT_READ_WRITE: c_int = 1 | 2;
pub const O_CLOEXEC: c_int = 0o2_000_000;
pub const MAP_SHARED: c_int = 1;
pub const MAP_PRIVATE: c_int = 2;
pub const MAP_ANONYMOUS: c_int = 0x20;
pub const MAP_NORESERVE: c_int = 0x4000;
pub const MADV_NOHUGEPAGE: c_int = 15;
pub const MADV_DONTFORK: c_int = 10;
pub const MADV_WIPEONFORK: c_int = 18;
pub const PT_LOAD: u32 = 1;
pub const PT_DYNAMIC: u32 = 2;
pub const AT_PAGESZ: c_ulong = 6;
pub const AT_HWCAP: c_ulong = 16;
pub const AT_HWCAP2: c_ulong = 26;

/// A program header of a 64-bit ELF object.
#[repr(C)]
pub struct ProgramHeader {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub address: u64,
    pub physical: u64,
    pub file_size: u64,
    pub memory_size: u64,
    pub align: u64,
}

/// The leading fields of `struct dl_phdr_info`.
#[repr(C)]
pub struct ObjectInfo {
    pub base: usize,
    pub name: *const c_char,
    pub headers: *const ProgramHeader,
    pub header_count: u16,
}

/// The leading fields of `struct link_map`.
#[repr(C)]
pub struct LinkMap {
    pub base: usize,
    pub name: *const c_char,
    pub dynamic: *const c_void,
    pub next: *mut LinkMap,
}

/// The leading fields of `struct r_debug`.
#[repr(C)]
pub struct LoaderState {
    pub version: c_int,
    pub objects: *mut LinkMap,
}

pub type Visit = unsafe extern "C" fn(*const ObjectInfo, usize, *mut c_void) -> c_int;

#[link(name = "c")]
unsafe extern "C" {
    /// The loader's list of objects, which it keeps for debuggers.
    pub static _r_debug: LoaderState;
    pub fn dl_iterate_phdr(visit: Visit, data: *mut c_void) -> c_int;
    pub fn __register_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
        object: *mut c_void,
    ) -> c_int;
    pub fn __errno_location() -> *mut c_int;
    pub fn getauxval(kind: c_ulong) -> c_ulong;
    pub fn strlen(text: *const c_char) -> usize;
    pub fn strnlen(text: *const c_char, most: usize) -> usize;
    pub fn abort() -> !;
}

/// Returns the processor's counter. It is read before other threads can see later stores of this
/// thread.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has this instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Returns the processor's counter. It is read before other threads can see later stores of this
/// thread.
#[cfg(target_arch = "aarch64")]
#[inline]
pub fn ticks() -> u64 {
    fenced_ticks()
}

/// Returns the processor's counter, after all earlier instructions have completed.
#[cfg(target_arch = "x86_64")]
pub fn fenced_ticks() -> u64 {
    // SAFETY: every x86-64 processor has both instructions.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    }
}

/// Returns the minimum duration, in ticks, of a call that counts as interrupted: about 0.4 ms at
/// 2.6 GHz.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn interrupted() -> u64 {
    1 << 20
}

/// Returns the minimum duration, in ticks, of a call that counts as interrupted: 0.4 ms.
#[cfg(target_arch = "aarch64")]
#[inline]
pub fn interrupted() -> u64 {
    const PER_SECOND: u64 = 2500;
    let frequency: u64;
    // SAFETY: reading the counter's frequency has no side effects.
    unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) frequency, options(nomem, nostack)) };
    frequency / PER_SECOND
}

/// Returns the processor's counter, after all earlier instructions have completed.
#[cfg(target_arch = "aarch64")]
pub fn fenced_ticks() -> u64 {
    let ticks: u64;
    // SAFETY: reading the virtual counter has no side effects.
    unsafe { core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack)) };
    ticks
}
