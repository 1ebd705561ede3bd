//! Tests the command line: reports, error messages, damaged and foreign data, memory limits and
//! permissions.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use crate::common::{catalog, failure, names, output, refusal, stderr, success, text};
use heapdrome_schema::WorkloadReport;

/// Writes three tiny data sets into a folder whose path has a space.
fn data() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = root.path().join("some data");
    let words = [
        "gen-data",
        text(&folder),
        "-n",
        "3",
        "-s",
        "4",
        "--seed",
        "5",
    ];
    assert_eq!(success(&mut catalog(&words)), "");
    (root, folder)
}

fn report(folder: &Path, words: &[&str]) -> WorkloadReport {
    let line = success(catalog(&["test", text(folder)]).args(words));
    assert_eq!(line.trim_end().lines().count(), 1);
    serde_json::from_str(&line).expect("a report")
}

fn size(folder: &Path, words: &[&str]) -> serde_json::Value {
    let line = success(catalog(&["size", text(folder)]).args(words));
    serde_json::from_str(&line).expect("sizes")
}

#[test]
fn a_test_prints_one_report_that_depends_on_the_data_alone() {
    let (_root, folder) = data();
    let first = report(&folder, &["-n", "3"]);
    assert_eq!(first.workload, "catalog");
    assert_eq!(first.parameters, "n=3 size=4 parallel=8 threads=16 seed=5");
    let others: [&[&str]; 3] = [
        &["-n", "3"],
        &["-n", "3", "--parallel", "1", "--threads", "1"],
        &[
            "-n",
            "3",
            "--parallel",
            "2",
            "--threads",
            "5",
            "--seed",
            "5",
        ],
    ];
    for words in others {
        let other = report(&folder, words);
        assert_eq!(other.checksum, first.checksum);
        assert_eq!(other.operations, first.operations);
    }
    assert_ne!(report(&folder, &["-n", "2"]).checksum, first.checksum);
}

#[test]
fn the_figures_are_there_and_agree_with_the_sizes() {
    let (_root, folder) = data();
    let sizes = size(&folder, &["-n", "3"]);
    let report = report(&folder, &["-n", "3"]);
    let figure = |name: &str| *report.figures.get(name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(sizes["records"], report.operations);
    assert_eq!(sizes["data_bytes"], figure("data_bytes") as u64);
    assert_eq!(
        sizes["peak_requested_bytes"],
        figure("peak_requested_bytes") as u64
    );
    assert!(figure("wall_s") > 0.0 && figure("operations_per_cpu_s") > 0.0);
    let cpu = figure("user_s") + figure("system_s");
    assert!((figure("cpu_s") - cpu).abs() < 1e-9);
    let overhead = figure("peak_resident_bytes") / figure("peak_requested_bytes");
    assert!((figure("overhead") - overhead).abs() < 1e-9);
    assert!((0.0..=1.0).contains(&figure("dropped_elsewhere_share")));
}

#[test]
fn the_peak_is_that_of_the_largest_chunk() {
    let (_root, folder) = data();
    let peak = |words: &[&str]| {
        let sizes = size(&folder, words);
        sizes["peak_requested_bytes"].as_u64().expect("counted")
    };
    let (one, two) = (peak(&["-n", "1"]), peak(&["-n", "2"]));
    let three = peak(&["-n", "3"]);
    assert!(one < two && two < three);
    assert_eq!(peak(&["-n", "3", "--parallel", "2"]), two.max(three - two));
    assert_eq!(
        peak(&["-n", "3", "--parallel", "1"]),
        one.max(two - one).max(three - two)
    );
}

#[test]
fn bad_parameters_are_refused_in_one_line() {
    let (_root, folder) = data();
    let wrong: [(&[&str], &str); 8] = [
        (&["-n", "0"], "-n: expected 1 to"),
        (&["-n", "300"], "got 300"),
        (&["-n", "3", "--threads", "0"], "--threads: expected 1 to"),
        (&["-n", "3", "--parallel", "0"], "--parallel: expected 1 to"),
        (&["-n", "-3"], "-3"),
        (&["-n", "three"], "three"),
        (&["-n", "4"], "-n 4: expected at most 3"),
        (&["-n", "3", "--seed", "6"], "have seed 5, not 6"),
    ];
    for (words, expected) in wrong {
        let line = refusal(2, catalog(&["test", text(&folder)]).args(words));
        assert!(line.contains(expected), "{line}");
    }
    let root = tempfile::tempdir().expect("a temporary folder");
    let fresh = root.path().join("data");
    for words in [["-s", "0"], ["-s", "1001"], ["-n", "0"]] {
        refusal(2, catalog(&["gen-data", text(&fresh)]).args(words));
    }
    assert_eq!(names(root.path()), Vec::<String>::new());
    refusal(2, &mut catalog(&[]));
    refusal(2, &mut catalog(&["fly"]));
    assert!(success(&mut catalog(&["--help"])).contains("gen-data"));
}

#[test]
fn missing_and_foreign_data_are_refused_in_one_line() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let missing = root.path().join("nothing");
    let test = |folder: &Path| refusal(2, &mut catalog(&["test", text(folder), "-n", "1"]));
    assert!(test(&missing).contains("holds no data"));
    assert!(test(root.path()).contains("holds no data"));
    let set = root.path().join("set-000.bin");
    std::fs::write(&set, [b'x'; 100]).expect("written");
    assert!(test(root.path()).contains("is not a file of the catalog workload"));
    let mut older = b"HDCATSET".to_vec();
    older.extend([1, 0, 0, 0]);
    older.resize(100, 0);
    std::fs::write(&set, older).expect("written");
    assert!(test(root.path()).contains("has data format 1"));
    std::fs::write(root.path().join("unfinished"), "").expect("written");
    assert!(test(root.path()).contains("is damaged: its data are incomplete"));
}

#[test]
fn damaged_data_are_refused_in_one_line() {
    let (_root, folder) = data();
    let path = folder.join("set-001.bin");
    let whole = std::fs::read(&path).expect("readable");
    let test = || catalog(&["test", text(&folder), "-n", "3"]);
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("written");
    assert!(refusal(2, &mut test()).contains("set-001.bin is damaged: it has"));
    let mut changed = whole.clone();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    std::fs::write(&path, &changed).expect("written");
    assert!(failure(2, &mut test()).contains("set-001.bin is damaged: the checksum of block"));
    std::fs::write(&path, vec![b'x'; whole.len()]).expect("written");
    assert!(refusal(2, &mut test()).contains("is not a file of the catalog workload"));
    std::fs::copy(folder.join("set-000.bin"), &path).expect("copied");
    assert!(refusal(2, &mut test()).contains("set-001.bin is damaged"));
    std::fs::remove_file(&path).expect("removed");
    assert!(refusal(2, &mut test()).contains("-n 3: expected at most 1"));
    // The first set can still be used without the others.
    success(&mut catalog(&["test", text(&folder), "-n", "1"]));
    std::fs::write(&path, &whole).expect("written");
    success(&mut test());
}

#[test]
fn written_data_are_kept_and_foreign_files_untouched() {
    let (root, folder) = data();
    let before = std::fs::metadata(folder.join("set-000.bin")).expect("there");
    let generate = |words: &[&str]| {
        let mut command = catalog(&["gen-data", text(&folder), "-s", "4", "-n", "3"]);
        command.args(words);
        command
    };
    let again = output(&mut generate(&["--seed", "5"]));
    assert!(again.status.success() && stderr(&again).contains("already holds these data"));
    let after = std::fs::metadata(folder.join("set-000.bin")).expect("there");
    assert_eq!(before.modified().ok(), after.modified().ok());
    let other = refusal(2, &mut generate(&["--seed", "6"]));
    assert!(other.contains("already holds other data (n=3 size=4 seed=5)"));
    let foreign = root.path().join("thesis");
    std::fs::create_dir(&foreign).expect("made");
    std::fs::write(foreign.join("chapter"), "text").expect("written");
    let line = refusal(2, &mut catalog(&["gen-data", text(&foreign)]));
    assert!(line.contains("was not written by gen-data"));
    assert_eq!(names(&foreign), ["chapter"]);
    let nowhere = root.path().join("no/such/place");
    let line = refusal(2, &mut catalog(&["gen-data", text(&nowhere), "-s", "1"]));
    assert!(line.contains("cannot write"), "{line}");
    assert_eq!(names(root.path()), ["some data", "thesis"]);
}

#[test]
fn a_memory_that_would_not_do_is_said_before_anything_is_loaded() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = root.path().join("data");
    let words = ["gen-data", text(&folder), "-n", "2", "-s", "10"];
    success(&mut catalog(&words));
    let limited = |limit: &str| {
        let mut command = std::process::Command::new("sh");
        let script = format!("{limit}; exec \"$0\" test \"$1\" -n 2 --threads 1");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_catalog"), text(&folder)]);
        command
    };
    let line = failure(2, &mut limited("ulimit -v 40000"));
    assert!(line.contains("is available (ulimit -v)"), "{line}");
    // The program does not check this limit, so it starts to run, and then malloc returns null.
    let line = failure(1, &mut limited("ulimit -d 12000"));
    assert!(
        line.contains("the allocator failed: it returned null"),
        "{line}"
    );
}

#[test]
fn a_report_that_cannot_be_printed_is_an_error() {
    let (_root, folder) = data();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("the kernel has it");
    let mut command = catalog(&["test", text(&folder), "-n", "1"]);
    let line = failure(2, command.stdout(full));
    assert!(line.contains("cannot write to standard output"), "{line}");
}

#[test]
fn without_rights_nothing_is_written() {
    // SAFETY: `geteuid` has no preconditions.
    let root_user = unsafe { libc::geteuid() } == 0;
    let root = tempfile::tempdir().expect("a temporary folder");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o555);
    std::fs::set_permissions(root.path(), mode).expect("set");
    let folder = root.path().join("data");
    let mut command = catalog(&["gen-data", text(&folder), "-s", "1", "-n", "1"]);
    if root_user {
        // Only root may have access to the folder of the binary, so the binary is run through an
        // open file.
        let binary = std::fs::File::open(env!("CARGO_BIN_EXE_catalog")).expect("readable");
        let open = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&binary));
        command = std::process::Command::new(open);
        command.args(["gen-data", text(&folder), "-s", "1", "-n", "1"]);
        command.uid(65534).gid(65534);
        let line = refusal(2, &mut command);
        assert!(line.contains("cannot write"), "{line}");
    } else {
        let line = refusal(2, &mut command);
        assert!(line.contains("cannot write"), "{line}");
    }
    assert_eq!(names(root.path()), Vec::<String>::new());
}
