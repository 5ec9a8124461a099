//! Forged acks neither slow a session down nor lose its messages, and a stream that can never continue ends with a reason
//! (S24, W62, W63).

use crate::common;

use common::{forge::*, *};
use rallypoint_netsim::Link;
use rallypoint_session_proto::{Connection, DisconnectReason, Encryption, ONLY_CHANNEL};
use std::time::Duration;

/// A download from the server through 2 MB/s, RTT 50 ms.
struct Download {
    pair: Pair,
    tap: Wiretap,
    sent: u32,
}

impl Download {
    fn start(encryption: Encryption) -> Self {
        Self::with_seed(5, encryption)
    }

    fn with_seed(seed: u64, encryption: Encryption) -> Self {
        let mut pair = Pair::connect(seed, Link::default().delay(ms(25)).bottleneck(16_000_000, 100_000), encryption);
        let tap = Wiretap::attach(&mut pair.net);
        let mut download = Self { pair, tap, sent: 0 };
        download.run_for(secs(5), |_, _| {});
        download
    }

    /// Lets time pass in steps of 1 ms, with the send window always full. Returns the goodput in bytes per second.
    fn run_for(&mut self, duration: Duration, mut forge: impl FnMut(&mut Pair, u32)) -> f64 {
        let before = self.pair.client().received.len();
        let end = self.pair.net.now() + duration;
        while self.pair.net.now() < end {
            let server = self.pair.server;
            self.pair.net.with(server, |app, now| {
                let player = app.player();
                while app.endpoint.send(now, player, ONLY_CHANNEL, &numbered(self.sent, 400)).is_ok() {
                    self.sent += 1;
                }
            });
            if let Some(newest) = newest_number(&self.tap.sent(SERVER, &[PLAIN, SEALED])) {
                forge(&mut self.pair, newest);
            }
            self.tap.clear();
            self.pair.net.run_for(ms(1));
        }
        (self.pair.client().received.len() - before) as f64 * 400.0 / duration.as_secs_f64()
    }

    fn stats(&self) -> rallypoint_session_proto::ConnectionStats {
        let server = self.pair.server();
        server.endpoint.connection(server.player()).map(Connection::stats).unwrap()
    }

    /// Waits until everything that was sent has arrived, in order.
    fn finish(mut self) {
        let count = self.sent as usize;
        let client = self.pair.client;
        // Messages that a forger has acked during an outage are resent at 32 kB/s once nothing else is left to send (W61).
        self.pair.net.run_while(secs(60), |net| net.machine(client).received.len() < count);
        let received = self.pair.client().received.iter().map(|(_, message)| number_of(message));
        let arrived = self.pair.client().received.len();
        assert!(received.eq(0..self.sent), "{arrived} of {count}, {:?}", self.pair.client().events);
    }
}

#[test]
fn w62_a_forged_ack_of_a_message_just_sent_does_not_slow_a_download() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut download = Download::start(encryption);
        let before = download.run_for(secs(3), |_, _| {});
        let mut forged = false;
        let after = download.run_for(secs(3), |pair, newest| {
            if !std::mem::replace(&mut forged, true) {
                pair.net.inject(CLIENT, SERVER, &number_list(ACK, [newest]));
            }
        });
        let stats = download.stats();
        assert!(stats.rtt_min >= ms(37), "{stats:?}");
        assert!(after > 0.9 * before, "{after} instead of {before} bytes per second");
        download.finish();
    }
}

#[test]
fn w62_a_stream_of_forged_acks_does_not_slow_a_download() {
    // The newest number, some of the newest, and numbers that are not sent yet, every 10 ms.
    for ahead in [0, 30] {
        let mut download = Download::start(Encryption::Plain);
        let before = download.run_for(secs(3), |_, _| {});
        let mut round = 0;
        let after = download.run_for(secs(6), |pair, newest| {
            round += 1;
            if round % 10 == 0 {
                let numbers = newest.saturating_sub(20) + ahead..=newest + ahead;
                pair.net.inject(CLIENT, SERVER, &number_list(ACK, numbers));
            }
        });
        let stats = download.stats();
        assert!(stats.rtt_min >= ms(37), "{stats:?}");
        assert!(after > 0.8 * before, "{after} instead of {before} bytes per second, {ahead} ahead");
        download.finish();
    }
}

/// Goodput of the first 6 s of a download, with this RTT in milliseconds and an empty queue at first, relative to one without
/// forged acks.
fn goodput_with_forged_acks(rtt: u64, encryption: &Encryption, forge: impl Fn(u32, u32) -> Vec<u32>) -> f64 {
    let run = |is_forged: bool| {
        let link = Link::default().delay(ms(rtt) / 2).bottleneck(16_000_000, 2_000 * rtt as usize);
        let mut pair = Pair::connect(4, link, encryption.clone());
        let tap = Wiretap::attach(&mut pair.net);
        let mut download = Download { pair, tap, sent: 0 };
        let mut round = 0;
        let goodput = download.run_for(secs(6), |pair, newest| {
            round += 1;
            let numbers = forge(round, newest);
            if is_forged && !numbers.is_empty() {
                pair.net.inject(CLIENT, SERVER, &number_list(ACK, numbers));
            }
        });
        let stats = download.stats();
        assert!(stats.rtt_min >= ms(rtt) / 2, "RTT {rtt} ms, {encryption:?}: {stats:?}");
        download.finish();
        goodput
    };
    run(true) / run(false)
}

#[test]
fn w62_a_forged_ack_at_the_beginning_does_not_slow_a_download() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        // A login on the longer path is repeated, so it does not measure the round trip.
        for rtt in [20, 150] {
            let share = goodput_with_forged_acks(
                rtt,
                &encryption,
                |round, newest| {
                    if round == 1 { vec![newest] } else { Vec::new() }
                },
            );
            assert!(share > 0.9, "{encryption:?}, RTT {rtt} ms: {share}");
        }
    }
}

#[test]
fn w62_acks_that_are_each_a_little_too_early_do_not_slow_a_download() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        // Every 7 ms one of the last 200 numbers, which were sent up to 40 ms ago; or every 50 ms the last 61.
        let one = |round: u32, newest: u32| {
            let number = newest.saturating_sub((round.wrapping_mul(0x9e37_79b9) >> 16) % 200);
            if round.is_multiple_of(7) { vec![number] } else { Vec::new() }
        };
        let many = |round: u32, newest: u32| {
            if round.is_multiple_of(50) { (newest.saturating_sub(60)..=newest).collect() } else { Vec::new() }
        };
        let shares = [goodput_with_forged_acks(20, &encryption, one), goodput_with_forged_acks(20, &encryption, many)];
        assert!(shares.iter().all(|share| *share > 0.8), "{encryption:?}: {shares:?}");
    }
}

#[test]
fn w62_very_many_forged_acks_from_the_beginning_do_not_stop_a_download() {
    // The login measures these round trips, because it is not repeated.
    for (rtt, encryption) in [(20, Encryption::Plain), (20, Encryption::Encrypted), (50, Encryption::Plain)] {
        // Every millisecond the newest number, the newest 63, or 63 around 0.4 round trips ago: more bytes than those of all genuine
        // acks together.
        let age = 2 * rtt as u32;
        let shares = [
            goodput_with_forged_acks(rtt, &encryption, |_, newest| vec![newest]),
            goodput_with_forged_acks(rtt, &encryption, |_, newest| (newest.saturating_sub(62)..=newest).collect()),
            goodput_with_forged_acks(rtt, &encryption, |_, newest| {
                (newest.saturating_sub(age + 62)..=newest.saturating_sub(age)).collect()
            }),
        ];
        println!("{encryption:?}, RTT {rtt} ms: {shares:.2?}");
        assert!(shares.iter().all(|share| *share > 0.3), "{encryption:?}, RTT {rtt} ms: {shares:.2?}");
    }
}

#[test]
fn w62_a_path_that_becomes_shorter_is_noticed() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(100)));
    let play = |pair: &mut Pair| {
        for number in 0..120 {
            pair.server_send(&numbered(number, 80));
            pair.net.run_for(ms(16));
        }
    };
    play(&mut pair);
    pair.net.set_default_link(Link::default().delay(ms(10)));
    play(&mut pair);
    let server = pair.server();
    let stats = server.endpoint.connection(server.player()).unwrap().stats();
    assert!(stats.rtt_min < ms(50) && stats.rtt.unwrap() < ms(60), "{stats:?}");
}

#[test]
fn w63_forged_acks_over_an_outage_lose_no_message_of_a_game() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut pair = Pair::connect(3, Link::default().delay(ms(25)), encryption);
        let mut next = 0;
        let mut play = |pair: &mut Pair, messages: u32, is_forged: bool| {
            for _ in 0..messages {
                pair.client_send(&numbered(next, 100));
                pair.server_send(&numbered(next, 100));
                next += 1;
                if is_forged {
                    for number in next.saturating_sub(40)..next + 5 {
                        pair.net.inject(CLIENT, SERVER, &number_list(ACK, [number]));
                        pair.net.inject(SERVER, CLIENT, &number_list(ACK, [number]));
                    }
                }
                pair.net.run_for(Duration::from_micros(16_667));
            }
        };
        play(&mut pair, 120, false);
        pair.net.partition(pair.client, pair.server, true);
        play(&mut pair, 90, true);
        pair.net.partition(pair.client, pair.server, false);
        play(&mut pair, 120, false);
        pair.net.run_for(secs(5));
        let server: Vec<u32> = pair.server_received().iter().map(|(_, message)| number_of(message)).collect();
        let client: Vec<u32> = pair.client().received.iter().map(|(_, message)| number_of(message)).collect();
        assert!(server.iter().copied().eq(0..330), "{} of 330", server.len());
        assert!(client.iter().copied().eq(0..330), "{} of 330", client.len());
    }
}

#[test]
fn w63_forged_acks_over_an_outage_lose_no_message_of_a_download() {
    for (seed, encryption) in
        [(5, Encryption::Plain), (5, Encryption::Encrypted), (6, Encryption::Encrypted), (7, Encryption::Encrypted)]
    {
        let mut download = Download::with_seed(seed, encryption);
        let (client, server) = (download.pair.client, download.pair.server);
        download.pair.net.partition(client, server, true);
        download.run_for(ms(1_500), |pair, newest| {
            // Everything that was sent within the last 100 ms.
            for first in (newest.saturating_sub(500)..newest).step_by(60) {
                pair.net.inject(CLIENT, SERVER, &number_list(ACK, first..(first + 60).min(newest)));
            }
        });
        download.pair.net.partition(client, server, false);
        download.finish();
    }
}

#[test]
fn w63_a_stream_that_hangs_ends_with_a_reason() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        // The client never sends the numbers 0 to 9, and fills the window behind them.
        let mut config = client_config(encryption);
        config.connection.first_number = 10;
        config.connection.window = 256;
        let mut server = server_config();
        server.connection.window = 64;
        let mut pair = Pair::start(1, Link::default().delay(ms(10)), server, config);
        pair.wait_for_player();
        for number in 0..100 {
            pair.client_send(&numbered(number, 40));
        }
        pair.net.run_for(secs(8));
        assert_eq!(pair.server().disconnects(), []);
        pair.net.run_for(secs(8));
        assert_eq!(pair.server().disconnects(), [DisconnectReason::Stalled]);
    }
}
