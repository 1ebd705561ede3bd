//! Tests of commands that cannot be traced. heapdrome reports this, and races such a command
//! without a proof on request.

use std::os::unix::process::CommandExt as _;

use serde_json::Value;

use crate::support::{Outcome, Site, allocator, baseline, program};

/// Makes the kernel refuse ptrace to this process and its children, as some containers do.
fn forbid_ptrace() -> std::io::Result<()> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    // The number of the system call is at offset 0 of the filter's data.
    let mut filter = [
        step(LOAD, 0, 0, 0),
        step(JUMP_IF_EQUAL, 0, 1, libc::SYS_ptrace as u32),
        step(RETURN, 0, 0, refused),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: prctl only reads `program` and the filter to which it points, which both outlive the
    // calls.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
    };
    match done {
        true => Ok(()),
        false => Err(std::io::Error::last_os_error()),
    }
}

/// Races the program while ptrace is forbidden.
fn untraceable(site: &Site, options: &[&str]) -> Outcome {
    let (sound, json, program) = (allocator(""), site.path("result.json"), program());
    let mut arguments = vec![
        "race",
        "-a",
        sound.to_str().expect("plain"),
        "--rounds",
        "2",
    ];
    arguments.extend(["--json", json.to_str().expect("plain")]);
    arguments.extend(options);
    arguments.extend(["--", &program]);
    let mut command = site.command(&arguments);
    // SAFETY: `forbid_ptrace` only calls prctl and reads `errno`. Both are async-signal-safe, as
    // required between fork and exec.
    unsafe { command.pre_exec(forbid_ptrace) };
    site.finish(command)
}

/// Checks a race without a proof: every row has times and counts, none is recommended, and the exit
/// status is 1.
#[track_caller]
fn is_raced_without_proof(outcome: &Outcome, result: &Value) {
    outcome.says(1, &["no proof was taken"]);
    outcome.tells("It is not proven which allocator served malloc");
    assert!(
        !outcome.stdout.contains("LD_PRELOAD="),
        "{}",
        outcome.stdout
    );
    assert_eq!(result["options"]["unproven"], true);
    let rows = result["entrants"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(row["status"], "ok", "{row}");
        assert!(row["proof"].is_null(), "{row}");
        assert!(row["wall_s"]["median"].is_number(), "{row}");
    }
}

#[test]
fn where_ptrace_is_forbidden_the_way_out_is_told() {
    let site = Site::new();
    let outcome = untraceable(&site, &[]);
    outcome.says(4, &["ptrace", "SYS_PTRACE", "--unproven"]);
    let outcome = untraceable(&site, &["--unproven"]);
    let text = std::fs::read_to_string(site.path("result.json")).expect("a result");
    let result = serde_json::from_str(&text).expect("JSON");
    is_raced_without_proof(&outcome, &result);
}

#[test]
fn a_command_that_traces_is_raced_without_proof_where_asked() {
    let (site, sound) = (Site::new(), allocator(""));
    let command = [&program(), "trace"];
    let (outcome, _) = site.race(&[&sound], &[], &command);
    outcome.says(3, &["one tracer", "--unproven"]);
    let (outcome, result) = Site::new().race(&[&sound], &["--unproven"], &command);
    is_raced_without_proof(&outcome, &result);
}

#[test]
fn a_command_that_traces_and_goes_on_without_is_not_raced_on_a_proof_of_other_work() {
    let (site, sound) = (Site::new(), allocator(""));
    let command = [&program(), "trace-child"];
    let (outcome, result) = site.race(&[&sound], &[], &command);
    outcome.says(3, &["traces programs itself", "--unproven"]);
    assert_eq!(result["rounds"], 0, "nothing was timed");
    let allowed = ["--allow-different-work"];
    let (outcome, result) = Site::new().race(&[&sound], &allowed, &command);
    outcome.ends_with(0);
    let warnings = baseline(&result)["proof"]["warnings"].to_string();
    assert!(warnings.contains("traces programs itself"), "{warnings}");
    let (outcome, result) = Site::new().race(&[&sound], &["--unproven"], &command);
    is_raced_without_proof(&outcome, &result);
}

#[test]
fn what_was_shown_to_be_faster_is_not_recommended_without_proof() {
    let (site, slow) = (Site::new(), allocator("slow"));
    let options = [
        "--unproven",
        "--baseline",
        slow.to_str().expect("plain"),
        "--rounds",
        "8",
    ];
    let (outcome, result) = site.race(&[std::path::Path::new("system")], &options, &[&program()]);
    is_raced_without_proof(&outcome, &result);
    assert!(
        !outcome.stdout.contains("Take system"),
        "{}",
        outcome.stdout
    );
}
