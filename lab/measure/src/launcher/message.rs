//! Messages between a launcher and its client, one JSON value per line.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use heapdrome_schema::{Bytes, Ending, Nanoseconds};
use serde::{Deserialize, Serialize};

/// A string of the operating system. In JSON it is text if it is UTF-8, otherwise bytes.
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

/// Files through which a launcher enters and leaves a control group. Children that the launcher
/// starts while it is in the group belong to the group, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CgroupFiles {
    /// Path of the group's `cgroup.procs`.
    pub(crate) join: Text,
    /// Last part of the group's path, which appears in `/proc/self/cgroup` after joining.
    pub(crate) name: String,
    /// Path of `cgroup.procs` of the launcher's original group.
    pub(crate) leave: Text,
}

/// Request to start a process and wait for its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spawn {
    /// Path of the program, which is not searched for in `PATH`.
    pub(crate) program: Text,
    /// The program's `argv[0]`.
    pub(crate) name: Text,
    pub(crate) arguments: Vec<Text>,
    pub(crate) environment: Vec<(Text, Text)>,
    pub(crate) directory: Text,
    pub(crate) stdin: Text,
    pub(crate) stdout: Text,
    pub(crate) stderr: Text,
    /// CPUs to pin to; empty for all CPUs.
    pub(crate) pin: Vec<usize>,
    pub(crate) timeout: Option<Nanoseconds>,
    /// Whether perf counters are read.
    pub(crate) counters: bool,
    pub(crate) cgroup: Option<CgroupFiles>,
    /// Whether descendants that outlive the process are reported and stopped.
    pub(crate) sweep: bool,
    /// Whether the cost of descendants that the process did not wait for is added to its own. For
    /// example, a shell that receives SIGTERM does not wait for the server that it started.
    pub(crate) add_orphans: bool,
}

/// Way of stopping a running process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stop {
    /// SIGKILL to the whole process tree.
    Kill,
    /// SIGTERM to the process group, and SIGKILL to the whole process tree after this time.
    Terminate(Nanoseconds),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Run(Box<Spawn>),
    Stop(Stop),
}

/// Reason why a process could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Refusal {
    /// The program could not be executed.
    Program(String),
    /// A standard stream could not be opened.
    Stream { path: Text, error: i32 },
    /// The CPUs are not available.
    Pin(String),
    /// The control group could not be entered.
    Cgroup(String),
}

/// Cost and end of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) wall: Nanoseconds,
    pub(crate) usage: Usage,
    pub(crate) ending: Ending,
    pub(crate) counters: BTreeMap<String, u64>,
    /// Names of descendants that outlived the process and were stopped.
    pub(crate) detached: Vec<String>,
}

/// Resource usage of a process and of the descendants that were waited for, as `wait4` reports it.
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
    /// Returns the combined cost of two processes. The peak is the higher of the two peaks.
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

/// Answer to a request to start a process.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The process ran and ended.
    Ended(Box<Outcome>),
    /// The process could not be started.
    Refused(Refusal),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The launcher is ready.
    Ready,
    Ended(Box<Outcome>),
    Refused(Refusal),
    /// These processes survived SIGKILL.
    Immortal(String),
    /// The kernel refuses a required operation. The text describes the refusal.
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
