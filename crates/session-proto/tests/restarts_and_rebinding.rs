//! Clients and servers that restart, change their address, and reuse each other's slots.

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{ClientConfig, ClientEvent, DisconnectReason, Encryption, ONLY_CHANNEL, ServerEvent};

const LINK: fn() -> Link = || Link::default().delay(ms(25));

#[test]
fn s13_a_client_that_restarts_on_the_same_port_is_connected_within_a_second() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut pair = Pair::connect(1, LINK(), encryption.clone());
        // The server sends all the time, so datagrams of the old session are in flight.
        for number in 0..50 {
            pair.server_send(&numbered(number, 100));
            pair.net.run_for(ms(7));
        }
        let restarted = ClientApp::new(pair.net.now(), SERVER.into(), client_config(encryption), 77);
        pair.net.replace(pair.client, restarted);
        for number in 50..150 {
            pair.net.with(pair.server, |app, now| {
                let players: Vec<_> = app.endpoint.players().collect();
                for player in players {
                    let _ = app.endpoint.send(now, player, ONLY_CHANNEL, &numbered(number, 100));
                }
            });
            pair.net.run_for(ms(7));
        }
        assert!(pair.client().client.is_connected());
        assert_eq!(pair.server().connect_count(), 2);
        assert_eq!(pair.server().disconnects(), [DisconnectReason::Replaced]);
        pair.net.run_for(secs(1));
        // The new client receives everything from the start of its own session on, and nothing from before.
        let received: Vec<u32> = pair.client().received.iter().map(|(_, message)| number_of(message)).collect();
        assert!(!received.is_empty() && received[0] > 50, "{received:?}");
        assert!(received.iter().copied().eq(received[0]..150), "{received:?}");
    }
}

#[test]
fn s17_a_reused_slot_leaks_nothing_of_the_previous_player() {
    let mut config = server_config();
    config.max_players = 1;
    let mut pair = Pair::start(1, LINK(), config, client_config(Encryption::Plain));
    pair.wait_for_player();
    // Much is in flight to the first player when it vanishes.
    for number in 0..1000 {
        pair.server_send(&numbered(number, 400));
        pair.client_send(&numbered(number, 400));
    }
    let first = pair.server().player();
    pair.net.run_for(ms(30));
    pair.net.remove(pair.client);
    pair.net.run_for(secs(25));
    assert_eq!(pair.server().disconnects(), [DisconnectReason::TimedOut]);
    pair.net.with(pair.server, |app, _| app.received.clear());
    let app = ClientApp::new(pair.net.now(), SERVER.into(), client_config(Encryption::Plain), 8);
    let second = pair.net.add(([10, 0, 1, 2], 1_000), app);
    pair.net.run_for(secs(2));
    let player = pair.server().player();
    assert_eq!(player.index(), first.index());
    assert_ne!(player, first);
    pair.net.with(pair.server, |app, now| app.endpoint.send(now, player, ONLY_CHANNEL, b"for you").unwrap());
    pair.net.with(second, |app, now| app.client.send(now, ONLY_CHANNEL, b"for me").unwrap());
    pair.net.run_for(secs(2));
    let received: Vec<_> = pair.net.machine(second).received.iter().map(|(_, message)| message.clone()).collect();
    assert_eq!(received, [b"for you".to_vec()]);
    assert_eq!(pair.server_received().len(), 1);
}

#[test]
fn s31_rebinding_in_mid_stream_loses_nothing() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut pair = Pair::connect(1, LINK().loss(0.02), encryption);
        for number in 0..600 {
            if number % 100 == 50 {
                pair.net.rebind(pair.client, ([10, 0, 1, 1], 2_000 + number as u16));
            }
            pair.client_send(&numbered(number, 100));
            pair.server_send(&numbered(number, 100));
            pair.net.run_for(ms(16));
        }
        pair.net.run_for(secs(2));
        assert_eq!((pair.server_received().len(), pair.client().received.len()), (600, 600));
        let moves = pair.server().events.iter().filter(|(_, event)| matches!(event, ServerEvent::Moved(..))).count();
        assert_eq!(moves, 6);
    }
}

#[test]
fn w34_a_download_continues_at_a_new_address_even_with_the_smallest_window_and_high_loss() {
    for (window, loss) in [(4_096, 0.0), (4_096, 0.2), (64, 0.2)] {
        let mut server = server_config();
        let mut client = client_config(Encryption::Encrypted);
        server.connection.window = window;
        client.connection.window = window;
        let mut pair = Pair::start(1, LINK().loss(loss), server, client);
        pair.wait_for_player();
        let mut sent = 0;
        for step in 0..600 {
            if step % 200 == 100 {
                pair.net.rebind(pair.client, ([10, 0, 1, 1], 4_000 + step));
            }
            pair.net.with(pair.server, |app, now| {
                let player = app.player();
                while app.endpoint.send(now, player, ONLY_CHANNEL, &numbered(sent, 400)).is_ok() {
                    sent += 1;
                }
            });
            pair.net.run_for(ms(10));
        }
        pair.net.run_for(secs(5));
        let received: Vec<u32> = pair.client().received.iter().map(|(_, message)| number_of(message)).collect();
        assert!(received.into_iter().eq(0..sent), "window {window}, loss {loss}");
        let times: Vec<_> = pair.client().received.iter().map(|(at, _)| *at).collect();
        let stall = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
        println!("window {window}, loss {loss}: {sent} messages, longest pause {stall:?}");
        // A client that only receives notices after the keepalive interval that its address has changed.
        assert!(stall < secs(3), "{stall:?}");
        assert_eq!(pair.server().disconnects(), []);
    }
}

#[test]
fn s31_a_client_that_only_receives_is_found_at_its_new_address() {
    let mut pair = Pair::plain(1, LINK());
    pair.net.run_for(secs(1));
    pair.net.rebind(pair.client, ([10, 0, 1, 1], 3_000));
    for number in 0..600 {
        pair.server_send(&numbered(number, 100));
        pair.net.run_for(ms(16));
    }
    pair.net.run_for(secs(2));
    assert_eq!(pair.client().received.len(), 600);
    assert_eq!(pair.server().disconnects(), []);
}

#[test]
fn s31_acks_and_keepalives_never_move_a_session() {
    let mut pair = Pair::plain(1, LINK());
    let forger = ([6, 6, 6, 6], 6);
    for number in 0..100 {
        for datagram in [&[0x33][..], &[0xcc], b"\xff\x01\0\0\0\0\xff\xff\xff\xff", b"\xaa\x01\0\0\0\0\xff\xff\xff\xff"]
        {
            pair.net.inject(forger, SERVER, datagram);
        }
        pair.server_send(&numbered(number, 100));
        pair.net.run_for(ms(16));
    }
    pair.net.run_for(secs(1));
    assert_eq!(pair.client().received.len(), 100);
    assert!(!pair.server().events.iter().any(|(_, event)| matches!(event, ServerEvent::Moved(..))));
}

#[test]
fn s32_a_server_restart_is_noticed_at_once() {
    let mut config = client_config(Encryption::Encrypted);
    config.reconnect = true;
    let mut pair = Pair::start(1, LINK(), server_config(), config);
    pair.wait_for_player();
    pair.net.run_for(secs(1));
    pair.net.replace(pair.server, ServerApp::with_seed(server_config(), 9));
    let restart = pair.net.now();
    pair.client_send(b"are you there?");
    pair.net.run_for(secs(3));
    let when = |wanted: &ClientEvent| {
        let event = pair.client().events.iter().find(|(at, event)| *at > restart && event == wanted);
        event.unwrap_or_else(|| panic!("{:?}", pair.client().events)).0 - restart
    };
    assert!(when(&ClientEvent::Closing) <= ms(50));
    assert!(when(&ClientEvent::Disconnected(DisconnectReason::ClosedByPeer("unknown session".into()))) <= ms(1_100));
    assert!(when(&ClientEvent::Connected) <= ms(1_500), "and it has logged in again");
    assert_eq!(pair.server().connect_count(), 1);
}

#[test]
fn s32_data_of_unknown_sessions_is_answered_once_per_second_and_network() {
    let mut pair = Pair::plain(1, LINK());
    pair.net.run_for(secs(1));
    // Well-formed data of a session that never existed.
    let mut data = b"\x05\0\0\0\0\0\0\0\0\x07\x01\x01\x01\x01\x02\x02\x02\x02\x02\x02\x02\x02\0\0".to_vec();
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    let crc = !data[5..].iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)));
    data[1..5].copy_from_slice(&crc.to_le_bytes());
    let before = pair.server().endpoint.stats().unvalidated_bytes;
    for number in 0..3_000u32 {
        pair.net.inject(([11, 0, 0, number as u8], 5), SERVER, &data);
        pair.net.run_for(ms(1));
    }
    let sent = pair.server().endpoint.stats().unvalidated_bytes - before;
    assert!((32..=64).contains(&sent), "{sent}");
}

#[test]
fn a_client_that_closes_does_not_reconnect() {
    let config = ClientConfig { reconnect: true, ..client_config(Encryption::Plain) };
    let mut pair = Pair::start(1, LINK(), server_config(), config);
    pair.wait_for_player();
    // The server has restarted and does not know the session, while the client still has something to deliver.
    pair.net.replace(pair.server, ServerApp::with_seed(server_config(), 9));
    pair.client_send(b"one more thing");
    pair.net.with(pair.client, |app, now| app.client.close(now));
    pair.net.run_for(secs(30));
    assert!(!pair.client().client.is_connected());
    assert_eq!(pair.server().connect_count(), 0);
}
