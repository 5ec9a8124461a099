//! Whoever has a session can claim to have moved anywhere (S31). That must not make the server flood somebody else.

mod common;

use common::*;
use rallypoint_machine::Machine;
use rallypoint_session::{Client, Encryption, Reason};
use std::{
    collections::HashSet,
    net::SocketAddr,
    time::{Duration, Instant},
};

const SESSIONS: u8 = 20;
const STEP: Duration = ms(10);

/// What an address gets before it has answered, once per timeout, and by how much the last datagram may exceed it.
const GRANT: usize = 1_500;
const LONGEST: usize = 508;

fn own(session: u8) -> SocketAddr {
    ([10, 0, 1, session], 1_000).into()
}

fn victims(session: u8) -> SocketAddr {
    ([10, 9, 9, 9], 1_000 + u16::from(session)).into()
}

/// Clients that log in honestly, and then claim to be where the victim is; the server sends to each of them all it can.
struct Attack {
    now: Instant,
    server: ServerApp,
    clients: Vec<Client>,
    /// A repeat would not move the session, so the victim's address is not wasted on it.
    said: HashSet<Vec<u8>>,
    /// All bytes of the clients, those in the victim's name, and those that the victim got.
    sent: usize,
    spoofed: usize,
    reflected: usize,
}

impl Attack {
    fn new() -> Self {
        let now = Instant::now();
        let client = |seed| Client::new(now, SERVER.into(), client_config(Encryption::Plain), [seed; 32]).unwrap();
        let server = ServerApp::new(server_config());
        let clients = (0..SESSIONS).map(client).collect();
        let mut attack = Self { now, server, clients, said: HashSet::new(), sent: 0, spoofed: 0, reflected: 0 };
        (0..20).for_each(|_| attack.pass(false, 0));
        assert_eq!(attack.server.endpoint.stats().players, usize::from(SESSIONS));
        attack
    }

    /// Every client says something new.
    fn say(&mut self) {
        for client in &mut self.clients {
            // It may have been thrown out.
            let _ = client.send(self.now, &[1]);
        }
    }

    /// A moment passes. What the clients say comes in the victim's name if they are to `claim`; the server sends each of
    /// them up to `flood` messages.
    fn pass(&mut self, claim: bool, flood: usize) {
        self.now += STEP;
        let mut datagram = Vec::new();
        for (session, client) in (0..).zip(&mut self.clients) {
            client.handle_timeout(self.now);
            while client.poll_transmit(self.now, &mut datagram).is_some() {
                if !claim {
                    self.sent += datagram.len();
                    self.server.handle_datagram(self.now, own(session), &datagram);
                } else if self.said.insert(datagram.clone()) {
                    self.sent += datagram.len();
                    self.spoofed += datagram.len();
                    self.server.handle_datagram(self.now, victims(session), &datagram);
                }
                datagram.clear();
            }
        }
        self.server.handle_timeout(self.now);
        self.server.read(self.now);
        let players: Vec<_> = self.server.endpoint.players().collect();
        for player in players {
            let sends = (0..flood).map(|_| self.server.endpoint.send(self.now, player, &[7; 400]));
            sends.take_while(Result::is_ok).for_each(drop);
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut datagram) {
            if transmit.to.ip() == victims(0).ip() {
                self.reflected += transmit.len;
            } else if let Some(session) = (0..SESSIONS).find(|session| own(*session) == transmit.to) {
                for piece in datagram.chunks(transmit.segment.unwrap_or(transmit.len)) {
                    self.clients[usize::from(session)].handle_datagram(self.now, SERVER.into(), piece);
                }
            }
            datagram.clear();
        }
        for client in &mut self.clients {
            while client.poll_event().is_some() {}
            while client.recv().is_some() {}
        }
    }
}

#[test]
fn s31_a_claimed_address_gets_three_times_what_came_from_it_and_not_for_long() {
    let mut attack = Attack::new();
    let unproven = attack.server.endpoint.stats().unproven_bytes as usize;
    for step in 0..3_000 {
        if step % 100 == 0 {
            attack.say();
        }
        attack.pass(true, 4_096);
    }
    let (spoofed, reflected) = (attack.spoofed, attack.reflected);
    assert!(spoofed > 2_000 && reflected > 0, "{spoofed} bytes drew {reflected}");
    let most = 3 * spoofed + usize::from(SESSIONS) * (GRANT + LONGEST);
    assert!(reflected <= most, "{spoofed} bytes drew {reflected}");
    assert!(attack.server.endpoint.stats().unproven_bytes as usize - unproven >= reflected);
    assert_eq!(attack.server.disconnects(), vec![Reason::TimedOut; usize::from(SESSIONS)], "although all of them sent");
}

#[test]
fn s31_going_to_and_fro_draws_no_more() {
    let mut attack = Attack::new();
    let before = attack.sent;
    for step in 0u32..3_000 {
        // For a moment at the victim's, and then long enough at home to prove that address.
        let there = step % 20 == 0;
        if there || step % 20 == 1 {
            attack.say();
        }
        attack.pass(there, 4);
    }
    let (spoofed, reflected) = (attack.spoofed, attack.reflected);
    assert!(spoofed > 10_000 && reflected > 0, "{spoofed} bytes drew {reflected}");
    let (sent, timeouts) = (attack.sent - before, 3 + 1);
    // The last datagram of a visit may exceed what is allowed; that is paid for at home, before the next.
    let most = 3 * sent + usize::from(SESSIONS) * (timeouts * GRANT + LONGEST);
    assert!(reflected <= most && reflected < 20 * spoofed, "{sent} bytes, {spoofed} of them spoofed, drew {reflected}");
    assert_eq!(attack.server.disconnects(), [], "every time they came home");
}
