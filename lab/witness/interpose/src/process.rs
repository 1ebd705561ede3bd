//! What is known of this process: its namespace, and the object that serves malloc.

use crate::ring::PATH_BYTES;
use crate::system;

/// Path of the object that serves malloc. Written before the first ring is made.
struct Server(core::cell::UnsafeCell<[u8; PATH_BYTES]>);

// SAFETY: `set_server` is called while the loader's lock or the first call of malloc excludes
// other threads; afterwards the bytes are only read.
unsafe impl Sync for Server {}

static SERVER: Server = Server(core::cell::UnsafeCell::new([0; PATH_BYTES]));

/// Remembers which object serves malloc.
pub fn set_server(path: &[u8]) {
    let length = path.len().min(PATH_BYTES - 1);
    // SAFETY: see `Server`.
    unsafe { (&mut (*SERVER.0.get()))[..length].copy_from_slice(&path[..length]) };
}

/// The path of the object that serves malloc, ended by a zero.
pub fn server() -> &'static [u8; PATH_BYTES] {
    // SAFETY: see `Server`.
    unsafe { &*SERVER.0.get() }
}

/// The number in the name of this process's namespace: `pid:[4026531836]`.
pub fn namespace() -> u64 {
    let mut name = [0_u8; 64];
    let path = c"/proc/thread-self/ns/pid".as_ptr();
    // SAFETY: the path ends with a zero, and the name has the room that is given.
    let length = unsafe { system::readlink(path, name.as_mut_ptr().cast(), name.len()) };
    let digits = name
        .iter()
        .take(length.max(0) as usize)
        .filter(|it| it.is_ascii_digit());
    digits.fold(0, |number: u64, digit| {
        number
            .wrapping_mul(10)
            .wrapping_add(u64::from(digit - b'0'))
    })
}
