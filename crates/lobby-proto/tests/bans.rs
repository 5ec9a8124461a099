//! Banned servers are not listed, and are removed at once when the ban list changes.

use crate::support;
use rallypoint_lobby_proto::{Ban, BanList, BanSubject, Config, NamePattern, RegistrationOutcome, UnlistReason};
use std::time::Duration;
use support::*;

fn network(text: &str) -> BanSubject {
    BanSubject::Network(text.parse().unwrap())
}

fn name(pattern: &str) -> BanSubject {
    BanSubject::Name(NamePattern::new(pattern))
}

fn bans(subjects: impl IntoIterator<Item = BanSubject>) -> BanList {
    permanent(subjects.into_iter().map(|subject| Ban { subject, reason: "spam".into(), until: None }))
}

fn banning(subjects: impl IntoIterator<Item = BanSubject>) -> Lobby {
    Lobby::new(Config { bans: bans(subjects), ..Config::default() })
}

#[test]
fn an_address_is_banned() {
    let mut lobby = banning([network("203.0.113.9/32"), network("2001:db8::9/128")]);
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Banned);
    assert_eq!(lobby.register("::ffff:203.0.113.9", &udp(1)), RegistrationOutcome::Banned);
    assert_eq!(lobby.register("2001:db8::9", &udp(1)), RegistrationOutcome::Banned);
    assert_eq!(lobby.register("203.0.113.10", &udp(1)), RegistrationOutcome::Listed);
}

#[test]
fn a_network_is_banned() {
    let mut lobby = banning([network("203.0.113.0/24"), network("2001:db8:1::/48")]);
    assert_eq!(lobby.register("203.0.113.255", &udp(1)), RegistrationOutcome::Banned);
    assert_eq!(lobby.register("2001:db8:1:ffff::1", &udp(1)), RegistrationOutcome::Banned);
    assert_eq!(lobby.register("203.0.114.0", &udp(1)), RegistrationOutcome::Listed);
    assert_eq!(lobby.register("2001:db8:2::1", &udp(1)), RegistrationOutcome::Changed);
}

#[test]
fn a_name_is_banned_as_it_is_displayed() {
    let mut lobby = banning([name("*casino*")]);
    assert_eq!(lobby.register("203.0.113.9", &udp(1).name("Best CASINO in town")), RegistrationOutcome::Banned);
    assert_eq!(lobby.register("203.0.113.9", &udp(1).name("Bacon Town")), RegistrationOutcome::Listed);
    let mut lobby = banning([name("caf\u{e9}*")]);
    let server = udp(1).key("name", b"Caf\xe9 in the local code page");
    assert_eq!(lobby.register("203.0.113.9", &server), RegistrationOutcome::Banned);
}

#[test]
fn a_ban_ends_at_its_time() {
    let mut lobby = Lobby::default();
    let now = lobby.now;
    let until = Some(UTC + secs(60));
    let bans = [network("203.0.113.0/24"), name("casino")].map(|subject| Ban { subject, reason: "spam".into(), until });
    lobby.set(|config| config.bans = BanList::new(bans, now, UTC));
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Banned);
    assert_eq!(lobby.register("198.51.100.1", &udp(2).name("casino")), RegistrationOutcome::Banned);
    lobby.wait(secs(60) - Duration::from_nanos(1));
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Banned);
    lobby.wait(Duration::from_nanos(1));
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Listed);
    assert_eq!(lobby.register("198.51.100.1", &udp(2).name("casino")), RegistrationOutcome::Listed);
}

#[test]
fn a_longer_ban_of_a_larger_network_outlives_a_shorter_one_inside_it() {
    let mut lobby = Lobby::default();
    let ban = |text, seconds| Ban { subject: network(text), reason: text.into(), until: Some(UTC + secs(seconds)) };
    let bans = [ban("203.0.113.9/32", 10), ban("203.0.0.0/16", 60), ban("203.0.113.0/24", 20)];
    let bans = BanList::new(bans, lobby.now, UTC);
    let reason = |seconds| bans.by_address(lobby.now + secs(seconds), ip("203.0.113.9")).map(|ban| &*ban.reason);
    assert_eq!(
        [0, 10, 20, 60].map(reason),
        [Some("203.0.113.9/32"), Some("203.0.113.0/24"), Some("203.0.0.0/16"), None]
    );
    lobby.set(|config| config.bans = bans);
    lobby.wait(secs(30));
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Banned);
}

#[test]
fn a_reload_removes_banned_servers_at_once() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("198.51.100.1", &udp(2).name("casino"));
    lobby.register("198.51.100.2", &udp(3));
    lobby.register("2001:db8::9", &udp(4));
    lobby.register("198.51.100.3", &udp(4));
    lobby.events();
    lobby.set(|config| config.bans = bans([network("203.0.113.0/24"), network("2001:db8::/32"), name("casino")]));
    assert_eq!(lobby.list(), ["198.51.100.2:8190 udp server 3"]);
    assert_eq!(lobby.unlisted(UnlistReason::Banned), 3);
    assert!(lobby.events().iter().all(|event| event.starts_with("banned ")));
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Banned, "and it does not come back");
    lobby.set(|config| config.bans = BanList::default());
    assert_eq!(lobby.register("203.0.113.9", &udp(1)), RegistrationOutcome::Listed, "until the ban is lifted");
}

#[test]
fn a_reload_with_thousands_of_servers_is_done_in_steps() {
    let mut lobby = Lobby::with(|config| config.limit_exempt = networks(&["0.0.0.0/0"]));
    (0..10_000).for_each(|n| assert_eq!(lobby.register(address(n), &udp(n.into())), RegistrationOutcome::Listed));
    lobby.set(|config| config.bans = bans([network("11.0.0.0/9")]));
    assert!(lobby.stats().listed < 10_000, "it begins at once");
    assert_eq!(lobby.poll_timeout(), Some(lobby.now), "and continues at once");
    lobby.wait(ms(0));
    assert_eq!(lobby.stats().listed, 0);
}

#[test]
fn ten_thousand_bans_are_found() {
    let subjects = (0..10_000u32).map(|n| network(&format!("{}/32", address(n))));
    let mut lobby = banning(subjects);
    for n in [0, 1, 77, 4_999, 9_999] {
        assert_eq!(lobby.register(address(n), &udp(1)), RegistrationOutcome::Banned, "{n}");
    }
    assert_eq!(lobby.register(address(10_000), &udp(1)), RegistrationOutcome::Listed);
}

#[test]
fn the_reason_of_a_ban_is_reported() {
    let ban = |subject, reason: &str| Ban { subject, reason: reason.into(), until: None };
    let bans = [ban(network("203.0.113.9/32"), "spam"), ban(name("*casino*"), "no gambling"), ban(name("quiet"), "")];
    let mut lobby = Lobby::new(Config { bans: permanent(bans), ..Config::default() });
    lobby.register("203.0.113.9", &udp(1));
    lobby.register("198.51.100.9", &udp(2).name("Best Casino"));
    lobby.register("198.51.100.9", &udp(2).name("quiet"));
    let reported = |lobby: &Lobby, from| -> Vec<String> {
        lobby.recent_outcomes(ip(from)).iter().map(ToString::to_string).collect()
    };
    let banned = RegistrationOutcome::Banned.to_string();
    assert_eq!(reported(&lobby, "203.0.113.9"), [format!("{banned} (spam)")]);
    assert_eq!(reported(&lobby, "198.51.100.9"), [format!("{banned} (no gambling)"), banned.clone()]);
    assert_eq!(lobby.latest_refusals().map(ToString::to_string).collect::<Vec<_>>(), [banned]);
}
