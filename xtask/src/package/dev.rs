//! Library, header and pkg-config file: as an archive to unpack anywhere, and as a Debian package where `dpkg-deb` is at hand.

use super::Built;
use crate::{Stop, workspace::Workspace};
use std::{
    env::consts::ARCH,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub fn package(workspace: &Workspace, built: &Built) -> Result<Vec<PathBuf>, Stop> {
    let name = format!("librallypoint-dev-{}-{}-{ARCH}", built.version, std::env::consts::OS);
    let root = built.packages.join(&name);
    if root.exists() {
        fs::remove_dir_all(&root).map_err(Stop::while_doing("remove the previous package"))?;
    }
    // Relative to the file itself: the archive works wherever it is unpacked.
    install(workspace, built, &root, "${pcfiledir}/../..")?;
    let archive = built.packages.join(format!("{name}.tar.gz"));
    run(Command::new("tar").arg("-C").arg(&built.packages).arg("-czf").arg(&archive).arg(&name))?;
    let mut paths = vec![archive];
    if Command::new("dpkg-deb").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        paths.push(debian(workspace, built)?);
    } else {
        println!("skipped: there is no dpkg-deb to make a Debian package with");
    }
    fs::remove_dir_all(&root).map_err(Stop::while_doing("remove the unpacked package"))?;
    Ok(paths)
}

fn debian(workspace: &Workspace, built: &Built) -> Result<PathBuf, Stop> {
    let architecture = match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let version = &built.version;
    let root = built.packages.join("debian-root");
    if root.exists() {
        fs::remove_dir_all(&root).map_err(Stop::while_doing("remove the previous package"))?;
    }
    install(workspace, built, &root.join("usr"), "/usr")?;
    let control = format!(
        "Package: librallypoint-dev\nVersion: {version}\nArchitecture: {architecture}\nSection: libdevel\nPriority: optional\n\
         Depends: libc6, libgcc-s1\nMaintainer: Rallypoint maintainers <rallypoint@localhost>\n\
         Description: sessions, announcing, lists and queries for multiplayer games\n \
         Shared and static library, header and pkg-config file.\n"
    );
    write(&root.join("DEBIAN/control"), control.as_bytes())?;
    let package = built.packages.join(format!("librallypoint-dev_{version}_{architecture}.deb"));
    run(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&root).arg(&package))?;
    fs::remove_dir_all(&root).map_err(Stop::while_doing("remove the unpacked package"))?;
    Ok(package)
}

/// Copies everything below a prefix.
fn install(workspace: &Workspace, built: &Built, root: &Path, prefix: &str) -> Result<(), Stop> {
    let ffi = workspace.root.join("crates/ffi");
    for library in [built.shared(), built.archive()] {
        copy(&library, &root.join("lib").join(library.file_name().unwrap_or_default()))?;
    }
    copy(&ffi.join("include/rallypoint.h"), &root.join("include/rallypoint.h"))?;
    copy(&ffi.join("examples/game.c"), &root.join("share/doc/librallypoint-dev/game.c"))?;
    let template =
        fs::read_to_string(ffi.join("rallypoint.pc.in")).map_err(Stop::while_doing("read rallypoint.pc.in"))?;
    let text = template.replace("@PREFIX@", prefix).replace("@VERSION@", &built.version);
    write(&root.join("lib/pkgconfig/rallypoint.pc"), text.as_bytes())
}

fn copy(from: &Path, to: &Path) -> Result<(), Stop> {
    let content = fs::read(from).map_err(Stop::while_doing(&format!("read {}", from.display())))?;
    write(to, &content)
}

fn write(path: &Path, content: &[u8]) -> Result<(), Stop> {
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory).map_err(Stop::while_doing(&format!("create {}", directory.display())))?;
    fs::write(path, content).map_err(Stop::while_doing(&format!("write {}", path.display())))
}

fn run(command: &mut Command) -> Result<(), Stop> {
    let name = command.get_program().display().to_string();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    if status.map_err(Stop::while_doing(&format!("run {name}")))?.success() {
        return Ok(());
    }
    Err(Stop::Failed(format!("{name} failed")))
}
