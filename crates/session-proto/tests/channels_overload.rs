//! Players who together send more sequenced or expiring messages than their path carries do not fill its queue (W114).

use crate::common;

use common::{
    SERVER,
    channels::{ClientApp, EXPIRING, SEQUENCED, ServerApp, table},
    ms, number_of, numbered, secs,
};
use rallypoint_netsim::{CubicReceiver, CubicSender, Link, Network, Node};
use rallypoint_session_proto::{ChannelIndex, ClientConfig, Connection, Encryption, EndpointConfig};
use std::time::Duration;

const FRAME: Duration = Duration::from_micros(16_667);
const FRAMES: u32 = 900;
const SIZE: usize = 200;

/// Bytes of a datagram with such a message.
const DATAGRAM: u64 = 24 + 3 + SIZE as u64;

/// The measurements of a run.
struct Measured {
    /// Share of the messages that arrived, of the player with the fewest.
    delivered: f64,
    /// 99 % of those took at most this long.
    p99: Duration,
    /// Number of messages that were resent with their bytes.
    resent: u64,
}

/// Players who send 60 messages per second through a bottleneck of `rate` bits per second with a queue of 100 ms; RTT 50 ms.
fn measure(channel: ChannelIndex, players: u32, rate: u64, has_download: bool) -> Measured {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(25)));
    let bottleneck = net.add_bottleneck(rate, (rate / 80) as usize);
    let server = net.add(SERVER, ServerApp::new(EndpointConfig::for_game("tag").channels(table(SIZE))));
    let clients: Vec<Node<ClientApp>> = (0..players)
        .map(|number| {
            let mut config = ClientConfig::new(&number.to_string(), "tag").channels(table(SIZE));
            config.encryption = Encryption::Plain;
            let app = ClientApp::new(net.now(), config, number as u8 + 2);
            let client = net.add(([10, 1, 0, number as u8], 1_000), app);
            net.pass_bottleneck(client, server, bottleneck);
            client
        })
        .collect();
    let is_connected = net.run_while(secs(10), |net| clients.iter().any(|c| !net.machine(*c).client.is_connected()));
    assert!(is_connected);
    if has_download {
        let receiver = net.add(([10, 0, 2, 1], 2_000), CubicReceiver::default());
        let sender = CubicSender::new(net.now(), net.address(receiver), 1_200);
        let sender = net.add(([10, 0, 2, 2], 2_000), sender);
        net.pass_bottleneck(sender, receiver, bottleneck);
        net.run_for(secs(3));
    }
    let start = net.now();
    for frame in 0..FRAMES {
        for (number, client) in (0..).zip(&clients) {
            net.run_until(start + FRAME * frame + FRAME * number / players);
            let message = numbered(frame << 8 | number, SIZE);
            net.with(*client, |app, now| app.client.send(now, channel, &message)).unwrap();
        }
    }
    let stats = clients.iter().map(|client| net.machine(*client).client.connection().map(Connection::stats).unwrap());
    let resent = stats.map(|stats| stats.resends - stats.discarded).sum();
    net.run_for(secs(2));
    let mut delays = Vec::new();
    let mut counts = vec![0; players as usize];
    for message in &net.machine(server).received {
        let number = number_of(&message.bytes);
        let player = number & 0xff;
        counts[player as usize] += 1;
        delays.push(message.at - (start + FRAME * (number >> 8) + FRAME * player / players));
    }
    delays.sort_unstable();
    let delivered = f64::from(counts.into_iter().min().unwrap()) / f64::from(FRAMES);
    let measured = Measured { delivered, p99: delays[delays.len() * 99 / 100], resent };
    println!("{channel:?}: {:.3} delivered, p99 {:?}, {resent} resent", measured.delivered, measured.p99);
    measured
}

/// The rate at which players need this share of the bottleneck.
fn rate(players: u32, load: f64) -> u64 {
    (f64::from(players) * 60.0 * (DATAGRAM * 8) as f64 / load) as u64
}

#[test]
fn w114_positions_beyond_the_rate_of_the_path_are_skipped_and_the_others_are_fresh() {
    let Measured { delivered, p99, resent } = measure(SEQUENCED, 30, rate(30, 1.1), false);
    // A full queue would take 100 ms more than the 25 ms of the path.
    assert!(p99 < ms(85), "{p99:?}");
    assert!(delivered > 0.75, "{delivered}");
    assert_eq!(resent, 0, "a position that was replaced is never sent again");
}

#[test]
fn w114_expiring_messages_beyond_the_rate_of_the_path_are_dropped_early() {
    let Measured { delivered, p99, .. } = measure(EXPIRING, 30, rate(30, 1.1), false);
    // Much less than the 250 ms for which they are of use.
    assert!(p99 < ms(110), "{p99:?}");
    assert!(delivered > 0.75, "{delivered}");
}

#[test]
fn w114_nothing_is_skipped_below_the_rate_of_the_path() {
    for channel in [SEQUENCED, EXPIRING] {
        let Measured { delivered, p99, .. } = measure(channel, 30, rate(30, 0.9), false);
        assert!(delivered >= 0.999 && p99 < ms(35), "{delivered}, {p99:?}");
    }
}

#[test]
fn w114_positions_are_not_skipped_for_long_because_of_a_download_of_somebody_else() {
    let Measured { delivered, .. } = measure(SEQUENCED, 1, 5_000_000, true);
    assert!(delivered > 0.85, "{delivered}");
}
