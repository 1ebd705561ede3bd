//! Kernel settings that are changed for one run and restored afterwards.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use heapdrome_system::FileError;

use crate::item::current;
use crate::{Error, Item, Ledger, Made};

/// A changed setting. Dropping it restores the old value, unless another process has changed the
/// setting in the meantime.
#[derive(Debug)]
pub struct Setting(Option<Made>);

impl Setting {
    /// Sets a file of choices to `chosen`. An example of such a file is
    /// [`HUGE_PAGES`](heapdrome_system::kernel::HUGE_PAGES).
    ///
    /// # Errors
    /// When the file cannot be read or written, or is not a list of choices, or when the ledger
    /// cannot be written.
    pub fn choose(path: &Path, chosen: &str, ledger: &Arc<Ledger>) -> Result<Self, Error> {
        let before = current(path).map_err(FileError::of("read", path))?;
        if before == chosen {
            return Ok(Self(None));
        }
        let made = ledger.making(Item::Setting {
            path: path.to_owned(),
            before,
            chosen: chosen.to_owned(),
        })?;
        // If this write fails, the drop finds the old value and changes nothing.
        fs::write(path, chosen).map_err(FileError::of("write", path))?;
        Ok(Self(Some(made)))
    }

    /// Restores the old value, unless another process has changed the setting in the meantime.
    ///
    /// # Errors
    /// When the setting cannot be read or written, or the ledger cannot be written. The next lab
    /// tries again.
    pub fn put_back(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), Made::remove)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{Undone, put_back};

    /// The kernel puts brackets around the current value. The test does this itself in a plain
    /// file.
    #[test]
    fn a_choice_is_undone_unless_someone_else_chose() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let (ledger, _) = Ledger::open(&home.path().join("state")).expect("opened");
        let file = home.path().join("enabled");
        fs::write(&file, "always [madvise] never\n").expect("written");
        let same = Setting::choose(&file, "madvise", &ledger).expect("nothing to do");
        same.put_back().expect("nothing to do");
        let held = Setting::choose(&file, "never", &ledger).expect("chosen");
        assert_eq!(fs::read_to_string(&file).expect("read"), "never");
        fs::write(&file, "always madvise [never]\n").expect("written");
        held.put_back().expect("put back");
        assert_eq!(fs::read_to_string(&file).expect("read"), "madvise");
        fs::write(&file, "[always] madvise never\n").expect("written");
        let left = put_back(&file, "madvise", "never").expect("read");
        assert_eq!(left, Undone::Foreign);
        assert_eq!(current(&file).expect("read"), "always");
    }

    #[test]
    fn what_is_no_list_of_choices_is_refused() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let (ledger, _) = Ledger::open(&home.path().join("state")).expect("opened");
        let file = home.path().join("enabled");
        fs::write(&file, "1\n").expect("written");
        assert!(Setting::choose(&file, "never", &ledger).is_err());
        assert_eq!(fs::read_to_string(&file).expect("read"), "1\n");
    }
}
