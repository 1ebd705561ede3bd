//! Creates the pages of the tests, and checks the browser's complaints about them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::chromium::{Chromium, installed};

/// Variable that makes a missing browser a failure.
const REQUIRED: &str = "HEAPDROME_REQUIRE_BROWSER";

/// Returns a browser, or `None` if none is installed and none is required.
pub fn browser() -> Option<Chromium> {
    let found = installed();
    if found.is_none() {
        assert!(
            std::env::var_os(REQUIRED).is_none(),
            "{REQUIRED} is set and no browser is installed: apt-get install chromium"
        );
        // Bypasses the test's output capture, so that the line is visible.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: no browser is installed (apt-get install chromium)"
        );
    }
    found.map(|program| Chromium::start(&program))
}

/// Private folder of a test.
pub struct Site(tempfile::TempDir);

impl Site {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("heapdrome-pages-")
            .tempdir();
        Self(folder.expect("a temporary folder"))
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("a file can be written");
        path
    }

    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(&path).expect("a folder can be made");
        path
    }

    /// Returns the path of the page that heapdrome writes for stored results.
    pub fn page(&self, results: &[&str]) -> PathBuf {
        let results: Vec<PathBuf> = results.iter().map(|name| place_of(name)).collect();
        self.page_of(&results)
    }

    /// Returns the path of the page that heapdrome writes for these files.
    pub fn page_of(&self, results: &[PathBuf]) -> PathBuf {
        let page = self.0.path().join("report.html");
        let mut report = self.heapdrome("report");
        succeed(report.args(results).arg("-o").arg(&page));
        page
    }

    /// Returns the path of the page that heapdrome writes for a trace.
    pub fn profile(&self, trace: &[u8]) -> PathBuf {
        let [source, page] = ["app.trace", "profile.html"].map(|name| self.0.path().join(name));
        std::fs::write(&source, trace).expect("a file can be written");
        let mut profile = self.heapdrome("profile");
        succeed(profile.arg(&source).arg("-o").arg(&page));
        page
    }

    /// Returns the path of a stored result that this heapdrome has rewritten under the same name.
    pub fn written(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        succeed(
            self.heapdrome("show")
                .arg(place_of(name))
                .arg("--json")
                .arg(&path),
        );
        path
    }

    fn heapdrome(&self, action: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapdrome"));
        command.arg(action).env("HOME", self.0.path());
        command
    }
}

#[track_caller]
fn succeed(command: &mut Command) {
    let output = command.output().expect("heapdrome starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// Returns the path of a stored result. The end-to-end tests use the same results.
fn place_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/end_to_end/fixtures")
        .join(name)
}

/// Returns the contents of a stored result.
pub fn kept(name: &str) -> Value {
    read(&place_of(name))
}

/// Returns the contents of a result's file.
pub fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("the result is there");
    serde_json::from_str(&text).expect("JSON")
}

/// Converts a JSON array of strings to a vector.
pub fn words(value: &Value) -> Vec<String> {
    let list = value.as_array().expect("a list").iter();
    list.map(|word| word.as_str().expect("a text").to_owned())
        .collect()
}

/// Fails if the page requested anything except itself, or its console has a complaint.
#[track_caller]
pub fn quiet(browser: &mut Chromium, page: &Path) {
    let complaints = complaints(browser, page);
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// Returns requests of the page for anything except itself, and complaints in its console.
pub fn complaints(browser: &mut Chromium, page: &Path) -> Vec<String> {
    let own = browser.evaluate("location.href");
    let own = own.as_str().expect("an address");
    let name = page.file_name().expect("a file").to_string_lossy();
    assert!(own.starts_with("file://") && own.ends_with(&*name), "{own}");
    let events = browser.take_events();
    events
        .iter()
        .filter_map(|event| complaint(event, own))
        .collect()
}

fn complaint(event: &Value, own: &str) -> Option<String> {
    let about = &event["params"];
    match event["method"].as_str()? {
        "Network.requestWillBeSent" => {
            let address = about["request"]["url"].as_str()?;
            // The page saves data through a blob that it creates. Access to a blob is no network
            // request.
            let local = address == own || address.starts_with("blob:");
            (!local).then(|| format!("asked for {address}"))
        }
        "Runtime.consoleAPICalled" => Some(about["args"].to_string()),
        "Runtime.exceptionThrown" => Some(about["exceptionDetails"].to_string()),
        "Log.entryAdded" => Some(about["entry"]["text"].to_string()),
        _ => None,
    }
}

/// Saves a picture of the page for manual inspection.
pub fn keep_picture(name: &str, png: &[u8]) {
    assert!(png.starts_with(b"\x89PNG"), "it is a picture");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    std::fs::create_dir_all(&folder).expect("a folder for pictures");
    std::fs::write(folder.join(format!("{name}.png")), png).expect("the picture is kept");
}
