//! The registry accepts what an announcer sends.

use crate::support;
use rallypoint_announce::Announcer;
use rallypoint_lobby_proto::RegistrationOutcome;
use rallypoint_machine::Machine;
use rallypoint_wire::lobby::Transport;
use support::*;

#[test]
fn an_announced_server_is_listed_by_both_families_and_then_refreshed() {
    let mut lobby = Lobby::default();
    let lobbies = ["203.0.113.1:29944", "[2001:db8::1]:29944"].map(|addr| addr.parse().unwrap()).to_vec();
    let port = 8190.try_into().unwrap();
    let mut announcer =
        Announcer::new(udp(1).server_id(), LOBBY, Transport::Udp, port, b"server 1", lobbies, lobby.now).unwrap();
    let mut outcomes = Vec::new();
    for second in 0..116 {
        let mut datagram = Vec::new();
        while let Some(transmit) = announcer.poll_transmit(lobby.now, &mut datagram) {
            let from = if transmit.to.is_ipv4() { "203.0.113.9" } else { "2001:db8::9" };
            outcomes.push(lobby.send(from, &datagram));
            datagram.clear();
        }
        lobby.wait(secs(1));
        assert_eq!(lobby.list(), ["[2001:db8::9]:8190 203.0.113.9:8190 udp server 1"], "after {second} s");
    }
    assert_eq!(outcomes[..2], [RegistrationOutcome::Listed, RegistrationOutcome::Changed]);
    assert_eq!(outcomes.len(), 10, "at 0, 3, 33, 63 and 93 s");
    assert!(outcomes[2..].iter().all(|outcome| *outcome == RegistrationOutcome::Refreshed));
}
