//! `cargo xtask package`: what is handed to people who do not build from source.

mod archive;
pub mod crates;
mod deb;
mod debian;
mod dev;
pub mod files;
mod notices;
mod wheel;

use crate::{Stop, args::Args, progress, workspace::Workspace};
use std::{fs, path::PathBuf, process::Stdio};

/// A kind of package.
struct Part {
    name: &'static str,
    contents: Contents,
    make: fn(&Workspace, &Built) -> Result<Vec<PathBuf>, Stop>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    Program,
    Library,
}

const PARTS: &[Part] = &[
    Part { name: "deb", contents: Contents::Program, make: deb::package },
    Part { name: "archive", contents: Contents::Program, make: archive::package },
    Part { name: "dev", contents: Contents::Library, make: dev::package },
    Part { name: "wheel", contents: Contents::Library, make: wheel::package },
];

/// The packages of Cargo, which are made only if they are named: there is nothing to hand out before they are published.
const CRATES: &str = "crates";

/// The build output that packages are made from.
pub struct Built {
    /// The program.
    program: PathBuf,
    /// Directory with the libraries.
    directory: PathBuf,
    /// Directory that packages are written to.
    packages: PathBuf,
    /// Version of the workspace.
    version: String,
}

pub fn run(workspace: &Workspace, mut args: Args) -> Result<(), Stop> {
    let profile = args.value::<String>("--profile")?.unwrap_or_else(|| "release".into());
    let program = args.value::<PathBuf>("--program")?;
    let output = args.value::<PathBuf>("--output")?;
    let version = args.value::<String>("--version")?;
    let name = args.last_name()?;
    if name.as_deref() == Some(CRATES) {
        return crates::verify(workspace);
    }
    let parts: Vec<_> = PARTS.iter().filter(|part| name.as_deref().is_none_or(|name| name == part.name)).collect();
    if parts.is_empty() {
        let names: Vec<_> = PARTS.iter().map(|part| part.name).chain([CRATES]).collect();
        return Err(Stop::Usage(format!("there is no such package; the packages are {}", names.join(", "))));
    }
    let directory = workspace.target.join(if profile == "dev" { "debug" } else { &profile });
    let built = Built {
        program: program
            .clone()
            .unwrap_or_else(|| directory.join(format!("rallypoint{}", std::env::consts::EXE_SUFFIX))),
        directory,
        packages: output.unwrap_or_else(|| workspace.target.join("packages")),
        version: version.unwrap_or_else(|| env!("CARGO_PKG_VERSION").into()),
    };
    fs::create_dir_all(&built.packages).map_err(Stop::while_doing("create the directory for packages"))?;
    let needs = |contents| parts.iter().any(|part| part.contents == contents);
    if needs(Contents::Program) && program.is_none() {
        build(workspace, &program_arguments(&profile))?;
    }
    if needs(Contents::Library) {
        build(workspace, &library(&profile))?;
    }
    for part in parts {
        for path in (part.make)(workspace, &built)? {
            println!("{}", workspace.relative(&path));
        }
    }
    Ok(())
}

/// Arguments of Cargo that build the program.
fn program_arguments(profile: &str) -> [&str; 7] {
    ["build", "--package", "rallypoint", "--bin", "rallypoint", "--profile", profile]
}

/// Arguments of Cargo that build the C library.
fn library(profile: &str) -> [&str; 6] {
    ["build", "--package", "rallypoint-ffi", "--lib", "--profile", profile]
}

fn build(workspace: &Workspace, arguments: &[&str]) -> Result<(), Stop> {
    workspace.heading(&format!("cargo {}", arguments.join(" ")));
    let mut command = workspace.cargo();
    command.args(arguments).stdin(Stdio::null());
    if progress::run(command, "package").map_err(Stop::while_doing("run cargo"))?.success() {
        return Ok(());
    }
    Err(Stop::Failed("what the packages contain could not be built".into()))
}

impl Built {
    /// The shared library.
    fn shared(&self) -> PathBuf {
        let prefix = std::env::consts::DLL_PREFIX;
        self.directory.join(format!("{prefix}rallypoint{}", std::env::consts::DLL_SUFFIX))
    }

    /// The static library.
    fn archive(&self) -> PathBuf {
        self.directory.join(if cfg!(windows) { "rallypoint.lib" } else { "librallypoint.a" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_package_is_a_usage_error() {
        let workspace = Workspace::here().unwrap();
        let Err(Stop::Usage(message)) = run(&workspace, Args::new(vec!["floppy".into()])) else { panic!() };
        assert_eq!(message, "there is no such package; the packages are deb, archive, dev, wheel, crates");
    }
}
