//! An exchange whose server is a test.

use super::{StreamAction, StreamExchange};
use crate::{MissingPart, Probe, ProbeOutcome, ProbeResult, QueryReply, ServerInfo};
use rallypoint_wire::query::ServerQuery;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Time limit of an exchange.
pub(crate) const LIMIT: Duration = Duration::from_secs(4);

pub(crate) struct Dialog {
    pub exchange: StreamExchange,
    pub now: Instant,
    /// Number of connections that were made.
    pub connections: usize,
}

impl Dialog {
    /// A dialog with the server at 192.0.2.1.
    pub fn new(query: ServerQuery) -> Self {
        let server = SocketAddr::from(([192, 0, 2, 1], query.protocol.default_port()));
        let exchange = StreamExchange::new(Probe::new(server, query), LIMIT, [7; 32]).unwrap();
        Self { exchange, now: Instant::now(), connections: 0 }
    }

    /// Connects, each time within 20 ms, and sends until the exchange waits or ends. Returns what is sent.
    pub fn sent(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        loop {
            match self.exchange.poll_action(self.now, &mut out) {
                StreamAction::Connect => {
                    self.connections += 1;
                    out.clear();
                    self.now += Duration::from_millis(20);
                    self.exchange.handle_connected(self.now);
                }
                StreamAction::Send => {}
                StreamAction::WaitUntil(_) | StreamAction::End => return out,
            }
        }
    }

    /// Whether the exchange has ended, once everything is [`sent`](Self::sent).
    pub fn has_ended(&mut self) -> bool {
        self.sent();
        self.exchange.poll_action(self.now, &mut Vec::new()) == StreamAction::End
    }

    pub fn receive(&mut self, bytes: &[u8]) {
        self.exchange.handle_received(bytes);
    }

    pub fn close(&mut self) {
        self.exchange.handle_closed();
    }

    /// Lets time pass until the exchange does something.
    pub fn wait(&mut self) {
        if let StreamAction::WaitUntil(at) = self.exchange.poll_action(self.now, &mut Vec::new()) {
            self.now = at;
            self.exchange.handle_timeout(at);
        }
    }

    /// Lets time pass until the end.
    pub fn finish(mut self) -> ProbeResult {
        self.sent();
        while !self.has_ended() {
            self.wait();
            self.sent();
        }
        self.exchange.into_result()
    }
}

/// The result of an exchange whose server sends these pieces, each when there is nothing else to send, and then closes each
/// connection.
pub(crate) fn exchange(query: ServerQuery, pieces: &[&[u8]]) -> ProbeResult {
    let mut dialog = Dialog::new(query);
    for piece in pieces {
        dialog.sent();
        dialog.receive(piece);
    }
    dialog.sent();
    while !dialog.has_ended() {
        dialog.close();
        dialog.sent();
    }
    dialog.exchange.into_result()
}

pub(crate) fn reply_of(result: ProbeResult) -> QueryReply {
    let ProbeOutcome::Answered(reply) = result.outcome else { panic!("{result:?}") };
    *reply
}

/// Asserts that no beginning of a reply, no split of it and no reply with another byte in it panics, and that only what is complete
/// counts as complete.
pub(crate) fn assert_robust(query: ServerQuery, reply: &[u8]) {
    let complete = reply_of(exchange(query, &[reply]));
    for end in 0..reply.len() {
        let (before, after) = reply.split_at(end);
        let both = reply_of(exchange(query, &[before, after]));
        assert_eq!((&both.info, &both.missing), (&complete.info, &complete.missing), "split at {end}");
        if let ProbeOutcome::Answered(cut) = exchange(query, &[before]).outcome {
            assert!(!cut.missing.is_empty() || cut.info == complete.info, "cut at {end}: {:?}", cut.info);
        }
        for byte in [0, 1, b'"', 0x7f, 0x80, 0xff, reply[end] ^ 1] {
            let mut changed = reply.to_vec();
            changed[end] = byte;
            if let ProbeOutcome::Answered(other) = exchange(query, &[&changed]).outcome {
                assert_displayable(&other.info, &other.missing);
            }
        }
    }
}

fn assert_displayable(info: &ServerInfo, missing: &[MissingPart]) {
    let text = format!("{info:?} {missing:?}");
    assert!(!text.contains("\\u{1b}"), "{text}");
    for name in info.name.iter().chain(info.player_list.iter().flatten().map(|player| &player.name)) {
        assert!(!name.contains(char::is_control), "{name:?}");
    }
}
