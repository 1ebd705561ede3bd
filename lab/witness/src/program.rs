//! Facts about a program that the kernel has just loaded.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::objects::{Object, Objects};

/// Program that a process and its forked children run.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) object: Option<Arc<Object>>,
    /// Whether the loader ignores `LD_PRELOAD`, because the kernel raised the program's rights or
    /// would have raised them without a tracer.
    pub(crate) raised: bool,
    /// Whether `LD_PRELOAD` still names all required libraries.
    pub(crate) preloaded: bool,
    /// Value of `PYTHONMALLOC` in the program's environment; `None` if unset.
    pub(crate) python_malloc: Option<String>,
}

impl Program {
    /// Reads the kernel's data about a stopped process and its program.
    pub(crate) fn observe(pid: i32, preload: &OsStr, objects: &Objects) -> Self {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let arguments: Vec<String> = zero_ended(&proc.join("cmdline"))
            .map(|argument| String::from_utf8_lossy(&argument).into_owned())
            .collect();
        let path = std::fs::read_link(proc.join("exe")).unwrap_or_else(|_| {
            PathBuf::from(
                arguments
                    .first()
                    .map_or("(unknown program)", String::as_str),
            )
        });
        let environment: HashMap<Vec<u8>, Vec<u8>> = zero_ended(&proc.join("environ"))
            .filter_map(|entry| {
                let equals = entry.iter().position(|&byte| byte == b'=')?;
                Some((entry[..equals].to_vec(), entry[equals + 1..].to_vec()))
            })
            .collect();
        let present = environment.get(b"LD_PRELOAD".as_slice());
        let names = |text: &[u8]| {
            let names = text.split(|byte| b": ".contains(byte));
            let names = names.filter(|name| !name.is_empty());
            names.map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        let present = present.map(|text| names(text)).unwrap_or_default();
        let preloaded = names(preload.as_bytes())
            .iter()
            .all(|name| present.contains(name));
        let python_malloc = environment
            .get(b"PYTHONMALLOC".as_slice())
            .map(|value| String::from_utf8_lossy(value).into_owned());
        let raised = secure(&proc) || would_be_raised(&proc, &path);
        let object = objects.get(&path);
        Self {
            path,
            arguments,
            object,
            raised,
            preloaded,
            python_malloc,
        }
    }

    /// Returns the file name of the program; an empty string if it is not UTF-8.
    pub(crate) fn name(&self) -> &str {
        self.path.file_name().and_then(OsStr::to_str).unwrap_or("")
    }
}

fn zero_ended(path: &Path) -> impl Iterator<Item = Vec<u8>> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let mut parts: Vec<Vec<u8>> = bytes.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
    parts.pop();
    parts.into_iter()
}

/// Returns whether the kernel reported raised rights to the loader, which then ignores
/// `LD_PRELOAD`.
fn secure(proc: &Path) -> bool {
    let vector = std::fs::read(proc.join("auxv")).unwrap_or_default();
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0);
    vector
        .chunks_exact(16)
        .any(|pair| word(&pair[..8]) == libc::AT_SECURE && word(&pair[8..]) != 0)
}

/// Returns whether the kernel would raise the program's rights without a tracer. An unprivileged
/// tracer makes the kernel ignore setuid and setgid bits and file capabilities.
fn would_be_raised(proc: &Path, path: &Path) -> bool {
    let Ok(file) = path.metadata() else {
        return false;
    };
    let capable = has_capabilities(path);
    if file.mode() & (libc::S_ISUID | libc::S_ISGID) == 0 && !capable {
        return false;
    }
    let status = std::fs::read_to_string(proc.join("status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u32>().ok())
    };
    if field("NoNewPrivs:") == Some(1) || mounted_nosuid(path) {
        return false;
    }
    let (user, group) = (field("Uid:"), field("Gid:"));
    let set_user = file.mode() & libc::S_ISUID != 0 && user != Some(file.uid());
    let both = libc::S_ISGID | libc::S_IXGRP;
    let set_group = file.mode() & both == both && group != Some(file.gid());
    set_user || set_group || (capable && user != Some(0))
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: both strings end with a zero, and no buffer is passed.
    let length = unsafe {
        libc::getxattr(
            path.as_ptr(),
            c"security.capability".as_ptr(),
            std::ptr::null_mut(),
            0,
        )
    };
    length > 0
}

fn mounted_nosuid(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: the path ends with a zero. All-zero bytes are a valid `statvfs`, which outlives the
    // call.
    unsafe {
        let mut status: libc::statvfs = std::mem::zeroed();
        libc::statvfs(path.as_ptr(), &mut status) == 0 && status.f_flag & libc::ST_NOSUID != 0
    }
}
