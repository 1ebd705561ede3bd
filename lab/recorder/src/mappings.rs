//! Parser of `/proc/PID/maps`, for the mappings that contain code.

use std::path::PathBuf;

/// A file of a mapping. Another file may have taken its path in the meantime.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileName {
    pub path: PathBuf,
    /// Device and inode number of the file, as the kernel writes them.
    pub identity: String,
}

/// A mapping that contains code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Offset in the file at which the mapping begins.
    pub offset: u64,
    /// The mapped file; `None` for anonymous memory, such as code that was compiled at run time.
    pub file: Option<FileName>,
}

/// Returns the mappings of code in `text`, in the order of its lines.
pub(crate) fn parse(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(mapping).collect()
}

fn mapping(line: &str) -> Option<Mapping> {
    // The path is the rest of the line, because it may contain blanks.
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let is_code = fields.next()?.contains('x');
    let offset = number(fields.next()?)?;
    let (device, inode) = (fields.next()?, fields.next()?);
    let path = fields.next().unwrap_or_default().trim_start();
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let file = path.starts_with('/').then(|| FileName {
        path: PathBuf::from(path),
        identity: format!("{device} {inode}"),
    });
    let (start, end) = (number(start)?, number(end)?);
    is_code.then_some(Mapping {
        start,
        end,
        offset,
        file,
    })
}

fn number(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_data_and_files_from_the_rest() {
        let text = "\
55d0c8a00000-55d0c8a02000 r--p 00000000 08:01 1234    /usr/bin/my app
55d0c8a02000-55d0c8a09000 r-xp 00002000 08:01 1234    /usr/bin/my app
7f0000000000-7f0000001000 rwxp 00000000 00:00 0
7f0000002000-7f0000003000 r-xp 00001000 08:01 99      /tmp/plugin.so (deleted)
7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0       [vdso]
no mapping
";
        let found = parse(text);
        let paths: Vec<_> = found
            .iter()
            .map(|it| {
                it.file
                    .as_ref()
                    .map(|file| file.path.to_str().expect("plain"))
            })
            .collect();
        let expected = [Some("/usr/bin/my app"), None, Some("/tmp/plugin.so"), None];
        assert_eq!(paths, expected);
        assert_eq!(
            (found[0].start, found[0].offset),
            (0x55d0_c8a0_2000, 0x2000)
        );
    }
}
