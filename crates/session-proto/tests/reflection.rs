//! Whoever has a session can claim to have moved anywhere (S31). That must not make the server flood somebody else.

mod common;

use common::*;
use rallypoint_machine::Machine;
use rallypoint_session_proto::{Client, DisconnectReason, Encryption};
use std::{
    collections::HashSet,
    net::SocketAddr,
    time::{Duration, Instant},
};

const SESSIONS: u8 = 20;
const STEP: Duration = ms(10);

/// What IP and UDP add to every datagram.
const HEADERS: usize = 28;

/// How many messages a challenge prepares, and how many of them have to be acked.
const PREPARED: u32 = 64;
const NEEDED: usize = 12;

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
    /// Bytes in the victim's name, and those that the victim got, headers included.
    spoofed: usize,
    reflected: usize,
}

impl Attack {
    fn new() -> Self {
        let now = Instant::now();
        let client = |seed| Client::new(now, SERVER.into(), client_config(Encryption::Plain), [seed; 32]).unwrap();
        let server = ServerApp::new(server_config());
        let clients = (0..SESSIONS).map(client).collect();
        let mut attack = Self { now, server, clients, said: HashSet::new(), spoofed: 0, reflected: 0 };
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
                    self.server.handle_datagram(self.now, own(session), &datagram);
                } else if self.said.insert(datagram.clone()) {
                    self.spoofed += datagram.len() + HEADERS;
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
                let datagrams = transmit.len.div_ceil(transmit.segment.unwrap_or(transmit.len));
                self.reflected += transmit.len + datagrams * HEADERS;
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

    /// Acks these numbers in the victim's name.
    fn forge_ack(&mut self, session: u8, numbers: &[u32]) {
        let mut ack = vec![0xff, numbers.len() as u8];
        for number in numbers {
            ack.extend_from_slice(&number.to_le_bytes());
            ack.extend_from_slice(&(!number).to_le_bytes());
        }
        self.spoofed += ack.len() + HEADERS;
        self.server.handle_datagram(self.now, victims(session), &ack);
    }

    /// Claims the victim's address, lets every session `guess` what was sent there in each of 800 steps, and then lets the
    /// server send all it can.
    fn guess(&mut self, mut guess: impl FnMut(&mut Self, u8, u32)) {
        self.say();
        self.pass(true, 0);
        for step in 0..800 {
            (0..SESSIONS).for_each(|session| guess(self, session, step));
            self.pass(true, if step < 400 { 0 } else { 16 });
        }
    }

    #[track_caller]
    fn assert_bounded(&self) {
        let (spoofed, reflected) = (self.spoofed, self.reflected);
        println!("{spoofed} bytes drew {reflected}: {:.2} times", reflected as f64 / spoofed as f64);
        assert!(spoofed > 2_000 && reflected > 0 && reflected <= 3 * spoofed, "{spoofed} bytes drew {reflected}");
    }
}

#[test]
fn w34_a_claimed_address_gets_three_times_what_came_from_it_and_not_for_long() {
    let mut attack = Attack::new();
    let unproven = attack.server.endpoint.stats().unvalidated_bytes as usize;
    for step in 0..3_000 {
        if step % 100 == 0 {
            attack.say();
        }
        attack.pass(true, 4_096);
    }
    attack.assert_bounded();
    assert!(attack.server.endpoint.stats().unvalidated_bytes as usize > unproven);
    assert_eq!(
        attack.server.disconnects(),
        vec![DisconnectReason::TimedOut; usize::from(SESSIONS)],
        "although all of them sent"
    );
}

#[test]
fn w34_going_to_and_fro_draws_no_more() {
    let mut attack = Attack::new();
    for step in 0u32..3_000 {
        // For a moment at the victim's, and then long enough at home to prove that address.
        let there = step % 20 == 0;
        if there || step % 20 == 1 {
            attack.say();
        }
        attack.pass(there, 4);
    }
    attack.assert_bounded();
    assert_eq!(attack.server.disconnects(), [], "every time they came home");
}

#[test]
fn w34_forged_acks_of_all_that_may_have_been_sent_prove_nothing() {
    let mut attack = Attack::new();
    attack.guess(|attack, session, step| {
        let first = PREPARED * step;
        attack.forge_ack(session, &(first..first + 63).collect::<Vec<_>>());
    });
    attack.assert_bounded();
}

#[test]
fn w34_forged_acks_of_one_number_after_the_other_prove_nothing() {
    let mut attack = Attack::new();
    attack.guess(|attack, session, step| attack.forge_ack(session, &[step]));
    attack.assert_bounded();
}

#[test]
fn w34_forged_acks_of_some_numbers_prove_nothing() {
    let mut attack = Attack::new();
    let mut chance = 1_u32;
    attack.guess(|attack, session, step| {
        let mut numbers = HashSet::new();
        while numbers.len() < NEEDED {
            chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            numbers.insert(PREPARED * step + chance / (u32::MAX / PREPARED + 1));
        }
        attack.forge_ack(session, &numbers.into_iter().collect::<Vec<_>>());
    });
    attack.assert_bounded();
}
