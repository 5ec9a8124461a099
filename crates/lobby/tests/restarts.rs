//! The list survives a restart, a kill loses only the latest changes, and a damaged file is renamed.

use crate::common;

use common::{Lobby, eventually, options, server};
use rallypoint_lobby::{LobbyOptions, LobbyService, LobbyStartError};
use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

/// Options of a lobby that saves to this directory every 100 ms.
fn options_in(dir: &Path) -> LobbyOptions {
    LobbyOptions { data_dir: Some(dir.into()), save_every: Duration::from_millis(100), ..options() }
}

#[test]
fn a_restart_does_not_empty_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("created/by/the/lobby");
    let lobby = Lobby::start(options_in(&data));
    lobby.send(&server("one"));
    lobby.send(&server("two"));
    lobby.wait_until_listed(&["one", "two"]);
    let ids = |lobby: &Lobby| {
        let list = lobby.lists().list(&common::LOBBY);
        let mut ids: Vec<_> = list.servers().map(|listing| listing.public_id()).collect();
        ids.sort();
        ids
    };
    let before = ids(&lobby);
    lobby.shutdown();
    for _ in 0..2 {
        let lobby = Lobby::start(options_in(&data));
        assert_eq!(lobby.names(), ["one", "two"], "at once");
        assert_eq!(ids(&lobby), before, "public IDs stay the same");
        lobby.shutdown();
    }
    for file in fs::read_dir(&data).unwrap().map(Result::unwrap) {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}: server IDs are secrets", file.path());
    }
}

#[test]
fn a_list_that_is_saved_in_parts_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let options = || {
        let mut options = options_in(dir.path());
        options.registry.caps.per_address = 20_000;
        options
    };
    let lobby = Lobby::start(options());
    let names: Vec<_> = (0..10_000).map(|number| format!("server {number:05}")).collect();
    let server = |(number, name): (u16, &String)| {
        common::registration(name, 1_000 + number, rallypoint_wire::lobby::Transport::Udp, &[])
    };
    lobby.send_all((0..).zip(&names).map(server));
    eventually("all servers are listed", || lobby.stats().listed == names.len());
    let save = dir.path().join("servers.save");
    let has = |name: &str| fs::read(&save).is_ok_and(|bytes| bytes.windows(12).any(|bytes| bytes == name.as_bytes()));
    eventually("the first and the last server are saved", || has(&names[0]) && has(&names[9_999]));
    lobby.shutdown();
    let lobby = Lobby::start(options());
    assert_eq!(lobby.names(), names);
    lobby.shutdown();
}

#[test]
fn a_kill_loses_only_the_latest_changes() {
    let dir = tempfile::tempdir().unwrap();
    let lobby = Lobby::start(options_in(dir.path()));
    lobby.send(&server("one"));
    lobby.wait_until_listed(&["one"]);
    let save = dir.path().join("servers.save");
    eventually("the server is saved", || {
        fs::read(&save).is_ok_and(|bytes| bytes.windows(3).any(|bytes| bytes == b"one"))
    });
    // A copy of the files as they are on the disk now stands for a killed lobby.
    let other = tempfile::tempdir().unwrap();
    for file in fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), other.path().join(file.file_name())).unwrap();
    }
    // The rest of an interrupted save is ignored.
    fs::write(other.path().join("servers.save.new"), b"RALLYREG").unwrap();
    let restored = Lobby::start(options_in(other.path()));
    assert_eq!(restored.names(), ["one"]);
    restored.send(&server("two"));
    restored.wait_until_listed(&["one", "two"]);
    restored.shutdown();
    let restored = Lobby::start(options_in(other.path()));
    assert_eq!(restored.names(), ["one", "two"]);
    restored.shutdown();
    lobby.shutdown();
}

#[test]
fn the_save_on_disk_is_complete_at_all_times() {
    let dir = tempfile::tempdir().unwrap();
    let lobby = Lobby::start(LobbyOptions { save_every: Duration::from_millis(1), ..options_in(dir.path()) });
    let save = dir.path().join("servers.save");
    lobby.send(&server("0"));
    eventually("there is a save", || save.exists());
    for number in 1..200 {
        lobby.send(&server(&number.to_string()));
        let bytes = fs::read(&save).unwrap();
        let (body, crc) = bytes.split_at(bytes.len() - 4);
        assert_eq!(crc, crc32(body).to_be_bytes(), "after {number}");
    }
    lobby.shutdown();
}

/// CRC-32 as in zlib, without a table.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[test]
fn a_damaged_file_is_renamed_and_the_lobby_starts_empty() {
    let dir = tempfile::tempdir().unwrap();
    let save = dir.path().join("servers.save");
    for (number, damaged) in [&b"nonsense"[..], b"RALLYREG\0\0\0\x01", b""].into_iter().enumerate() {
        fs::write(&save, damaged).unwrap();
        let lobby = Lobby::start(options_in(dir.path()));
        assert_eq!(lobby.list(), [0; 4]);
        let aside = dir.path().join(format!("servers.save.damaged-{}", number + 1));
        assert_eq!(fs::read(&aside).unwrap(), damaged);
        lobby.send(&server("one"));
        lobby.wait_until_listed(&["one"]);
        lobby.shutdown();
        let lobby = Lobby::start(options_in(dir.path()));
        assert_eq!(lobby.names(), ["one"], "saves work again");
        lobby.shutdown();
    }
}

#[test]
fn a_failing_disk_does_not_stop_the_lobby() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let lobby = Lobby::start(options_in(&data));
    lobby.send(&server("one"));
    let save = data.join("servers.save");
    eventually("the server is saved", || save.exists());
    fs::rename(&data, dir.path().join("away")).unwrap();
    lobby.send(&server("two"));
    lobby.wait_until_listed(&["one", "two"]);
    fs::create_dir(&data).unwrap();
    lobby.send(&server("three"));
    lobby.wait_until_listed(&["one", "three", "two"]);
    let is_saved = |name: &[u8]| fs::read(&save).is_ok_and(|bytes| bytes.windows(name.len()).any(|b| b == name));
    eventually("the list is saved again", || is_saved(b"three") && is_saved(b"two"));
    lobby.shutdown();
}

#[test]
fn a_data_directory_is_locked_by_its_lobby() {
    let dir = tempfile::tempdir().unwrap();
    let lobby = Lobby::start(options_in(dir.path()));
    let error = LobbyService::start(options_in(dir.path()), lobby.runtime.handle()).unwrap_err();
    assert!(matches!(error, LobbyStartError::DataDirInUse { .. }));
    lobby.shutdown();
    Lobby::start(options_in(dir.path())).shutdown();
}
