//! A flood of forged logins locks no player out, and draws few bytes (S13, S14, S16).

use crate::common;

use common::*;
use rallypoint_netsim::{FilterAction, Link, Node, Rng};
use rallypoint_session_proto::{Encryption, EndpointConfig, StaticKey};
use std::{net::SocketAddr, time::Duration};

fn login(name: &str, encrypted: bool) -> Vec<u8> {
    let mut bytes = vec![if encrypted { 0x0f } else { 0x03 }, 0];
    if encrypted {
        bytes.extend([0, 1]);
        bytes.extend([9; 32]);
        bytes.extend([0; 94]);
    }
    bytes.extend(name.as_bytes());
    bytes.extend(b"\0tag");
    bytes
}

/// Forged logins from random addresses, 20,000 per second (2,000 if encrypted); then an honest player logs in.
fn flood(encrypted: bool, has_one_slot: bool) {
    let mut config = server_config();
    config.max_players = if has_one_slot { 1 } else { 16 };
    let honest = client_config(if encrypted { Encryption::Encrypted } else { Encryption::Plain });
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), config, honest);
    // The honest player's first datagrams arrive in the middle of the flood.
    let client = pair.client;
    let server = pair.server;
    pair.net.isolate(client, true);
    let mut rng = Rng::new(5);
    let per_ms = if encrypted { 2 } else { 20 };
    let mut flood_for_1_ms = |pair: &mut Pair| {
        for _ in 0..per_ms {
            let from = rng.next_u64().to_le_bytes();
            let port = 1 + rng.below(65_000) as u16;
            let name = format!("bot{}", rng.next_u64());
            pair.net.inject(([11, from[0], from[1], from[2]], port), SERVER, &login(&name, encrypted));
        }
        pair.net.run_for(ms(1));
    };
    (0..500).for_each(|_| flood_for_1_ms(&mut pair));
    pair.net.isolate(client, false);
    let start = pair.net.now();
    while pair.server().connect_count() == 0 {
        flood_for_1_ms(&mut pair);
        assert!(pair.net.now() - start < secs(1), "not logged in after a second");
    }
    let stats = pair.net.machine(server).endpoint.stats();
    assert_eq!(stats.players, 1);
    assert!(stats.half_open <= 8_192, "{stats:?}");
    // An answer has 14 bytes, a login 16 to 30.
    assert!(stats.unvalidated_bytes < 3 * 40_000 * 20, "{stats:?}");
}

#[test]
fn s14_a_flood_of_forged_logins_locks_no_player_out() {
    flood(false, false);
}

#[test]
fn s14_a_flood_of_forged_logins_does_not_block_the_last_slot() {
    flood(false, true);
}

#[test]
fn s14_a_flood_of_encrypted_logins_locks_no_player_out() {
    flood(true, false);
}

/// Where the honest players are.
#[derive(Clone, Copy, Debug)]
enum Homes {
    /// Each in a network (/24) of its own.
    Networks,
    /// All in one network (/24).
    OneNetwork,
    /// All at one address.
    OneAddress,
}

impl Homes {
    fn address(self, number: u8) -> SocketAddr {
        match self {
            Self::Networks => ([20, number, 0, 1], 1_000).into(),
            Self::OneNetwork => ([20, 0, 0, 1 + number], 1_000).into(),
            Self::OneAddress => ([20, 0, 0, 1], 1_000 + u16::from(number)).into(),
        }
    }
}

/// The honest players, and what the server answers.
#[derive(Clone, Copy)]
struct Setting {
    /// Number of encrypted logins that are answered per second.
    limit: u32,
    /// Whether the clients know cookies (W83).
    cookies: bool,
    homes: Homes,
    is_pinned: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self { limit: 400, cookies: true, homes: Homes::Networks, is_pinned: false }
    }
}

/// 60 honest encrypted logins within a second, while `flood` sends 4,000 forged ones per second, one every 250 us: ten times
/// what is answered. Returns how many of them succeed within 5 s. Without `cookies`, the clients do not know them (W83).
fn honest_logins(seed: u64, cookies: bool, flood: impl FnMut(&mut Pair, u64)) -> usize {
    honest_logins_in(Setting { cookies, ..Setting::default() }, seed, flood)
}

/// [`honest_logins`] in another setting.
fn honest_logins_in(setting: Setting, seed: u64, mut flood: impl FnMut(&mut Pair, u64)) -> usize {
    let Setting { limit, cookies, homes, is_pinned } = setting;
    let key = StaticKey::from_bytes([9; 32]).unwrap();
    let encryption = if is_pinned { Encryption::Pinned(key.public()) } else { Encryption::Encrypted };
    let config =
        EndpointConfig { encrypted_logins: limit, max_per_address: 64, static_key: Some(key), ..server_config() };
    let link = Link::default().delay(ms(25)).jitter(ms(5));
    let mut pair = Pair::start(seed, link, config, client_config(Encryption::Plain));
    if !cookies {
        pair.net.set_filter(|packet| match packet.bytes.get(6..38) {
            Some(enc) if packet.bytes[0] == 0x0f && *enc == [0; 32] => FilterAction::Drop,
            _ => FilterAction::Pass,
        });
    }
    let mut clients = Vec::new();
    for round in 0..22_000_u64 {
        flood(&mut pair, round);
        if round >= 2_000 && round % 67 == 0 && clients.len() < 60 {
            let number = clients.len() as u8;
            let config = client_config(encryption.clone());
            let client = ClientApp::new(pair.net.now(), SERVER.into(), config, 10 + number);
            clients.push(pair.net.add(homes.address(number), client));
        }
        pair.net.run_for(Duration::from_micros(250));
    }
    let is_connected = |client: &&Node<ClientApp>| pair.net.machine(**client).client.is_connected();
    clients.iter().filter(is_connected).count()
}

/// A forged login of its own for each number, from an address of its own.
fn inject_forged(pair: &mut Pair, number: u64) {
    let [a, b, c, d, ..] = (number * 0x9e37_79b9).to_le_bytes();
    let from = ([11 + a % 100, b, c, d], 1 + (number % 60_000) as u16);
    pair.net.inject(from, SERVER, &login(&format!("bot{number}"), true));
}

#[test]
fn w65_honest_encrypted_logins_succeed_during_a_flood_of_ten_times_the_limit() {
    for seed in 1..=4 {
        let succeeded = honest_logins(seed, false, inject_forged);
        println!("seed {seed}: {succeeded} of 60");
        assert!(succeeded >= 57, "seed {seed}: {succeeded} of 60");
    }
}

#[test]
fn w65_honest_encrypted_logins_succeed_during_a_flood_of_repeated_logins() {
    // Every forged login is sent four times, 100 ms apart.
    for seed in 1..=4 {
        let repeat = |pair: &mut Pair, round: u64| inject_forged(pair, (round / 4).saturating_sub(100 * (round % 4)));
        let succeeded = honest_logins(seed, false, repeat);
        println!("seed {seed}: {succeeded} of 60");
        assert!(succeeded >= 57, "seed {seed}: {succeeded} of 60");
    }
}

#[test]
fn w65_honest_encrypted_logins_succeed_during_a_flood_of_logins_that_are_repeated_eight_times() {
    // 100 ms apart, or all at once.
    for seed in [11, 12] {
        for apart in [50, 0] {
            let repeat =
                |pair: &mut Pair, round: u64| inject_forged(pair, (round / 8).saturating_sub(apart * (round % 8)));
            let succeeded = honest_logins(seed, false, repeat);
            println!("seed {seed}, {apart} logins apart: {succeeded} of 60");
            assert!(succeeded >= 57, "seed {seed}, {apart} logins apart: {succeeded} of 60");
        }
    }
}

/// The sources of a flood of forged logins.
#[derive(Clone, Copy, Debug)]
enum Sources {
    /// Any address.
    Anywhere,
    /// The addresses of eight networks (/24).
    FewNetworks,
    /// The networks (/24) of the honest players.
    HonestNetworks,
    /// The addresses of the honest players.
    HonestAddresses,
}

impl Sources {
    fn address(self, number: u64) -> SocketAddr {
        let [a, b, c, d, ..] = (number * 0x9e37_79b9).to_le_bytes();
        let ip = match self {
            Self::Anywhere => [11 + a % 100, b, c, d],
            Self::FewNetworks => [11, 0, a % 8, d],
            Self::HonestNetworks => [20, a % 60, 0, 2 + d % 250],
            Self::HonestAddresses => [20, a % 60, 0, 1],
        };
        (ip, 1_001 + (number % 60_000) as u16).into()
    }
}

/// Times at which a client sends its login, in milliseconds: after 100 ms, then after 1.5 times as long each time, up to 1 s.
const CLIENT_SCHEDULE: [u64; 9] = [0, 100, 250, 475, 812, 1_318, 2_077, 3_077, 4_077];

/// A flood whose logins are each repeated like those of a client: `per_round` datagrams every 250 us.
fn inject_imitated(pair: &mut Pair, round: u64, per_round: u64, sources: Sources) {
    let count = CLIENT_SCHEDULE.len() as u64;
    for datagram in round * per_round..(round + 1) * per_round {
        // The logins start at equal intervals, and each datagram is one transmission of one of them.
        let sent = CLIENT_SCHEDULE[(datagram % count) as usize] * 4 * per_round / count;
        if let Some(number) = (datagram / count).checked_sub(sent) {
            let forged = login(&format!("bot{number}"), true);
            pair.net.inject(sources.address(number), SERVER, &forged);
        }
    }
}

fn assert_honest_logins_succeed(per_round: u64, sources: Sources) {
    for seed in 21..=23 {
        let succeeded = honest_logins(seed, true, |pair, round| inject_imitated(pair, round, per_round, sources));
        println!("seed {seed}: {succeeded} of 60");
        assert!(succeeded >= 57, "seed {seed}, {sources:?}: {succeeded} of 60");
    }
}

#[test]
fn w65_most_logins_of_clients_without_cookies_succeed_during_an_imitating_flood() {
    for seed in 21..=23 {
        let flood = |pair: &mut Pair, round: u64| inject_imitated(pair, round, 1, Sources::Anywhere);
        let succeeded = honest_logins(seed, false, flood);
        println!("seed {seed}: {succeeded} of 60");
        assert!(succeeded >= 30, "seed {seed}: {succeeded} of 60");
    }
}

#[test]
fn w83_honest_encrypted_logins_succeed_during_a_flood_that_repeats_its_logins_like_clients() {
    assert_honest_logins_succeed(1, Sources::Anywhere);
}

#[test]
fn w83_honest_encrypted_logins_succeed_during_an_imitating_flood_of_twenty_times_the_limit() {
    assert_honest_logins_succeed(2, Sources::Anywhere);
}

#[test]
fn w83_honest_encrypted_logins_succeed_during_an_imitating_flood_from_few_networks() {
    assert_honest_logins_succeed(1, Sources::FewNetworks);
}

#[test]
fn w83_honest_encrypted_logins_succeed_during_an_imitating_flood_from_their_own_networks() {
    assert_honest_logins_succeed(1, Sources::HonestNetworks);
    assert_honest_logins_succeed(2, Sources::HonestAddresses);
}

/// 57 of 60 honest logins succeed during a flood of `per_round` datagrams every 250 us that imitates clients.
fn assert_logins_succeed_in(setting: Setting, per_round: u64, sources: Sources) {
    let succeeded = honest_logins_in(setting, 31, |pair, round| inject_imitated(pair, round, per_round, sources));
    println!("{sources:?}: {succeeded} of 60");
    assert!(succeeded >= 57, "{sources:?}: {succeeded} of 60");
}

#[test]
fn w83_honest_logins_from_one_network_succeed_during_a_flood() {
    let setting = Setting { homes: Homes::OneNetwork, ..Setting::default() };
    assert_logins_succeed_in(setting, 1, Sources::Anywhere);
    assert_logins_succeed_in(setting, 1, Sources::HonestNetworks);
}

#[test]
fn w83_honest_logins_from_one_address_succeed_during_a_flood() {
    let setting = Setting { homes: Homes::OneAddress, ..Setting::default() };
    assert_logins_succeed_in(setting, 1, Sources::Anywhere);
}

#[test]
fn w83_honest_pinned_logins_succeed_during_a_flood() {
    assert_logins_succeed_in(Setting { is_pinned: true, ..Setting::default() }, 1, Sources::Anywhere);
}

#[test]
fn w83_honest_logins_succeed_during_a_flood_of_20_000_per_second_with_the_default_limit() {
    let setting = Setting { limit: server_config().encrypted_logins, ..Setting::default() };
    assert_logins_succeed_in(setting, 5, Sources::Anywhere);
}

#[test]
fn w83_honest_logins_succeed_during_a_flood_of_forty_times_the_limit() {
    assert_logins_succeed_in(Setting::default(), 4, Sources::Anywhere);
}

#[test]
fn s13_forged_logins_from_the_address_of_a_player_change_nothing() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(25)));
    for number in 0..100 {
        pair.net.inject(CLIENT, SERVER, &login(&format!("bot{number}"), false));
        pair.client_send(&numbered(number, 50));
        pair.server_send(&numbered(number, 50));
        pair.net.run_for(ms(50));
    }
    pair.net.run_for(secs(15));
    assert_eq!((pair.server_received().len(), pair.client().received.len()), (100, 100));
    assert_eq!((pair.server().connect_count(), pair.server().disconnects().len()), (1, 0));
    assert_eq!(pair.server().endpoint.stats().half_open, 0, "half-open logins expire after 10 s");
}

#[test]
fn s16_an_answer_has_at_most_three_times_the_bytes_of_the_login_or_16() {
    let mut config = server_config();
    config.games = vec!["a game with a long name".into()];
    let mut pair = Pair::start(1, Link::default(), config, client_config(Encryption::Plain));
    pair.net.run_for(secs(1));
    for (sent, max) in [(&b"\x03\x00\x00"[..], 16), (b"\x03\x00alice\x00", 24), (b"\x03\x01a\x00", 16)] {
        let before = pair.server().endpoint.stats().unvalidated_bytes;
        pair.net.inject(([11, 0, 0, 1], 5), SERVER, sent);
        pair.net.run_for(ms(1));
        let answered = pair.server().endpoint.stats().unvalidated_bytes - before;
        assert!(answered > 1 && answered <= max, "{answered} bytes for {sent:?}");
    }
}

#[test]
fn w36_refusals_have_a_budget_per_network() {
    let mut pair = Pair::start(1, Link::default(), server_config(), client_config(Encryption::Plain));
    pair.wait_for_player();
    let before = pair.server().endpoint.stats();
    for number in 0..1_000_u32 {
        let refused = format!("\x03\x00bot{number}\x00another game");
        pair.net.inject(([11, 0, 0, number as u8], 5), SERVER, refused.as_bytes());
        pair.net.run_for(ms(1));
    }
    let after = pair.server().endpoint.stats();
    assert_eq!(after.logins_refused - before.logins_refused, 1_000);
    let refusals = (after.unvalidated_bytes - before.unvalidated_bytes) / "_this server runs another game".len() as u64;
    assert!((30..=40).contains(&refusals), "{refusals} refusals in a second");
}
