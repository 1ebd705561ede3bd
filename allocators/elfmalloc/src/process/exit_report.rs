//! Settings of the report at the end of the process: its form and file. They are read from the
//! environment at the start, because the program may change the environment later.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use heapdrome_pages::atomic::{
    AtomicU8,
    Ordering::{Acquire, Release},
};

use heapdrome_malloc_abi::Form;
use heapdrome_pages::system::{is_privileged, variable};

use crate::settings::report_ignored;

const STATISTICS: &CStr = c"ELFMALLOC_STATISTICS";
const FILE: &CStr = c"ELFMALLOC_STATISTICS_FILE";
/// Maximum number of bytes of a path, including the terminating NUL.
const LONGEST: usize = 1024;

const NONE: u8 = 0;
const TEXT: u8 = 1;
const JSON: u8 = 2;

/// Form and file of the report at the end of the process, as the environment requests it.
#[derive(Debug)]
pub struct ExitReport {
    form: AtomicU8,
    path: UnsafeCell<[u8; LONGEST]>,
}

// SAFETY: the path is written once, before the form is set, and only threads that see the form read
// it.
unsafe impl Sync for ExitReport {}

impl ExitReport {
    /// Creates settings that request no report.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            form: AtomicU8::new(NONE),
            path: UnsafeCell::new([0; LONGEST]),
        }
    }

    /// Reads the settings from the environment. Ignores a path that is too long, and ignores every
    /// path if the process is privileged (setuid).
    ///
    /// # Safety
    ///
    /// This function is called only once, and no other thread changes the environment during the
    /// call.
    pub unsafe fn read_environment(&self) {
        // SAFETY: by this function's contract, no other thread changes the environment during the
        // call. The values are used only during the call.
        let (form, path) = unsafe {
            (
                variable(STATISTICS).and_then(|name| form_or_report(name)),
                variable(FILE),
            )
        };
        let Some(form) = form else { return };
        if let Some(path) = path.filter(|path| path.count_bytes() >= LONGEST) {
            // SAFETY: by this function's contract, no other thread changes the environment.
            unsafe { report_ignored(FILE, path, "a shorter name") };
        }
        let path = path.map_or(&[][..], CStr::to_bytes);
        if path.len() < LONGEST && !is_privileged() {
            // SAFETY: no other code reads the path before the form is set, and this function is
            // called only once.
            let place = unsafe { &mut *self.path.get() };
            place[..path.len()].copy_from_slice(path);
        }
        // Release: pairs with the acquire in `form`, so that a thread that sees the form sees the
        // path.
        self.form.store(form, Release);
    }

    /// Returns the form of the requested report; `None` if none is requested.
    #[must_use]
    pub fn form(&self) -> Option<Form> {
        // Acquire: pairs with the release in `read_environment`.
        match self.form.load(Acquire) {
            TEXT => Some(Form::Text),
            JSON => Some(Form::Json),
            _ => None,
        }
    }

    /// Returns the file to which the report is appended; `None` means standard error, or that no
    /// report is requested.
    #[must_use]
    pub fn file(&self) -> Option<&CStr> {
        self.form()?;
        // SAFETY: the path no longer changes once the form is set.
        let path = CStr::from_bytes_until_nul(unsafe { &*self.path.get() }).ok()?;
        (!path.is_empty()).then_some(path)
    }
}

/// Returns the form with this name. If there is none, returns `None` and reports that the variable
/// is ignored.
///
/// # Safety
///
/// No other thread changes the environment during the call.
unsafe fn form_or_report(name: &CStr) -> Option<u8> {
    let form = form_named(name);
    if form.is_none() {
        // SAFETY: this function's contract is that of `report_ignored`.
        unsafe { report_ignored(STATISTICS, name, "text or json") };
    }
    form
}

fn form_named(name: &CStr) -> Option<u8> {
    match name.to_bytes() {
        b"text" => Some(TEXT),
        b"json" => Some(JSON),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_forms_are_known_and_nothing_is_asked_for_at_first() {
        assert_eq!(form_named(c"text"), Some(TEXT));
        assert_eq!(form_named(c"json"), Some(JSON));
        for other in [c"", c"JSON", c"1", c"xml"] {
            assert_eq!(form_named(other), None);
        }
        let none = ExitReport::none();
        assert_eq!((none.form(), none.file()), (None, None));
    }
}
