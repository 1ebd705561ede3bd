//! Size of the address space that belongs neither to the program nor to the workload.

use heapdrome_system::process::Memory;

/// Size of the mappings that exist before a run and belong to no allocator: files, the first
/// thread's stack, and the kernel's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed {
    bytes: u64,
}

impl Fixed {
    /// Reads `/proc/self/maps`. Memory that an allocator has already reserved is not counted.
    pub(crate) fn read() -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self {
            bytes: fixed_bytes(&maps),
        }
    }

    /// Returns the address space at a moment, minus the fixed mappings and minus `own`, the
    /// workload's arrays and stacks.
    pub(crate) fn rest(self, at: Memory, own: u64) -> u64 {
        at.mapped.saturating_sub(self.bytes + own)
    }
}

/// Returns the total length of all mappings of files, of the first thread's stack, and of the
/// kernel's own mappings that count as address space.
fn fixed_bytes(maps: &str) -> u64 {
    let lines = maps.lines().filter_map(|line| {
        let (range, _) = line.split_once(' ')?;
        let name = line.split_whitespace().nth(5)?;
        let kernels = ["[stack]", "[vvar", "[vdso]", "[vsyscall]"];
        let fixed = name.starts_with('/') || kernels.iter().any(|one| name.starts_with(one));
        // The kernel does not count the vsyscall page, which lies above user addresses, in VmSize.
        if !fixed || name == "[vsyscall]" {
            return None;
        }
        let (first, end) = range.split_once('-')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        number(end)?.checked_sub(number(first)?)
    });
    lines.sum()
}

/// Returns the size of the calling thread's stack and its guard; zero if it is unknown.
pub(crate) fn stack_bytes() -> u64 {
    let mut stack = 0;
    let mut guard = 0;
    let mut first = std::ptr::null_mut();
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the call fills `attributes` if it returns 0; only then is it read and destroyed,
    // once. The other arguments point to live variables for the results.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return 0;
        }
        libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut first, &raw mut stack);
        libc::pthread_attr_getguardsize(attributes.as_ptr(), &raw mut guard);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
    }
    (stack + guard) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_what_the_kernel_maps_are_fixed() {
        let maps = "\
            1000-3000 r-xp 00000000 00:00 1   /usr/bin/a program\n\
            3000-4000 rw-p 00000000 00:00 0\n\
            4000-8000 rw-p 00000000 00:00 0   [heap]\n\
            8000-9000 rw-p 00000000 00:00 0   [anon:reserved]\n\
            10000-20000 rw-p 00000000 00:00 0   [stack]\n\
            20000-21000 r--p 00000000 00:00 0   [vvar_vclock]\n\
            ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";
        assert_eq!(fixed_bytes(maps), 0x2000 + 0x1_0000 + 0x1000);
    }

    #[test]
    fn a_stack_has_a_size() {
        let stack = std::thread::spawn(stack_bytes).join().unwrap();
        assert!((64 << 10..1 << 30).contains(&stack), "{stack}");
    }

    #[test]
    fn what_is_fixed_and_own_is_left_out() {
        let fixed = Fixed::read();
        assert!(fixed.bytes > 0 && fixed.bytes < Memory::read().mapped);
        let at = Memory {
            mapped: fixed.bytes + 100,
            ..Memory::default()
        };
        assert_eq!((fixed.rest(at, 30), fixed.rest(at, 300)), (70, 0));
    }
}
