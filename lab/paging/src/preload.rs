//! Check of the allocator that serves a child's `malloc`.

use std::path::Path;

use heapdrome_schema::{Entrant, PagingReport};

use crate::Error;

/// Checks that the preloaded allocator serves the child's `malloc`.
///
/// # Errors
/// When another object serves `malloc`, or the child reported none.
pub(crate) fn check(allocator: &Entrant, report: &PagingReport) -> Result<(), Error> {
    let Some(wanted) = &allocator.library else {
        return Ok(());
    };
    let real = |path: &Path| path.canonicalize().ok();
    match &report.malloc {
        Some(seen) if seen == wanted || (real(seen).is_some() && real(seen) == real(wanted)) => {
            Ok(())
        }
        Some(seen) => Err(Error::Child(format!(
            "uses the malloc of {} although {} was preloaded",
            seen.display(),
            wanted.display()
        ))),
        None => Err(Error::Child(format!(
            "did not report whether {} serves its malloc",
            wanted.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn only_the_object_that_was_preloaded_will_do() {
        let preload = Entrant {
            library: Some("/lib/a.so".into()),
            ..Entrant::default()
        };
        let seen = |path: Option<&str>| PagingReport {
            malloc: path.map(PathBuf::from),
            ..PagingReport::default()
        };
        assert!(check(&preload, &seen(Some("/lib/a.so"))).is_ok());
        let error = check(&preload, &seen(Some("/lib/libc.so.6")));
        let error = error.expect_err("another").to_string();
        assert!(error.contains("/lib/libc.so.6") && error.contains("/lib/a.so"));
        assert!(check(&preload, &seen(None)).is_err());
        assert!(check(&Entrant::default(), &seen(None)).is_ok());
    }
}
