//! Registrations are listed, counted and reported, until the server unregisters.

use crate::common;

use common::{Lobby, options, server, unregistration};
use rallypoint_lobby_proto::{Event, RegistrationOutcome};

#[test]
fn a_server_is_listed_until_it_unregisters() {
    let lobby = Lobby::start(options());
    assert_eq!(lobby.list(), [0; 4]);
    lobby.send(&server("one"));
    lobby.wait_until_listed(&["one"]);
    lobby.send(&server("two"));
    lobby.wait_until_listed(&["one", "two"]);
    lobby.send(&unregistration("one"));
    lobby.wait_until_listed(&["two"]);
    lobby.shutdown();
}

#[test]
fn a_large_list_arrives_completely() {
    let mut options = options();
    options.registry.caps.per_address = 5_000;
    let lobby = Lobby::start(options);
    let names: Vec<_> = (0..3_000).map(|number| format!("server {number:04}")).collect();
    let server = |(number, name): (u16, &String)| {
        let transport = rallypoint_wire::lobby::Transport::Udp;
        common::registration(name, 1_000 + number, transport, &[("filler", &[b'x'; 900])])
    };
    lobby.send_all((0..).zip(&names).map(server));
    common::eventually("all servers are listed", || lobby.lists().list(&common::LOBBY).count() == 3_000);
    let reply = lobby.list();
    assert!(reply.len() > 2_700_000);
    assert_eq!(common::names(&reply), names);
    let stats = lobby.list_stats();
    assert_eq!((stats.replies, stats.bytes), (1, reply.len() as u64));
    lobby.shutdown();
}

#[test]
fn events_outcomes_and_datagrams_are_reported() {
    let lobby = Lobby::start(options());
    let mut events = lobby.subscribe();
    lobby.send(&server("one"));
    lobby.send(b"nonsense");
    let batch = lobby.runtime.block_on(events.recv()).unwrap();
    let Event::Listed(listing) = &batch[0] else { panic!("not listed") };
    assert_eq!(listing.block().table.get(b"name"), Some(&b"one"[..]));
    common::eventually("both datagrams are counted", || {
        let stats = lobby.stats();
        (stats.outcome(RegistrationOutcome::Listed), stats.outcomes.iter().sum::<u64>()) == (1, 2)
    });
    let recent = lobby.runtime.block_on(lobby.recent_outcomes("127.0.0.1".parse().unwrap()));
    let codes: Vec<_> = recent.iter().map(|recent| recent.outcome.code()).collect();
    assert_eq!(codes, ["listed", "malformed"]);
    let socket = lobby.socket_stats()[0];
    assert_eq!((socket.addr, socket.received, socket.dropped), (lobby.addr(), 2, 0));
    assert!(socket.receive_buffer >= 200_000);
    lobby.shutdown();
}

#[test]
fn a_new_configuration_takes_effect_at_once() {
    let lobby = Lobby::start(options());
    let mut config = lobby_config();
    lobby.send(&server("one"));
    lobby.wait_until_listed(&["one"]);
    config.allow_private = false;
    lobby.runtime.block_on(lobby.set_config(config.clone())).unwrap();
    lobby.wait_until_listed(&[]);
    config.max_registration = 1;
    let error = lobby.runtime.block_on(lobby.set_config(config)).unwrap_err();
    assert_eq!(error.to_string(), "max_registration must be between 61 and 65507 bytes");
    lobby.shutdown();
}

#[test]
fn l15_a_registration_that_is_too_large_is_refused() {
    let lobby = Lobby::start(options());
    let large = |size: usize| {
        let filler = vec![b'x'; size - 82];
        let transport = rallypoint_wire::lobby::Transport::Udp;
        let datagram = common::registration("large", 8_190, transport, &[("filler", &filler)]);
        assert_eq!(datagram.len(), size);
        datagram
    };
    let is_counted = |code: &str, count: u64| {
        let index = RegistrationOutcome::CODES.iter().position(|known| *known == code).unwrap();
        common::eventually(code, || lobby.stats().outcomes[index] == count);
    };
    lobby.send(&large(4_096));
    is_counted("listed", 1);
    lobby.send(&large(4_097));
    is_counted("too_large", 1);
    lobby.send(&large(60_000));
    is_counted("too_large", 2);
    let config = rallypoint_lobby_proto::Config { max_registration: 60_000, ..lobby_config() };
    lobby.runtime.block_on(lobby.set_config(config)).unwrap();
    lobby.send(&large(60_000));
    is_counted("changed", 1);
    lobby.shutdown();
}

fn lobby_config() -> rallypoint_lobby_proto::Config {
    options().registry
}
