//! What a launcher and its client tell each other, one JSON value a line.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use heapdrome_record::{Bytes, Ending, Nanoseconds};
use serde::{Deserialize, Serialize};

/// A string of the operating system: readable in JSON where it is UTF-8, bytes where it is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    Utf8(String),
    Bytes(Vec<u8>),
}

impl<T: AsRef<OsStr>> From<T> for Text {
    fn from(text: T) -> Self {
        match text.as_ref().to_str() {
            Some(utf8) => Self::Utf8(utf8.to_owned()),
            None => Self::Bytes(text.as_ref().as_bytes().to_vec()),
        }
    }
}

impl Text {
    pub(crate) fn to_os(&self) -> OsString {
        match self {
            Self::Utf8(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes.clone()),
        }
    }

    pub(crate) fn to_path(&self) -> PathBuf {
        self.to_os().into()
    }
}

/// Where a launcher enters and leaves a control group, so that what it starts is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CgroupFiles {
    /// `cgroup.procs` of the group.
    pub(crate) join: Text,
    /// The last part of the group's path, to see in `/proc/self/cgroup` that joining worked.
    pub(crate) name: String,
    /// `cgroup.procs` of the group that the launcher came from.
    pub(crate) leave: Text,
}

/// A process to start, and how to wait for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spawn {
    /// The path of the program; nothing is looked up.
    pub(crate) program: Text,
    /// What the program is told it was called by.
    pub(crate) name: Text,
    pub(crate) arguments: Vec<Text>,
    pub(crate) environment: Vec<(Text, Text)>,
    pub(crate) directory: Text,
    pub(crate) stdin: Text,
    pub(crate) stdout: Text,
    pub(crate) stderr: Text,
    /// Empty for all CPUs.
    pub(crate) pin: Vec<usize>,
    pub(crate) timeout: Option<Nanoseconds>,
    /// Whether perf counters are read.
    pub(crate) counters: bool,
    pub(crate) cgroup: Option<CgroupFiles>,
    /// Whether descendants that outlive the process are reported and stopped.
    pub(crate) sweep: bool,
    /// Whether the cost of descendants that the process did not wait for is added to its own: a
    /// shell that is told to end does not wait for the server that it started.
    pub(crate) add_orphans: bool,
}

/// How a running process is to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stop {
    /// At once, with its whole tree.
    Kill,
    /// By SIGTERM to its process group, and by SIGKILL after this long.
    Terminate(Nanoseconds),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Run(Box<Spawn>),
    Stop(Stop),
}

/// Why a process could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Refusal {
    /// The program could not be executed.
    Program(String),
    /// A standard stream could not be opened.
    Stream { path: Text, error: i32 },
    /// The CPUs are not to be had.
    Pin(String),
    /// The control group could not be entered.
    Cgroup(String),
}

/// What a process cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) wall: Nanoseconds,
    pub(crate) usage: Usage,
    pub(crate) ending: Ending,
    pub(crate) counters: BTreeMap<String, u64>,
    /// Names of descendants that outlived it and were stopped.
    pub(crate) detached: Vec<String>,
}

/// What `wait4` tells about a process and its waited-for descendants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) user: Nanoseconds,
    pub(crate) system: Nanoseconds,
    pub(crate) peak_rss: Bytes,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
}

impl Usage {
    /// The cost of two processes together; the peak is that of the larger one.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            user: self.user + other.user,
            system: self.system + other.system,
            peak_rss: self.peak_rss.max(other.peak_rss),
            minor_faults: self.minor_faults + other.minor_faults,
            major_faults: self.major_faults + other.major_faults,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
        }
    }
}

/// How a request to start something was answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It ran and ended.
    Ended(Box<Outcome>),
    /// It could not be started.
    Refused(Refusal),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The launcher is there.
    Ready,
    Ended(Box<Outcome>),
    Refused(Refusal),
    /// These did not die.
    Immortal(String),
    /// The kernel refuses what a launcher cannot do without; in words.
    Unable(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_utf8_survives() {
        let odd = OsString::from_vec(vec![b'a', 0xff, b'\n']);
        for text in [odd.clone(), OsString::from("plain \u{e9}")] {
            let json = serde_json::to_string(&Text::from(&text)).expect("text has a JSON form");
            assert!(!json.contains('\n'));
            let back: Text = serde_json::from_str(&json).expect("which can be read");
            assert_eq!(back.to_os(), text);
        }
    }
}
