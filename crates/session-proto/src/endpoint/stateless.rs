//! Replies to addresses without a session, within budgets (S16, S32).

use crate::{connection::AMPLIFICATION_LIMIT, reason};
use rallypoint_limit::{Net, Rate, TokenBuckets};
use rallypoint_wire::session::{CookieReply, Grant, LoginCookie, LoginSuccess, ServerDatagram, SlotIndex, Text, Uid};
use std::{collections::VecDeque, net::SocketAddr, time::Instant};

/// Maximum number of replies that wait to be sent.
const MAX_QUEUED: usize = 256;

/// Bytes that an unvalidated address may be sent in any case (S16).
const MIN_REPLY_LIMIT: usize = 16;

/// Number of networks whose budgets are remembered.
const REMEMBERED_NETWORKS: usize = 4_096;

/// Rate at which one network is told that a session is unknown (S32).
const UNKNOWN_SESSION_RATE: Rate = Rate::per_second(1, 1);

/// Rate at which one network is told why a login is refused (W36). A client without an answer repeats its login up to eight
/// times, so that a dozen clients can be refused at once.
const REFUSAL_RATE: Rate = Rate::per_second(10, 30);

/// The UID in a reply with a cookie. It has no meaning, and no zero byte (S17).
const COOKIE_UID: Uid = Uid::new(u32::MAX);

/// The queue of replies that need no connection, and their budgets.
pub(super) struct StatelessReplies {
    queue: VecDeque<(SocketAddr, Vec<u8>)>,
    unknown_session: TokenBuckets<Net>,
    refusals: TokenBuckets<Net>,
}

impl StatelessReplies {
    pub fn new(unknown_session_seed: u128, refusals_seed: u128) -> Self {
        Self {
            queue: VecDeque::new(),
            unknown_session: TokenBuckets::new(UNKNOWN_SESSION_RATE, REMEMBERED_NETWORKS, unknown_session_seed),
            refusals: TokenBuckets::new(REFUSAL_RATE, REMEMBERED_NETWORKS, refusals_seed),
        }
    }

    /// Queues the answer to a login. Returns false if the queue is full.
    pub fn push(&mut self, to: SocketAddr, reply: Vec<u8>) -> bool {
        let has_room = self.queue.len() < MAX_QUEUED;
        if has_room {
            self.queue.push_back((to, reply));
        }
        has_room
    }

    /// Answers an encrypted login with a cookie (W83): a success that a client without cookies ignores, because it cannot open
    /// it. Half of the queue is left to other replies.
    pub fn send_cookie(&mut self, to: SocketAddr, login_sha256: &[u8; 32], cookie: LoginCookie) {
        let Some((login, _)) = login_sha256.split_first_chunk() else { return };
        let Some(index) = SlotIndex::new(0) else { return };
        if self.queue.len() < MAX_QUEUED / 2 {
            let field = CookieReply { login: *login, cookie }.to_field();
            let mut bytes = Vec::new();
            LoginSuccess { index, uid: COOKIE_UID, grant: Grant::Encrypted(&field) }.emit(&mut bytes);
            self.push(to, bytes);
        }
    }

    /// Refuses a login of `received` bytes. The reason is cut to what an unvalidated address may be sent.
    pub fn refuse_login(&mut self, now: Instant, to: SocketAddr, received: usize, reason: &str) {
        if self.refusals.take(now, Net::of(to.ip())) {
            let room = reply_limit(received) - 1;
            self.push_limited(to, received, ServerDatagram::BadLogin(Text::cut_to(room, reason)));
        }
    }

    /// Answers data of a session that does not exist.
    pub fn reject_unknown_session(&mut self, now: Instant, to: SocketAddr, received: usize) {
        if self.unknown_session.take(now, Net::of(to.ip())) {
            self.disconnect(to, received, reason::UNKNOWN_SESSION);
        }
    }

    /// Sends a disconnect to an address without a session.
    pub fn disconnect(&mut self, to: SocketAddr, received: usize, reason: &str) {
        self.push_limited(to, received, ServerDatagram::Disconnect(Text::cut(reason)));
    }

    /// Takes the next reply.
    pub fn pop(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.queue.pop_front()
    }

    /// Queues a reply unless it is longer than an unvalidated address may be sent (S16).
    fn push_limited(&mut self, to: SocketAddr, received: usize, datagram: ServerDatagram<'_>) {
        let mut bytes = Vec::new();
        datagram.emit(&mut bytes);
        if bytes.len() <= reply_limit(received) {
            self.push(to, bytes);
        }
    }
}

fn reply_limit(received: usize) -> usize {
    MIN_REPLY_LIMIT.max(AMPLIFICATION_LIMIT * received)
}
