//! Tests that a command or a launcher that cannot be started is an error of the race, not a failure
//! of an entrant.

mod common;

use std::process::Command;

use common::{plan, round, start};
use heapdrome_measure::{MeasureError, Race};

#[test]
fn what_cannot_be_started_is_told_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let message = |change: &dyn Fn(&mut heapdrome_schema::Plan)| {
        let mut plan = plan(&["true"], folder.path());
        change(&mut plan);
        let message = start(&plan, folder.path())
            .err()
            .expect("refused")
            .to_string();
        assert!(!folder.path().join("race").exists() && !message.contains('\n'));
        message
    };
    let found = message(&|plan| plan.command = vec!["no-such-program".into()]);
    assert!(
        found.contains("command not found: no-such-program"),
        "{found}"
    );
    assert!(message(&|plan| plan.command.clear()).contains("the command is empty"));
    let found = message(&|plan| plan.options.directory = Some("absent".into()));
    assert!(found.contains("cannot use the working folder"), "{found}");
    let found = message(&|plan| plan.options.stdin = Some("absent".into()));
    assert!(found.contains("cannot use the standard input"), "{found}");
}

#[test]
fn what_cannot_be_executed_is_no_failing_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).expect("rights");
    let mut race = start(&plan(&["./script"], folder.path()), folder.path()).expect("a race");
    assert!(matches!(
        round(&mut race),
        Err(MeasureError::NotExecutable { .. })
    ));
    assert!(race.failures().is_empty());

    let mut plan = plan(&["true"], folder.path());
    plan.options.pin = vec![100_000];
    let mut race = start(&plan, &folder.path().join("other")).expect("a race");
    let error = round(&mut race).expect_err("no such CPU").to_string();
    assert!(error.contains("cannot pin to CPUs [100000]"), "{error}");
}

#[test]
fn a_program_that_is_no_launcher_is_an_error() {
    let launcher = heapdrome_measure::launcher::LauncherProgram::of("/bin/true");
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan(&["true"], folder.path());
    let race = Race::start_with(
        &launcher,
        plan,
        Default::default(),
        &folder.path().join("race"),
    );
    assert!(matches!(race.err(), Some(MeasureError::Launcher { .. })));
    let refused = Command::new(&common::launcher().program)
        .output()
        .expect("it runs");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_kernel_without_process_descriptors_is_told_in_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let launcher = common::launcher();
    let mut arguments = vec!["without-pidfd".into(), launcher.program.into_os_string()];
    arguments.extend(launcher.arguments);
    let program = common::tool();
    let lacking = heapdrome_measure::launcher::LauncherProgram { program, arguments };
    let plan = plan(&["true"], folder.path());
    let race = folder.path().join("race");
    let error = Race::start_with(&lacking, plan, Default::default(), &race);
    let error = error.err().expect("refused").to_string();
    assert!(
        error.contains("cannot work on this machine: the kernel refuses")
            && error.contains("Linux 5.3"),
        "{error}"
    );
    assert!(!error.contains('\n') && !race.exists());
}
