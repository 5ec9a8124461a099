//! A Debian package of a directory that has everything at its place.

use super::files;
use crate::Stop;
use std::{
    env::consts::ARCH,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The fields of a package's `control` file.
pub struct Control<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub section: &'a str,
    pub depends: &'a str,
    /// One line, then further lines that begin with a blank.
    pub description: &'a str,
}

/// Whether packages can be made here. If not, that is printed.
pub fn is_available() -> bool {
    let is_available = Command::new("dpkg-deb").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_available {
        println!("skipped: there is no dpkg-deb to make a Debian package with");
    }
    is_available
}

/// Makes a package of `root`, which is removed.
pub fn build(control: &Control, root: &Path, packages: &Path) -> Result<PathBuf, Stop> {
    let architecture = match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let Control { name, version, section, depends, description } = control;
    let text = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nSection: {section}\nPriority: optional\n\
         Depends: {depends}\nMaintainer: Rallypoint maintainers <rallypoint@localhost>\nDescription: {description}\n"
    );
    files::write(&root.join("DEBIAN/control"), text.as_bytes())?;
    let package = packages.join(format!("{name}_{version}_{architecture}.deb"));
    // gzip is read by every dpkg, and takes a tenth of the time of the default.
    files::run(
        Command::new("dpkg-deb").args(["--root-owner-group", "-Zgzip", "-z6", "--build"]).arg(root).arg(&package),
    )?;
    files::remove(root)?;
    Ok(package)
}
