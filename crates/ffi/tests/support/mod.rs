//! C programs for tests.

use rallypoint_harness::{skip, stderr};
use std::{
    env,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A path in this package.
pub fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The directory with the libraries that were built for this test.
pub fn libraries() -> PathBuf {
    let test = env::current_exe().unwrap();
    test.parent().unwrap().to_path_buf()
}

/// A C program of this package, compiled and linked with the shared library.
pub struct Program {
    directory: tempfile::TempDir,
}

impl Program {
    /// `None` if this machine has no C compiler; the test is skipped.
    pub fn compile(source: &str) -> Option<Self> {
        Self::compile_with(&[], source)
    }

    /// With the sanitizers for addresses and undefined behaviour, which also watch the memory that the library is passed.
    /// `None` if there is no compiler that has them.
    pub fn compile_with_sanitizers(source: &str) -> Option<Self> {
        const FLAGS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        let mut trial = Command::new("cc");
        trial.args(FLAGS).args(["-x", "c", "-", "-o", "/dev/null"]).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut trial = trial.spawn().ok()?;
        trial.stdin.take()?.write_all(b"int main(void) { return 0; }\n").ok()?;
        if !trial.wait().is_ok_and(|status| status.success()) {
            skip("the C compiler has no sanitizers");
            return None;
        }
        Self::compile_with(&FLAGS, source)
    }

    fn compile_with(flags: &[&str], source: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(flags);
        compiler.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"]);
        compiler.arg("-I").arg(here("include")).arg("-o").arg(directory.path().join("program")).arg(here(source));
        let libraries = libraries();
        compiler
            .arg("-L")
            .arg(&libraries)
            .arg(format!("-Wl,-rpath,{}", libraries.display()))
            .args(["-lrallypoint", "-pthread"]);
        let Ok(output) = compiler.output() else {
            skip("there is no C compiler");
            return None;
        };
        assert!(output.status.success(), "{}", stderr(&output));
        Some(Self { directory })
    }

    pub fn command(&self) -> Command {
        Command::new(self.directory.path().join("program"))
    }

    /// The program under valgrind, which fails for every invalid access and every leak; `None` if it is not installed.
    pub fn under_valgrind(&self) -> Option<Command> {
        if Command::new("valgrind").arg("--version").output().is_err() {
            skip("valgrind is not installed: only the run without it");
            return None;
        }
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
        command.arg(self.directory.path().join("program"));
        Some(command)
    }
}
