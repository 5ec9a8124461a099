//! The Debian package is installed into an empty root, runs, is upgraded, and leaves nothing but data when it is removed.

#![cfg(target_os = "linux")]

use rallypoint_harness::{Lobby, program, skip, stderr};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A package of the program under test.
fn package(version: &str, output: &Path) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let xtask = test.ancestors().nth(2).unwrap().join("xtask");
    let mut command = Command::new(xtask);
    command.arg("package").arg("--program").arg(program()).arg("--output").arg(output);
    command.args(["--version", version, "deb"]).env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"));
    let made = command.output().expect("`cargo xtask test` builds xtask");
    assert!(made.status.success(), "{}", stderr(&made));
    let is_package = |path: &PathBuf| path.to_string_lossy().contains(&format!("rallypoint_{version}_"));
    output.read_dir().unwrap().map(|entry| entry.unwrap().path()).find(is_package).expect("a package")
}

/// A root directory with an empty database of dpkg.
struct Root(tempfile::TempDir);

impl Root {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        fs::write(root.path().join("var/lib/dpkg/status"), "").unwrap();
        Self(root)
    }

    fn dpkg(&self, arguments: &[&str]) {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", self.0.path().display())).arg("--log=/dev/null");
        // The scripts run with DPKG_ROOT instead of in the root, where there is no shell. Its dependencies are not there either.
        command.args(["--force-script-chrootless", "--force-depends", "--force-not-root", "--force-confold"]);
        command.args(arguments);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "dpkg {arguments:?}: {}", stderr(&output));
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// All files, except for those of dpkg.
    fn files(&self) -> Vec<String> {
        let output = Command::new("find").arg(self.0.path()).args(["-type", "f", "-printf", "%P\n"]).output().unwrap();
        let mut files: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
        files.retain(|file| !file.starts_with("var/lib/dpkg/"));
        files.sort();
        files
    }

    /// The lobby as the service would start it, but for its ports.
    fn start(&self) -> Lobby {
        let mut command = Command::new(self.path("usr/bin/rallypoint"));
        command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "127.0.0.1:0", "--config"]);
        command.arg(self.path("etc/rallypoint/rallypoint.toml"));
        command.env("STATE_DIRECTORY", self.path("var/lib/rallypoint"));
        Lobby::spawn(&mut command, 1)
    }
}

#[test]
fn the_package_is_installed_started_upgraded_and_removed() {
    if !Command::new("dpkg").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        skip("dpkg is not installed");
        return;
    }
    let packages = tempfile::tempdir().unwrap();
    let old = package("0.1.0", packages.path());
    let new = package("99.0.0", packages.path());
    let root = Root::new();

    root.dpkg(&["--install", old.to_str().unwrap()]);
    let files = root.files();
    for file in [
        "usr/bin/rallypoint",
        "etc/rallypoint/rallypoint.toml",
        "lib/systemd/system/rallypoint.service",
        "usr/share/man/man1/rallypoint.1.gz",
        "usr/share/man/man1/rallypoint-serve.1.gz",
        "usr/share/bash-completion/completions/rallypoint",
        "usr/share/zsh/vendor-completions/_rallypoint",
        "usr/share/fish/vendor_completions.d/rallypoint.fish",
        "usr/share/doc/rallypoint/copyright",
        "usr/share/doc/rallypoint/changelog.gz",
        "usr/share/doc/rallypoint/THIRD-PARTY-LICENSES.gz",
    ] {
        assert!(files.iter().any(|installed| installed == file), "{file} is missing: {files:#?}");
    }
    root.dpkg(&["--verify", "rallypoint"]);
    let lobby = root.start();
    lobby.register_port("Bacon Town", 8190);
    lobby.wait_until_listed(&["Bacon Town"]);
    assert!(lobby.stop().status.success(), "{}", lobby.log());

    // The operator's changes survive an upgrade, and so do the data.
    let config = root.path("etc/rallypoint/rallypoint.toml");
    let mut settings = fs::read_to_string(&config).unwrap();
    assert!(settings.contains("\n#lease = \"70s\"\n"), "settings are comments: {settings}");
    settings = settings.replace("\n#lease = \"70s\"\n", "\nlease = \"80s\"\n");
    fs::write(&config, &settings).unwrap();
    root.dpkg(&["--install", new.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&config).unwrap(), settings);
    let lobby = root.start();
    lobby.wait_until_listed(&["Bacon Town"]);
    assert!(lobby.stop().status.success(), "{}", lobby.log());

    // The link that `systemctl enable` makes.
    let wants = root.path("etc/systemd/system/multi-user.target.wants");
    fs::create_dir_all(&wants).unwrap();
    fs::write(wants.join("rallypoint.service"), "").unwrap();
    root.dpkg(&["--purge", "rallypoint"]);
    let left: Vec<_> = root.files().into_iter().filter(|file| !file.starts_with("var/lib/rallypoint/")).collect();
    assert_eq!(left, [""; 0], "the package leaves nothing but data");
    assert!(root.path("var/lib/rallypoint/public-id.key").exists(), "the data stay");
}
