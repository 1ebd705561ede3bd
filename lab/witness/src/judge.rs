//! Decides which object served each program, and gives the reason if it was not the entrant's. An
//! image is one program that ran in one process.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use heapdrome_schema::{Entrant, UnservedReason};

use crate::inspect::Lead;
use crate::ledger::{Ledger, resolved};
use crate::tree::Image;

/// Verdict on one image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// Whether the image counts as a process. A forked image that only executed another program
    /// does not count. Neither does an image that was killed before the library was loaded.
    pub(crate) counts: bool,
    /// Reason why the entrant did not serve the image; `None` if it did, or if the image was killed
    /// before the library was loaded.
    pub(crate) unserved: Option<UnservedReason>,
    /// The object that served malloc, if known.
    pub(crate) served_by: Option<String>,
}

/// The objects that count as the entrant.
pub(crate) struct Expected {
    files: Vec<(u64, u64)>,
    /// Whether every object counts, because the entrant runs the command unchanged.
    any: bool,
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata()
        .ok()
        .map(|status| (status.dev(), status.ino()))
}

impl Expected {
    pub(crate) fn new(entrant: &Entrant) -> Self {
        let paths = entrant.library.iter().chain(&entrant.preload);
        Self {
            files: paths.filter_map(|path| identity(path)).collect(),
            any: entrant.as_is,
        }
    }

    /// Returns whether the entrant needs no preload, so that a program without `LD_PRELOAD` runs on
    /// it.
    fn needs_no_preload(&self) -> bool {
        self.any || self.files.is_empty()
    }

    /// Returns whether a program that is unserved for this reason still counts as served. A program
    /// that can load no allocator does not count, because it runs identically under every entrant.
    fn accepts(&self, reason: UnservedReason) -> bool {
        let alike = [UnservedReason::StaticBinary, UnservedReason::OtherMachine];
        self.any && !alike.contains(&reason)
    }

    /// Returns whether an object counts as the entrant.
    pub(crate) fn matches(&self, path: &str) -> bool {
        if self.any {
            return true;
        }
        if self.files.is_empty() {
            return is_libc(path);
        }
        identity(Path::new(path)).is_some_and(|file| self.files.contains(&file))
    }
}

fn is_libc(path: &str) -> bool {
    Path::new(path)
        .file_name()
        .is_some_and(|name| name == "libc.so.6")
}

fn text(path: &Path) -> String {
    resolved(path.to_string_lossy().into_owned())
}

/// Judges all images of a run, in their order.
pub(crate) fn judge(images: &[Image], expected: &Expected) -> Vec<Verdict> {
    let places: HashMap<usize, usize> = images
        .iter()
        .enumerate()
        .map(|(place, image)| (image.id, place))
        .collect();
    images
        .iter()
        .map(|image| Case::new(image, images, &places).verdict(expected))
        .collect()
}

/// Image with its own findings and those of its ancestors, the images that forked it.
struct Case<'a> {
    image: &'a Image,
    /// Nearest ledger that shows which object receives calls to malloc: the image's or an
    /// ancestor's.
    bound: Option<&'a Ledger>,
    leads: Vec<&'a Lead>,
    inspected: bool,
    entered: bool,
}

impl<'a> Case<'a> {
    fn new(image: &'a Image, images: &'a [Image], places: &HashMap<usize, usize>) -> Self {
        let mut bound = None;
        let mut ancestor = Some(image);
        while let Some(at) = ancestor {
            let known = at
                .ledger
                .as_ref()
                .filter(|ledger| ledger.malloc_to.is_some());
            bound = known;
            if bound.is_some() {
                break;
            }
            let origin = at.origin.and_then(|id| places.get(&id));
            ancestor = origin.map(|&place| &images[place]);
        }
        let inspection = image.inspection.as_ref();
        Self {
            image,
            bound,
            leads: inspection
                .map(|seen| seen.leads.iter().collect())
                .unwrap_or_default(),
            inspected: inspection.is_some(),
            entered: image.ledger.is_some()
                || bound.is_some()
                || inspection.is_some_and(|seen| seen.entered),
        }
    }

    fn verdict(&self, expected: &Expected) -> Verdict {
        let forked = self.image.origin.is_some();
        let calls = self
            .image
            .ledger
            .as_ref()
            .is_some_and(|ledger| !ledger.counts.is_empty());
        let only_executes = forked && self.image.replaced && !calls;
        // A program that loads the library, but has neither inspection nor record, was killed
        // early, unless an exec replaced it.
        let unborn = !self.entered && !self.inspected && !self.image.replaced && self.loads();
        let (unserved, served_by) = match unborn {
            true => (None, None),
            false if self.entered => self.entered(expected),
            false => self.not_entered(expected),
        };
        Verdict {
            counts: !only_executes && !unborn,
            unserved: unserved.filter(|reason| !expected.accepts(*reason)),
            served_by,
        }
    }

    /// Returns whether the counting library should have been loaded.
    fn loads(&self) -> bool {
        let program = &self.image.program;
        let object = program.object.as_ref();
        let usual = object.is_some_and(|object| object.native && object.dynamic);
        usual && !program.raised && program.preloaded
    }

    /// Returns the first call that bypasses the counting library. Ignores calls that an object of
    /// the entrant makes or serves.
    fn escape(&self, expected: &Expected) -> Option<&'a Lead> {
        self.leads
            .iter()
            .copied()
            .find(|lead| !expected.matches(&text(&lead.to)) && !expected.matches(&text(&lead.from)))
    }

    fn entered(&self, expected: &Expected) -> (Option<UnservedReason>, Option<String>) {
        if let Some(first) = self.bound.and_then(|ledger| ledger.first_malloc.clone()) {
            return (Some(UnservedReason::BundledAllocator), Some(first));
        }
        let server = self.bound.and_then(|ledger| ledger.malloc_to.clone());
        if let Some(server) = &server
            && !expected.matches(server)
        {
            // The C library serves malloc only if no other object defines it, so the entrant was
            // not loaded.
            let reason = if is_libc(server) {
                UnservedReason::NotLoaded
            } else {
                UnservedReason::BundledAllocator
            };
            return (Some(reason), Some(server.clone()));
        }
        // A program's own definitions take precedence for every caller. So calls that reach the
        // program show a bundled allocator or `operator new`, and not a library that was opened
        // with RTLD_DEEPBIND.
        let program = text(&self.image.program.path);
        let bundled = |lead: &Lead| lead.from == lead.to || text(&lead.to) == program;
        match self.escape(expected) {
            None => (None, server),
            // The C library's calls to itself bypass the witness only in a separate loader
            // namespace.
            Some(lead) if bundled(lead) && !is_libc(&text(&lead.to)) => {
                (Some(UnservedReason::BundledAllocator), Some(text(&lead.to)))
            }
            Some(lead) => (Some(UnservedReason::DeepBind), Some(text(&lead.to))),
        }
    }

    fn not_entered(&self, expected: &Expected) -> (Option<UnservedReason>, Option<String>) {
        let program = &self.image.program;
        let lead = self
            .escape(expected)
            .or_else(|| self.leads.first().copied());
        let served_by = lead.map(|lead| text(&lead.to));
        let Some(object) = &program.object else {
            return (Some(UnservedReason::NotLoaded), served_by);
        };
        let own = served_by.as_deref() == Some(text(&program.path).as_str());
        let reason = if !object.native {
            UnservedReason::OtherMachine
        } else if !object.dynamic {
            let itself = text(&program.path);
            return (Some(UnservedReason::StaticBinary), Some(itself));
        } else if lead.is_some() && self.escape(expected).is_none() {
            return (None, served_by);
        } else if object.defines(crate::layout::MALLOC) || own {
            UnservedReason::BundledAllocator
        } else if program.raised {
            UnservedReason::RaisedRights
        } else if !program.preloaded {
            // Some entrants need no preload. If an exec ended the program before its inspection,
            // assume that such an entrant served it.
            if expected.needs_no_preload() && lead.is_none() {
                return (None, None);
            }
            UnservedReason::ClearedEnvironment
        } else {
            UnservedReason::NotLoaded
        };
        (Some(reason), served_by)
    }
}
