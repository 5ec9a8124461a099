//! Players with `reconnect` come back after an outage, however few slots are free, and a restarted client gets its own slot
//! back (S13, S17, S21, W35, W50).

use crate::common;

use common::*;
use rallypoint_netsim::{Link, Network, Node, seeds};
use rallypoint_session_proto::{ClientConfig, ClientEvent, DisconnectReason, Encryption, EndpointConfig, LoginError};
use std::net::SocketAddr;

/// A server with 64 slots and players that reconnect.
struct Crowd {
    net: Network,
    server: Node<ServerApp>,
    clients: Vec<Node<ClientApp>>,
}

fn reconnecting(encryption: Encryption) -> ClientConfig {
    ClientConfig { reconnect: true, ..client_config(encryption) }
}

impl Crowd {
    fn connect(seed: u64, encryption: &Encryption, addrs: impl Iterator<Item = SocketAddr>) -> Self {
        Self::connect_to(server_config(), seed, encryption, addrs)
    }

    fn connect_to(
        config: EndpointConfig,
        seed: u64,
        encryption: &Encryption,
        addrs: impl Iterator<Item = SocketAddr>,
    ) -> Self {
        let mut net = Network::new(seed);
        net.set_default_link(Link::default().delay(ms(25)));
        let server = net.add(SERVER, ServerApp::new(config));
        let mut clients = Vec::new();
        for (number, addr) in addrs.enumerate() {
            let app =
                ClientApp::new(net.now(), SERVER.into(), reconnecting(encryption.clone()), (seed as u8) ^ number as u8);
            clients.push(net.add(addr, app));
            net.run_for(ms(7));
        }
        net.run_for(secs(3));
        let mut crowd = Self { net, server, clients };
        assert_eq!(crowd.players(), crowd.clients.len());
        crowd.net.run_for(secs(1));
        crowd
    }

    fn players(&self) -> usize {
        self.net.machine(self.server).endpoint.stats().players
    }

    fn connected(&self) -> usize {
        self.clients.iter().filter(|client| self.net.machine(**client).client.is_connected()).count()
    }

    fn outage(&mut self, seconds: u64) {
        self.net.isolate(self.server, true);
        self.net.run_for(secs(seconds));
        self.net.isolate(self.server, false);
    }
}

fn own_address(number: u8) -> SocketAddr {
    ([10, 0, 1, number], 1_000).into()
}

fn shared_address(number: u8) -> SocketAddr {
    ([10, 0, 2, 1], 1_000 + u16::from(number)).into()
}

#[test]
fn s17_all_players_are_back_after_an_outage_whatever_the_number_of_free_slots() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let crowds = [(64u8, own_address as fn(u8) -> SocketAddr), (40, own_address), (20, shared_address)];
        for (seed, (count, addr)) in (1..).zip(crowds) {
            for seconds in [11, 9] {
                let mut crowd = Crowd::connect(seed, &encryption, (0..count).map(addr));
                crowd.outage(seconds);
                crowd.net.run_for(secs(5));
                let back = (crowd.connected(), crowd.players());
                assert_eq!(
                    back,
                    (usize::from(count), usize::from(count)),
                    "{encryption:?}, {seconds} s without network"
                );
                if count < 64 {
                    let is_taken = |event: &ClientEvent| {
                        matches!(event, ClientEvent::Disconnected(DisconnectReason::ClosedByPeer(_)))
                    };
                    let mut events = crowd.clients.iter().flat_map(|client| &crowd.net.machine(*client).events);
                    assert!(
                        !events.any(|(_, event)| is_taken(event)),
                        "no slot is promised twice while others are free"
                    );
                }
                crowd.net.run_for(secs(15));
                assert_eq!((crowd.connected(), crowd.players()), back, "and they stay");
            }
        }
    }
}

#[test]
fn s17_all_players_of_a_full_server_with_255_slots_are_back_after_an_outage() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let config = EndpointConfig { max_players: 255, ..server_config() };
        let mut crowd = Crowd::connect_to(config, 1, &encryption, (0..255).map(own_address));
        crowd.outage(11);
        crowd.net.run_for(secs(5));
        assert_eq!((crowd.connected(), crowd.players()), (255, 255), "{encryption:?}");
    }
}

#[test]
fn w35_40_players_behind_one_address_are_back_after_an_outage() {
    // As many slots as players, or more; and an address that may have just as many sessions, or more.
    for (max_players, max_per_address) in [(40, 40), (64, 40), (64, 64)] {
        for encryption in [Encryption::Plain, Encryption::Encrypted] {
            let config = EndpointConfig { max_players, max_per_address, ..server_config() };
            let mut crowd = Crowd::connect_to(config, 2, &encryption, (0..40).map(shared_address));
            crowd.outage(11);
            crowd.net.run_for(secs(5));
            let back = (crowd.connected(), crowd.players());
            assert_eq!(back, (40, 40), "{encryption:?}, {max_players} slots, {max_per_address} per address");
        }
    }
}

#[test]
fn w50_players_with_new_ports_are_back_when_their_old_sessions_have_timed_out() {
    // The router has restarted as well: 20 new ports of an address that may have 32 sessions, on a server with 24 slots.
    let mut net = Network::new(5);
    net.set_default_link(Link::default().delay(ms(25)));
    let server = net.add(SERVER, ServerApp::new(EndpointConfig { max_players: 24, ..server_config() }));
    let mut clients = Vec::new();
    for number in 0..20 {
        let app = ClientApp::new(net.now(), SERVER.into(), reconnecting(Encryption::Plain), number);
        clients.push(net.add(shared_address(number), app));
    }
    net.run_for(secs(3));
    // They are replaced by new processes, on new ports.
    for (number, client) in (0..20).zip(&mut clients) {
        net.remove(*client);
        let app = ClientApp::new(net.now(), SERVER.into(), reconnecting(Encryption::Plain), 100 + number);
        *client = net.add(shared_address(100 + number), app);
    }
    net.run_for(secs(15));
    let connected = clients.iter().filter(|client| net.machine(**client).client.is_connected()).count();
    assert_eq!((connected, net.machine(server).endpoint.stats().players), (20, 20));
}

#[test]
fn s13_a_restarted_client_takes_its_own_slot_over_on_a_full_server() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut config = server_config();
        config.max_players = 1;
        let mut pair = Pair::start(1, Link::default().delay(ms(25)), config, client_config(encryption.clone()));
        pair.wait_for_player();
        pair.net.run_for(secs(1));
        let restarted = ClientApp::new(pair.net.now(), SERVER.into(), client_config(encryption), 77);
        pair.net.replace(pair.client, restarted);
        pair.net.run_for(secs(1));
        assert!(pair.client().client.is_connected(), "{:?}", pair.client().events);
        assert_eq!(pair.server().disconnects(), [DisconnectReason::Replaced]);
        assert_eq!((pair.server().connect_count(), pair.server().endpoint.stats().players), (2, 1));
        pair.client_send(b"back");
        pair.net.run_for(secs(1));
        assert_eq!(pair.server_received().len(), 1);
    }
}

#[test]
fn s13_forged_logins_with_the_address_of_a_player_do_not_take_its_slot() {
    let mut config = server_config();
    config.max_players = 1;
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), config, client_config(Encryption::Plain));
    pair.wait_for_player();
    for number in 0..200u8 {
        pair.net.inject(CLIENT, SERVER, &[b"\x03\0forger", &[b'a' + number % 26][..], b"\0tag"].concat());
        pair.client_send(&numbered(number.into(), 50));
        pair.server_send(&numbered(number.into(), 50));
        pair.net.run_for(ms(50));
    }
    pair.net.run_for(secs(1));
    assert_eq!(pair.server().disconnects(), []);
    assert_eq!((pair.server_received().len(), pair.client().received.len()), (200, 200));
}

#[test]
fn w35_an_address_at_its_limit_can_take_its_own_slots_over() {
    let mut config = server_config();
    config.max_per_address = 1;
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), config, client_config(Encryption::Plain));
    pair.wait_for_player();
    let restarted = ClientApp::new(pair.net.now(), SERVER.into(), client_config(Encryption::Plain), 77);
    pair.net.replace(pair.client, restarted);
    pair.net.run_for(secs(1));
    assert!(pair.client().client.is_connected(), "{:?}", pair.client().events);
}

#[test]
fn w50_a_client_that_reconnects_waits_for_a_slot_of_a_full_server() {
    let mut config = server_config();
    config.max_players = 1;
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), config, client_config(Encryption::Plain));
    pair.wait_for_player();
    let app = ClientApp::new(pair.net.now(), SERVER.into(), reconnecting(Encryption::Plain), 3);
    let second = pair.net.add(([10, 0, 1, 2], 1_000), app);
    pair.net.run_for(secs(30));
    let events = pair.net.machine(second).events.clone();
    let refused = ClientEvent::LoginFailed(LoginError::Refused("this server is full".into()));
    assert!(events.iter().all(|(_, event)| *event == refused), "{events:?}");
    let intervals: Vec<_> = events.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!((8..40).contains(&intervals.len()), "{intervals:?}");
    assert!(intervals.iter().all(|interval| *interval <= ms(4_000)), "{intervals:?}");
    assert!(intervals.windows(2).any(|pair| pair[0] != pair[1]), "the intervals are jittered");
    assert!(!pair.net.machine(second).client.is_closed());
    pair.net.with(pair.client, |app, now| app.client.close(now));
    pair.net.run_for(secs(5));
    assert!(pair.net.machine(second).client.is_connected(), "the slot is not kept free");
}

#[test]
fn w50_a_refusal_that_cannot_pass_is_final() {
    let mut config = reconnecting(Encryption::Plain);
    config.game = "chess".into();
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), server_config(), config);
    pair.net.run_for(secs(30));
    assert!(pair.client().client.is_closed());
    assert_eq!(pair.client().events.len(), 1, "{:?}", pair.client().events);
}

#[test]
fn s21_a_client_logs_in_again_when_the_server_has_used_all_its_numbers() {
    let mut server = server_config();
    let mut client = reconnecting(Encryption::Encrypted);
    server.connection.first_number = (1 << 30) - 50;
    client.connection.first_number = (1 << 30) - 50;
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), server, client);
    pair.wait_for_player();
    for number in 0..50 {
        pair.server_send(&numbered(number, 60));
    }
    pair.net.run_for(secs(5));
    assert_eq!(pair.client().received.len(), 50);
    assert!(pair.client().client.is_connected(), "{:?}", pair.client().events);
    assert_eq!(pair.server().connect_count(), 2);
}

/// What happens to the players during an outage.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// Nothing else.
    Offline,
    /// Some of them restart, at the same port.
    Restarted,
    /// Some of them restart, at another port of their address.
    Moved,
    /// The server restarts.
    ServerRestarted,
}

/// An outage of 2 to 60 s on a server whose slots are all taken, or not; returns the players that are not back 5 s after the
/// outage and one timeout.
fn missing_after_outage(seed: u64, count: u8, is_shared: bool, encryption: &Encryption, fate: Fate) -> usize {
    let addr = if is_shared { shared_address } else { own_address };
    let mut crowd = Crowd::connect(seed, encryption, (0..count).map(addr));
    let rtt = 10 + crowd.net.rng().below(240);
    let loss = crowd.net.rng().below(4) as f64 / 100.0;
    crowd.net.set_default_link(Link::default().delay(ms(rtt) / 2).loss(loss));
    crowd.net.isolate(crowd.server, true);
    let outage = secs(2) + crowd.net.rng().duration(secs(58));
    crowd.net.run_for(outage / 2);
    if matches!(fate, Fate::ServerRestarted) {
        crowd.net.replace(crowd.server, ServerApp::with_seed(server_config(), 200));
    }
    for number in 0..count {
        if !matches!(fate, Fate::Restarted | Fate::Moved) || crowd.net.rng().chance(0.5) {
            continue;
        }
        let app =
            ClientApp::new(crowd.net.now(), SERVER.into(), reconnecting(encryption.clone()), !(seed as u8) ^ number);
        let client = &mut crowd.clients[usize::from(number)];
        if matches!(fate, Fate::Restarted) {
            crowd.net.replace(*client, app);
        } else {
            let mut to = addr(number);
            to.set_port(to.port() + 100);
            crowd.net.remove(*client);
            *client = crowd.net.add(to, app);
        }
    }
    crowd.net.run_for(outage / 2);
    crowd.net.isolate(crowd.server, false);
    crowd.net.run_for(secs(5) + server_config().connection.idle_timeout);
    usize::from(count) - crowd.connected().min(crowd.players())
}

#[test]
fn w50_all_players_are_back_after_outages_of_any_length() {
    let mut missing = Vec::new();
    for seed in 0..(seeds() / 250).max(1) {
        for (count, is_shared) in [(64, false), (40, false), (20, true), (32, true)] {
            for fate in [Fate::Offline, Fate::Restarted, Fate::Moved, Fate::ServerRestarted] {
                let encryption = if seed % 2 == 0 { Encryption::Plain } else { Encryption::Encrypted };
                let gone = missing_after_outage(seed, count, is_shared, &encryption, fate);
                if gone > 0 {
                    missing.push(format!("seed {seed}, {count} players, {fate:?}: {gone} are not back"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
