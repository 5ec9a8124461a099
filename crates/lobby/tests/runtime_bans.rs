//! Bans that the operator adds at run time take effect at once and outlive a restart, without a web server.

use crate::common;

use common::{Lobby, server};
use rallypoint_lobby::{AdminError, LobbyOptions};
use rallypoint_lobby_proto::{Ban, BanSubject};
use std::{net::IpAddr, path::Path};

const OPERATOR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn start(dir: &Path) -> Lobby {
    Lobby::start(LobbyOptions { data_dir: Some(dir.into()), ..common::options() })
}

#[test]
fn a_ban_removes_servers_at_once_and_applies_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let lobby = start(dir.path());
    lobby.send(&server("Casino"));
    lobby.send(&server("Bacon Town"));
    lobby.wait_until_listed(&["Bacon Town", "Casino"]);
    let ban = Ban { subject: BanSubject::name("*casino*").unwrap(), reason: "advertising".into(), until: None };
    let (stored, is_new) = lobby.runtime.block_on(lobby.admin().unwrap().put_ban(ban, OPERATOR)).unwrap();
    assert!(is_new);
    lobby.wait_until_listed(&["Bacon Town"]);
    lobby.shutdown();

    let lobby = start(dir.path());
    lobby.send(&server("Casino"));
    lobby.send(&server("Dust"));
    lobby.wait_until_listed(&["Bacon Town", "Dust"]);
    let admin = lobby.admin().unwrap();
    lobby.runtime.block_on(admin.remove_ban(stored.id, OPERATOR)).unwrap();
    let again = lobby.runtime.block_on(admin.remove_ban(stored.id, OPERATOR));
    assert!(matches!(again, Err(AdminError::NoSuchBan)));
    lobby.send(&server("Casino"));
    lobby.wait_until_listed(&["Bacon Town", "Casino", "Dust"]);
    let audit = lobby.runtime.block_on(admin.audit()).unwrap();
    assert_eq!(audit.iter().map(|entry| &*entry.action).collect::<Vec<_>>(), ["unban", "ban"]);
}

#[test]
fn a_ban_that_cannot_be_stored_is_not_applied() {
    let dir = tempfile::tempdir().unwrap();
    let lobby = start(dir.path());
    lobby.send(&server("Casino"));
    lobby.wait_until_listed(&["Casino"]);
    // A directory in place of the audit log.
    std::fs::create_dir_all(dir.path().join("audit.jsonl/in-the-way")).unwrap();
    let ban = Ban { subject: BanSubject::name("casino").unwrap(), reason: "".into(), until: None };
    let result = lobby.runtime.block_on(lobby.admin().unwrap().put_ban(ban, OPERATOR));
    assert!(matches!(result, Err(AdminError::Storage(_))));
    assert!(lobby.admin().unwrap().record().bans.is_empty());
    assert_eq!(lobby.names(), ["Casino"]);
}

#[test]
fn without_a_data_directory_there_is_no_store() {
    assert!(Lobby::start(common::options()).admin().is_none());
}
