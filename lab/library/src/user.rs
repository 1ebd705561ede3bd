//! The user who runs a script's program. If heapdrome runs as root and the program refuses to run
//! as root, this is an unprivileged user.

use std::path::{Path, PathBuf};

use heapdrome_packages::quoted;
use heapdrome_system::rights::is_root;

use crate::recipe::Script;

/// Name of the unprivileged user that Linux distributions provide.
const UNPRIVILEGED: &str = "nobody";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// The user who runs heapdrome.
    Own,
    /// An unprivileged user, in place of root.
    Unprivileged,
}

impl User {
    /// Returns the user who runs the program of a script.
    pub(crate) fn of(script: &Script) -> Self {
        match script.refuses_root && is_root() {
            true => Self::Unprivileged,
            false => Self::Own,
        }
    }

    /// Returns the parent of the script's folder: `staging`, or the system's temporary folder for
    /// another user, who cannot enter `staging`.
    pub(crate) fn place(self, staging: &Path) -> PathBuf {
        match self {
            Self::Own => staging.to_owned(),
            Self::Unprivileged => std::env::temp_dir(),
        }
    }

    /// Returns the shell line that makes the user the owner of the current folder; `None` if the
    /// user already owns the folder.
    pub(crate) fn takes_folder(self) -> Option<String> {
        (self == Self::Unprivileged).then(|| format!("chown {UNPRIVILEGED} ."))
    }

    /// Returns a shell line that runs `line` as the user. The process keeps its ID.
    pub(crate) fn runs(self, line: &str) -> String {
        match self {
            Self::Own => line.to_owned(),
            Self::Unprivileged => format!(
                "exec setpriv --reuid={UNPRIVILEGED} --regid=\"$(id -g {UNPRIVILEGED})\" \
                 --clear-groups sh -c {}",
                quoted(line)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_another_user_stays_one_word() {
        assert_eq!(User::Own.runs("echo 'a b'"), "echo 'a b'");
        let line = User::Unprivileged.runs("echo 'a b'");
        let (command, word) = line.split_once(" -c ").expect("a shell");
        assert!(command.starts_with("exec setpriv --reuid=nobody "));
        assert_eq!(word, r"'echo '\''a b'\'''");
    }
}
