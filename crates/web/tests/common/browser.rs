//! A real browser, driven by a minimal WebDriver client.

use super::{Response, connect, read_response, wait_until};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// Headless Chromium with an empty profile.
pub struct Browser {
    driver: Child,
    addr: SocketAddr,
    session: String,
    profile: PathBuf,
}

impl Browser {
    /// Starts a browser. Returns `None` if none is installed: the test is then skipped, or fails if every test is required.
    pub fn start(width: u16) -> Option<Self> {
        Self::with(width, &json!({}))
    }

    /// Starts a browser that does not run the scripts of pages.
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
        let addr = SocketAddr::from(([127, 0, 0, 1], port.expect("chromedriver prints its port")));
        // chromedriver would block on a full pipe.
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
        let capabilities =
            json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": args, "prefs": prefs}}}});
        let session = browser.call("POST", "/session", &capabilities);
        browser.session = session["sessionId"].as_str().unwrap_or_else(|| panic!("{session}")).to_owned();
        Some(browser)
    }

    pub fn open(&self, url: &str) {
        self.command("url", &json!({ "url": url }));
    }

    /// Runs a script in the page and returns its value.
    pub fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Runs a script that returns its value by calling its last argument.
    pub fn run_async(&self, script: &str) -> Value {
        self.command("execute/async", &json!({"script": script, "args": []}))
    }

    /// Emulates a preference for the color scheme `dark` or `light`.
    pub fn set_color_scheme(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let params = json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}});
        self.command("goog/cdp/execute", &params);
    }

    /// Sets the size of the page, in CSS pixels. A phone has a touch screen.
    pub fn set_viewport(&self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.command("goog/cdp/execute", &json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics}));
    }

    /// Emulates a medium: `print` or `screen`.
    pub fn set_medium(&self, medium: &str) {
        let params = json!({"cmd": "Emulation.setEmulatedMedia", "params": {"media": medium}});
        self.command("goog/cdp/execute", &params);
    }

    /// Measures the layout shift of every page opened from now on: [`layout_shift`](Self::layout_shift) returns it.
    pub fn measure_layout_shift(&self) {
        self.inject_script(
            "window.layoutShift = 0; \
             new PerformanceObserver((list) => list.getEntries().forEach((entry) => { window.layoutShift += entry.value; })) \
             .observe({ type: 'layout-shift', buffered: true });",
        );
    }

    /// The sum of all layout shifts since the page was opened, those after clicks included.
    pub fn layout_shift(&self) -> f64 {
        // Entries are reported with the frame after the shift.
        let frames = "const done = arguments[arguments.length - 1]; \
                      requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(window.layoutShift), 50)))";
        self.run_async(frames).as_f64().unwrap()
    }

    /// Moves the pointer to the middle of the first element that matches a selector.
    pub fn hover(&self, selector: &str) {
        let script = format!(
            "const box = document.querySelector({selector:?}).getBoundingClientRect(); \
             return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)]"
        );
        let at = self.run(&script);
        let step = json!({"type": "pointerMove", "duration": 0, "x": at[0], "y": at[1]});
        self.command("actions", &json!({"actions": [{"type": "pointer", "id": "mouse", "actions": [step]}]}));
    }

    /// Clicks on the first element that matches a selector.
    pub fn click(&self, selector: &str) {
        let element = format!("/session/{}/element", self.session);
        // The page may replace the element between the two calls; the lookup is then repeated.
        wait_until(&format!("{selector} is clicked"), || {
            let found = self.request("POST", &element, &json!({"using": "css selector", "value": selector}));
            let id = found.json()["value"].as_object()?.values().next()?.as_str()?.to_owned();
            (self.request("POST", &format!("{element}/{id}/click"), &json!({})).status == 200).then_some(())
        });
    }

    /// Runs a script in every page opened from now on, before the scripts of the page.
    pub fn inject_script(&self, script: &str) {
        let params = json!({"cmd": "Page.addScriptToEvaluateOnNewDocument", "params": {"source": script}});
        self.command("goog/cdp/execute", &params);
    }

    /// Waits until a JavaScript expression is truthy in the page.
    pub fn wait_for(&self, expression: &str) {
        wait_until(expression, || (self.run(&format!("return Boolean({expression})")) == true).then_some(()));
    }

    /// Presses and releases keys one after the other.
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
        let response = self.request(method, path, body);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.json()["value"].take()
    }

    fn request(&self, method: &str, path: &str, body: &Value) -> Response {
        let mut tcp = connect(self.addr);
        let body = body.to_string();
        let length = body.len();
        write!(
            tcp,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        read_response(&mut BufReader::new(tcp), false).expect("chromedriver responds")
    }
}

/// The script of axe-core, an accessibility checker. `cargo xtask test` fetches it.
pub fn axe() -> Option<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/node_modules/axe-core/axe.min.js");
    std::fs::read_to_string(path).ok().or_else(|| skip("axe-core"))
}

/// Skips a test because a tool is missing. `cargo xtask test` installs the tools if it can.
fn skip<T>(tool: &str) -> Option<T> {
    rallypoint_harness::skip(&format!("{tool} is not installed"));
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
