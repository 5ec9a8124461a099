//! `--check-config` says whether the configuration is fine, and `--print-config` what it is; neither serves anything.

use rallypoint_e2e::{Ended, Process};
use std::fs;
use tempfile::tempdir;

fn check(config: &str) -> Ended {
    let home = tempdir().unwrap();
    fs::write(home.path().join("rallypoint.toml"), config).unwrap();
    Process::run(home.path(), ["serve", "--config", "rallypoint.toml", "--check-config"])
}

#[test]
fn nothing_needs_to_be_configured() {
    let home = tempdir().unwrap();
    let ended = Process::run(home.path(), ["serve", "--check-config"]);
    assert_eq!(ended.code, Some(0));
    for line in ["lobby: 0.0.0.0:29944 [::]:29944", "legacy: 0.0.0.0:29942 [::]:29942", "bans: 0"] {
        assert!(ended.out.lines().any(|said| said == line), "{line:?} is not in {}", ended.out);
    }
}

#[test]
fn a_good_file() {
    let ended = check("[lobby]\nlease = \"2m\"\n[[ban]]\nname = \"*gold*\"\n");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("bans: 1\n"), "{}", ended.out);
}

#[test]
fn mistakes_have_a_file_a_line_and_an_expectation() {
    let ended = check("[lobby]\nlease = \"soon\"\n\n[caps]\nper_address = 0\ntotl = 3\n");
    assert_eq!((ended.code, &*ended.out), (Some(2), ""));
    for said in [
        "rallypoint.toml:2: lobby.lease: expected a time",
        "rallypoint.toml:5: caps.per_address: expected a number",
        "rallypoint.toml:6: unknown key \"totl\" in [caps]; did you mean \"total\"?",
    ] {
        assert!(ended.err.contains(said), "{said:?} is not in {}", ended.err);
    }
}

#[test]
fn what_is_printed_can_be_read_again() {
    let home = tempdir().unwrap();
    let printed = Process::run(home.path(), ["serve", "--set", "lobby.lease=2m", "--print-config"]);
    assert_eq!(printed.code, Some(0));
    assert!(printed.out.contains("lease = \"2m\""), "{}", printed.out);
    fs::write(home.path().join("again.toml"), &printed.out).unwrap();
    let again = Process::run(home.path(), ["serve", "--config", "again.toml", "--print-config"]);
    assert_eq!((again.code, again.out), (Some(0), printed.out));
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let home = tempdir().unwrap();
    fs::write(home.path().join("rallypoint.toml"), "[caps]\nper_address = 1\nper_lobby = 1\ntotal = 1\n").unwrap();
    let args = ["serve", "--config", "rallypoint.toml", "--set", "caps.total=3", "--print-config"];
    let variables = [("RALLYPOINT_CAPS_PER_LOBBY", "2"), ("RALLYPOINT_CAPS_TOTAL", "2")];
    let printed = Process::start(home.path(), args, &variables).wait().out;
    for line in ["per_address = 1", "per_lobby = 2", "total = 3"] {
        assert!(printed.lines().any(|said| said == line), "{line:?} is not in {printed}");
    }
}
