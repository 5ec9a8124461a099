//! A real browser, driven by just enough of WebDriver.

use super::{Answer, connect, read_answer, until};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// Chromium without a window, with nothing from before.
pub struct Browser {
    driver: Child,
    addr: SocketAddr,
    session: String,
    profile: PathBuf,
}

impl Browser {
    /// Starts a browser; nothing if this machine has none, and then the test skips itself, unless all tests have to run.
    pub fn start(width: u16) -> Option<Self> {
        Self::with(width, &json!({}))
    }

    /// One that runs no scripts of pages.
    pub fn without_script(width: u16) -> Option<Self> {
        Self::with(width, &json!({"profile.managed_default_content_settings.javascript": 2}))
    }

    fn with(width: u16, prefs: &Value) -> Option<Self> {
        let driver = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut driver) = driver else { return skip("chromedriver") };
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            line.ok()?.split_once("successfully on port ")?.1.trim_end_matches('.').parse::<u16>().ok()
        });
        let addr = SocketAddr::from(([127, 0, 0, 1], port.expect("chromedriver says its port")));
        // It must not stand still when nobody reads what it says.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = std::env::temp_dir().join(format!("rallypoint-browser-{}-{}", std::process::id(), addr.port()));
        let mut browser = Self { driver, addr, session: String::new(), profile };
        let mut args: Vec<String> = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ]
        .map(String::from)
        .into();
        args.push(format!("--window-size={width},900"));
        args.push(format!("--user-data-dir={}", browser.profile.display()));
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": args, "prefs": prefs}}}});
        let session = browser.call("POST", "/session", &wanted);
        browser.session = session["sessionId"].as_str().unwrap_or_else(|| panic!("{session}")).to_owned();
        Some(browser)
    }

    pub fn open(&self, url: &str) {
        self.command("url", &json!({ "url": url }));
    }

    /// Runs a script in the page.
    pub fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Runs a script that ends by calling its last argument.
    pub fn run_async(&self, script: &str) -> Value {
        self.command("execute/async", &json!({"script": script, "args": []}))
    }

    /// Has pages see a visitor who likes it dark, or light.
    pub fn prefer(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let params = json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}});
        self.command("goog/cdp/execute", &params);
    }

    /// Clicks on what a selector finds first.
    pub fn click(&self, selector: &str) {
        let element = format!("/session/{}/element", self.session);
        // The page may replace it in between; then it is looked for again.
        until(&format!("{selector} is clicked"), || {
            let found = self.ask("POST", &element, &json!({"using": "css selector", "value": selector}));
            let id = found.json()["value"].as_object()?.values().next()?.as_str()?.to_owned();
            (self.ask("POST", &format!("{element}/{id}/click"), &json!({})).status == 200).then_some(())
        });
    }

    /// Has a script run in every page that is opened from now on, before its own.
    pub fn bring(&self, script: &str) {
        let params = json!({"cmd": "Page.addScriptToEvaluateOnNewDocument", "params": {"source": script}});
        self.command("goog/cdp/execute", &params);
    }

    /// Waits until an expression of the page is true.
    pub fn wait_for(&self, expression: &str) {
        until(expression, || (self.run(&format!("return Boolean({expression})")) == true).then_some(()));
    }

    /// Presses keys, one after the other.
    pub fn press(&self, keys: &str) {
        let steps: Vec<_> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()})))
            .collect();
        self.command("actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": steps}]}));
    }

    fn command(&self, name: &str, body: &Value) -> Value {
        self.call("POST", &format!("/session/{}/{name}", self.session), body)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.ask(method, path, body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()["value"].take()
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let (mut tcp, body) = (connect(self.addr), body.to_string());
        let length = body.len();
        write!(
            tcp,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        read_answer(&mut BufReader::new(tcp), false).expect("chromedriver answers")
    }
}

/// The bytes of axe-core, which finds faults that keep people out. `cargo xtask test` fetches it.
pub fn axe() -> Option<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/node_modules/axe-core/axe.min.js");
    std::fs::read_to_string(path).ok().or_else(|| skip("axe-core"))
}

/// Skips a test for want of a tool, which `cargo xtask test` installs if it can.
fn skip<T>(tool: &str) -> Option<T> {
    rallypoint_harness::skip(&format!("there is no {tool} on this machine"));
    None
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.call("DELETE", &format!("/session/{}", self.session), &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
