//! Runs the quick form of every installed program except `build` twice. Also tests that other
//! values give `sqlite` another input, and that an interrupted generation leaves no input.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use heapdrome_packages::Cache;
use heapdrome_programs::{Availability, Prepared, ProgramError, find};
use heapdrome_schema::Server;

/// A running server, which dropping this value kills.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn shell(prepared: &Prepared, line: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .current_dir(&prepared.directory)
        .stdin(Stdio::null());
    command
}

fn serve(prepared: &Prepared, server: &Server) -> Running {
    let child = shell(prepared, &server.serve).stdout(Stdio::null()).spawn();
    let mut running = Running(child.expect("a shell"));
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        let mut ready = shell(prepared, &server.ready);
        let asked = ready.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if asked.expect("a shell").success() {
            return running;
        }
        let ended = running.0.try_wait().expect("a child");
        assert!(ended.is_none(), "the server ended: {ended:?}");
        assert!(Instant::now() < until, "the server is not ready in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn run(prepared: &Prepared) -> Output {
    if let Some(line) = &prepared.prepare {
        let mut command = shell(prepared, line);
        let status = command.current_dir("/").status().expect("a shell");
        assert!(status.success(), "{line}");
    }
    let _server = prepared
        .server
        .as_ref()
        .map(|server| serve(prepared, server));
    let output = Command::new(&prepared.command[0])
        .args(&prepared.command[1..])
        .envs(&prepared.environment)
        .current_dir(&prepared.directory)
        .stdin(Stdio::null())
        .output();
    let output = output.expect("it starts");
    let code = output.status.code().expect("it exits");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(prepared.success.contains(&code), "{code}: {said}");
    output
}

/// Checks that the output contains a positive number for each metric.
fn check(prepared: &Prepared, output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    for metric in &prepared.metrics {
        let pattern = regex::Regex::new(&metric.pattern).expect("a pattern");
        let found = pattern.captures_iter(&text).last();
        let number = found.and_then(|found| found[1].parse::<f64>().ok());
        assert!(
            number.is_some_and(|number| number > 0.0),
            "{metric:?}: {text}"
        );
    }
}

/// Prepares a program in `cache`. Prints a line and returns `None` if it is not installed.
fn ready(cache: &Cache, name: &str, words: &[&str]) -> Option<Prepared> {
    let program = find(name).expect("the program is known");
    if let Availability::NotInstalled { reason, .. } = program.availability() {
        eprintln!("skipped: {reason}");
        return None;
    }
    let settings = program.settings(words).expect("parameters");
    Some(
        program
            .prepare(cache, &settings, &mut |_| {})
            .expect("ready"),
    )
}

fn twice(name: &str, words: &[&str]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(folder.path()).expect("a cache");
    let Some(prepared) = ready(&cache, name, words) else {
        return;
    };
    let outputs = [run(&prepared), run(&prepared)];
    for output in &outputs {
        check(&prepared, output);
    }
    if prepared.repeatable_output {
        assert!(
            outputs[0].stdout == outputs[1].stdout,
            "{name} prints the same twice"
        );
    }
    let (directory, command) = (prepared.directory.clone(), prepared.command.clone());
    drop(prepared);
    let again = ready(&cache, name, words).expect("it was installed just now");
    assert_eq!((again.directory, again.command), (directory, command));
}

#[test]
fn python_runs() {
    twice("python", &["quick=yes"]);
}

#[test]
fn sqlite_runs() {
    twice("sqlite", &["quick=yes"]);
}

#[test]
fn lua_runs() {
    twice("lua", &["quick=yes"]);
}

#[test]
fn perl_runs() {
    twice("perl", &["quick=yes"]);
}

#[test]
fn jq_runs() {
    twice("jq", &["quick=yes"]);
}

#[test]
fn xmllint_runs() {
    twice("xmllint", &["quick=yes"]);
}

#[test]
fn z3_runs() {
    twice("z3", &["quick=yes"]);
}

#[test]
fn cppcheck_runs() {
    twice("cppcheck", &["quick=yes"]);
}

#[test]
fn graphviz_runs() {
    twice("graphviz", &["quick=yes"]);
}

#[test]
fn graphicsmagick_runs() {
    twice("graphicsmagick", &["quick=yes"]);
}

#[test]
fn rustc_runs() {
    twice("rustc", &["quick=yes"]);
}

#[test]
fn ghostscript_runs() {
    twice("ghostscript", &["quick=yes"]);
}

#[test]
fn git_runs_each_task() {
    for task in ["task=log", "task=blame", "task=repack"] {
        twice("git", &["quick=yes", "commits=100", task]);
    }
}

#[test]
fn redis_runs() {
    twice("redis", &["quick=yes", "requests=2000"]);
}

#[test]
fn rocksdb_runs() {
    twice("rocksdb", &["quick=yes", "keys=2000"]);
}

#[test]
fn the_input_of_other_values_is_another() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(folder.path()).expect("a cache");
    let Some(small) = ready(&cache, "sqlite", &["orders=1000"]) else {
        return;
    };
    let large = ready(&cache, "sqlite", &["orders=2000"]).expect("installed");
    assert_ne!(small.directory, large.directory);
    let size = |prepared: &Prepared| {
        let file = prepared.directory.join("shop.db");
        std::fs::metadata(file).expect("a database").len()
    };
    assert!(size(&large) > size(&small));
}

#[test]
fn a_failure_of_the_generator_leaves_no_input() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(folder.path()).expect("a cache");
    let Some(prepared) = ready(&cache, "sqlite", &["orders=1000"]) else {
        return;
    };
    let inputs = prepared.directory.parent().expect("a shelf").to_owned();
    drop(prepared);
    let count = |path: &Path| std::fs::read_dir(path).expect("a folder").count();
    assert_eq!(count(&inputs), 1);
    let interrupt = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let cache = cache.interrupted_by(interrupt);
    let program = find("sqlite").expect("known");
    let settings = program.settings(&["orders=3000"]).expect("right");
    let error = program.prepare(&cache, &settings, &mut |_| {});
    assert!(matches!(error, Err(ProgramError::Interrupted)), "{error:?}");
    assert_eq!(count(&inputs), 1, "nothing half-written");
    let staging = cache.path(heapdrome_packages::Shelf::Staging);
    assert_eq!(count(&staging), 0, "nothing left behind");
}
