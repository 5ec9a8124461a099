//! Location of the program under test.
//!
//! Cargo passes the path of a program only to tests of the program's own package. `cargo xtask test` builds all programs
//! before the tests; when tests are run on their own, an outdated program is rebuilt here, so that a test never runs an old
//! one. The environment variable `RALLYPOINT_UNDER_TEST` selects another program, such as one installed from a package.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
    time::SystemTime,
};

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(find);

/// Path of the program under test.
#[must_use]
pub fn program() -> &'static Path {
    &PROGRAM
}

/// Test binaries are in the directory next to the program: `target/debug/deps/expiry-0123` tests `target/debug/rallypoint`.
fn find() -> PathBuf {
    if let Some(program) = env::var_os("RALLYPOINT_UNDER_TEST") {
        return program.into();
    }
    let test = env::current_exe().expect("the path of this test");
    let directory = test.ancestors().nth(2).expect("a test is in target/<profile>/deps");
    let program = directory.join(format!("rallypoint{}", env::consts::EXE_SUFFIX));
    if !is_up_to_date(&program) {
        build(directory);
    }
    program
}

/// Whether the program exists and is newer than all sources that Cargo lists for it.
fn is_up_to_date(program: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
    let (Ok(built), Ok(sources)) = (modified(program), fs::read_to_string(program.with_extension("d"))) else {
        return false;
    };
    let is_older = |source: &str| modified(Path::new(source)).is_ok_and(|changed: SystemTime| changed <= built);
    // A makefile rule. Paths with blanks cost a needless call of `cargo build`, nothing more.
    sources.split_once(':').is_some_and(|(_, sources)| sources.split_whitespace().all(is_older))
}

/// Builds the program. Cargo locks the target directory, so concurrent tests find it built when their turn comes.
fn build(directory: &Path) {
    let profile = match directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "rallypoint", "--profile", profile, "--target-dir"]);
    command.arg(directory.parent().expect("target/<profile>"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let is_built = command.status().is_ok_and(|status| status.success());
    assert!(is_built, "the program cannot be built: see `cargo build -p rallypoint`");
}
