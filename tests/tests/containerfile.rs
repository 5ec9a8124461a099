//! The Containerfile builds an image of a lobby. Without a container engine its instructions are checked against the project.

use rallypoint_harness::{run, skip, stdout};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The instructions, with their continuation lines.
fn instructions() -> Vec<(String, String)> {
    let text = read("packaging/Containerfile").replace("\\\n", " ");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, rest)| (name.to_owned(), rest.trim().to_owned()))
        .collect()
}

fn all<'a>(instructions: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    instructions.iter().filter(|(found, _)| found == name).map(|(_, rest)| &**rest).collect()
}

#[test]
fn the_instructions_fit_the_project() {
    let instructions = instructions();
    const KNOWN: &[&str] =
        &["FROM", "RUN", "WORKDIR", "COPY", "USER", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"];
    for (name, rest) in &instructions {
        assert!(KNOWN.contains(&&**name), "{name} {rest}");
    }
    let [build, image] = all(&instructions, "FROM")[..] else { panic!("two stages: the compiler is not in the image") };
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"')).unwrap();
    assert!(build.contains(&format!("/rust:{version}-")) && build.ends_with(" AS build"), "{build}");
    let release = |from: &str| ["bookworm", "trixie"].into_iter().find(|release| from.contains(release));
    assert!(release(build).is_some() && release(build) == release(image), "both have the same C library");
    for command in all(&instructions, "RUN").iter().filter(|command| command.contains("apt-get install")) {
        for part in ["apt-get update", "--yes", "--no-install-recommends", "rm -rf /var/lib/apt/lists"] {
            assert!(command.contains(part), "{command} lacks {part}");
        }
    }
    let copies = all(&instructions, "COPY");
    assert!(copies.contains(&"--from=build /source/target/release/rallypoint /usr/bin/rallypoint"), "{copies:?}");
    assert_eq!(all(&instructions, "ENTRYPOINT"), ["[\"/usr/bin/rallypoint\"]"]);
    let users = all(&instructions, "USER");
    assert!(users.len() == 1 && users[0] != "root", "{users:?}");
    let state = all(&instructions, "ENV")[0].strip_prefix("STATE_DIRECTORY=").unwrap();
    assert_eq!(all(&instructions, "VOLUME"), [state]);
    // Build output, which is larger than everything else, is not sent to the engine.
    assert!(read(".dockerignore").lines().any(|line| line == "target"));
}

#[test]
fn the_exposed_ports_are_those_of_a_lobby() {
    let home = tempfile::tempdir().unwrap();
    let settings = stdout(&run(home.path(), ["serve", "--print-config"]));
    let listening = settings.lines().filter_map(|line| line.strip_prefix("listen = [")?.strip_suffix("\"]"));
    // The lobby, the legacy lobby and the page, in the order of the settings.
    let ports: Vec<_> = listening.filter_map(|addresses| addresses.rsplit(':').next()).collect();
    let [lobby, legacy, page] = ports[..] else { panic!("{settings}") };
    let mut expected = vec![format!("{page}/tcp")];
    expected
        .extend([lobby, legacy].iter().flat_map(|port| ["tcp", "udp"].map(|protocol| format!("{port}/{protocol}"))));
    expected.sort_unstable();
    let instructions = instructions();
    let mut exposed: Vec<_> = all(&instructions, "EXPOSE").iter().flat_map(|ports| ports.split(' ')).collect();
    exposed.sort_unstable();
    assert_eq!(exposed, expected);
}

/// Compiles everything again.
mod full {
    use super::*;

    /// In full runs only, because everything is compiled again.
    #[test]
    fn an_engine_builds_the_image() {
        let is_present = |engine: &&str| {
            let status = Command::new(engine).arg("info").stdout(Stdio::null()).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        let Some(engine) = ["podman", "docker"].into_iter().find(is_present) else {
            return skip("there is no container engine");
        };
        let instructions = instructions();
        for image in all(&instructions, "FROM") {
            let image = image.split(' ').next().unwrap();
            let pull = Command::new(engine).args(["pull", "--quiet", image]).output().unwrap();
            if !pull.status.success() {
                return skip(&format!("the image {image} cannot be fetched"));
            }
        }
        let mut command = Command::new(engine);
        command.args(["build", "--quiet", "--file", "packaging/Containerfile", "."]).current_dir(root());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let image = stdout(&output).trim().to_owned();
        let version = Command::new(engine).args(["run", "--rm", &image, "--version"]).output().unwrap();
        assert!(stdout(&version).starts_with(concat!("rallypoint ", env!("CARGO_PKG_VERSION"))));
    }
}
