//! Messages that are handed over to the connection without a queue keep the promises of those that wait in one (W111).

use crate::common;

use common::{
    channels::{ChannelPair, ClientApp, EXPIRING, ORDERED, SEQUENCED, table},
    *,
};
use rallypoint_netsim::Link;
use rallypoint_session_proto::{ChannelIndex, ClientConfig, ConnectionStats, EndpointConfig, PlayerId, SendError};

/// Enough frames for small messages to be expected alone.
const FRAMES: u32 = 100;

fn pair() -> ChannelPair {
    ChannelPair::connect(1, Link::default().delay(ms(25)), &table(1_000))
}

/// Sends messages from the server in one frame, with numbers from `first` on.
fn send_frame(pair: &mut ChannelPair, channel: ChannelIndex, first: u32, count: u32, length: usize) {
    pair.net.with(pair.server, |app, now| {
        for number in first..first + count {
            app.server.send(now, app.player(), channel, &numbered(number, length)).unwrap();
        }
    });
    pair.net.run_for(ms(16));
}

fn stats(pair: &ChannelPair) -> ConnectionStats {
    pair.server().server.connection(pair.server().player()).unwrap().stats()
}

fn numbers(pair: &ChannelPair) -> Vec<u32> {
    pair.client().received.iter().map(|message| number_of(&message.bytes)).collect()
}

#[test]
fn w111_the_second_position_of_a_frame_replaces_the_first_although_that_was_handed_over() {
    for length in [50, 400] {
        let mut pair = pair();
        for frame in 0..FRAMES {
            send_frame(&mut pair, SEQUENCED, frame, 1, length);
        }
        let before = stats(&pair);
        for frame in 0..FRAMES {
            send_frame(&mut pair, SEQUENCED, FRAMES + 3 * frame, 3, length);
        }
        pair.net.run_for(secs(1));
        let newest: Vec<u32> = (0..FRAMES).map(|frame| FRAMES + 3 * frame + 2).collect();
        assert_eq!(numbers(&pair)[FRAMES as usize..], newest, "{length} bytes");
        // Only now and then a message without bytes takes the number of one that was replaced.
        let sent = stats(&pair).messages_sent - before.messages_sent;
        assert!((FRAMES.into()..u64::from(FRAMES) + 5).contains(&sent), "{sent} messages of {length} bytes");
    }
}

#[test]
fn small_messages_are_packed_as_soon_as_a_frame_has_more_than_one() {
    for channel in [ORDERED, EXPIRING] {
        let mut pair = pair();
        for frame in 0..FRAMES {
            send_frame(&mut pair, channel, frame, 1, 50);
        }
        let before = stats(&pair);
        for frame in 0..FRAMES {
            send_frame(&mut pair, channel, FRAMES + 4 * frame, 4, 50);
        }
        pair.net.run_for(secs(1));
        assert!(numbers(&pair).into_iter().eq(0..5 * FRAMES));
        let sent = stats(&pair).messages_sent - before.messages_sent;
        assert!(sent <= u64::from(FRAMES) + 2, "{sent} payloads");
    }
}

#[test]
fn w111_an_expiring_message_without_a_queue_is_not_resent_when_it_is_late() {
    let mut pair = pair();
    let (client, server) = (pair.client, pair.server);
    for frame in 0..FRAMES {
        send_frame(&mut pair, EXPIRING, frame, 1, 400);
    }
    pair.net.partition(client, server, true);
    send_frame(&mut pair, EXPIRING, FRAMES, 1, 400);
    pair.net.run_for(ms(300));
    pair.net.partition(client, server, false);
    pair.net.run_for(secs(3));
    assert!(numbers(&pair).into_iter().eq(0..FRAMES), "a quarter of a second is over");
    assert!((1..=2).contains(&stats(&pair).discarded), "and the one before it, if its ack was lost");
}

/// The queues of the others take all memory (W124): the next position is refused, and the last one is sent all the same.
#[test]
fn w111_a_refused_position_does_not_replace_one_that_was_handed_over() {
    let mut server = EndpointConfig::for_game("tag").channels(table(60_000));
    server.memory = 1 << 20;
    server.max_players = 64;
    let client = ClientConfig::new("alice", "tag").channels(table(60_000));
    let mut pair = ChannelPair::start(1, Link::default().delay(ms(25)), server, client.clone());
    pair.wait_for_player();
    for n in 0..2 {
        pair.net.add(([10, 0, 5, n], 1_000), ClientApp::new(pair.net.now(), client.clone(), 3 + n));
    }
    pair.net.run_for(secs(1));
    for frame in 0..FRAMES {
        send_frame(&mut pair, SEQUENCED, frame, 1, 400);
    }
    pair.net.with(pair.server, |app, now| {
        let players: Vec<PlayerId> = app.server.players().collect();
        // The second message exceeds the limit, which is allowed while the queue of its player is empty.
        for (player, length) in [(players[1], 10_000), (players[2], 60_000)] {
            while app.server.send(now, player, ORDERED, &vec![0; length]).is_ok() {}
        }
        assert!(app.server.send(now, players[0], SEQUENCED, &numbered(FRAMES, 400)).is_ok());
        let refused = app.server.send(now, players[0], SEQUENCED, &numbered(FRAMES + 1, 5_000));
        assert_eq!(refused, Err(SendError::WouldBlock));
    });
    pair.net.run_for(secs(1));
    assert!(numbers(&pair).into_iter().eq(0..=FRAMES), "{:?}", numbers(&pair).last());
}
