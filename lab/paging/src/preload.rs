//! The allocator that a child's `malloc` is to come from.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::{Error, Report};

/// An allocator for a child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preload {
    /// Variables for the child, `LD_PRELOAD` among them.
    pub environment: Vec<(OsString, OsString)>,
    /// The object that must serve `malloc` in it; `None` for the C library's own.
    pub library: Option<PathBuf>,
}

impl Preload {
    /// Whether the child has found what was preloaded.
    ///
    /// # Errors
    /// When another object serves `malloc` in it, or none was told.
    pub(crate) fn check(&self, report: &Report) -> Result<(), Error> {
        let Some(wanted) = &self.library else {
            return Ok(());
        };
        let real = |path: &PathBuf| path.canonicalize().ok();
        match &report.malloc {
            Some(seen)
                if seen == wanted || (real(seen).is_some() && real(seen) == real(wanted)) =>
            {
                Ok(())
            }
            Some(seen) => Err(Error::Child(format!(
                "has its malloc from {} where {} was preloaded",
                seen.display(),
                wanted.display()
            ))),
            None => Err(Error::Child(format!(
                "cannot tell whether {} serves its malloc",
                wanted.display()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_object_that_was_preloaded_will_do() {
        let preload = Preload {
            library: Some("/lib/a.so".into()),
            ..Preload::default()
        };
        let seen = |path: Option<&str>| Report {
            malloc: path.map(PathBuf::from),
            ..Report::default()
        };
        assert!(preload.check(&seen(Some("/lib/a.so"))).is_ok());
        let error = preload.check(&seen(Some("/lib/libc.so.6")));
        let error = error.expect_err("another").to_string();
        assert!(error.contains("/lib/libc.so.6") && error.contains("/lib/a.so"));
        assert!(preload.check(&seen(None)).is_err());
        assert!(Preload::default().check(&seen(None)).is_ok());
    }
}
