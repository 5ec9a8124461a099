//! Acks with strange orders and repetitions of numbers, from a forger or a hostile peer (W82).

use crate::common;

use common::{forge::*, *};
use rallypoint_machine::Machine;
use rallypoint_netsim::{FilterAction, Link, Rng};
use rallypoint_session_proto::{ConnectionStats, Encryption, ONLY_CHANNEL};
use std::time::Duration;

/// A server with 63 messages that were resent and then acked, so that acks can still say something about their first
/// transmissions; or that were acked at once.
fn acked_messages(is_resent: bool) -> Pair {
    let mut pair = Pair::plain(1, Link::default().delay(ms(10)));
    pair.net.run_for(secs(1));
    if is_resent {
        let server = SERVER.into();
        pair.net.set_filter(move |packet| {
            if packet.from == server && packet.bytes[0] == PLAIN { FilterAction::Drop } else { FilterAction::Pass }
        });
    }
    for number in 0..63 {
        pair.server_send(&numbered(number, 20));
        pair.net.run_for(ms(1));
    }
    pair.net.run_for(ms(100));
    pair.net.clear_filter();
    pair.net.run_for(secs(3));
    assert_eq!(pair.client().received.len(), 63);
    pair
}

#[test]
fn w82_one_ack_tells_of_few_messages_how_often_they_arrived() {
    let mut pair = acked_messages(true);
    let loss = |app: &ServerApp| app.endpoint.connection(app.player()).unwrap().stats().loss;
    // All but the first are repetitions before newer ones, so each seems to have arrived four times. Each of them takes a pass over
    // the list: a peer repeats no more than eight.
    let ack = number_list(ACK, [62].into_iter().chain((0..60).map(|index| index / 3)));
    let losses = pair.net.with(pair.server, |app, now| {
        let before = loss(app);
        app.endpoint.handle_datagram(now, CLIENT.into(), &ack);
        let after_one = loss(app);
        (0..20).for_each(|_| app.endpoint.handle_datagram(now, CLIENT.into(), &ack));
        [before, after_one, loss(app)]
    });
    let [before, after_one, after_all] = losses;
    assert!(after_one > after_all + 0.01 && after_one < before, "{losses:?}");
}

/// A list of numbers up to `newest`, in one of many orders, with repetitions.
fn strange_list(rng: &mut Rng, newest: u32) -> Vec<u32> {
    let len = 1 + rng.below(63) as usize;
    let span = [1, 4, 16, 63, 300][rng.below(5) as usize];
    let back = rng.below(3) as u32 * rng.below(400) as u32 / 2;
    let mut list: Vec<u32> =
        (0..len).map(|_| newest.saturating_sub(back).saturating_sub(rng.below(span) as u32)).collect();
    match rng.below(6) {
        0 => list.sort_unstable(),
        1 => list.sort_unstable_by(|a, b| b.cmp(a)),
        2 => list = vec![list[0]; len],
        // The newest first, so that all others are repetitions, some of them before newer ones.
        3 => list.insert(0, newest),
        4 => {
            list.sort_unstable();
            list.insert(0, newest);
        }
        _ => {}
    }
    list.truncate(63);
    list
}

fn check(stats: &ConnectionStats, what: &str) {
    assert!((0.0..=1.0).contains(&stats.loss), "{what}: {stats:?}");
    assert!(stats.rtt.is_none_or(|rtt| rtt <= secs(60)), "{what}: {stats:?}");
    assert!(stats.rtt_min <= secs(60) && stats.rtt_variation <= secs(60), "{what}: {stats:?}");
    assert!(stats.window < 1 << 40 && stats.rate < 1 << 40, "{what}: {stats:?}");
    assert!(stats.in_flight <= 1 << 30, "{what}: {stats:?}");
}

/// A game at 60 messages per second in both directions, with loss, and forged acks in both, and resend requests if
/// `has_requests`. All messages arrive, most of them in time.
fn attacked_game(seed: u64, loss: f64, forged_per_frame: u32, has_requests: bool) {
    let mut rng = Rng::new(seed);
    let delay = ms(1 + rng.below(100));
    let encryption = if seed.is_multiple_of(2) { Encryption::Plain } else { Encryption::Encrypted };
    let mut pair = Pair::connect(seed, Link::default().delay(delay).loss(loss), encryption);
    for number in 0..600 {
        let what = format!("seed {seed}, loss {loss}, {forged_per_frame} per frame, message {number}");
        pair.server_send(&numbered(number, 60));
        pair.client_send(&numbered(number, 60));
        for _ in 0..forged_per_frame {
            let kind = if has_requests && rng.chance(0.3) { RESEND } else { ACK };
            let list = strange_list(&mut rng, number);
            let (from, to) = if rng.chance(0.5) { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
            pair.net.inject(from, to, &number_list(kind, list));
        }
        pair.net.run_for(Duration::from_micros(16_667));
        let server = pair.server();
        check(&server.endpoint.connection(server.player()).unwrap().stats(), &what);
        check(&pair.client().client.connection().unwrap().stats(), &what);
    }
    // A message whose ack was forged is requested when a later one arrives (S24).
    for number in 600..660 {
        pair.server_send(&numbered(number, 60));
        pair.client_send(&numbered(number, 60));
        pair.net.run_for(Duration::from_micros(16_667));
    }
    let what = format!("seed {seed}, loss {loss}, {forged_per_frame} per frame, requests {has_requests}");
    let count = |pair: &Pair| [pair.server_received().len(), pair.client().received.len()];
    let at_end = count(&pair);
    assert!(at_end.iter().all(|count| *count > 400), "{what}: {at_end:?} of 660 messages were delivered in time");
    pair.net.run_for(secs(8));
    let received = [pair.server_received(), &pair.client().received];
    for received in received {
        assert!(received.iter().map(|(_, message)| number_of(message)).eq(0..660), "{what}: {}", received.len());
    }
}

/// Each of them repeats old numbers, as if their first acks had been forged: that must not make the path seem longer than it is.
#[test]
fn w62_acks_that_repeat_old_numbers_do_not_delay_a_game() {
    for seed in 0..12 {
        for loss in [0.0, 0.05, 0.1] {
            for has_requests in [false, true] {
                attacked_game(seed, loss, 3, has_requests);
            }
        }
    }
}

/// The first seconds of a download on a lossy path, with acks forged every millisecond.
fn download(seed: u64, loss: f64, forge: impl Fn(&mut Rng, u32) -> Vec<u32>) {
    let mut rng = Rng::new(seed);
    let link = Link::default().delay(ms(75)).loss(loss).bottleneck(16_000_000, 300_000);
    let mut pair = Pair::plain(seed, link);
    let tap = Wiretap::attach(&mut pair.net);
    let (mut sent, mut newest) = (0, 0);
    for _ in 0..4_000 {
        pair.net.with(pair.server, |app, now| {
            let player = app.player();
            while app.endpoint.send(now, player, ONLY_CHANNEL, &numbered(sent, 400)).is_ok() {
                sent += 1;
            }
        });
        newest = newest_number(&tap.sent(SERVER, &[PLAIN])).map_or(newest, |number| newest.max(number));
        tap.clear();
        let numbers = forge(&mut rng, newest);
        if newest > 0 {
            pair.net.inject(CLIENT, SERVER, &number_list(ACK, numbers));
        }
        pair.net.run_for(ms(1));
        let server = pair.server();
        check(&server.endpoint.connection(server.player()).unwrap().stats(), "download");
    }
    let received = pair.client().received.iter().map(|(_, message)| number_of(message));
    assert!(received.zip(0..).all(|(number, expected)| number == expected), "in order");
}

#[test]
fn w74_forged_acks_at_the_start_of_a_download_leave_its_statistics_sane() {
    for loss in [0.0, 0.03] {
        download(1, loss, |_, newest| vec![newest]);
        download(2, loss, |rng, newest| vec![newest.saturating_sub(rng.below(40) as u32)]);
        download(3, loss, strange_list);
    }
}
