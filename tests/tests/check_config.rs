//! `--check-config` validates the configuration, and `--print-config` prints it; neither starts the lobby.

use rallypoint_harness::{rallypoint, run, stderr, stdout};
use std::{fs, process::Output};
use tempfile::tempdir;

fn check(config: &str) -> Output {
    let home = tempdir().unwrap();
    fs::write(home.path().join("rallypoint.toml"), config).unwrap();
    run(home.path(), ["serve", "--config", "rallypoint.toml", "--check-config"])
}

#[test]
fn the_defaults_are_valid() {
    let home = tempdir().unwrap();
    let output = run(home.path(), ["serve", "--check-config"]);
    assert_eq!(output.status.code(), Some(0));
    for line in ["lobby: 0.0.0.0:29944 [::]:29944", "legacy: 0.0.0.0:29942 [::]:29942", "bans: 0", "cluster: off"] {
        assert!(stdout(&output).lines().any(|printed| printed == line), "{line:?} is not in {}", stdout(&output));
    }
}

#[test]
fn a_valid_file() {
    let output = check("[lobby]\nlease = \"2m\"\n[[ban]]\nname = \"*gold*\"\n");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("bans: 1\n"), "{}", stdout(&output));
}

#[test]
fn the_cluster_is_shown_without_its_password() {
    let url = "rediss://user:hunter2@store.example.org:6380";
    let secret = "0123456789abcdef";
    let output = check(&format!("[cluster]\nurl = \"{url}\"\nsecret = \"{secret}\"\nnode = \"eu-west\"\n"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let line = text.lines().find(|line| line.starts_with("cluster: ")).unwrap_or_default();
    assert!(line.starts_with("cluster: rallypoint at rediss://") && line.ends_with(", as node eu-west"), "{text}");
    assert!(!text.contains("hunter2") && !text.contains(secret), "{text}");
    let output = check("[cluster]\nurl = \"redis://store.example.org\"\nnode = \"eu-west\"\n");
    assert!(stdout(&output).contains("its secret is missing"), "{}", stdout(&output));
}

#[test]
fn errors_name_the_file_the_line_and_the_expected_value() {
    let output = check("[lobby]\nlease = \"soon\"\n\n[caps]\nper_address = 0\ntotl = 3\n");
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(2), ""));
    for expected in [
        "rallypoint.toml:2: lobby.lease: expected a duration",
        "rallypoint.toml:5: caps.per_address: expected a number",
        "rallypoint.toml:6: unknown key \"totl\" in [caps]; did you mean \"total\"?",
    ] {
        assert!(stderr(&output).contains(expected), "{expected:?} is not in {}", stderr(&output));
    }
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let home = tempdir().unwrap();
    fs::write(home.path().join("rallypoint.toml"), "[caps]\nper_address = 1\nper_list = 1\ntotal = 1\n").unwrap();
    let args = ["serve", "--config", "rallypoint.toml", "--set", "caps.total=3", "--print-config"];
    let variables = [("RALLYPOINT_CAPS_PER_LIST", "2"), ("RALLYPOINT_CAPS_TOTAL", "2")];
    let printed = stdout(&rallypoint(home.path()).args(args).envs(variables).output().unwrap());
    for line in ["per_address = 1", "per_list = 2", "total = 3"] {
        assert!(printed.lines().any(|printed| printed == line), "{line:?} is not in {printed}");
    }
}

#[test]
fn missing_files_for_the_pages_are_reported() {
    let output = check("[web]\ntitle = \"Ours\"\nlogo = \"logo.svg\"\ngeoip = \"countries.mmdb\"\n");
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(2), ""));
    for expected in
        ["rallypoint.toml:3: web.logo: logo.svg: there is no such file", "rallypoint.toml:4: web.geoip: countries.mmdb"]
    {
        assert!(stderr(&output).contains(expected), "{expected:?} is not in {}", stderr(&output));
    }
}

#[test]
fn sizes_take_units() {
    let output = check("[caps]\nmemory = \"4GiB\"\n[lobby]\nlease = \"90s\"\n");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
