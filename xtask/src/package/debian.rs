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
    write_changelog(control, root)?;
    let size = write_checksums(root)?.div_ceil(1024);
    let text = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nSection: {section}\nPriority: optional\n\
         Installed-Size: {size}\nDepends: {depends}\nMaintainer: {}\nDescription: {description}\n",
        maintainer(),
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

/// Who makes the package. Debian's tools read the same variables.
fn maintainer() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let name = variable("DEBFULLNAME").unwrap_or_else(|| "Rallypoint maintainers".into());
    let address = variable("DEBEMAIL").unwrap_or_else(|| "rallypoint@localhost".into());
    format!("{name} <{address}>")
}

/// The changelog of the package, which names that of the project.
fn write_changelog(control: &Control, root: &Path) -> Result<(), Stop> {
    let Control { name, version, .. } = control;
    let mut date = Command::new("date");
    date.arg("-R");
    if let Ok(seconds) = std::env::var("SOURCE_DATE_EPOCH") {
        date.args(["--utc", "--date", &format!("@{seconds}")]);
    }
    let date = files::output(&mut date)?;
    let text = format!(
        "{name} ({version}) unstable; urgency=medium\n\n  * CHANGELOG.md of the project has the changes.\n\n -- {}  {}\n",
        maintainer(),
        String::from_utf8_lossy(&date).trim(),
    );
    let path = root.join("usr/share/doc").join(name).join("changelog");
    files::write(&path, text.as_bytes())?;
    files::run(Command::new("gzip").args(["--best", "--no-name"]).arg(path))
}

/// Writes the checksums of all files, with which `dpkg --verify` finds damaged ones, and returns the sum of their sizes in bytes.
fn write_checksums(root: &Path) -> Result<u64, Stop> {
    let mut files = Vec::new();
    collect_files(root, &mut files).map_err(Stop::while_doing("read the files of the package"))?;
    files.retain(|(path, _)| !path.starts_with(root.join("DEBIAN")));
    files.sort();
    let mut md5sum = Command::new("md5sum");
    md5sum.current_dir(root).args(files.iter().filter_map(|(path, _)| path.strip_prefix(root).ok()));
    files::write(&root.join("DEBIAN/md5sums"), &files::output(&mut md5sum)?)?;
    Ok(files.iter().map(|(_, size)| size).sum())
}

fn collect_files(directory: &Path, files: &mut Vec<(PathBuf, u64)>) -> std::io::Result<()> {
    for entry in directory.read_dir()? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            collect_files(&entry.path(), files)?;
        } else {
            files.push((entry.path(), metadata.len()));
        }
    }
    Ok(())
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
