//! A program in a real terminal.

use rallypoint_harness::{program, skip, stderr, wait_for};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

static SERVERS: AtomicU32 = AtomicU32::new(0);

/// A tmux session that ends with the test.
pub struct Tmux {
    folder: PathBuf,
    /// Name of the tmux server. Each session has its own, so that one that is shutting down does not affect the next.
    server: String,
}

impl Tmux {
    /// Runs the program in a terminal of this size, followed by a command that prints its exit code and the terminal
    /// settings. Returns `None` if tmux is not installed.
    pub fn start(home: &Path, size: (u16, u16), args: &[&str]) -> Option<Self> {
        let quote = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
        let args: String = args.iter().map(|arg| format!(" {}", quote(arg))).collect();
        let program = quote(program().to_str().unwrap());
        let home_text = quote(home.to_str().unwrap());
        let script = format!(
            "trap : HUP\n\
             env -i HOME={home_text} PATH=\"$PATH\" TERM=\"$TERM\" LANG=C.UTF-8 {program}{args}\n\
             code=$?; echo $code >{home_text}/code; echo \"ended with $code\"; stty -a | grep -o -- '[-]*icanon' ; cat"
        );
        let file = home.join("script");
        fs::write(&file, script).unwrap();
        let tmux = Self { folder: home.to_owned(), server: SERVERS.fetch_add(1, Relaxed).to_string() };
        let (width, height) = (size.0.to_string(), size.1.to_string());
        let shell = format!("sh {}", quote(file.to_str().unwrap()));
        let started = tmux.command(&["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, &shell]);
        match started {
            Ok(output) => {
                assert!(output.status.success(), "{}", stderr(&output));
                Some(tmux)
            }
            Err(_) => {
                skip("tmux is not installed");
                None
            }
        }
    }

    pub fn command(&self, args: &[&str]) -> std::io::Result<Output> {
        Command::new("tmux")
            .env("TMUX_TMPDIR", &self.folder)
            .env_remove("TMUX")
            .args(["-L", &self.server])
            .args(args)
            .output()
    }

    pub fn press(&self, keys: &[&str]) {
        assert!(self.command(&[&["send-keys"], keys].concat()).unwrap().status.success());
    }

    pub fn screen(&self) -> String {
        String::from_utf8(self.command(&["capture-pane", "-p"]).unwrap().stdout).unwrap()
    }

    /// Process ID of the program.
    pub fn program(&self) -> String {
        let shell = self.command(&["list-panes", "-F", "#{pane_pid}"]).unwrap().stdout;
        let shell = String::from_utf8(shell).unwrap();
        let program = Command::new("ps").args(["-o", "pid=", "--ppid", shell.trim()]).output().unwrap().stdout;
        String::from_utf8(program).unwrap().trim().to_owned()
    }

    /// Waits until the screen shows all of these texts.
    pub fn wait_for(&self, parts: &[&str]) -> String {
        wait_for(&format!("the screen shows {parts:?}"), || {
            let screen = self.screen();
            parts.iter().all(|part| screen.contains(part)).then_some(screen)
        })
    }

    /// Waits until the screen no longer shows this text.
    pub fn wait_for_no(&self, part: &str) {
        wait_for(&format!("the screen shows no {part:?}"), || (!self.screen().contains(part)).then_some(()));
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]);
    }
}
