//! A client without answers probes whether its address has changed. With a full window it does so within limits (W78).

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{Connection, Encryption, ONLY_CHANNEL};

const WINDOW: usize = 64;

fn pair(encryption: Encryption) -> Pair {
    let mut server = server_config();
    let mut client = client_config(encryption);
    for connection in [&mut server.connection, &mut client.connection] {
        connection.window = WINDOW;
        connection.idle_timeout = secs(300);
        connection.ack_timeout = secs(300);
    }
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), server, client);
    pair.wait_for_player();
    pair.net.run_for(secs(1));
    pair
}

fn unacked(pair: &Pair) -> usize {
    pair.client().client.connection().map(Connection::stats).unwrap().unacked
}

/// Sends as many messages as the window admits, and returns their number.
fn fill_window(pair: &mut Pair) -> usize {
    let client = pair.client;
    let mut count = 0;
    while pair.net.with(client, |app, now| app.client.send(now, ONLY_CHANNEL, &numbered(count as u32, 100))).is_ok() {
        count += 1;
    }
    count
}

#[test]
fn w78_probes_stay_within_what_a_peer_that_has_received_everything_accepts() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut pair = pair(encryption);
        pair.net.partition(pair.client, pair.server, true);
        let count = fill_window(&mut pair);
        assert_eq!(count, WINDOW);
        pair.net.run_for(secs(120));
        assert!(unacked(&pair) < 2 * WINDOW, "{} messages", unacked(&pair));
        pair.net.partition(pair.client, pair.server, false);
        pair.net.run_for(secs(5));
        assert_eq!(pair.server_received().len(), count);
        assert_eq!(unacked(&pair), 0);
    }
}

#[test]
fn w78_a_client_with_a_full_window_is_found_at_its_new_address() {
    // In one direction at a time: what the server has received is a full window, or nothing of it.
    for (is_received, encryption) in [
        (true, Encryption::Plain),
        (false, Encryption::Plain),
        (true, Encryption::Encrypted),
        (false, Encryption::Encrypted),
    ] {
        let mut pair = pair(encryption);
        let client = pair.client;
        let server = pair.server;
        let cut = Link::default().delay(ms(25)).loss(1.0);
        pair.net.set_link(server, client, cut);
        if !is_received {
            pair.net.set_link(client, server, cut);
        }
        let count = fill_window(&mut pair);
        pair.net.run_for(secs(10));
        pair.net.rebind(client, ([10, 0, 1, 2], 2_000));
        pair.net.set_link(server, client, Link::default().delay(ms(25)));
        pair.net.set_link(client, server, Link::default().delay(ms(25)));
        pair.net.run_for(secs(3));
        assert_eq!(pair.server_received().len(), count, "received {is_received}");
        assert_eq!(unacked(&pair), 0, "received {is_received}");
        assert_eq!(pair.server().connect_count(), 1);
    }
}
