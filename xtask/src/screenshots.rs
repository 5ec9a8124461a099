//! `cargo xtask screenshots`: pictures of the page and of `browse` for the README, made from the demo so that they stay true.

use crate::{Stop, args::Args, workspace::Workspace};
use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Read, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Directory of the pictures.
const PICTURES: &str = "docs/pictures";

/// Largest size of a picture in bytes: they are part of every clone.
const MAX_PICTURE: u64 = 200_000;

/// Columns and rows of the terminal.
const COLUMNS: u32 = 110;
const ROWS: u32 = 24;

/// Time limit until the demo has registered its servers, recorded their past and drawn the sparklines.
const SETTLE: Duration = Duration::from_secs(120);

/// Minimum number of sparklines on the page before the picture is taken.
const SPARKLINES: usize = 20;

/// Time until `browse` has queried all servers.
const QUERY: Duration = Duration::from_secs(5);

pub fn run(workspace: &Workspace, args: Args) -> Result<(), Stop> {
    if let Some(name) = args.last_name()? {
        return Err(Stop::Usage(format!("screenshots takes no name, such as `{name}` (see cargo xtask --help)")));
    }
    workspace.heading("screenshots of the demo");
    let pictures = workspace.root.join(PICTURES);
    fs::create_dir_all(&pictures).map_err(Stop::while_doing("create docs/pictures"))?;
    let demo = Demo::start(workspace)?;
    demo.settle()?;
    take(workspace, &demo.page, (1200, 760), &pictures.join("page.png"))?;
    let terminal = capture(workspace, &demo.browse)?;
    let html = workspace.target.join("browse.html");
    fs::write(&html, to_html(&terminal)).map_err(Stop::while_doing("write a page with the terminal"))?;
    let address = format!("file://{}", html.display());
    take(workspace, &address, (COLUMNS * 9 + 40, ROWS * 20 + 24), &pictures.join("browse.png"))
}

/// The running demo.
struct Demo {
    process: Child,
    /// Address of the page.
    page: String,
    /// The command that browses its servers.
    browse: String,
}

impl Demo {
    fn start(workspace: &Workspace) -> Result<Self, Stop> {
        let mut command = workspace.cargo();
        command.args(["run", "--package", "rallypoint", "--", "demo", "--http", "127.0.0.1:0"]);
        let process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut process = process.map_err(Stop::while_doing("start the demo"))?;
        let lines = BufReader::new(process.stdout.take().ok_or_else(|| Stop::Failed("no output".into()))?).lines();
        let mut demo = Self { process, page: String::new(), browse: String::new() };
        for line in lines.map_while(Result::ok) {
            let line = line.trim();
            if let Some(page) = line.strip_prefix("page ") {
                page.trim().clone_into(&mut demo.page);
            } else if line.contains(" browse ") {
                line.clone_into(&mut demo.browse);
                return Ok(demo);
            }
        }
        Err(Stop::Failed("the demo ended before it printed its addresses".into()))
    }
}

impl Demo {
    /// Waits until the page is complete.
    fn settle(&self) -> Result<(), Stop> {
        let start = Instant::now();
        while self.page_text()?.matches("class=\"spark\"").count() < SPARKLINES {
            if start.elapsed() > SETTLE {
                return Err(Stop::Failed("the page of the demo has no sparklines".into()));
            }
            thread::sleep(Duration::from_secs(1));
        }
        Ok(())
    }

    fn page_text(&self) -> Result<String, Stop> {
        let host = self.page.trim_start_matches("http://").trim_end_matches('/');
        let mut text = Vec::new();
        let read = TcpStream::connect(host).and_then(|mut stream| {
            write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
            stream.read_to_end(&mut text)
        });
        read.map_err(Stop::while_doing("read the page of the demo"))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It removes its temporary files when it is asked to end.
        let _ = std::process::Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

/// Takes a picture of a page.
fn take(workspace: &Workspace, address: &str, (width, height): (u32, u32), file: &Path) -> Result<(), Stop> {
    let mut command = workspace.program("chromium");
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.arg(format!("--window-size={width},{height}")).arg(format!("--screenshot={}", file.display()));
    let status = command.arg(address).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.map_err(Stop::while_doing("run chromium, which takes the pictures"))?;
    let size = fs::metadata(file).map_err(Stop::while_doing("take a picture"))?.len();
    if !status.success() || size > MAX_PICTURE {
        let name = workspace.relative(file);
        return Err(Stop::Failed(format!("{name} has {size} bytes (at most {MAX_PICTURE}); chromium: {status}")));
    }
    println!("{}: {size} bytes", workspace.relative(file));
    Ok(())
}

/// The screen of a terminal in which a command runs, with its colours.
fn capture(workspace: &Workspace, command: &str) -> Result<String, Stop> {
    let socket = format!("rallypoint-{}", std::process::id());
    let tmux = |args: &[&str]| {
        let output = workspace.program("tmux").args(["-L", &socket]).args(args).output();
        output.map_err(Stop::while_doing("run tmux, which `browse` is shown in"))
    };
    let size = [COLUMNS.to_string(), ROWS.to_string()];
    let command = format!("env -u NO_COLOR TERM=xterm-256color {command}");
    tmux(&["new-session", "-d", "-x", &size[0], "-y", &size[1], &command])?;
    thread::sleep(QUERY);
    let screen = tmux(&["capture-pane", "-e", "-p"])?;
    tmux(&["kill-server"])?;
    String::from_utf8(screen.stdout).map_err(|_| Stop::Failed("the screen is not text".into()))
}

/// A terminal as a page: the attributes that `browse` uses.
fn to_html(terminal: &str) -> String {
    let mut html = String::from(
        "<!doctype html><meta charset=utf-8><style>body{margin:0;background:#16191d;color:#d8dee4}\
         pre{margin:0;padding:12px 16px;font:15px/20px 'DejaVu Sans Mono',monospace}\
         i{display:inline-block;width:2ch;font-style:normal}.b{font-weight:bold}.d{opacity:.6}.r{background:#d8dee4;color:#16191d}\
         .c2{color:#5fbf77}.c3{color:#d9b44a}.c6{color:#56b6c2}.c9{color:#e06c75}</style><pre>",
    );
    let mut style = Style::default();
    let mut parts = terminal.trim_end().split("\x1b[");
    write_span(&mut html, &style, parts.next().unwrap_or_default());
    for part in parts {
        let Some((codes, text)) = part.split_once('m') else { continue };
        style.apply(codes);
        write_span(&mut html, &style, text);
    }
    html + "</pre>"
}

/// Attributes of text in a terminal.
#[derive(Debug, Default)]
struct Style {
    classes: Vec<&'static str>,
    color: Option<String>,
}

impl Style {
    fn apply(&mut self, codes: &str) {
        if let Some(color) = codes.strip_prefix("38;5;") {
            self.color = Some(color.to_owned());
            return;
        }
        for code in codes.split(';') {
            match code {
                "" | "0" => *self = Self::default(),
                "1" => self.classes.push("b"),
                "2" => self.classes.push("d"),
                "7" => self.classes.push("r"),
                "39" => self.color = None,
                _ => {}
            }
        }
    }
}

fn write_span(html: &mut String, style: &Style, text: &str) {
    if text.is_empty() {
        return;
    }
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            // Two columns wide, whatever the width of the font's glyph is.
            '\u{2e80}'..='\u{ffef}' => escaped.extend(["<i>", c.encode_utf8(&mut [0; 4]), "</i>"]),
            c => escaped.push(c),
        }
    }
    let color = style.color.as_ref().map(|color| format!(" c{color}")).unwrap_or_default();
    // Writing to memory does not fail.
    let _ = write!(html, "<span class=\"{}{color}\">{escaped}</span>", style.classes.join(" "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// The pictures that the README shows.
    fn pictures(readme: &str) -> Vec<PathBuf> {
        let names = readme.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        names.filter(|name| name.starts_with(PICTURES)).map(PathBuf::from).collect()
    }

    #[test]
    fn the_pictures_of_the_readme_are_small() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let shown = pictures(&fs::read_to_string(root.join("README.md")).unwrap());
        assert_eq!(shown.len(), 2);
        for picture in shown {
            assert!(fs::metadata(root.join(&picture)).unwrap().len() <= MAX_PICTURE, "{picture:?}");
        }
    }

    #[test]
    fn attributes_become_classes() {
        let html = to_html("a<\x1b[1m\x1b[38;5;2mb\x1b[39mc\x1b[0;7md\x1b[0m");
        let spans = "<span class=\"\">a&lt;</span><span class=\"b c2\">b</span><span class=\"b\">c</span>\
                     <span class=\"r\">d</span></pre>";
        assert!(html.ends_with(spans), "{html}");
    }
}
