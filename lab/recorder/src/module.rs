//! Files that contain code: their segments, build IDs, and unwinding information.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Module};
use object::{Object, ObjectSection, ObjectSegment, ReadCache, SegmentFlags};

use crate::mappings::{FileName, Mapping};

/// The bytes of a section, shared by the unwinders of all processes.
pub(crate) type Bytes = Arc<[u8]>;

/// A file of code.
#[derive(Debug)]
pub(crate) struct CodeFile {
    pub name: FileName,
    /// Build ID of the file in hexadecimal digits; empty if it has none.
    pub build_id: String,
    segments: Vec<Segment>,
    unwind: ExplicitModuleSectionInfo<Bytes>,
}

#[derive(Debug)]
struct Segment {
    /// Range of the segment in the file.
    file: Range<u64>,
    address: u64,
}

impl CodeFile {
    /// Reads a file that a process has mapped. Returns `None` if the file cannot be opened, was
    /// replaced, or is not an ELF file. `pid` is the id of the process if it is valid here. With
    /// it, the file is looked up in the process's own root folder first.
    pub(crate) fn read(name: &FileName, pid: Option<u32>) -> Option<Self> {
        let file = open(name, pid)?;
        let cache = ReadCache::new(file);
        let elf = object::File::parse(&cache).ok()?;
        let segments = elf.segments().filter(|segment| {
            matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & object::elf::PF_X != 0)
        });
        let segments = segments.map(|segment| {
            let (start, length) = segment.file_range();
            Segment {
                file: start..start.saturating_add(length),
                address: segment.address(),
            }
        });
        let segments = segments.collect();
        let build_id = elf.build_id().ok().flatten().unwrap_or_default();
        let build_id = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(Self {
            name: name.clone(),
            build_id,
            segments,
            unwind: unwind(&elf),
        })
    }

    /// Returns the difference between the addresses of a mapping in memory and in the file; `None`
    /// if the mapping belongs to no segment of code.
    pub(crate) fn bias(&self, mapping: &Mapping) -> Option<u64> {
        let page = crate::process::page_bytes();
        // A mapping begins no earlier than the page that contains the beginning of its segment.
        let is_of = |segment: &&Segment| {
            segment.file.end > mapping.offset && segment.file.start / page * page <= mapping.offset
        };
        let segment = self.segments.iter().find(is_of)?;
        let address = segment
            .address
            .wrapping_add(mapping.offset)
            .wrapping_sub(segment.file.start);
        Some(mapping.start.wrapping_sub(address))
    }

    /// Returns a description of a mapping of this file for the unwinder.
    pub(crate) fn module(&self, mapping: &Mapping, bias: u64) -> Module<Bytes> {
        let name = self.name.path.to_string_lossy().into_owned();
        Module::new(name, mapping.start..mapping.end, bias, self.unwind.clone())
    }
}

/// Opens the file that a process has mapped. Rejects another file at the same path.
fn open(name: &FileName, pid: Option<u32>) -> Option<File> {
    let path = name.path.strip_prefix("/").unwrap_or(&name.path);
    let seen_by_process = pid.map(|pid| PathBuf::from(format!("/proc/{pid}/root")).join(path));
    let places = seen_by_process.into_iter().chain([name.path.clone()]);
    let mut files = places.filter_map(|place| File::open(place).ok());
    files.find(|file| {
        file.metadata()
            .is_ok_and(|it| name.identity.ends_with(&format!(" {}", it.ino())))
    })
}

fn unwind<'data>(elf: &impl Object<'data>) -> ExplicitModuleSectionInfo<Bytes> {
    let section = |name: &str| {
        let section = elf.section_by_name(name)?;
        let bytes = section.uncompressed_data().ok()?;
        let svma = section.address()..section.address() + bytes.len() as u64;
        Some((svma, Bytes::from(&*bytes)))
    };
    let svma = |name: &str| {
        let section = elf.section_by_name(name)?;
        Some(section.address()..section.address() + section.size())
    };
    let (eh_frame_svma, eh_frame) = section(".eh_frame").unzip();
    let (eh_frame_hdr_svma, eh_frame_hdr) = section(".eh_frame_hdr").unzip();
    ExplicitModuleSectionInfo {
        text_svma: svma(".text"),
        got_svma: svma(".got"),
        eh_frame_svma,
        eh_frame,
        eh_frame_hdr_svma,
        eh_frame_hdr,
        debug_frame: section(".debug_frame").map(|(_, bytes)| bytes),
        ..Default::default()
    }
}
