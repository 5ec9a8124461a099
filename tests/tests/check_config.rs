//! `--check-config` says whether the configuration is fine, and `--print-config` what it is; neither serves anything.

use rallypoint_harness::{rallypoint, run, stderr, stdout};
use std::{fs, process::Output};
use tempfile::tempdir;

fn check(config: &str) -> Output {
    let home = tempdir().unwrap();
    fs::write(home.path().join("rallypoint.toml"), config).unwrap();
    run(home.path(), ["serve", "--config", "rallypoint.toml", "--check-config"])
}

#[test]
fn nothing_needs_to_be_configured() {
    let home = tempdir().unwrap();
    let ended = run(home.path(), ["serve", "--check-config"]);
    assert_eq!(ended.status.code(), Some(0));
    for line in ["lobby: 0.0.0.0:29944 [::]:29944", "legacy: 0.0.0.0:29942 [::]:29942", "bans: 0"] {
        assert!(stdout(&ended).lines().any(|said| said == line), "{line:?} is not in {}", stdout(&ended));
    }
}

#[test]
fn a_good_file() {
    let ended = check("[lobby]\nlease = \"2m\"\n[[ban]]\nname = \"*gold*\"\n");
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    assert!(stdout(&ended).contains("bans: 1\n"), "{}", stdout(&ended));
}

#[test]
fn mistakes_have_a_file_a_line_and_an_expectation() {
    let ended = check("[lobby]\nlease = \"soon\"\n\n[caps]\nper_address = 0\ntotl = 3\n");
    assert_eq!((ended.status.code(), &*stdout(&ended)), (Some(2), ""));
    for said in [
        "rallypoint.toml:2: lobby.lease: expected a time",
        "rallypoint.toml:5: caps.per_address: expected a number",
        "rallypoint.toml:6: unknown key \"totl\" in [caps]; did you mean \"total\"?",
    ] {
        assert!(stderr(&ended).contains(said), "{said:?} is not in {}", stderr(&ended));
    }
}

#[test]
fn what_is_printed_can_be_read_again() {
    let home = tempdir().unwrap();
    let printed = run(home.path(), ["serve", "--set", "lobby.lease=2m", "--print-config"]);
    assert_eq!(printed.status.code(), Some(0));
    assert!(stdout(&printed).contains("lease = \"2m\""), "{}", stdout(&printed));
    fs::write(home.path().join("again.toml"), &stdout(&printed)).unwrap();
    let again = run(home.path(), ["serve", "--config", "again.toml", "--print-config"]);
    assert_eq!((again.status.code(), stdout(&again)), (Some(0), stdout(&printed)));
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let home = tempdir().unwrap();
    fs::write(home.path().join("rallypoint.toml"), "[caps]\nper_address = 1\nper_lobby = 1\ntotal = 1\n").unwrap();
    let args = ["serve", "--config", "rallypoint.toml", "--set", "caps.total=3", "--print-config"];
    let variables = [("RALLYPOINT_CAPS_PER_LOBBY", "2"), ("RALLYPOINT_CAPS_TOTAL", "2")];
    let printed = stdout(&rallypoint(home.path()).args(args).envs(variables).output().unwrap());
    for line in ["per_address = 1", "per_lobby = 2", "total = 3"] {
        assert!(printed.lines().any(|said| said == line), "{line:?} is not in {printed}");
    }
}
