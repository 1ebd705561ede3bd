//! Git shows, blames or repacks a history that it imported itself.

mod history;

use std::fs::File;
use std::path::Path;

use heapdrome_packages::quoted;

use crate::request::{Input, Request, stream_file, words, write_error};
use crate::{Event, Prepared, ProgramError};

/// Name of the repository in the folder of the input.
const REPOSITORY: &str = "history.git";
/// Folder that is created again before each run of a task that writes.
const RUN: &str = "run";

/// Variables that disable the settings of the machine and of the user, and select English messages
/// and UTC.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
];

/// Variables of the user's shell that could make Git use a different repository.
const POINTERS: [&str; 4] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_INDEX_FILE",
];

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let commits = request.values.number("commits");
    let stamp = [history::VERSION, &commits.to_string(), request.version(0)];
    let input = request.input(&stamp, on_event, &|folder| import(request, folder, commits))?;
    let mut prepared = task(request, input);
    let pairs = ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned()));
    prepared.environment = pairs.into();
    Ok(prepared)
}

/// Creates the repository in `folder` from a generated stream, which is deleted afterwards.
fn import(request: &Request<'_>, folder: &Path, commits: u64) -> Result<(), ProgramError> {
    let stream = folder.join("stream");
    stream_file(&stream, |file| history::write(file, commits))?;
    let git = request.tool(0);
    let run = |words: &[&str], stdin: Option<&File>| {
        request.generate(git.as_ref(), &|command| {
            command.args(words).envs(ENVIRONMENT).current_dir(folder);
            for pointer in POINTERS {
                command.env_remove(pointer);
            }
            if let Some(Ok(stdin)) = stdin.map(File::try_clone) {
                command.stdin(stdin);
            }
        })
    };
    run(&["init", "--quiet", "--bare", REPOSITORY], None)?;
    let stdin = File::open(&stream).map_err(write_error(&stream))?;
    let repository = format!("--git-dir={REPOSITORY}");
    run(
        &[&repository, "fast-import", "--quiet", "--done"],
        Some(&stdin),
    )?;
    std::fs::remove_file(&stream).map_err(write_error(&stream))
}

fn task(request: &Request<'_>, input: Input) -> Prepared {
    let git = request.tool(0);
    let here = format!("--git-dir={REPOSITORY}");
    let (run, branch) = (
        quoted(&input.directory.join(RUN).to_string_lossy()),
        history::BRANCH,
    );
    match request.values.word("task") {
        "blame" => {
            let rest = ["--no-pager", "blame", "-M", "-C", "-C", branch, "--"];
            let mut command = words(&[&git, &here]);
            command.extend(words(&rest));
            command.push(history::file_name(0));
            request.prepared(input, command)
        }
        "repack" => {
            let there = format!("--git-dir={RUN}/{REPOSITORY}");
            let from = quoted(&input.directory.join(REPOSITORY).to_string_lossy());
            let command = words(&[
                &git,
                &there,
                "repack",
                "-a",
                "-d",
                "-f",
                "-q",
                "--threads=1",
            ]);
            let mut prepared = request.prepared(input, command);
            prepared.prepare = Some(format!("rm -rf {run} && mkdir {run} && cp -R {from} {run}"));
            prepared
        }
        _ => {
            let rest = ["--no-pager", "log", "--stat", "--patch", branch];
            let mut command = words(&[&git, &here]);
            command.extend(words(&rest));
            request.prepared(input, command)
        }
    }
}
