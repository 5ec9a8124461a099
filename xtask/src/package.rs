//! `cargo xtask package`: what is handed to people who do not build from source.

mod dev;
mod wheel;

use crate::{Stop, args::Args, progress, workspace::Workspace};
use std::{fs, path::PathBuf, process::Stdio};

type Part = fn(&Workspace, &Built) -> Result<Vec<PathBuf>, Stop>;

/// The parts, by name.
const PARTS: &[(&str, Part)] = &[("dev", dev::package), ("wheel", wheel::package)];

/// The library that the parts contain.
pub struct Built {
    /// Directory with the libraries.
    directory: PathBuf,
    /// Directory that packages are written to.
    packages: PathBuf,
    /// Version of the workspace.
    version: String,
}

pub fn run(workspace: &Workspace, mut args: Args) -> Result<(), Stop> {
    let profile = args.value::<String>("--profile")?.unwrap_or_else(|| "dist".into());
    let name = args.last_name()?;
    let parts: Vec<_> = match &name {
        None => PARTS.to_vec(),
        Some(name) => PARTS.iter().filter(|(part, _)| part == name).copied().collect(),
    };
    if parts.is_empty() {
        let names: Vec<_> = PARTS.iter().map(|(name, _)| *name).collect();
        return Err(Stop::Usage(format!("there is no such package; the packages are {}", names.join(", "))));
    }
    let built = build(workspace, &profile)?;
    for (_, package) in parts {
        for path in package(workspace, &built)? {
            println!("{}", workspace.relative(&path));
        }
    }
    Ok(())
}

fn build(workspace: &Workspace, profile: &str) -> Result<Built, Stop> {
    workspace.heading(&format!("cargo build --package rallypoint-ffi --profile {profile}"));
    let mut command = workspace.cargo();
    command.args(["build", "--package", "rallypoint-ffi", "--lib", "--profile", profile]).stdin(Stdio::null());
    if !progress::run(command, "package").map_err(Stop::while_doing("run cargo"))?.success() {
        return Err(Stop::Failed("the library could not be built".into()));
    }
    let packages = workspace.target.join("packages");
    fs::create_dir_all(&packages).map_err(Stop::while_doing("create the directory for packages"))?;
    let directory = workspace.target.join(if profile == "dev" { "debug" } else { profile });
    Ok(Built { directory, packages, version: env!("CARGO_PKG_VERSION").into() })
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
        assert_eq!(message, "there is no such package; the packages are dev, wheel");
    }
}
