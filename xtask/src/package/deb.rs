//! The program as a Debian package: service, commented configuration, manual pages and completions.

use super::{
    Built,
    debian::{self, Control},
    files::{copy, copy_executable, copy_program, output, remove, run, write},
    notices,
};
use crate::{Stop, workspace::Workspace};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

pub fn package(workspace: &Workspace, built: &Built) -> Result<Vec<PathBuf>, Stop> {
    if !debian::is_available() {
        return Ok(Vec::new());
    }
    let root = built.packages.join("deb-root");
    remove(&root)?;
    let packaging = workspace.root.join("packaging");
    copy_program(&built.program, &root.join("usr/bin/rallypoint"))?;
    copy(&packaging.join("rallypoint.service"), &root.join("lib/systemd/system/rallypoint.service"))?;
    install_texts(workspace, &built.program, &root)?;

    let settings = output(Command::new(&built.program).args(["serve", "--print-config", "--config", "/dev/null"]))?;
    let settings = commented(&String::from_utf8_lossy(&settings));
    write(&root.join("etc/rallypoint/rallypoint.toml"), settings.as_bytes())?;
    write(&root.join("DEBIAN/conffiles"), b"/etc/rallypoint/rallypoint.toml\n")?;
    for script in ["postinst", "prerm", "postrm"] {
        copy_executable(&packaging.join("debian").join(script), &root.join("DEBIAN").join(script))?;
    }
    let control = Control {
        name: "rallypoint",
        version: &built.version,
        section: "net",
        depends: &format!("{}, libgcc-s1, ca-certificates", debian::c_library(&built.program)?),
        description: "lobby (master server) for games, and the tools around it\n \
                      Game servers announce themselves, players list them, launchers query them,\n \
                      and clients join them. The package has a systemd service, which is not\n started by the installation.",
    };
    Ok(vec![debian::build(&control, &root, &built.packages)?])
}

/// Manual pages, completions, licences and the changelog, below `root`/usr/share.
pub fn install_texts(workspace: &Workspace, program: &Path, root: &Path) -> Result<(), Stop> {
    let share = root.join("usr/share");
    let manuals = share.join("man/man1");
    run(Command::new(program).args(["man", "--dir"]).arg(&manuals))?;
    run(Command::new("gzip").args(["--best", "--no-name", "--recursive"]).arg(&manuals))?;
    for (shell, path) in [
        ("bash", "bash-completion/completions/rallypoint"),
        ("zsh", "zsh/vendor-completions/_rallypoint"),
        ("fish", "fish/vendor_completions.d/rallypoint.fish"),
    ] {
        write(&share.join(path), &output(Command::new(program).args(["completions", shell]))?)?;
    }
    let documents = share.join("doc/rallypoint");
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md", "README.md", "SECURITY.md"] {
        copy(&workspace.root.join(name), &documents.join(name))?;
    }
    notices::write_compressed(workspace, "rallypoint", &documents.join(notices::FILE))?;
    copy(&workspace.root.join("packaging/debian/copyright"), &documents.join("copyright"))
}

/// All settings with their defaults as comments, so that an upgrade can change the defaults of settings that the operator has not set.
fn commented(settings: &str) -> String {
    let mut text = "# Settings of the lobby. Remove the # in front of a setting to change it, then\n\
                    # rallypoint serve --check-config && systemctl reload rallypoint\n\n"
        .to_owned();
    for line in settings.lines() {
        // A table of names would replace the names that the program knows.
        let is_kept = line.is_empty() || line.starts_with('#') || (line.starts_with('[') && line != "[lists.names]");
        text += if is_kept { "" } else { "#" };
        text += line;
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_comments_and_tables_are_not() {
        let text = commented("# Addresses.\nlisten = []\n\n[web]\n[lists.names]\nx = \"y\"\n");
        assert!(text.ends_with("# Addresses.\n#listen = []\n\n[web]\n#[lists.names]\n#x = \"y\"\n"), "{text}");
    }
}
