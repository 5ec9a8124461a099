//! What an attacker can make a server or a client send, for what it sends itself, with attacks chosen at random (W60, W61).

use crate::common;

use common::{forge::*, *};
use rallypoint_netsim::{Link, Rng, seeds};
use rallypoint_session_proto::{Encryption, ONLY_CHANNEL, PlayerId};
use std::{
    cell::RefCell,
    collections::{HashSet, VecDeque},
    net::SocketAddr,
    rc::Rc,
    time::Duration,
};

/// The side that is attacked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Server,
    Client,
}

const CASES: [(Target, Encryption); 4] = [
    (Target::Server, Encryption::Plain),
    (Target::Server, Encryption::Encrypted),
    (Target::Client, Encryption::Plain),
    (Target::Client, Encryption::Encrypted),
];

/// Number of random attacks of each kind.
fn attacks() -> u64 {
    (seeds() / 100).max(2)
}

/// The number of a data datagram.
fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[5..9].try_into().unwrap())
}

/// The address of one of several players of one host.
fn player_addr(session: u16) -> SocketAddr {
    ([10, 0, 1, 1], 1_000 + session).into()
}

/// Bytes of a session since the window last advanced.
#[derive(Default)]
struct Epoch {
    /// Messages that are under way, with the time at which they arrive, their number and their length.
    under_way: VecDeque<(Duration, u32, usize)>,
    /// The oldest message that has not arrived, and all later ones that have.
    oldest: u32,
    arrived: HashSet<u32>,
    received: usize,
    requested: usize,
    worst: f64,
}

impl Epoch {
    /// Counts a message that arrives. One that arrives again counts for nothing.
    fn on_message(&mut self, number: u32, len: usize) {
        if !self.arrived.insert(number) {
            return;
        }
        if number == self.oldest {
            while self.arrived.contains(&self.oldest) {
                self.oldest += 1;
            }
            self.received = 0;
            self.requested = 0;
        }
        self.received += len;
    }

    /// Counts a request that is sent at this time.
    fn on_request(&mut self, at: Duration, len: usize) {
        while self.under_way.front().is_some_and(|(arrival, ..)| *arrival <= at) {
            let (_, number, len) = self.under_way.pop_front().unwrap();
            self.on_message(number, len);
        }
        self.requested += len;
        self.worst = self.worst.max(self.requested as f64 / self.received as f64);
    }
}

/// A player with a session of its own sends numbers with holes, at random, and fills some of them later. Returns bytes of
/// requests per byte received since the window last advanced, at worst.
fn holes(seed: u64, target: Target, encryption: Encryption) -> f64 {
    let mut rng = Rng::new(seed);
    let delay = ms(1 + rng.below(120));
    let mut pair = Pair::connect(seed, Link::default().delay(delay), encryption);
    pair.net.run_for(secs(1));
    let (attacker, attacked) = match target {
        Target::Server => (SocketAddr::from(CLIENT), SocketAddr::from(SERVER)),
        Target::Client => (SERVER.into(), CLIENT.into()),
    };
    // Messages that the attacker sends, and the share of transmissions that it makes: it may fill a hole later, or never.
    let share = [0.005_f64, 0.01, 0.1, 0.5, 0.9][rng.below(5) as usize];
    let never = 1 + rng.below(8);
    // The proof of the login is number 0 of a client, and the only message so far.
    let epoch = Rc::new(RefCell::new(Epoch { oldest: u32::from(target == Target::Server), ..Epoch::default() }));
    let seen = epoch.clone();
    let choice = RefCell::new(Rng::new(seed ^ 0xa77a_c4e5));
    pair.net.set_filter(move |packet| {
        let mut epoch = seen.borrow_mut();
        let is_data = matches!(packet.bytes[0], PLAIN | SEALED);
        if packet.from == attacked && packet.bytes[0] == RESEND {
            epoch.on_request(packet.at, packet.bytes.len());
        }
        if packet.from == attacker && is_data {
            let number = number(packet.bytes);
            let is_never_sent = u64::from(number.wrapping_mul(0x9e37_79b9) >> 8) % never == 0 && never < 8;
            if is_never_sent || choice.borrow_mut().unit() > share {
                return rallypoint_netsim::FilterAction::Drop;
            }
            epoch.under_way.push_back((packet.at + delay, number, packet.bytes.len()));
        }
        rallypoint_netsim::FilterAction::Pass
    });
    let interval = Duration::from_micros(500 + rng.below(200_000));
    let end = pair.net.now() + secs(15);
    while pair.net.now() < end {
        let message = vec![7; 1 + rng.below(400) as usize];
        match target {
            Target::Server => {
                pair.net.with(pair.client, |app, now| app.client.send(now, ONLY_CHANNEL, &message).is_ok())
            }
            Target::Client => pair.net.with(pair.server, |app, now| {
                let player = app.endpoint.players().next();
                player.is_some_and(|player| app.endpoint.send(now, player, ONLY_CHANNEL, &message).is_ok())
            }),
        };
        pair.net.run_for(interval);
    }
    epoch.borrow().worst
}

#[test]
fn w60_requests_never_take_more_than_twice_what_was_received_since_the_window_advanced() {
    for (target, encryption) in CASES {
        let ratios = (0..attacks()).map(|seed| (holes(seed, target, encryption.clone()), seed));
        let (worst, seed) = ratios.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        println!("{target:?}, {encryption:?}: {worst:.2} (seed {seed})");
        assert!(worst > 0.0, "holes are requested");
        assert!(worst <= 2.0, "{target:?}, {encryption:?}: {worst:.2} (seed {seed})");
    }
}

/// Forged resend requests, at random, for a stream of which everything was received. Returns the bytes that they draw, the
/// number of bytes that the budgets of W61 allow, and the bytes of the requests.
fn forged_requests(seed: u64, target: Target, encryption: Encryption) -> (usize, usize, usize) {
    let mut rng = Rng::new(seed);
    let mut pair = Pair::connect(seed, Link::default().delay(ms(1 + rng.below(100))), encryption);
    pair.net.run_for(secs(1));
    let count = 1 + rng.below(300) as u32;
    let mut sent = 0;
    for number in 0..count {
        let message = numbered(number, 4 + rng.below(460) as usize);
        sent += message.len() + 40;
        match target {
            Target::Server => pair.server_send(&message),
            Target::Client => pair.client_send(&message),
        }
        pair.net.run_for(ms(2));
    }
    pair.net.run_for(secs(3));
    let tap = Wiretap::attach(&mut pair.net);
    let (from, to) = match target {
        Target::Server => (CLIENT, SERVER),
        Target::Client => (SERVER, CLIENT),
    };
    let interval = Duration::from_micros(200 + rng.below(30_000));
    let seconds = 8;
    let mut forged = 0;
    let end = pair.net.now() + secs(seconds);
    while pair.net.now() < end {
        let mut numbers = HashSet::new();
        let length = 1 + rng.below(63) as u32;
        while numbers.len() < length.min(count) as usize {
            numbers.insert(rng.below(u64::from(count) + 3) as u32);
        }
        let request = number_list(RESEND, numbers);
        forged += request.len();
        pair.net.inject(from, to, &request);
        pair.net.run_for(interval);
    }
    let drawn = tap.bytes(to, &[PLAIN, SEALED]);
    // Four datagrams at once and 8 kB/s for unacked messages, as much for acked ones, and each acked one once more. A client
    // proves its address now and then.
    let allowed = 2 * (2_032 + 8_000 * seconds as usize) + sent + 40 * 5 * seconds as usize;
    (drawn, allowed, forged)
}

#[test]
fn w61_forged_requests_draw_no_more_than_a_budget_of_bytes() {
    for (target, encryption) in CASES {
        let mut worst = (0.0, 0.0, 0);
        for seed in 0..attacks() {
            let (drawn, allowed, forged) = forged_requests(seed, target, encryption.clone());
            let used = drawn as f64 / allowed as f64;
            worst = if used > worst.0 { (used, drawn as f64 / forged as f64, seed) } else { worst };
        }
        let (used, ratio, seed) = worst;
        println!("{target:?}, {encryption:?}: {used:.2} of the budget, {ratio:.2} bytes per forged byte (seed {seed})");
        assert!(used > 0.0 && used <= 1.0, "{target:?}, {encryption:?}: {used:.2} of the budget (seed {seed})");
    }
}

#[test]
fn w60_32_sessions_of_one_address_draw_no_more_than_twice_what_they_send() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut config = client_config(encryption);
        config.connection.first_number = 4_094;
        let mut pair = Pair::start(1, Link::default().delay(ms(10)), server_config(), config.clone());
        let tap = Wiretap::attach(&mut pair.net);
        for session in 1..32 {
            let app = ClientApp::new(pair.net.now(), SERVER.into(), config.clone(), 100 + session as u8);
            pair.net.add(player_addr(session), app);
        }
        pair.net.run_for(secs(3));
        let players: Vec<PlayerId> = pair.server().endpoint.players().collect();
        assert_eq!(players.len(), 32);
        for _ in 0..20 {
            pair.net.run_for(secs(1));
            let received: usize = (0..32).map(|session| tap.bytes(player_addr(session), &[PLAIN, SEALED])).sum();
            let requested = tap.bytes(SERVER, &[RESEND]);
            assert!(requested > 0 && requested <= 2 * received, "{requested} bytes of requests for {received}");
        }
    }
}
