//! The crates as they would be published: each is packed, unpacked, and compiled from what was packed.

use crate::{Stop, progress, workspace::Workspace};
use std::{fs, path::Path, process::Stdio};

/// Packs and compiles all crates that can be published. Cargo lets them depend on each other although none is published yet.
pub fn verify(workspace: &Workspace) -> Result<(), Stop> {
    let names = published(&workspace.root)?;
    workspace.heading(&format!("cargo package, of {} crates", names.len()));
    let mut command = workspace.cargo();
    command.args(["package", "--allow-dirty", "--quiet"]).stdin(Stdio::null());
    for name in names {
        command.args(["--package", &name]);
    }
    // Without these, each crate would have a target directory of its own, and the dependencies that the other steps have built
    // would be compiled again: packed crates do not have the profiles of the workspace.
    command.arg("--target-dir").arg(&workspace.target).env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
    if progress::run(command, "crates").map_err(Stop::while_doing("run cargo"))?.success() {
        return Ok(());
    }
    Err(Stop::Failed("a crate cannot be published as it is".into()))
}

/// Names of the crates that can be published.
fn published(root: &Path) -> Result<Vec<String>, Stop> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("crates")).map_err(Stop::while_doing("list the crates"))? {
        let manifest = entry.map_err(Stop::while_doing("list the crates"))?.path().join("Cargo.toml");
        let manifest = fs::read_to_string(&manifest).map_err(Stop::while_doing("read a manifest"))?;
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        names.extend(name.filter(|_| !manifest.contains("publish = false")).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_crates_but_the_private_ones_are_published() {
        let names = published(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        assert!(names.iter().any(|name| name == "rallypoint") && names.iter().any(|name| name == "rallypoint-wire"));
        assert!(!names.iter().any(|name| name == "xtask"));
    }
}
