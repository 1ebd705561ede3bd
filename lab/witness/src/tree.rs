//! The processes of a command, and the programs that each of them ran.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use heapdrome_schema::SystemCalls;

use crate::filter;
use crate::home::Home;
use crate::inspect::{Inspection, base, inspect};
use crate::layout::MALLOC;
use crate::ledger::Ledger;
use crate::objects::Objects;
use crate::operators::{NewWatch, OwnNew};
use crate::program::Program;
use crate::watchdog::Watch;

/// Origin of an image whose parent is unknown, because the parent was killed before it reported the
/// fork.
const UNKNOWN: usize = 0;

/// Program in one process, from its exec or fork to its end or the next exec.
#[derive(Debug)]
pub(crate) struct Image {
    /// Number of the image within the run.
    pub(crate) id: usize,
    /// Number of the image that forked this one, or [`UNKNOWN`]; `None` if an exec began this
    /// image.
    pub(crate) origin: Option<usize>,
    pub(crate) pid: i32,
    pub(crate) program: Arc<Program>,
    /// Processor time in nanoseconds. While the image runs, this is instead the reading of the
    /// process's CPU clock when the image began.
    pub(crate) cpu: u64,
    pub(crate) ledger: Option<Ledger>,
    pub(crate) inspection: Option<Inspection>,
    /// Whether an exec replaced the image.
    pub(crate) replaced: bool,
    /// System calls for memory, if they are counted.
    pub(crate) system_calls: SystemCalls,
    /// Bytes in anonymous huge pages just before the image ended, if blocks are followed; 0 if the
    /// image was forked and an exec ended it.
    pub(crate) huge: u64,
    /// Findings on the program's own `operator new`, if its calls were watched.
    pub(crate) own_new: Option<OwnNew>,
}

impl Image {
    /// Creates an image that begins now.
    pub(crate) fn begin(
        id: usize,
        origin: Option<usize>,
        pid: i32,
        program: Arc<Program>,
        cpu: u64,
    ) -> Self {
        Self {
            id,
            origin,
            pid,
            program,
            cpu,
            ledger: None,
            inspection: None,
            replaced: false,
            system_calls: SystemCalls::default(),
            huge: 0,
            own_new: None,
        }
    }
}

#[derive(Debug)]
struct Process {
    /// Current image; `None` in the command's own process until its exec.
    image: Option<Image>,
    /// Watch on the program's own `operator new`, if there is one.
    new: Option<NewWatch>,
    threads: HashSet<i32>,
}

/// All live processes, and all images that have ended.
pub(crate) struct Tree {
    home: Arc<Home>,
    library: PathBuf,
    preload: OsString,
    objects: Arc<Objects>,
    watch: Arc<Watch>,
    /// Whether blocks are followed.
    follows: bool,
    /// Whether programs stop at an `operator new` of their own.
    watches_new: bool,
    processes: HashMap<i32, Process>,
    /// ID of each thread's process.
    owners: HashMap<i32, i32>,
    next_id: usize,
    pub(crate) ended: Vec<Image>,
}

impl Tree {
    pub(crate) fn new(
        home: Arc<Home>,
        preload: OsString,
        objects: Arc<Objects>,
        watch: Arc<Watch>,
    ) -> Self {
        let library = home.library();
        Self {
            home,
            library,
            preload,
            objects,
            watch,
            follows: false,
            watches_new: false,
            processes: HashMap::new(),
            owners: HashMap::new(),
            next_id: 0,
            ended: Vec::new(),
        }
    }

    /// Enables stops of programs at an `operator new` of their own.
    pub(crate) fn watch_new(&mut self) {
        self.watches_new = true;
    }

    /// Records a stop of a thread by SIGTRAP. Returns whether the thread has reached its program's
    /// own `operator new`.
    pub(crate) fn called_new(&mut self, thread: i32) -> bool {
        let record = self.home.record(thread);
        let process = self.processes.get_mut(&thread);
        let watch = process.and_then(|process| process.new.as_mut());
        watch.is_some_and(|watch| watch.stopped(&record))
    }

    /// Enables counting of a program's huge pages just before it ends.
    pub(crate) fn follow_blocks(&mut self) {
        self.follows = true;
    }

    /// Records a thread's system call, at which the filter stopped it. `message` encodes the kind
    /// of the call.
    pub(crate) fn asked_system(&mut self, thread: i32, message: i32) {
        let Some(&owner) = self.owners.get(&thread) else {
            return;
        };
        let process = self.processes.get_mut(&owner);
        let Some(image) = process.and_then(|process| process.image.as_mut()) else {
            return;
        };
        // Do not count the huge pages of a forked child that executes a program. It usually still
        // shares its parent's huge pages, which are counted when the parent ends.
        if filter::is_exec(message) && image.origin.is_none() {
            image.huge = huge_pages(owner).unwrap_or(0);
        }
        filter::add(&mut image.system_calls, message);
    }

    /// Adds the command's own process, before its exec.
    pub(crate) fn begin(&mut self, pid: i32) {
        self.insert(pid, None);
    }

    pub(crate) fn knows(&self, thread: i32) -> bool {
        self.owners.contains_key(&thread)
    }

    fn insert(&mut self, pid: i32, image: Option<Image>) {
        self.watch.born(pid);
        self.owners.insert(pid, pid);
        self.processes.insert(
            pid,
            Process {
                image,
                new: None,
                threads: HashSet::from([pid]),
            },
        );
    }

    fn identity(&mut self) -> usize {
        self.next_id += 1;
        self.next_id
    }

    /// Records that thread `parent` created `child`: a thread of its own process, or another
    /// process.
    pub(crate) fn born(&mut self, parent: i32, child: i32, is_thread: bool) {
        let Some(&owner) = self.owners.get(&parent) else {
            return;
        };
        if self.knows(child) {
            return;
        }
        if is_thread {
            self.owners.insert(child, owner);
            if let Some(process) = self.processes.get_mut(&owner) {
                process.threads.insert(child);
            }
            return;
        }
        let id = self.identity();
        let image = self
            .processes
            .get(&owner)
            .and_then(|process| process.image.as_ref());
        let image =
            image.map(|from| Image::begin(id, Some(from.id), child, from.program.clone(), 0));
        self.insert(child, image);
    }

    /// Adds a thread that stopped before its parent reported it. The parent may have been killed
    /// before it could report the thread. The watchdog kills only known processes, so the thread's
    /// process must be added here.
    pub(crate) fn adopt(&mut self, thread: i32) {
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().parse::<i32>().ok())
        };
        let process = field("Tgid:").unwrap_or(thread);
        if !self.knows(process) {
            match field("PPid:").filter(|parent| self.knows(*parent)) {
                Some(parent) => self.born(parent, process, false),
                None => self.found(process),
            }
        }
        if process != thread {
            self.born(process, thread, true);
        }
    }

    /// Adds a process whose parent is not known.
    fn found(&mut self, pid: i32) {
        let program = Program::observe(pid, &self.preload, &self.objects);
        let id = self.identity();
        let image = Image::begin(id, Some(UNKNOWN), pid, Arc::new(program), 0);
        self.insert(pid, Some(image));
    }

    /// Records a process that stopped after an exec by its thread `former`.
    pub(crate) fn replaced(&mut self, pid: i32, former: i32) {
        let now = cpu_clock(pid).unwrap_or(0);
        let program = Program::observe(pid, &self.preload, &self.objects);
        let id = self.identity();
        let record = self.home.record(pid);
        self.owners.remove(&former);
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        for thread in process.threads.drain() {
            self.owners.remove(&thread);
        }
        process.threads.insert(pid);
        self.owners.insert(pid, pid);
        let watched = self.watches_new.then(|| watch_new(pid, &program)).flatten();
        let watched = std::mem::replace(&mut process.new, watched);
        let image = Image::begin(id, None, pid, Arc::new(program), now);
        if let Some(mut old) = process.image.replace(image) {
            old.ledger = Ledger::take(&record, &old.program.path);
            old.cpu = now.saturating_sub(old.cpu);
            old.own_new = watched.map(|watched| watched.found());
            old.replaced = true;
            self.ended.push(old);
        }
    }

    /// Inspects a process whose first or last thread is about to end, because its memory cannot be
    /// read later. Ignores other threads.
    pub(crate) fn exiting(&mut self, thread: i32) {
        let Some(&owner) = self.owners.get(&thread) else {
            return;
        };
        let Some(process) = self.processes.get_mut(&owner) else {
            return;
        };
        if thread != owner && process.threads.len() > 1 {
            return;
        }
        let Some(image) = &mut process.image else {
            return;
        };
        if let Some(seen) = inspect(owner, &self.library, &self.objects) {
            image.inspection = Some(seen);
        }
        if self.follows {
            image.huge = huge_pages(owner).unwrap_or(0);
        }
    }

    /// Records the death of a thread, before it is reaped.
    pub(crate) fn died(&mut self, thread: i32) {
        let Some(owner) = self.owners.remove(&thread) else {
            return;
        };
        if thread != owner {
            if let Some(process) = self.processes.get_mut(&owner) {
                process.threads.remove(&thread);
            }
            return;
        }
        let Some(process) = self.processes.remove(&owner) else {
            return;
        };
        let last_look = self.watch.died(owner);
        for thread in process.threads {
            self.owners.remove(&thread);
        }
        if let Some(mut image) = process.image {
            let now = cpu_clock(owner).unwrap_or(image.cpu);
            image.cpu = now.saturating_sub(image.cpu);
            image.ledger = Ledger::take(&self.home.record(owner), &image.program.path);
            image.own_new = process.new.map(|watched| watched.found());
            image.inspection = image.inspection.or(last_look);
            self.ended.push(image);
        }
    }
}

/// Makes a program that has just been loaded stop at its own `operator new`, if it has one and also
/// calls malloc. If a program never calls malloc, or defines malloc itself, the bindings already
/// show which object serves the program.
fn watch_new(pid: i32, program: &Program) -> Option<NewWatch> {
    let object = program.object.as_ref()?;
    let uses_malloc = object.calls(MALLOC) && !object.defines(MALLOC);
    let address = object.own_new.filter(|_| uses_malloc)?;
    NewWatch::begin(pid, base(pid, &program.path, object)?.wrapping_add(address))
}

/// Returns the number of bytes of a process in anonymous huge pages; `None` if the kernel does not
/// report it.
fn huge_pages(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    let kib = line.trim().strip_suffix("kB")?.trim();
    kib.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Returns the processor time of all threads that a process has had, in nanoseconds; `None` if the
/// kernel does not report it.
fn cpu_clock(pid: i32) -> Option<u64> {
    const SCHEDULER_TIME: i32 = 2;
    let clock = (!pid << 3) | SCHEDULER_TIME;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes only to `time`, which outlives the call.
    let read = unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    read.then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_whose_parent_was_killed_is_known_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::create(folder.path()).expect("a home");
        let watch = Arc::new(Watch::default());
        let mut tree = Tree::new(
            Arc::new(home),
            OsString::new(),
            Arc::default(),
            watch.clone(),
        );
        // The child's parent is this test, which the tree does not know.
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .expect("sleep is installed");
        let pid = child.id() as i32;
        tree.adopt(pid);
        assert!(tree.knows(pid));
        // The watchdog kills exactly the processes that the watch knows.
        assert!(watch.knows(pid));
        tree.died(pid);
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        assert_eq!(tree.ended.len(), 1);
        assert_eq!(tree.ended[0].program.name(), "sleep");
        assert!(!tree.knows(pid) && !watch.knows(pid));
    }
}
