//! The Python package, with the library in it.

use super::{
    Built,
    files::{copy_library, remove},
    notices,
};
use crate::{Stop, workspace::Workspace};
use std::path::PathBuf;

pub fn package(workspace: &Workspace, built: &Built) -> Result<Vec<PathBuf>, Stop> {
    let script = workspace.root.join("clients/python-package/build_wheel.py");
    let directory = built.packages.join("wheel-root");
    let library = directory.join(built.shared().file_name().unwrap_or_default());
    copy_library(&built.shared(), &library)?;
    let notices = directory.join(notices::FILE);
    notices::write(workspace, "rallypoint-ffi", &notices)?;
    let mut python = workspace.program(if cfg!(windows) { "python" } else { "python3" });
    python.arg("-B").arg(script).arg(library).arg(&built.version).arg(&built.packages).arg(notices);
    let output = python.output().map_err(Stop::while_doing("run Python 3, which makes the wheel"))?;
    if !output.status.success() {
        return Err(Stop::Failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    remove(&directory)?;
    Ok(vec![String::from_utf8_lossy(&output.stdout).trim().into()])
}
