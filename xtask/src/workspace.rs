//! Location of the project, and how programs are started in it.

use crate::Stop;
use std::{
    env,
    ffi::OsStr,
    io::{IsTerminal, stdout},
    path::{Path, PathBuf},
    process::Command,
};

/// Cargo's variable for incremental builds.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";

#[derive(Clone)]
pub struct Workspace {
    pub root: PathBuf,
    /// Cargo's target directory.
    pub target: PathBuf,
    /// The file of this program, which Cargo may replace while it runs.
    pub program: PathBuf,
    /// Whether output is without colours, because it goes to a log.
    pub plain: bool,
    /// Whether Cargo keeps what makes the next build of a crate shorter. That makes the first build a third longer.
    pub is_incremental: bool,
}

impl Workspace {
    pub fn here() -> Result<Self, Stop> {
        // Set by `cargo run`, hence right even if the checkout was moved after this program was built.
        let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let root = match manifest.as_deref().and_then(Path::parent) {
            Some(root) => root.to_path_buf(),
            None => env::current_dir().map_err(Stop::while_doing("find the project"))?,
        };
        let target = root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()));
        let program = env::current_exe().map_err(Stop::while_doing("find this program"))?;
        let plain = env::var_os("CI").is_some_and(|ci| !ci.is_empty()) || !stdout().is_terminal();
        Ok(Self { root, target, program, plain, is_incremental: true })
    }

    /// A command that runs a program in the project's root.
    pub fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(name);
        command.current_dir(&self.root);
        // Variables that `cargo run` set about this program do not apply to the next one.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|p| text.starts_with(p)) {
                command.env_remove(&name);
            }
        }
        if self.plain {
            // Each tool respects another one of these.
            command.env("CARGO_TERM_COLOR", "never").env("NO_COLOR", "1").env("TERM", "dumb");
        }
        command
    }

    /// A command that runs Cargo in the project's root.
    pub fn cargo(&self) -> Command {
        let mut command = self.program(env::var_os("CARGO").unwrap_or("cargo".into()));
        if !self.is_incremental && env::var_os(INCREMENTAL).is_none() {
            command.env(INCREMENTAL, "0");
        }
        command
    }

    /// Prints a line that stands out from the output of other programs.
    pub fn heading(&self, text: &str) {
        if self.plain {
            println!("\n==> {text}");
        } else {
            println!("\n\x1b[1m==> {text}\x1b[0m");
        }
    }

    /// A path relative to the project's root, for messages.
    pub fn relative<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }
}
