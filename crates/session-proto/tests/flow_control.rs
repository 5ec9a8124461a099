//! A receiver that does not read blocks the sender, and nothing is lost (S22, S26).

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{
    Client, ClientConfig, ClientEvent, Encryption, Endpoint, ONLY_CHANNEL, SendError, SessionConfigError,
};

#[test]
fn s22_a_receiver_that_does_not_read_blocks_the_sender() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(25)));
    pair.net.with(pair.server, |app, _| app.is_stalled = true);
    let mut sent = 0;
    let fill = |pair: &mut Pair, sent: &mut u32| {
        pair.net.with(pair.client, |app, now| {
            loop {
                match app.client.send(now, ONLY_CHANNEL, &numbered(*sent, 200)) {
                    Ok(_) => *sent += 1,
                    Err(error) => break assert_eq!(error, SendError::WouldBlock),
                }
            }
        });
    };
    for _ in 0..20 {
        fill(&mut pair, &mut sent);
        pair.net.run_for(ms(200));
    }
    assert!((4_096..=2 * 4_096 + 1).contains(&sent), "{sent}");
    let events = pair.client().events.len();
    let before = pair.net.counters(pair.client, pair.server).sent.bytes;
    pair.net.run_for(secs(20));
    let idle = pair.net.counters(pair.client, pair.server).sent.bytes - before;
    // Two messages every 100 ms probe whether the network works (S25).
    assert!(idle < 100_000, "{idle} bytes in 20 s of waiting");
    // The server starts to read.
    pair.net.with(pair.server, |app, now| {
        app.is_stalled = false;
        let player = app.player();
        app.read_player(now, player);
    });
    pair.net.run_for(secs(2));
    assert!(pair.client().events[events..].iter().any(|(_, event)| *event == ClientEvent::Writable));
    let received: Vec<u32> = pair.server_received().iter().map(|(_, message)| number_of(message)).collect();
    assert!(received.into_iter().eq(0..sent));
}

#[test]
fn s22_memory_for_all_players_is_bounded() {
    let mut config = server_config();
    config.memory = 1 << 20;
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), config, client_config(Encryption::Plain));
    pair.wait_for_player();
    pair.net.with(pair.server, |app, now| {
        let player = app.player();
        while app.endpoint.send(now, player, ONLY_CHANNEL, &[1; 400]).is_ok() {}
    });
    let memory = pair.server().endpoint.stats().memory;
    assert!(memory <= 1 << 20, "{memory}");
    pair.net.run_for(secs(5));
    assert!(pair.client().received.len() > 2_000);
}

#[test]
fn s33_errors_name_the_limit() {
    for (encryption, to_server, to_client) in [(Encryption::Plain, 484, 497), (Encryption::Encrypted, 464, 480)] {
        let mut pair = Pair::connect(1, Link::default().delay(ms(1)), encryption);
        let error = |limit| Err(SendError::TooLarge { limit, length: limit + 1 });
        let too_large = vec![1; to_server + 1];
        let sent = pair.net.with(pair.client, |app, now| app.client.send(now, ONLY_CHANNEL, &too_large));
        assert_eq!(sent, error(to_server));
        assert!(sent.unwrap_err().to_string().contains(&to_server.to_string()));
        pair.client_send(&too_large[1..]);
        let too_large = vec![1; to_client + 1];
        let sent = pair.net.with(pair.server, |app, now| {
            let player = app.player();
            app.endpoint.send(now, player, ONLY_CHANNEL, &too_large)
        });
        assert_eq!(sent, error(to_client));
        pair.server_send(&too_large[1..]);
        pair.net.run_for(ms(100));
        assert_eq!((pair.server_received()[0].1.len(), pair.client().received[0].1.len()), (to_server, to_client));
        assert_eq!(
            pair.net.with(pair.client, |app, now| app.client.send(now, ONLY_CHANNEL, b"")),
            Err(SendError::Empty)
        );
    }
}

#[test]
fn unknown_players_and_invalid_settings_are_errors() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(1)));
    let player = pair.server().player();
    pair.net.with(pair.server, |app, now| app.endpoint.disconnect(now, player, ""));
    pair.net.run_for(secs(3));
    let sent = pair.net.with(pair.server, |app, now| app.endpoint.send(now, player, ONLY_CHANNEL, b"hello"));
    assert_eq!(sent, Err(SendError::UnknownPlayer));
    assert!(pair.net.with(pair.server, |app, _| app.endpoint.recv(player).is_none()));

    let mut config = server_config();
    config.connection.window = 63;
    let error = Endpoint::new(config, [1; 32]).unwrap_err();
    assert_eq!(error.to_string(), "window is 63: use 64 to 16384");
    let config = ClientConfig::new("a\nb", "tag");
    let error = Client::new(pair.net.now(), SERVER.into(), config, [1; 32]).unwrap_err();
    assert_eq!(error, SessionConfigError::Username);
}
