//! A player can claim to have moved to any address (S31). The server must not be turned into an amplifier by that.

use crate::common;

use common::*;
use rallypoint_machine::Machine;
use rallypoint_session_proto::{Client, DisconnectReason, Encryption, ONLY_CHANNEL};
use std::{
    collections::HashSet,
    net::SocketAddr,
    time::{Duration, Instant},
};

const SESSIONS: u8 = 20;
const STEP: Duration = ms(10);

/// Bytes of the IP and UDP headers.
const HEADERS: usize = 28;

/// Number of messages that a challenge prepares.
const PREPARED: u32 = 64;

/// Number of messages that have to be acked.
const REQUIRED: usize = 12;

fn own_addr(session: u8) -> SocketAddr {
    ([10, 0, 1, session], 1_000).into()
}

fn victim_addr(session: u8) -> SocketAddr {
    ([10, 9, 9, 9], 1_000 + u16::from(session)).into()
}

/// Clients that log in honestly and then claim the address of a victim, while the server sends each as much as it can.
struct Attack {
    now: Instant,
    server: ServerApp,
    clients: Vec<Client>,
    /// Datagrams that were sent with the address of the victim. A repetition would not move the session.
    sent: HashSet<Vec<u8>>,
    /// Bytes sent with the address of the victim, headers included.
    spoofed: usize,
    /// Bytes that the victim received, headers included.
    reflected: usize,
}

impl Attack {
    fn new() -> Self {
        let now = Instant::now();
        let client = |seed| Client::new(now, SERVER.into(), client_config(Encryption::Plain), [seed; 32]).unwrap();
        let server = ServerApp::new(server_config());
        let clients = (0..SESSIONS).map(client).collect();
        let mut attack = Self { now, server, clients, sent: HashSet::new(), spoofed: 0, reflected: 0 };
        (0..20).for_each(|_| attack.step(false, 0));
        assert_eq!(attack.server.endpoint.stats().players, usize::from(SESSIONS));
        attack
    }

    /// Every client sends a new message.
    fn send_all(&mut self) {
        for client in &mut self.clients {
            // Its session may have ended.
            let _ = client.send(self.now, ONLY_CHANNEL, &[1]);
        }
    }

    /// Lets [`STEP`] pass. With `spoof`, the clients send with the address of the victim; the server sends each client up to
    /// `flood` messages.
    fn step(&mut self, spoof: bool, flood: usize) {
        self.now += STEP;
        let mut datagram = Vec::new();
        for (session, client) in (0..).zip(&mut self.clients) {
            client.handle_timeout(self.now);
            while client.poll_transmit(self.now, &mut datagram).is_some() {
                if !spoof {
                    self.server.handle_datagram(self.now, own_addr(session), &datagram);
                } else if self.sent.insert(datagram.clone()) {
                    self.spoofed += datagram.len() + HEADERS;
                    self.server.handle_datagram(self.now, victim_addr(session), &datagram);
                }
                datagram.clear();
            }
        }
        self.server.handle_timeout(self.now);
        self.server.poll(self.now);
        let players: Vec<_> = self.server.endpoint.players().collect();
        for player in players {
            let sends = (0..flood).map(|_| self.server.endpoint.send(self.now, player, ONLY_CHANNEL, &[7; 400]));
            sends.take_while(Result::is_ok).for_each(drop);
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut datagram) {
            if transmit.to.ip() == victim_addr(0).ip() {
                let datagrams = transmit.len.div_ceil(transmit.segment.unwrap_or(transmit.len));
                self.reflected += transmit.len + datagrams * HEADERS;
            } else if let Some(session) = (0..SESSIONS).find(|session| own_addr(*session) == transmit.to) {
                for part in datagram.chunks(transmit.segment.unwrap_or(transmit.len)) {
                    self.clients[usize::from(session)].handle_datagram(self.now, SERVER.into(), part);
                }
            }
            datagram.clear();
        }
        for client in &mut self.clients {
            while client.poll_event().is_some() {}
            while client.recv().is_some() {}
        }
    }

    /// Acks these numbers with the address of the victim.
    fn forge_ack(&mut self, session: u8, numbers: &[u32]) {
        let mut ack = vec![0xff, numbers.len() as u8];
        for number in numbers {
            ack.extend_from_slice(&number.to_le_bytes());
            ack.extend_from_slice(&(!number).to_le_bytes());
        }
        self.spoofed += ack.len() + HEADERS;
        self.server.handle_datagram(self.now, victim_addr(session), &ack);
    }

    /// Claims the address of the victim, and lets every session `guess` which messages were sent there in each of 800 steps. In
    /// the second half the server sends as much as it can.
    fn guess(&mut self, mut guess: impl FnMut(&mut Self, u8, u32)) {
        self.send_all();
        self.step(true, 0);
        for step in 0..800 {
            (0..SESSIONS).for_each(|session| guess(self, session, step));
            self.step(true, if step < 400 { 0 } else { 16 });
        }
    }

    #[track_caller]
    fn assert_bounded(&self) {
        let (spoofed, reflected) = (self.spoofed, self.reflected);
        println!("{spoofed} bytes caused {reflected}: {:.2} times", reflected as f64 / spoofed as f64);
        assert!(spoofed > 2_000 && reflected > 0 && reflected <= 3 * spoofed, "{spoofed} bytes caused {reflected}");
    }
}

#[test]
fn w34_a_claimed_address_is_sent_at_most_three_times_what_came_from_it_until_the_session_times_out() {
    let mut attack = Attack::new();
    let unvalidated = attack.server.endpoint.stats().unvalidated_bytes as usize;
    for step in 0..3_000 {
        if step % 100 == 0 {
            attack.send_all();
        }
        attack.step(true, 4_096);
    }
    attack.assert_bounded();
    assert!(attack.server.endpoint.stats().unvalidated_bytes as usize > unvalidated);
    assert_eq!(
        attack.server.disconnects(),
        vec![DisconnectReason::TimedOut; usize::from(SESSIONS)],
        "although all of them kept sending"
    );
}

#[test]
fn w34_moving_back_and_forth_causes_no_more() {
    let mut attack = Attack::new();
    for step in 0u32..3_000 {
        // One step at the address of the victim, and then long enough at their own to validate it.
        let spoof = step % 20 == 0;
        if spoof || step % 20 == 1 {
            attack.send_all();
        }
        attack.step(spoof, 4);
    }
    attack.assert_bounded();
    assert_eq!(attack.server.disconnects(), [], "their own addresses are validated each time");
}

#[test]
fn w34_forged_acks_of_all_prepared_messages_validate_nothing() {
    let mut attack = Attack::new();
    attack.guess(|attack, session, step| {
        let first = PREPARED * step;
        attack.forge_ack(session, &(first..first + 63).collect::<Vec<_>>());
    });
    attack.assert_bounded();
}

#[test]
fn w34_forged_acks_of_one_number_after_the_other_validate_nothing() {
    let mut attack = Attack::new();
    attack.guess(|attack, session, step| attack.forge_ack(session, &[step]));
    attack.assert_bounded();
}

#[test]
fn w34_forged_acks_of_random_numbers_validate_nothing() {
    let mut attack = Attack::new();
    let mut random = 1_u32;
    attack.guess(|attack, session, step| {
        let mut numbers = HashSet::new();
        while numbers.len() < REQUIRED {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            numbers.insert(PREPARED * step + random / (u32::MAX / PREPARED + 1));
        }
        attack.forge_ack(session, &numbers.into_iter().collect::<Vec<_>>());
    });
    attack.assert_bounded();
}
