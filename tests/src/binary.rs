//! Finding the program.
//!
//! Cargo tells only the tests of the program's own package where it is. `cargo xtask test` builds all programs before the
//! tests; whoever runs these tests alone gets it built here, so that nobody tests yesterday's program. The variable
//! `RALLYPOINT_UNDER_TEST` names another one instead, such as one that was installed from a package.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
    time::SystemTime,
};

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(find);

/// Where the program is.
pub(crate) fn path() -> &'static Path {
    &PROGRAM
}

/// Next to the folder that this test is in: `target/debug/deps/expiry-0123` is a test of `target/debug/rallypoint`.
fn find() -> PathBuf {
    if let Some(program) = env::var_os("RALLYPOINT_UNDER_TEST") {
        return program.into();
    }
    let test = env::current_exe().expect("a test knows where it is");
    let folder = test.ancestors().nth(2).expect("a test is in target/<profile>/deps");
    let program = folder.join(format!("rallypoint{}", env::consts::EXE_SUFFIX));
    if !is_up_to_date(&program) {
        build(folder);
    }
    program
}

/// Whether it is there, and newer than what Cargo says it was built from.
fn is_up_to_date(program: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|about| about.modified());
    let (Ok(built), Ok(sources)) = (modified(program), fs::read_to_string(program.with_extension("d"))) else {
        return false;
    };
    let is_older = |source: &str| modified(Path::new(source)).is_ok_and(|changed: SystemTime| changed <= built);
    // A line of a makefile. Whoever has blanks in his paths builds once more than needed.
    sources.split_once(':').is_some_and(|(_, sources)| sources.split_whitespace().all(is_older))
}

/// Cargo has a lock of its own, so several tests can do this at once: all but the first find it done.
fn build(folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(profile) => profile,
        None => "dev",
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "rallypoint", "--profile", profile, "--target-dir"]);
    command.arg(folder.parent().expect("target/<profile>"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let built = command.status().is_ok_and(|status| status.success());
    assert!(built, "the program cannot be built: see `cargo build -p rallypoint`");
}
