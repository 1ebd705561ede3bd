//! Resident memory of a process's program image, read from `/proc/PID/smaps`: the binary, its
//! libraries with their data, and the stack of the first thread. malloc allocates none of it.

use std::fs;

use heapdrome_schema::{Bytes, ImageMemory};
use heapdrome_system::kernel::keyed;

/// Maximum size of a mapping that counts as zeroed data of the file before it. An allocator's
/// mapping may also begin where a library ends, but it is larger.
const MOST_ZEROED: u64 = 1 << 20;

/// Returns the resident memory of a process's image; `None` if it cannot be read.
pub(crate) fn of(pid: libc::pid_t) -> Option<ImageMemory> {
    let bytes = fs::read(format!("/proc/{pid}/smaps")).ok()?;
    Some(parse(&String::from_utf8_lossy(&bytes)))
}

#[derive(Clone, Copy, Default)]
struct Mapping<'a> {
    begin: u64,
    end: u64,
    is_readable: bool,
    is_writable: bool,
    name: &'a str,
}

/// Adds up the readable mappings of files and of the stack, and the zeroed data that follows a
/// file's mapping.
fn parse(text: &str) -> ImageMemory {
    let mut image = ImageMemory::default();
    let (mut file_end, mut counts) = (0, false);
    for line in text.lines() {
        if let Some(mapping) = mapping(line) {
            let of_file = mapping.name.starts_with('/');
            let is_small = mapping.end - mapping.begin <= MOST_ZEROED;
            let follows = mapping.name.is_empty() && mapping.begin == file_end && is_small;
            counts = mapping.is_readable && (of_file || follows || mapping.name == "[stack]");
            // The kernel maps the zeroed data of a file directly behind the file's writable data,
            // in at most one mapping.
            let has_data = of_file && mapping.is_writable;
            file_end = if has_data { mapping.end } else { 0 };
        } else if counts {
            let of = |name| keyed(line, name).map(Bytes::from_kib);
            if let Some(resident) = of("Rss:") {
                image.files = image.files + resident;
            } else if let Some(written) = of("Anonymous:") {
                image.written = image.written + written;
                image.files = image.files - written;
            }
        }
    }
    image
}

/// Parses the line that begins a mapping.
fn mapping(line: &str) -> Option<Mapping<'_>> {
    let (range, rest) = line.split_once(' ')?;
    let (begin, end) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        begin: address(begin)?,
        end: address(end)?,
        is_readable: rest.starts_with('r'),
        is_writable: rest.get(1..2) == Some("w"),
        name: rest.splitn(5, ' ').nth(4).unwrap_or_default().trim_start(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
        55d000-55e000 r--p 00000000 08:01 7   /usr/bin/a b\n\
        Size: 4 kB\nRss: 4 kB\nAnonymous: 0 kB\n\
        55e000-560000 rw-p 00001000 08:01 7   /usr/bin/a b\n\
        Rss: 8 kB\nAnonymous: 4 kB\n\
        560000-570000 rw-p 00000000 00:00 0 \n\
        Rss: 16 kB\nAnonymous: 16 kB\n\
        570000-670000 rw-p 00000000 00:00 0   [heap]\n\
        Rss: 1000 kB\nAnonymous: 1000 kB\n\
        7f0000-7f1000 rw-p 00000000 00:00 0 \n\
        Rss: 500 kB\nAnonymous: 500 kB\n\
        7f1000-7f2000 rw-p 00000000 08:01 8   /lib/libc.so\n\
        Rss: 4 kB\nAnonymous: 4 kB\n\
        7f2000-10f2000 rw-p 00000000 00:00 0 \n\
        Rss: 9000 kB\nAnonymous: 9000 kB\n\
        10f2000-10f3000 r--p 00000000 08:01 9   /lib/libm.so\n\
        Rss: 4 kB\nAnonymous: 0 kB\n\
        10f3000-10f4000 rw-p 00000000 00:00 0 \n\
        Rss: 4 kB\nAnonymous: 4 kB\n\
        7ff000-7ff100 rw-p 00000000 00:00 0   [stack]\n\
        Rss: 12 kB\nAnonymous: 12 kB\n";

    #[test]
    fn files_their_zeroed_data_and_the_stack_are_the_image() {
        let image = parse(SMAPS);
        assert_eq!(image.files, Bytes::from_kib(4 + 4 + 4));
        assert_eq!(image.written, Bytes::from_kib(4 + 16 + 4 + 12));
    }

    #[test]
    fn this_process_has_an_image() {
        let pid = crate::tree::own_pid();
        let image = of(pid).expect("an image");
        assert!(
            image.files > Bytes(0) && image.written > Bytes(0),
            "{image:?}"
        );
        assert_eq!(of(-1), None);
    }
}
