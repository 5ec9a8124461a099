//! Library, header and pkg-config file: as an archive to unpack anywhere, and as a Debian package where `dpkg-deb` is at hand.

use super::{
    Built,
    debian::{self, Control},
    files::{copy, copy_library, remove, run, write},
    notices,
};
use crate::{Stop, workspace::Workspace};
use std::{
    env::consts::ARCH,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

pub fn package(workspace: &Workspace, built: &Built) -> Result<Vec<PathBuf>, Stop> {
    let name = format!("librallypoint-dev-{}-{}-{ARCH}", built.version, std::env::consts::OS);
    let root = built.packages.join(&name);
    remove(&root)?;
    // Relative to the file itself: the archive works wherever it is unpacked.
    install(workspace, built, &root, "${pcfiledir}/../..", "lib")?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&workspace.root.join(name), &root.join(name))?;
    }
    let archive = built.packages.join(format!("{name}.tar.gz"));
    run(Command::new("tar").arg("-C").arg(&built.packages).arg("-czf").arg(&archive).arg(&name))?;
    let mut paths = vec![archive];
    if debian::is_available() {
        paths.push(debian(workspace, built)?);
    }
    remove(&root)?;
    Ok(paths)
}

fn debian(workspace: &Workspace, built: &Built) -> Result<PathBuf, Stop> {
    let root = built.packages.join("dev-root");
    remove(&root)?;
    install(workspace, built, &root.join("usr"), "/usr", &format!("lib/{ARCH}-linux-gnu"))?;
    let copyright = root.join("usr/share/doc/librallypoint-dev/copyright");
    copy(&workspace.root.join("packaging/debian/copyright"), &copyright)?;
    let control = Control {
        name: "librallypoint-dev",
        version: &built.version,
        section: "libdevel",
        depends: &format!("{}, libgcc-s1", debian::c_library(&built.shared())?),
        description: "sessions, announcing, lists and queries for multiplayer games\n \
                      The shared and the static library, the header and the pkg-config file, for games\n \
                      in C and in languages that can call it.",
    };
    debian::build(&control, &root, &built.packages)
}

/// Copies everything below a prefix; the libraries are in `libraries` below it.
fn install(workspace: &Workspace, built: &Built, root: &Path, prefix: &str, libraries: &str) -> Result<(), Stop> {
    let ffi = workspace.root.join("crates/ffi");
    for library in [built.shared(), built.archive()] {
        copy_library(&library, &root.join(libraries).join(library.file_name().unwrap_or_default()))?;
    }
    copy(&ffi.join("include/rallypoint.h"), &root.join("include/rallypoint.h"))?;
    copy(&ffi.join("examples/game.c"), &root.join("share/doc/librallypoint-dev/game.c"))?;
    notices::write_compressed(
        workspace,
        "rallypoint-ffi",
        &root.join("share/doc/librallypoint-dev").join(notices::FILE),
    )?;
    let template =
        fs::read_to_string(ffi.join("rallypoint.pc.in")).map_err(Stop::while_doing("read rallypoint.pc.in"))?;
    let text = template.replace("@PREFIX@", prefix).replace("@LIBRARIES@", libraries);
    let text = text.replace("@VERSION@", &built.version);
    write(&root.join(libraries).join("pkgconfig/rallypoint.pc"), text.as_bytes())
}
