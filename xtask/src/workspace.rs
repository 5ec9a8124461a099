//! Where the project is, and how its programs are started.

use crate::Stop;
use std::{
    env,
    ffi::OsStr,
    io::{IsTerminal, stdout},
    path::{Path, PathBuf},
    process::Command,
};

pub struct Workspace {
    pub root: PathBuf,
    /// Where Cargo builds.
    pub target: PathBuf,
    /// No colours: a log is read by people and programs alike.
    plain: bool,
}

impl Workspace {
    pub fn here() -> Result<Self, Stop> {
        // Set by `cargo run`, and so right even if the checkout was moved since this program was built.
        let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let root = match manifest.as_deref().and_then(Path::parent) {
            Some(root) => root.to_path_buf(),
            None => env::current_dir().map_err(Stop::while_doing("find the project"))?,
        };
        let target = root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()));
        let plain = env::var_os("CI").is_some_and(|ci| !ci.is_empty()) || !stdout().is_terminal();
        Ok(Self { root, target, plain })
    }

    /// A program of the system, to be run in the project's root.
    pub fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(name);
        command.current_dir(&self.root);
        // What `cargo run` told this program about itself is not true of the next one.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|p| text.starts_with(p)) {
                command.env_remove(&name);
            }
        }
        if self.plain {
            // Each tool listens to another one of these.
            command.env("CARGO_TERM_COLOR", "never").env("NO_COLOR", "1").env("TERM", "dumb");
        }
        command
    }

    pub fn cargo(&self) -> Command {
        self.program(env::var_os("CARGO").unwrap_or("cargo".into()))
    }

    /// A line that stands out between the output of other programs.
    pub fn heading(&self, text: &str) {
        if self.plain {
            println!("\n==> {text}");
        } else {
            println!("\n\x1b[1m==> {text}\x1b[0m");
        }
    }

    /// How a path is told to a person: from the root.
    pub fn relative<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }
}
