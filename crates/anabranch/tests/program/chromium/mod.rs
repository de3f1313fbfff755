//! Headless Chromium, driven through its DevTools protocol over a pipe.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

const FLAGS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
];
const TIMEOUT: Duration = Duration::from_secs(60);

/// A browser, which is ended with the test.
pub(crate) struct Chromium {
    child: Child,
    requests: ChildStdin,
    messages: Receiver<Value>,
    /// Messages that nobody has asked for.
    events: Vec<Value>,
    next: u64,
    /// The browser's own files.
    _home: TempDir,
}

/// How a page is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
}

/// What happened while a page was loaded, and what it is then.
pub(crate) struct Visit {
    session: String,
    /// All that was asked for besides the page itself.
    pub(crate) requests: Vec<String>,
    /// Exceptions, refusals, and what was written to the console as an error.
    pub(crate) errors: Vec<String>,
    /// The page is so much wider than the screen, in pixels.
    pub(crate) overflow: i64,
}

impl Chromium {
    pub(crate) fn start() -> Self {
        let home = TempDir::new().unwrap();
        // It reads requests from descriptor 3 and writes replies to 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh"]).args(FLAGS);
        command.arg(format!("--user-data-dir={}", home.path().display())).env("HOME", home.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (requests, replies) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(replies).split(0).map_while(Result::ok) {
                let _ = sender.send(serde_json::from_slice(&message).unwrap());
            }
        });
        Self { child, requests, messages, events: Vec::new(), next: 0, _home: home }
    }

    /// Opens a page of a file on a screen, and waits until it is there.
    pub(crate) fn visit(&mut self, page: &Path, screen: Screen) -> Visit {
        self.open(&format!("file://{}", page.display()), screen, "en-US")
    }

    /// Opens a page as a browser of somebody with this language, and waits until it is there.
    pub(crate) fn open(&mut self, url: &str, screen: Screen, language: &str) -> Visit {
        let target = self.call(None, "Target.createTarget", json!({ "url": "about:blank" }));
        let attached = self.call(
            None,
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        let session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(Some(&session), &format!("{domain}.enable"), json!({}));
        }
        let scheme = if screen.dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call(Some(&session), "Emulation.setEmulatedMedia", json!({ "features": features }));
        let metrics = json!({ "width": screen.width, "height": screen.height, "deviceScaleFactor": 1, "mobile": screen.width < 600 });
        self.call(Some(&session), "Emulation.setDeviceMetricsOverride", metrics);
        let agent = json!({ "userAgent": "Chromium", "acceptLanguage": language });
        self.call(Some(&session), "Emulation.setUserAgentOverride", agent);
        self.events.clear();
        self.call(Some(&session), "Page.navigate", json!({ "url": url }));
        self.wait_for("Page.loadEventFired");
        let mut visit = Visit { session, requests: Vec::new(), errors: Vec::new(), overflow: 0 };
        // What a page does a little later counts, too.
        self.evaluate(&visit, "new Promise(done => setTimeout(done, 300))");
        let width = self.evaluate(&visit, "document.documentElement.scrollWidth").as_i64().unwrap();
        visit.overflow = width - i64::from(screen.width);
        visit.requests = self.events.iter().filter_map(requested).filter(|asked| asked != url).collect();
        visit.errors = self.events.iter().filter_map(error).collect();
        visit
    }

    /// The value of an expression in the page.
    pub(crate) fn evaluate(&mut self, visit: &Visit, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call(Some(&visit.session), "Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Types a text where the focus is.
    pub(crate) fn type_text(&mut self, visit: &Visit, text: &str) {
        self.call(Some(&visit.session), "Input.insertText", json!({ "text": text }));
    }

    /// Presses a key: its name and its code in Windows.
    pub(crate) fn press(&mut self, visit: &Visit, (key, code): (&str, u32)) {
        let text = if key == "Enter" { "\r" } else { "" };
        for (kind, text) in [("keyDown", text), ("keyUp", "")] {
            let event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call(Some(&visit.session), "Input.dispatchKeyEvent", event);
        }
    }

    /// The bytes that came over the network since the page was opened.
    pub(crate) fn received(&self) -> u64 {
        let of = |event: &Value| match event["method"] == "Network.loadingFinished" {
            true => event["params"]["encodedDataLength"].as_u64().unwrap_or(0),
            false => 0,
        };
        self.events.iter().map(of).sum()
    }

    /// What has gone wrong in the page since it was opened.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.events.iter().filter_map(error).collect()
    }

    /// Sends a request and waits for its answer.
    fn call(&mut self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut request = json!({ "id": self.next, "method": method, "params": parameters });
        if let Some(session) = session {
            request["sessionId"] = session.into();
        }
        let mut bytes = serde_json::to_vec(&request).unwrap();
        bytes.push(0);
        self.requests.write_all(&bytes).expect("chromium runs (scripts/install-test-deps installs it)");
        loop {
            let message = self.receive(method);
            if message["id"] == self.next {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn wait_for(&mut self, event: &str) {
        while !self.events.iter().any(|message| message["method"] == event) {
            let message = self.receive(event);
            self.events.push(message);
        }
    }

    fn receive(&self, waiting_for: &str) -> Value {
        let message = self.messages.recv_timeout(TIMEOUT);
        message.unwrap_or_else(|e| {
            panic!("chromium, {waiting_for}: {e} (scripts/install-test-deps installs it)")
        })
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.requests.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What an event asks the network or the disk for. What stands in the page itself is no request.
fn requested(event: &Value) -> Option<String> {
    let url = event["params"]["request"]["url"]
        .as_str()
        .filter(|_| event["method"] == "Network.requestWillBeSent")?;
    (!url.starts_with("data:")).then(|| url.to_owned())
}

fn error(event: &Value) -> Option<String> {
    let parameters = &event["params"];
    let is_one = match event["method"].as_str()? {
        "Runtime.exceptionThrown" => true,
        "Runtime.consoleAPICalled" => parameters["type"] == "error",
        "Log.entryAdded" => parameters["entry"]["level"] == "error",
        _ => false,
    };
    is_one.then(|| parameters.to_string())
}
