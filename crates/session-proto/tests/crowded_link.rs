//! A link that many players share recovers from a disturbance: neither copies nor resends keep it congested (S25, W72).

use crate::common;

use common::{crowd_cells::*, players::*, *};
use rallypoint_netsim::{CubicReceiver, CubicSender, Link};

const RATE: u64 = 5_000_000;
const QUEUE: usize = 64_000;

/// Bytes of the messages, the load that 30 players make with 60 of them per second, and the time within which the link has to
/// recover.
const LOADS: [(usize, &str, u64); 3] = [(200, "65 %", 10), (230, "75 %", 10), (280, "88 %", 30)];

fn recovers_from_a_dip(direction: Direction) {
    for (len, load, seconds) in LOADS {
        let mut crowd = Crowd::start(1, 30, direction, len, Link::default().delay(ms(25)));
        let id = crowd.bottleneck;
        crowd.net.set_bottleneck(id, RATE, QUEUE);
        crowd.net.run_for(secs(2));
        let before = crowd.measure(secs(5));
        crowd.net.set_bottleneck(id, RATE * 3 / 10, QUEUE);
        crowd.net.run_for(secs(2));
        crowd.net.set_bottleneck(id, RATE, QUEUE);
        crowd.net.run_for(secs(seconds));
        let after = crowd.measure(secs(5));
        println!("{direction:?}, load {load}: {before:?}, {after:?}");
        assert!(after.p99 < 2 * before.p99, "load {load}: p99 {:?} before, {:?} after", before.p99, after.p99);
        assert!(after.loss < 0.01, "load {load}: {}", after.loss);
    }
}

#[test]
fn w72_players_who_send_to_the_server_recover_from_a_dip_of_the_link() {
    recovers_from_a_dip(Direction::ToServer);
}

#[test]
fn w72_players_who_receive_from_the_server_recover_from_a_dip_of_the_link() {
    recovers_from_a_dip(Direction::ToPlayers);
}

/// Fails if a cell does not recover in time.
fn check(cells: impl IntoIterator<Item = Cell>) {
    let missed: Vec<String> = cells.into_iter().filter_map(|cell| cell.run().err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// 30 players, a queue of 64 kB and a dip of 2 s, with two round-trip times and two seeds.
fn dips(load: f64, direction: Direction) -> impl Iterator<Item = Cell> {
    let options = CrowdOptions { players: 30, direction, len: 200, rtt: ms(50), is_encrypted: false };
    let cell = Cell { seed: 1, load, options, queue: Queue::Bytes(64_000), disturbance: Disturbance::Dip(2) };
    [(31, 50), (32, 100), (33, 50), (34, 100)].into_iter().map(move |(seed, rtt)| Cell {
        seed,
        options: CrowdOptions { rtt: ms(rtt), ..options },
        ..cell
    })
}

#[test]
fn w72_players_who_send_at_80_percent_load_recover_within_10_s() {
    check(dips(0.8, Direction::ToServer));
}

#[test]
fn w72_players_who_receive_at_80_percent_load_recover_within_10_s() {
    check(dips(0.8, Direction::ToPlayers));
}

#[test]
fn w72_players_who_send_at_90_percent_load_recover_within_30_s() {
    check(dips(0.9, Direction::ToServer));
}

#[test]
fn w72_players_who_receive_at_90_percent_load_recover_within_30_s() {
    check(dips(0.9, Direction::ToPlayers));
}

#[test]
fn w72_copies_do_not_keep_a_short_queue_full() {
    // The queue takes 11 ms and 14 ms, which is little beside the delay of the path.
    let options =
        CrowdOptions { players: 100, direction: Direction::ToServer, len: 280, rtt: ms(150), is_encrypted: false };
    let cell = Cell { seed: 1, load: 0.65, options, queue: Queue::Bytes(32_000), disturbance: Disturbance::Loss };
    check([cell, Cell { load: 0.8, options: CrowdOptions { rtt: ms(100), ..options }, ..cell }]);
}

#[test]
fn w77_a_player_who_is_further_behind_than_the_others_is_not_starved() {
    let options =
        CrowdOptions { players: 100, direction: Direction::ToPlayers, len: 100, rtt: ms(150), is_encrypted: true };
    let cell = Cell { seed: 66, load: 0.8, options, queue: Queue::Bytes(32_000), disturbance: Disturbance::Dip(2) };
    check([cell]);
}

#[test]
fn w31_acks_do_not_take_the_room_in_which_players_who_send_and_receive_catch_up() {
    let options = CrowdOptions { players: 60, direction: Direction::Both, len: 100, rtt: ms(100), is_encrypted: true };
    let cell = Cell { seed: 47, load: 0.8, options, queue: Queue::Time(ms(100)), disturbance: Disturbance::Dip(1) };
    check([cell]);
}

#[test]
fn w72_copies_do_not_fill_a_link_that_loses_datagrams() {
    // With copies, 30 players would need 5.4 of the 5 Mbit/s.
    let mut crowd = Crowd::start(1, 30, Direction::ToServer, 200, Link::default().delay(ms(25)).loss(0.05));
    let id = crowd.bottleneck;
    crowd.net.set_bottleneck(id, RATE, QUEUE);
    crowd.net.run_for(secs(60));
    let later = crowd.measure(secs(30));
    println!("{later:?}");
    assert!(later.p99 < ms(250), "{later:?}");
    assert!(later.loss < 0.07, "{later:?}");
}

#[test]
fn w72_a_server_sends_copies_from_one_budget() {
    // 100 players would be sent 1.3 MB of copies per second.
    let mut crowd = Crowd::start(1, 100, Direction::ToPlayers, 200, Link::default().delay(ms(25)).loss(0.05));
    crowd.net.run_for(secs(10));
    let copies = |crowd: &Crowd| (0..100).map(|player| crowd.sender_stats(player).copies).sum::<u64>();
    let before = copies(&crowd);
    crowd.net.run_for(secs(10));
    let per_second = (copies(&crowd) - before) * 211 / 10;
    println!("{per_second} bytes of copies per second");
    assert!((64_000..=140_000).contains(&per_second), "{per_second}");
}

#[test]
fn w72_a_copy_that_does_not_fit_into_a_batch_is_charged_once() {
    let mut net = rallypoint_netsim::Network::new(1);
    net.set_default_link(Link::default().delay(ms(25)).loss(0.05));
    let server = net.add(SERVER, ServerApp::new(server_config()));
    for number in 1..=40 {
        let config = client_config(rallypoint_session_proto::Encryption::Plain);
        let client = ClientApp::new(net.now(), SERVER.into(), config, number);
        net.add(([10, 0, 1, number], 1_000), client);
    }
    net.run_for(secs(5));
    let copies = |net: &rallypoint_netsim::Network| -> u64 {
        let endpoint = &net.machine(server).endpoint;
        endpoint.players().filter_map(|player| endpoint.connection(player)).map(|one| one.stats().copies).sum()
    };
    let mut before = 0;
    for frame in 0..20 * 30 {
        if frame == 10 * 30 {
            before = copies(&net);
        }
        net.with(server, |app, now| {
            let players: Vec<_> = app.endpoint.players().collect();
            for player in players {
                // The copy of the second is too long to follow that of the first in one batch.
                let _ = app.endpoint.send(now, player, rallypoint_session_proto::ONLY_CHANNEL, &[1; 60]);
                let _ = app.endpoint.send(now, player, rallypoint_session_proto::ONLY_CHANNEL, &[2; 280]);
            }
        });
        net.run_for(ms(33));
    }
    let per_second = (copies(&net) - before) / 10;
    println!("{per_second} copies per second");
    // 128 kB per second, for as many of 71 as of 291 bytes.
    assert!(per_second >= 600, "{per_second}");
}

/// 10 players load a link of 1.79 Mbit/s, with a queue of 100 ms, to 60 %.
fn small_crowd(seed: u64) -> Crowd {
    let mut crowd = Crowd::start(seed, 10, Direction::ToServer, 200, Link::default().delay(ms(25)));
    let id = crowd.bottleneck;
    crowd.net.set_bottleneck(id, 1_792_000, 22_400);
    crowd.net.run_for(secs(3));
    crowd
}

#[test]
fn w75_players_recover_from_a_competing_download() {
    for seed in 1..=8 {
        let mut crowd = small_crowd(seed);
        let before = crowd.measure(secs(5));
        let receiver = crowd.net.add(([10, 2, 0, 1], 2_000), CubicReceiver::default());
        let sender = CubicSender::new(crowd.net.now(), crowd.net.address(receiver), 1_200);
        let sender = crowd.net.add(([10, 2, 0, 2], 2_000), sender);
        let id = crowd.bottleneck;
        crowd.net.pass_bottleneck(sender, receiver, id);
        crowd.net.run_for(secs(10));
        crowd.net.remove(sender);
        crowd.net.remove(receiver);
        crowd.net.run_for(secs(5));
        let after = crowd.measure(secs(5));
        println!("seed {seed}: {before:?}, {after:?}");
        assert!(after.p99 < 2 * before.p99, "seed {seed}: p99 {:?} before, {:?} after", before.p99, after.p99);
        assert!(after.bytes < before.bytes * 21 / 20, "seed {seed}: {} and {} bytes", before.bytes, after.bytes);
    }
}

#[test]
fn w76_copies_end_soon_after_a_burst_of_loss() {
    let mut crowd = small_crowd(1);
    let before = crowd.measure(secs(5));
    crowd.net.set_default_link(Link::default().delay(ms(25)).loss(0.5));
    crowd.net.run_for(secs(2));
    crowd.net.set_default_link(Link::default().delay(ms(25)));
    crowd.net.run_for(secs(10));
    let after = crowd.measure(secs(5));
    println!("{before:?}, {after:?}");
    assert!(after.bytes < before.bytes * 21 / 20, "{} bytes before, {} after", before.bytes, after.bytes);
}

#[test]
fn w77_players_who_have_fallen_behind_on_a_full_link_catch_up_together() {
    let mut crowd = Crowd::start(1, 30, Direction::ToServer, 200, Link::default().delay(ms(25)));
    let id = crowd.bottleneck;
    // 90 % load.
    crowd.net.set_bottleneck(id, 3_584_000, 44_800);
    crowd.net.run_for(secs(5));
    crowd.net.set_default_link(Link::default().delay(ms(25)).loss(0.5));
    crowd.net.run_for(secs(2));
    crowd.net.set_default_link(Link::default().delay(ms(25)));
    crowd.net.run_for(secs(10));
    let after = crowd.measure(secs(5));
    println!("{after:?}");
    assert!(after.p99 < ms(60), "{after:?}");
}

#[test]
fn w123_players_on_a_full_link_catch_up_after_a_dip_without_losses() {
    for seed in 1..=3 {
        let mut crowd = Crowd::start(seed, 100, Direction::ToServer, 200, Link::default().delay(ms(25)));
        let id = crowd.bottleneck;
        // 90 % load, and a queue of 100 ms.
        let rate = 11_947_000;
        crowd.net.set_bottleneck(id, rate, rate as usize / 80);
        crowd.net.run_for(secs(5));
        crowd.net.set_bottleneck(id, rate * 3 / 10, rate as usize / 80);
        crowd.net.run_for(secs(2));
        crowd.net.set_bottleneck(id, rate, rate as usize / 80);
        crowd.net.run_for(secs(10));
        let after = crowd.measure(secs(5));
        println!("seed {seed}: {after:?}");
        assert!(after.p99 < ms(500), "seed {seed}: {after:?}");
        assert!(after.loss < 0.005, "seed {seed}: {after:?}");
    }
}

#[test]
fn w123_a_window_does_not_grow_while_only_the_limit_by_delay_holds_a_stream_back() {
    let mut crowd = Crowd::start(1, 10, Direction::ToServer, 200, Link::default().delay(ms(25)));
    let id = crowd.bottleneck;
    // 90 % load, and a queue of 100 ms.
    let rate = 1_194_667;
    crowd.net.set_bottleneck(id, rate, rate as usize / 80);
    crowd.net.run_for(secs(5));
    crowd.net.set_bottleneck(id, rate * 3 / 10, rate as usize / 80);
    crowd.net.run_for(secs(2));
    crowd.net.set_bottleneck(id, rate, rate as usize / 80);
    crowd.net.run_for(secs(2));
    let windows = |crowd: &Crowd| (0..10).map(|player| crowd.sender_stats(player).window).collect::<Vec<_>>();
    let before = windows(&crowd);
    crowd.net.run_for(secs(6));
    let after = windows(&crowd);
    println!("{before:?}, {after:?}");
    assert!((0..10).any(|player| crowd.sender_stats(player).unacked > 20), "they are still behind");
    assert!(before.iter().zip(&after).all(|(before, after)| after * 4 <= before * 5), "{before:?}, {after:?}");
}

#[test]
fn w123_players_who_send_and_receive_on_a_full_link_catch_up_after_a_dip() {
    let mut crowd = Crowd::start(1, 30, Direction::Both, 265, Link::default().delay(ms(10)));
    let ids = [crowd.bottleneck, crowd.second_bottleneck];
    let set_rate = |crowd: &mut Crowd, rate| ids.iter().for_each(|id| crowd.net.set_bottleneck(*id, rate, QUEUE));
    // 86 % load, with acks.
    set_rate(&mut crowd, RATE);
    crowd.net.run_for(secs(5));
    let before = crowd.measure(secs(5));
    set_rate(&mut crowd, RATE * 3 / 10);
    crowd.net.run_for(secs(1));
    set_rate(&mut crowd, RATE);
    crowd.net.run_for(secs(30));
    let after = crowd.measure(secs(5));
    println!("{before:?}, {after:?}");
    assert!(after.p99 < 2 * before.p99, "p99 {:?} before, {:?} after", before.p99, after.p99);
}
