//! The program as an archive to unpack anywhere: static where the musl target and its C compiler are installed, otherwise for
//! systems with glibc. A static program with glibc is no alternative: it resolves names only on systems with the same glibc.

use super::{
    Built, build,
    deb::install_texts,
    files::{copy, copy_program, remove, run},
    program_arguments,
};
use crate::{Stop, workspace::Workspace};
use std::{
    env::consts::{ARCH, EXE_SUFFIX, OS},
    path::PathBuf,
    process::Command,
};

pub fn package(workspace: &Workspace, built: &Built) -> Result<Vec<PathBuf>, Stop> {
    let (program, kind) = match static_program(workspace, built)? {
        Some(program) => (program, "static"),
        None => (built.program.clone(), "dynamic"),
    };
    let name = format!("rallypoint-{}-{OS}-{ARCH}-{kind}", built.version);
    let root = built.packages.join(&name);
    remove(&root)?;
    copy_program(&program, &root.join(format!("usr/bin/rallypoint{EXE_SUFFIX}")))?;
    if cfg!(unix) {
        install_texts(workspace, &program, &root)?;
    }
    let service = "packaging/rallypoint.service";
    copy(&workspace.root.join(service), &root.join("usr/share/doc/rallypoint/rallypoint.service"))?;
    let archive = built.packages.join(format!("{name}.tar.gz"));
    run(Command::new("tar").arg("-C").arg(&built.packages).arg("-czf").arg(&archive).arg(&name))?;
    remove(&root)?;
    Ok(vec![archive])
}

/// Builds a program without any shared library, if the standard library and a C compiler for it are installed.
fn static_program(workspace: &Workspace, built: &Built) -> Result<Option<PathBuf>, Stop> {
    let target = format!("{ARCH}-unknown-linux-musl");
    let sysroot = workspace.program("rustc").args(["--print", "sysroot"]).output();
    let sysroot = sysroot.map_err(Stop::while_doing("run rustc"))?.stdout;
    let library = PathBuf::from(String::from_utf8_lossy(&sysroot).trim()).join("lib/rustlib").join(&target);
    let has_compiler =
        workspace.program("musl-gcc").arg("--version").output().is_ok_and(|output| output.status.success());
    let missing = if !built.directory.ends_with("release") {
        "the profile is not release".to_owned()
    } else if !library.exists() {
        format!("the target is missing (rustup target add {target})")
    } else if !has_compiler {
        "its C compiler is missing (apt-get install musl-tools)".to_owned()
    } else {
        String::new()
    };
    if !missing.is_empty() {
        println!("the program of the archive needs glibc: {missing}");
        return Ok(None);
    }
    build(workspace, &static_arguments(&target))?;
    Ok(Some(workspace.target.join(target).join("release/rallypoint")))
}

/// Arguments of Cargo that build the static program.
pub fn static_arguments(target: &str) -> Vec<&str> {
    [&program_arguments("release")[..], &["--target", target]].concat()
}
