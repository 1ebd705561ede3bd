//! Filter that makes the kernel stop a process only at its system calls for memory, and at exec.
//!
//! Forked children and executed programs inherit the filter. Without a tracer the filtered calls
//! would fail, but no process of the tree outlives its tracer.

use heapdrome_schema::SystemCalls;

/// Kind of a system call at which a process stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Mmap,
    Munmap,
    Mremap,
    Madvise,
    Brk,
    /// Call that replaces the program. Such a call is not counted.
    Exec,
}

/// System calls at which a process stops, and their kinds.
const CALLS: [(Kind, i64); 7] = [
    (Kind::Mmap, libc::SYS_mmap),
    (Kind::Munmap, libc::SYS_munmap),
    (Kind::Mremap, libc::SYS_mremap),
    (Kind::Madvise, libc::SYS_madvise),
    (Kind::Brk, libc::SYS_brk),
    (Kind::Exec, libc::SYS_execve),
    (Kind::Exec, libc::SYS_execveat),
];

#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = 0xc000_00b7;
/// Placeholder on other machines, where no call is counted.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u32 = 0;

/// Offset of the call's number in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
/// Offset of the machine in `struct seccomp_data`.
const MACHINE_AT: u32 = 4;
/// Offset of the lower half of mmap's flags in `struct seccomp_data`.
const FLAGS_AT: u32 = 16 + 3 * 8;

/// Returns the kind of a stopped call. `message` is the call's index in [`CALLS`]; any other
/// message is from another filter.
fn kind(message: i32) -> Option<Kind> {
    let place = usize::try_from(message).ok()?;
    CALLS.get(place).map(|(kind, _)| *kind)
}

/// Returns whether a stopped call is about to replace the program.
pub(crate) fn is_exec(message: i32) -> bool {
    kind(message) == Some(Kind::Exec)
}

/// Adds a stopped call for memory to the counts. Other calls add nothing.
pub(crate) fn add(counts: &mut SystemCalls, message: i32) {
    match kind(message) {
        Some(Kind::Mmap) => counts.mmap += 1,
        Some(Kind::Munmap) => counts.munmap += 1,
        Some(Kind::Mremap) => counts.mremap += 1,
        Some(Kind::Madvise) => counts.madvise += 1,
        Some(Kind::Brk) => counts.brk += 1,
        Some(Kind::Exec) | None => {}
    }
}

/// Returns the filter as a BPF program. It stops no `mmap` of a file, because allocators do not map
/// files.
pub(crate) fn program() -> Vec<libc::sock_filter> {
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = |at: u32| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, 0, 0);
    let answer = |with: u32| step(libc::BPF_RET | libc::BPF_K, with, 0, 0);
    let (equal, any_set) = (
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K,
    );
    let allow = answer(libc::SECCOMP_RET_ALLOW);
    let mut program = vec![
        load(MACHINE_AT),
        step(equal, MACHINE, 1, 0),
        allow,
        load(NUMBER_AT),
    ];
    for (place, (kind, number)) in CALLS.iter().enumerate() {
        let stop = answer(libc::SECCOMP_RET_TRACE | place as u32);
        match kind {
            Kind::Mmap => program.extend([
                step(equal, *number as u32, 0, 4),
                load(FLAGS_AT),
                step(any_set, libc::MAP_ANONYMOUS as u32, 0, 1),
                stop,
                allow,
            ]),
            _ => program.extend([step(equal, *number as u32, 0, 1), stop]),
        }
    }
    program.push(allow);
    program
}

/// Installs the filter on the calling process, without allocating. If that fails, reports no error,
/// and no call is counted.
///
/// # Safety
/// The caller is a child between fork and exec.
pub(crate) unsafe fn install(program: &[libc::sock_filter]) {
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the program, which outlives the calls.
    unsafe {
        let mode = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
        let set = || libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter);
        // Without CAP_SYS_ADMIN, the kernel accepts a filter only after PR_SET_NO_NEW_PRIVS, which
        // disables setuid. Being traced by an unprivileged user disables setuid anyway.
        if set() != 0 && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 {
            set();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_the_places_of_the_calls() {
        let mut counts = SystemCalls::default();
        for message in [0, 1, 1, 2, 3, 4, 5, 6, 7, -1] {
            add(&mut counts, message);
        }
        let expected = SystemCalls {
            mmap: 1,
            munmap: 2,
            mremap: 1,
            madvise: 1,
            brk: 1,
        };
        assert_eq!(counts, expected);
        let execs: Vec<_> = (-1..9).filter(|&message| is_exec(message)).collect();
        assert_eq!(execs, [5, 6]);
    }
}
