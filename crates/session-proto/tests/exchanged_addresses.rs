//! Players whose NAT gives them each other's ports get their own messages again, or a clean new login, within 10 s (W54).

use crate::common;

use common::*;
use rallypoint_netsim::{FilterAction, Link, Network, Node, Rng, seeds};
use rallypoint_session_proto::{ClientConfig, DisconnectReason, Encryption, ONLY_CHANNEL, PlayerId, ServerEvent};
use std::{cell::RefCell, net::SocketAddr, rc::Rc, time::Duration};

/// Which sides send.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Traffic {
    BothWays,
    OnlyServer,
    None,
}

/// Players behind one NAT, each named by the first byte of its messages.
struct Household {
    net: Network,
    server: Node<ServerApp>,
    clients: Vec<Node<ClientApp>>,
    players: Vec<PlayerId>,
    traffic: Traffic,
    frame: u32,
}

/// For each player, the one whose port it gets.
const ORDERS: [&[usize]; 3] = [&[1, 0], &[1, 2, 0], &[1, 0, 3, 4, 2]];

/// A path with this round-trip time in milliseconds, and this share of datagrams lost.
fn path(rtt: u64, loss: f64) -> Link {
    Link::default().delay(ms(rtt) / 2).loss(loss)
}

fn port(number: usize) -> SocketAddr {
    ([203, 0, 113, 1], 1_000 + number as u16).into()
}

impl Household {
    fn connect(seed: u64, link: Link, encryption: &Encryption, count: usize, traffic: Traffic) -> Self {
        let mut net = Network::new(seed);
        net.set_default_link(link);
        let server = net.add(SERVER, ServerApp::new(server_config()));
        let mut household = Self { net, server, clients: Vec::new(), players: Vec::new(), traffic, frame: 0 };
        for number in 0..count {
            let config = ClientConfig { reconnect: true, ..client_config(encryption.clone()) };
            let app = ClientApp::new(household.net.now(), SERVER.into(), config, number as u8);
            household.clients.push(household.net.add(port(number), app));
            household.net.run_for(secs(1));
            let app = household.net.machine(server);
            let joined = app.endpoint.players().find(|player| !household.players.contains(player));
            household.players.push(joined.expect("a new player"));
            // Their message numbers differ.
            household.play(ms(300));
        }
        household.play(secs(2));
        household
    }

    fn send_frame(&mut self) {
        self.frame += 1;
        for number in 0..self.clients.len() {
            let message = [&[number as u8], &self.frame.to_le_bytes()[..]].concat();
            if self.traffic == Traffic::BothWays {
                self.net.with(self.clients[number], |app, now| {
                    let _ = app.client.send(now, ONLY_CHANNEL, &message);
                });
            }
            if self.traffic != Traffic::None
                && let Some(player) = self.players.get(number).copied()
            {
                self.net.with(self.server, |app, now| {
                    let _ = app.endpoint.send(now, player, ONLY_CHANNEL, &message);
                });
            }
        }
    }

    /// Plays for a while: 60 frames per second. A player who logs in again is the one at its address.
    fn play(&mut self, duration: Duration) {
        let end = self.net.now() + duration;
        while self.net.now() < end {
            self.send_frame();
            self.net.run_for(Duration::from_micros(16_667));
            self.find_players();
        }
    }

    /// The players after logins: the endpoint knows them by the address that they logged in from.
    fn find_players(&mut self) {
        for number in 0..self.clients.len() {
            let app = self.net.machine(self.server);
            if app.endpoint.connection(self.players[number]).is_some() {
                continue;
            }
            let addr = self.net.address(self.clients[number]);
            let is_here = |player: &PlayerId| {
                let connection = app.endpoint.connection(*player);
                connection.is_some_and(|connection| connection.validated_peer() == addr)
            };
            let others = self.players.clone();
            if let Some(player) = app.endpoint.players().filter(|player| !others.contains(player)).find(is_here) {
                self.players[number] = player;
            }
        }
    }

    /// The router restarts: player `number` gets the port of player `order[number]`.
    fn exchange_ports(&mut self, order: &[usize]) {
        for (number, client) in self.clients.iter().enumerate() {
            self.net.rebind(*client, port(100 + number));
        }
        for (client, to) in self.clients.iter().zip(order) {
            self.net.rebind(*client, port(*to));
        }
    }

    fn received(&self, number: usize) -> Vec<(usize, u32)> {
        let received = &self.net.machine(self.clients[number]).received;
        received
            .iter()
            .filter(|(_, message)| message.len() == 5)
            .map(|(_, message)| (usize::from(message[0]), u32::from_le_bytes(*message.last_chunk().unwrap())))
            .collect()
    }

    /// Number of messages that a player received although they were for another one.
    fn wrong(&self, number: usize) -> usize {
        self.received(number).iter().filter(|(player, _)| *player != number).count()
    }

    /// Whether a player has all messages that were sent to it from this frame on, except those under way.
    fn is_served_since(&self, number: usize, frame: u32) -> bool {
        let received = self.received(number);
        let frames = received.iter().filter(|(player, at)| *player == number && *at >= frame).map(|(_, at)| *at);
        frames.eq(frame..=self.frame)
    }
}

/// Exchanges the ports of players. In a plain session, at most `most_wrong` messages may reach the wrong player.
fn exchange(seed: u64, link: Link, encryption: &Encryption, order: &[usize], traffic: Traffic, most_wrong: usize) {
    let mut household = Household::connect(seed, link, encryption, order.len(), traffic);
    household.exchange_ports(order);
    household.play(secs(10));
    household.traffic = Traffic::BothWays;
    let frame = household.frame + 1;
    household.play(secs(5));
    household.net.run_for(secs(1));
    for number in 0..order.len() {
        let wrong = household.wrong(number);
        let context = format!("{encryption:?}, {traffic:?}, {order:?}, {link:?}, player {number}: {wrong} wrong");
        assert!(wrong <= if *encryption == Encryption::Plain { most_wrong } else { 0 }, "{context}");
        assert!(household.is_served_since(number, frame), "{context}");
    }
    let app = household.net.machine(household.server);
    assert_eq!(app.endpoint.stats().players, order.len());
    let moved = app.events.iter().filter(|(_, event)| matches!(event, ServerEvent::Moved(..))).count();
    assert!(moved + app.disconnects().len() >= order.len(), "each change is reported");
}

#[test]
fn w54_players_who_swap_ports_get_their_own_messages() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        // A message takes 25 ms, and another one is sent every 17 ms.
        for (traffic, most_wrong) in [(Traffic::BothWays, 6), (Traffic::OnlyServer, 24), (Traffic::None, 0)] {
            for (seed, order) in (1..).zip(ORDERS) {
                exchange(seed, path(50, 0.0), &encryption, order, traffic, most_wrong);
            }
        }
    }
}

#[test]
fn w54_players_who_swap_ports_on_a_lossy_network_get_their_own_messages() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        // A player that only listens is told apart by a message that may be lost; meanwhile it requests others.
        for (traffic, most_wrong) in [(Traffic::BothWays, 12), (Traffic::OnlyServer, 60), (Traffic::None, 0)] {
            for (seed, order) in (1..).zip(ORDERS) {
                exchange(seed, path(50, 0.05), &encryption, order, traffic, most_wrong);
            }
        }
    }
}

#[test]
fn w54_players_far_away_who_swap_ports_get_their_own_messages() {
    for rtt in [200, 400] {
        for encryption in [Encryption::Plain, Encryption::Encrypted] {
            // Those that were under way, and those that were sent until the first message from the new address arrived.
            let under_way = rtt as usize / 16 + 3;
            for (traffic, most_wrong) in
                [(Traffic::BothWays, under_way), (Traffic::OnlyServer, 2 * under_way + 24), (Traffic::None, 0)]
            {
                for (seed, order) in (1..).zip(ORDERS) {
                    exchange(seed, path(rtt, 0.0), &encryption, order, traffic, most_wrong);
                }
            }
        }
    }
}

#[test]
fn w54_a_player_who_gets_the_port_of_a_vanished_one_is_not_deaf() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        for (traffic, most_wrong) in [(Traffic::BothWays, 6), (Traffic::OnlyServer, 24), (Traffic::None, 0)] {
            for absent in [ms(10), secs(1), secs(5)] {
                let mut household = Household::connect(1, path(50, 0.0), &encryption, 2, traffic);
                household.net.remove(household.clients.pop().unwrap());
                household.play(absent);
                household.net.rebind(household.clients[0], port(1));
                let start = household.net.now();
                // Idle players are found after three keepalives.
                let settled = if traffic == Traffic::None { secs(10) } else { secs(6) };
                household.play(settled);
                household.traffic = Traffic::BothWays;
                let frame = household.frame + 1;
                household.play(secs(2));
                household.net.run_for(ms(200));
                let wrong = household.wrong(0);
                let context = format!("{encryption:?}, {traffic:?}, {absent:?}: {wrong} wrong");
                assert!(wrong <= if encryption == Encryption::Plain { most_wrong } else { 0 }, "{context}");
                assert!(household.is_served_since(0, frame), "{context}");
                household.play(secs(10).saturating_sub(household.net.now() - start));
                household.net.run_for(secs(5));
                let app = household.net.machine(household.server);
                assert_eq!(app.disconnects(), [DisconnectReason::TimedOut], "{context}");
            }
        }
    }
}

#[test]
fn w54_a_new_player_at_the_port_of_a_vanished_one_is_served_at_once() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut household = Household::connect(1, path(50, 0.0), &encryption, 2, Traffic::BothWays);
        household.net.remove(household.clients.pop().unwrap());
        household.play(secs(1));
        let app = ClientApp::new(household.net.now(), SERVER.into(), client_config(encryption), 9);
        household.clients.push(household.net.add(port(1), app));
        household.play(secs(1));
        let frame = household.frame + 1;
        household.play(secs(5));
        household.net.run_for(ms(200));
        assert!(household.is_served_since(1, frame));
        assert_eq!(household.net.machine(household.server).disconnects(), [DisconnectReason::Replaced]);
    }
}

/// Exchanges the ports of players without encryption, after an outage or without one. `loss` is the share of datagrams that are lost
/// from then on. For each message that reached the wrong player: how long after the first datagram, and the first message, of its
/// player from the new address it was handed over to the server, in milliseconds; negative if before.
fn wrong_messages(
    seed: u64,
    rtt: u64,
    outage: Duration,
    traffic: Traffic,
    order: &'static [usize],
    loss: f64,
) -> Vec<[i64; 2]> {
    let count = order.len();
    let mut household = Household::connect(seed, path(rtt, 0.0), &Encryption::Plain, count, traffic);
    let server = household.server;
    let is_cut_off = !outage.is_zero();
    let first_after = household.frame + 1;
    household.net.isolate(server, is_cut_off);
    household.play(outage / 2);
    household.exchange_ports(order);
    household.play(outage / 2);
    // When the first datagram, and the first message, of each address arrives.
    let arrivals = Rc::new(RefCell::new(vec![[None; 2]; count]));
    let log = arrivals.clone();
    // Lost here, so that only datagrams are recorded that arrive.
    let mut rng = Rng::new(seed);
    household.net.set_filter(move |packet| {
        if rng.chance(loss) {
            return FilterAction::Drop;
        }
        if let Some(number) = (0..count).find(|number| port(*number) == packet.from) {
            let arrival = packet.at + ms(rtt) / 2;
            log.borrow_mut()[number][0].get_or_insert(arrival);
            if packet.bytes[0] == forge::PLAIN {
                log.borrow_mut()[number][1].get_or_insert(arrival);
            }
        }
        FilterAction::Pass
    });
    household.net.isolate(server, false);
    let end = household.net.elapsed();
    let last_before = household.frame;
    household.play(secs(12));
    household.net.run_for(secs(1));
    let mut wrong = Vec::new();
    for number in 0..count {
        let of_others = household.received(number).into_iter().filter(|(player, _)| *player != number);
        for (player, frame) in of_others.filter(|(_, frame)| *frame >= first_after) {
            // Frames are 16,667 us apart.
            let handed_over = end.as_micros() as i64 + (i64::from(frame) - i64::from(last_before) - 1) * 16_667;
            // The player has the port of another one now.
            let first = arrivals.borrow()[order[player]];
            // A player that has sent nothing since was still at its old address, as far as the server can know.
            let late = |at: Duration| (handed_over - at.as_micros() as i64) / 1_000;
            wrong.push(first.map(|at: Option<Duration>| at.map_or(i64::MIN, late)));
        }
    }
    wrong
}

#[test]
fn w54_only_messages_sent_before_the_first_datagram_from_the_new_address_arrived_reach_the_wrong_player() {
    for traffic in [Traffic::BothWays, Traffic::OnlyServer] {
        for rtt in [20, 50, 200] {
            for outage in [Duration::ZERO, ms(500), secs(2), secs(6), secs(9)] {
                for seed in 1..=3 {
                    let wrong = wrong_messages(seed, rtt, outage, traffic, ORDERS[0], 0.0);
                    let latest = |kind: usize| wrong.iter().map(|late| late[kind]).max();
                    let context = format!(
                        "{traffic:?}, RTT {rtt} ms, {outage:?}, seed {seed}: {} wrong, the last {:?} ms after the first \
                         datagram and {:?} ms after the first message",
                        wrong.len(),
                        latest(0),
                        latest(1)
                    );
                    println!("{context}");
                    assert!(latest(0).is_none_or(|late| late <= 0), "{context}");
                }
            }
        }
    }
}

#[test]
fn w54_only_messages_sent_before_that_reach_the_wrong_one_of_several_players_on_a_lossy_network() {
    for traffic in [Traffic::BothWays, Traffic::OnlyServer] {
        for (seed, order) in (1..).zip(ORDERS) {
            for outage in [Duration::ZERO, secs(2)] {
                let wrong = wrong_messages(seed, 50, outage, traffic, order, 0.05);
                let latest = wrong.iter().map(|late| late[0]).max();
                let context =
                    format!("{traffic:?}, {order:?}, {outage:?}: {} wrong, the last {latest:?} ms after", wrong.len());
                println!("{context}");
                assert!(latest.is_none_or(|late| late <= 0), "{context}");
            }
        }
    }
}

/// Four players whose ports are exchanged repeatedly, all or some of them; some players vanish.
fn exchange_at_random(seed: u64, encryption: &Encryption) {
    let count = 4;
    let mut household = Household::connect(seed, path(50, 0.01), encryption, count, Traffic::BothWays);
    for _ in 0..12 {
        let mut order: Vec<usize> = (0..count + 2).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, household.net.rng().below(last as u64 + 1) as usize);
        }
        household.exchange_ports(&order[..count]);
        let pause = household.net.rng().duration(secs(3));
        household.play(pause);
    }
    household.play(secs(12));
    let frame = household.frame + 1;
    household.play(secs(2));
    household.net.run_for(secs(1));
    let app = household.net.machine(household.server);
    assert_eq!(app.endpoint.stats().players, count, "seed {seed}, {encryption:?}: {:?}", app.disconnects());
    for number in 0..count {
        assert!(household.is_served_since(number, frame), "seed {seed}, {encryption:?}, player {number}");
        let wrong = household.wrong(number);
        assert!(*encryption == Encryption::Plain || wrong == 0, "seed {seed}, player {number}: {wrong} wrong");
    }
}

#[test]
fn w54_players_whose_ports_change_all_the_time_are_served_when_that_ends() {
    // Each simulates minutes with several players.
    for seed in 0..(seeds() / 250).max(1) {
        for encryption in [Encryption::Plain, Encryption::Encrypted] {
            exchange_at_random(seed, &encryption);
        }
    }
}
