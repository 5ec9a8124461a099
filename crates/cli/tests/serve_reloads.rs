//! SIGHUP reloads the configuration without dropping servers.

use rallypoint_harness::{Lobby, Signal};
use std::{fs, path::PathBuf};

struct Fixture {
    _home: tempfile::TempDir,
    file: PathBuf,
    lobby: Lobby,
}

impl Fixture {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("rallypoint.toml");
        fs::write(&file, "").unwrap();
        let lobby = Lobby::start_in(home.path(), &["--config", file.to_str().unwrap()]);
        lobby.register_port("Bacon Town", 8190);
        lobby.register_port("Casino Royale", 8191);
        lobby.wait_for_list("both are listed", |list| list.len() == 2);
        Self { _home: home, file, lobby }
    }

    /// Writes the file, reloads it, and returns the log line that contains `expected`.
    fn reload(&self, text: &str, expected: &str) -> String {
        fs::write(&self.file, text).unwrap();
        self.lobby.process().signal(Signal::HUP);
        self.lobby.process().wait_for_log(expected)
    }

    fn names(&self, count: usize) -> Vec<String> {
        let list = self.lobby.wait_for_list("the list has changed", |list| list.len() == count);
        list.into_iter().map(|server| server.name).collect()
    }
}

#[test]
fn a_new_ban_removes_only_the_banned_server() {
    let fixture = Fixture::new();
    let line = fixture.reload("[[ban]]\nname = \"*casino*\"\nreason = \"spam\"", "configuration reloaded");
    assert!(line.contains("changed=\"ban\"") && line.contains("bans=1"), "{line}");
    assert_eq!(fixture.names(1), ["Bacon Town"]);
    fixture.lobby.register_port("Another casino", 8192);
    fixture.reload("", "configuration reloaded");
    fixture.lobby.register_port("Casino Royale", 8191);
    assert_eq!(fixture.names(2).len(), 2, "it is listed again when the ban is lifted");
}

#[test]
fn an_error_keeps_the_configuration_and_is_logged_with_its_line() {
    let fixture = Fixture::new();
    let line = fixture.reload("[[ban]]\nname = \"*\"\n[lobby]\nleese = 1", "rallypoint.toml:4:");
    assert!(line.contains("did you mean \"lease\"?"), "{line}");
    fixture.lobby.process().wait_for_log("the configuration was not reloaded");
    assert_eq!(fixture.names(2).len(), 2);
}

#[test]
fn settings_that_need_a_restart_are_logged() {
    let fixture = Fixture::new();
    let line = fixture.reload("[list]\nper_address = 1", "these settings take effect only after a restart");
    assert!(line.contains("list.per_address"), "{line}");
    assert_eq!(fixture.names(2).len(), 2);
}
