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

/// The C library that a program needs, as a dependency: a system with an older one refuses the package instead of the program.
pub fn c_library(program: &Path) -> Result<String, Stop> {
    let bytes = std::fs::read(program).map_err(Stop::while_doing("read the program"))?;
    Ok(match newest_glibc(&bytes) {
        Some((major, minor)) => format!("libc6 (>= {major}.{minor})"),
        None => "libc6".into(),
    })
}

/// The newest version of glibc among the names of versions in a program, such as `GLIBC_2.34`.
fn newest_glibc(program: &[u8]) -> Option<(u32, u32)> {
    const PREFIX: &[u8] = b"GLIBC_";
    let version = |name: &[u8]| {
        let name = std::str::from_utf8(name.strip_prefix(PREFIX)?).ok()?;
        let (major, minor) = name.split_once('.')?;
        // The third number of versions such as 2.2.5 does not matter.
        let minor = minor.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    program.split(|byte| *byte == 0).filter_map(version).max()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_the_c_library_is_found() {
        let program = b"\x7fELF\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0a GLIBC_9.9\0";
        assert_eq!(newest_glibc(program), Some((2, 34)));
        assert_eq!(newest_glibc(b"static"), None);
    }
}
