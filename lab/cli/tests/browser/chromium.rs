//! Drives a headless browser over two pipes.
//!
//! Chromium's protocol for developer tools is JSON with a zero byte after each message. Over pipes
//! it needs no port, no handshake and no other library, and the browser ends by itself when the
//! pipes close.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

/// Time limit of each wait for the browser, long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// Maximum length of a temporary folder's path, so that the path of the socket in it is short
/// enough.
const LONGEST_FOLDER: usize = 32;

/// Names of the programs that can serve as the browser.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Options that isolate the browser: no window, no sandbox (which root cannot use), no downloads in
/// the background, no name resolution.
const FLAGS: [&str; 17] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-breakpad",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--password-store=basic",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--lang=en",
];

/// Keys that the tests press.
#[derive(Clone, Copy)]
pub enum Key {
    Tab,
    Down,
    Space,
}

/// Running browser with one page.
pub struct Chromium {
    child: Child,
    orders: ChildStdin,
    messages: Receiver<Value>,
    /// Number of the last command. The answer to a command has the command's number.
    last: u64,
    /// Session of the page, once a page exists.
    session: Option<String>,
    /// Events of the page that no test has requested yet, in order of arrival.
    events: VecDeque<Value>,
    /// Profile and home of the browser.
    folder: tempfile::TempDir,
}

/// Returns the path of an installed browser, if there is one.
pub fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let in_folders = |name: &&str| {
        let places = folders.iter().map(|folder| folder.join(name));
        places.into_iter().find(|place| place.is_file())
    };
    NAMES.iter().find_map(in_folders)
}

/// Returns the folder in which to create temporary folders. Its path is so short that the browser
/// can create its socket, `org.chromium.Chromium.XXXXXX/SingletonSocket`: the path of a socket has
/// at most 107 bytes.
fn short_temporary_folder() -> PathBuf {
    let usual = std::env::temp_dir();
    match usual.as_os_str().len() <= LONGEST_FOLDER {
        true => usual,
        false => PathBuf::from("/tmp"),
    }
}

impl Chromium {
    /// Starts the browser with an empty page.
    pub fn start(program: &Path) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("heapdrome-browser-")
            .tempdir_in(short_temporary_folder());
        let folder = folder.expect("a temporary folder");
        let errors = std::fs::File::create(folder.path().join("errors")).expect("a file");
        // The browser reads commands from descriptor 3 and answers on 4.
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh"])
            .arg(program)
            .args(FLAGS)
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ))
            .arg("about:blank")
            .env("HOME", folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .env("XDG_CACHE_HOME", folder.path())
            // The browser leaves temporary folders behind when it is killed. `TMPDIR` puts them
            // into the test's folder, which is deleted.
            .env("TMPDIR", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .process_group(0);
        let mut child = command.spawn().expect("a shell starts");
        let orders = child.stdin.take().expect("it is piped");
        let answers = child.stdout.take().expect("it is piped");
        let (sender, messages) = channel();
        std::thread::spawn(move || hand_on(answers, &sender));
        let mut browser = Self {
            child,
            orders,
            messages,
            last: 0,
            session: None,
            events: VecDeque::new(),
            folder,
        };
        browser.open_page();
        browser
    }

    fn open_page(&mut self) {
        let page = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", attach);
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Sends a command and waits for its answer; events of the page are stored meanwhile.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let id = self.last;
        let mut order = json!({"id": id, "method": method, "params": parameters});
        let of_browser = method.starts_with("Target.") || method.starts_with("Browser.");
        if let Some(session) = self.session.as_ref().filter(|_| !of_browser) {
            order["sessionId"] = json!(session);
        }
        let mut bytes = order.to_string().into_bytes();
        bytes.push(0);
        if let Err(error) = self.orders.write_all(&bytes) {
            panic!(
                "{method}: the browser is gone ({error}):\n{}",
                self.errors()
            );
        }
        let ends = Instant::now() + LIMIT;
        loop {
            let message = self.message(method, ends);
            if message["id"] != id {
                self.events.push_back(message);
                continue;
            }
            assert!(message["error"].is_null(), "{method}: {}", message["error"]);
            return message["result"].clone();
        }
    }

    #[track_caller]
    fn message(&self, waiting_for: &str, ends: Instant) -> Value {
        match self
            .messages
            .recv_timeout(ends.saturating_duration_since(Instant::now()))
        {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("{waiting_for}: no answer within {LIMIT:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                panic!("{waiting_for}: the browser ended:\n{}", self.errors())
            }
        }
    }

    /// Returns the browser's own log.
    fn errors(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("errors")).unwrap_or_default()
    }

    /// Waits for an event of this name for which `wanted` returns true, and removes it.
    #[track_caller]
    pub fn event(&mut self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let is_it = |event: &Value| event["method"] == name && wanted(&event["params"]);
        let ends = Instant::now() + LIMIT;
        loop {
            if let Some(place) = self.events.iter().position(is_it) {
                return self.events.remove(place).unwrap_or_default();
            }
            let message = self.message(name, ends);
            self.events.push_back(message);
        }
    }

    /// Returns and removes the stored events of the page.
    pub fn take_events(&mut self) -> Vec<Value> {
        // When this answer arrives, all earlier events have arrived, too.
        self.evaluate("0");
        self.events.drain(..).collect()
    }

    /// Opens a file and waits until it is loaded and its scripts have run.
    #[track_caller]
    pub fn open(&mut self, file: &Path) {
        let address = format!("file://{}", file.display());
        let went = self.call("Page.navigate", json!({"url": address}));
        assert!(went["errorText"].is_null(), "{address}: {went}");
        self.event("Page.loadEventFired", |_| true);
    }

    /// Returns the value of an expression in the page.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", asked);
        let thrown = &answer["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    #[track_caller]
    pub fn until(&mut self, expression: &str) {
        let ends = Instant::now() + LIMIT;
        while self.evaluate(expression) != true {
            assert!(Instant::now() < ends, "never came true: {expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Clicks with the mouse on the middle of the first element that `selector` finds.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        let middle = self.evaluate(&format!(
            "(() => {{ const e = document.querySelector({}); \
             e.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const r = e.getBoundingClientRect(); \
             return [r.x + r.width / 2, r.y + r.height / 2]; }})()",
            json!(selector)
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let mouse = json!({
                "type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", mouse);
        }
    }

    /// Presses and releases a key.
    #[track_caller]
    pub fn press(&mut self, key: Key) {
        let (name, code, number, text) = match key {
            Key::Tab => ("Tab", "Tab", 9, ""),
            Key::Down => ("ArrowDown", "ArrowDown", 40, ""),
            Key::Space => (" ", "Space", 32, " "),
        };
        for kind in [
            if text.is_empty() {
                "rawKeyDown"
            } else {
                "keyDown"
            },
            "keyUp",
        ] {
            let text = if kind == "keyDown" { text } else { "" };
            let pressed = json!({
                "type": kind, "key": name, "code": code, "windowsVirtualKeyCode": number,
                "text": text,
            });
            self.call("Input.dispatchKeyEvent", pressed);
        }
    }

    /// Shows the page on a screen of this size, in light or dark mode.
    pub fn screen(&mut self, [width, height]: [u32; 2], dark: bool) {
        let screen = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.call("Emulation.setDeviceMetricsOverride", screen);
        self.media("", dark);
    }

    /// Shows the page as on paper if `media` is `print`, or as on a screen if it is empty, in light
    /// or dark mode.
    pub fn media(&mut self, media: &str, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let media = json!({"media": media, "features": features});
        self.call("Emulation.setEmulatedMedia", media);
    }

    /// Returns the whole page as PNG.
    pub fn picture(&mut self) -> Vec<u8> {
        let asked = json!({"format": "png", "captureBeyondViewport": true});
        let answer = self.call("Page.captureScreenshot", asked);
        let data = answer["data"].as_str().expect("a picture");
        let engine = base64::engine::general_purpose::STANDARD;
        engine.decode(data).expect("it is encoded")
    }

    /// Allows the page to save files into `folder`.
    pub fn allow_downloads(&mut self, folder: &Path) {
        let allowed = json!({
            "behavior": "allow", "downloadPath": folder.to_string_lossy(), "eventsEnabled": true,
        });
        self.call("Browser.setDownloadBehavior", allowed);
    }
}

/// Forwards each message until the browser closes the pipe or the receiver is dropped.
fn hand_on(answers: ChildStdout, to: &Sender<Value>) {
    let mut answers = BufReader::new(answers);
    loop {
        let mut bytes = Vec::new();
        match answers.read_until(0, &mut bytes) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        bytes.pop_if(|last| *last == 0);
        let Ok(message) = serde_json::from_slice(&bytes) else {
            continue;
        };
        if to.send(message).is_err() {
            return;
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // The browser replaced the shell with `exec`, so the child's process group contains the
        // browser and its helpers.
        if let Ok(group) = i32::try_from(self.child.id()) {
            // SAFETY: kill accesses no memory. The child has not been waited for, so its id, which
            // is also its group's id, has not been reused.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        let _ = self.child.wait();
    }
}

#[test]
fn what_the_browser_leaves_goes_with_its_folder() {
    let Some(browser) = crate::site::browser() else {
        return;
    };
    let folder = browser.folder.path();
    let profile = folder.join("profile").read_dir();
    let entries = profile.expect("a profile").flatten();
    let links = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    for link in links.filter(|link| link.is_absolute()) {
        assert!(link.starts_with(folder), "{}", link.display());
    }
}
