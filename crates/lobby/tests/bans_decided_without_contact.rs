//! Decisions that an operator made without contact with the other nodes are not undone by earlier decisions of those.

use crate::common;

use common::{Lobby, server};
use rallypoint_lobby::{AdminStore, BanChange, LobbyOptions, OperatorDecision};
use rallypoint_lobby_proto::{Ban, BanSubject};
use std::{net::IpAddr, path::Path};

const OPERATOR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn start(dir: &Path) -> Lobby {
    Lobby::start(LobbyOptions { data_dir: Some(dir.into()), ..common::options() })
}

fn subject() -> BanSubject {
    BanSubject::name("casino").unwrap()
}

fn ban(reason: &str) -> Ban {
    Ban { subject: subject(), reason: reason.into(), until: None }
}

fn apply(lobby: &Lobby, admin: &AdminStore, change: BanChange, since: u64) {
    assert_eq!(lobby.runtime.block_on(admin.apply_shared(vec![OperatorDecision { change, since }])).unwrap(), 0);
}

fn reasons(admin: &AdminStore) -> Vec<String> {
    admin.record().bans.iter().map(|stored| stored.ban.reason.to_string()).collect()
}

#[test]
fn a_ban_that_was_lifted_here_does_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let lobby = start(dir.path());
    lobby.send(&server("Casino"));
    lobby.wait_until_listed(&["Casino"]);
    let admin = lobby.admin().unwrap();
    let (stored, _) = lobby.runtime.block_on(admin.put_ban(ban("spam"), OPERATOR)).unwrap();
    lobby.runtime.block_on(admin.remove_ban(stored.id, OPERATOR)).unwrap();
    let lifted_at = admin.record().lifted.decisions().next().unwrap().since;
    apply(&lobby, admin, BanChange::Put(ban("spam")), lifted_at - 1);
    assert_eq!(reasons(admin), [""; 0]);
    assert_eq!(admin.record().lifted.decisions().count(), 1, "the other nodes get the lift");
    apply(&lobby, admin, BanChange::Put(ban("spam again")), lifted_at + 1);
    assert_eq!(reasons(admin), ["spam again"]);
}

#[test]
fn a_ban_that_was_made_here_stays() {
    let dir = tempfile::tempdir().unwrap();
    let lobby = start(dir.path());
    let admin = lobby.admin().unwrap();
    let (stored, _) = lobby.runtime.block_on(admin.put_ban(ban("spam"), OPERATOR)).unwrap();
    for earlier in [BanChange::Lifted(subject()), BanChange::Put(ban("old"))] {
        apply(&lobby, admin, earlier, stored.since * 1_000 - 1);
        assert_eq!(reasons(admin), ["spam"]);
        assert_eq!(admin.record().lifted.decisions().count(), 0, "a lift that is superseded is not handed over");
    }
    apply(&lobby, admin, BanChange::Put(ban("later")), stored.since * 1_000 + 1_000);
    assert_eq!(reasons(admin), ["later"]);
    apply(&lobby, admin, BanChange::Lifted(subject()), stored.since * 1_000 + 2_000);
    assert_eq!(reasons(admin), [""; 0]);
}

/// The lobby was restarted before it had contact again.
#[test]
fn a_ban_that_was_lifted_before_a_restart_does_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let lobby = start(dir.path());
    let admin = lobby.admin().unwrap();
    let (stored, _) = lobby.runtime.block_on(admin.put_ban(ban("spam"), OPERATOR)).unwrap();
    lobby.runtime.block_on(admin.remove_ban(stored.id, OPERATOR)).unwrap();
    let lifted_at = admin.record().lifted.decisions().next().unwrap().since;
    lobby.shutdown();
    let lobby = start(dir.path());
    let admin = lobby.admin().unwrap();
    apply(&lobby, admin, BanChange::Put(ban("spam")), lifted_at - 1);
    assert_eq!(reasons(admin), [""; 0]);
    assert_eq!(admin.record().lifted.decisions().count(), 1, "the other nodes get the lift");
}

/// Two operators ban and unban at the same time: the other nodes get the decisions in the order in which they took effect here.
#[test]
fn the_decision_that_took_effect_last_is_published_last() {
    let dir = tempfile::tempdir().unwrap();
    let lobby = start(dir.path());
    let admin = lobby.admin().unwrap();
    for _ in 0..40 {
        let mut published = admin.subscribe();
        lobby.runtime.block_on(async {
            let operators: Vec<_> = (0..4)
                .map(|_| {
                    let admin = admin.clone();
                    tokio::spawn(async move {
                        let (stored, _) = admin.put_ban(ban("spam"), OPERATOR).await.unwrap();
                        // Another operator may have removed it.
                        let _ = admin.remove_ban(stored.id, OPERATOR).await;
                    })
                })
                .collect();
            for operator in operators {
                operator.await.unwrap();
            }
        });
        let mut last = None;
        while let Ok(decision) = published.try_recv() {
            last = Some(decision.change);
        }
        let is_banned = matches!(last, Some(BanChange::Put(_)));
        assert_eq!(is_banned, !reasons(admin).is_empty(), "{last:?}");
    }
}
