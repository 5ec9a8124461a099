//! Logins that were answered and whose first message has not arrived yet (S14).
//!
//! A login takes no slot. It stays for ten seconds in a table of bounded size from which the oldest is evicted first: a flood
//! of forged logins has to fill the whole table within one round trip to lock an honest player out.

use super::login_admission::LoginTrust;
use crate::crypto::{Cipher, Secret};
use foldhash::quality::FixedState;
use rallypoint_wire::session::{Rand, SlotIndex, Uid};
use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    time::{Duration, Instant},
};

/// How long an answered login waits for its first message.
const LIFETIME: Duration = Duration::from_secs(10);

/// Identifies a login: the address that it came from, and the SHA-256 of its bytes.
pub(super) type LoginId = (SocketAddr, [u8; 32]);

/// A login that was answered with success.
pub(super) struct HalfOpenLogin {
    pub id: LoginId,
    pub index: SlotIndex,
    pub uid: Uid,
    pub rand: Rand,
    /// The secret from which the keys of an encrypted session are derived.
    pub secret: Option<Secret>,
    /// The ciphers from which the client of an encrypted session can choose (W84).
    pub ciphers: &'static [Cipher],
    /// How probable it is that it is not forged (W65, W83).
    pub trust: LoginTrust,
    /// Whether the client has pinned the server's static key.
    pub is_pinned: bool,
    pub username: String,
    pub game: String,
    /// The answer: byte for byte the same for the same login (S12).
    pub reply: Vec<u8>,
    /// When it was last answered.
    pub answered_at: Instant,
    /// Whether it was answered only once, so that the first message measures a round trip.
    pub is_answered_once: bool,
}

/// The half-open logins of an endpoint.
pub(super) struct HalfOpenTable {
    max_entries: usize,
    by_uid: HashMap<Uid, HalfOpenLogin, FixedState>,
    by_login: HashMap<LoginId, Uid, FixedState>,
    /// UIDs in the order of expiry. Some of them may be gone already.
    expiry: VecDeque<(Instant, Uid)>,
    /// Number of logins of each trust that each slot is promised to.
    promises: [[u32; SlotIndex::COUNT]; LoginTrust::COUNT],
    /// Number of promises made so far, and that number at the last promise of each slot.
    promise_count: u64,
    last_promise: [u64; SlotIndex::COUNT],
    pub evicted: u64,
}

// Indexing by a slot index cannot fail: it is below `SlotIndex::COUNT`.
impl HalfOpenTable {
    pub fn new(max_entries: usize, seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        Self {
            max_entries,
            by_uid: HashMap::with_hasher(hasher.clone()),
            by_login: HashMap::with_hasher(hasher),
            expiry: VecDeque::new(),
            promises: [[0; _]; _],
            promise_count: 0,
            last_promise: [0; _],
            evicted: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.by_uid.len()
    }

    pub fn contains(&self, uid: Uid) -> bool {
        self.by_uid.contains_key(&uid)
    }

    /// Whether a slot is promised to a login of at least this trust. Promises to less trusted logins are disregarded: they
    /// are hardly ever kept.
    pub fn is_promised(&self, index: SlotIndex, trust: LoginTrust) -> bool {
        self.promises[trust as usize..].iter().any(|promises| promises[usize::from(index)] > 0)
    }

    /// Position of the last promise of a slot in the order of all promises.
    pub fn last_promise(&self, index: SlotIndex) -> u64 {
        self.last_promise[usize::from(index)]
    }

    /// The login with these bytes from this address.
    pub fn by_login(&mut self, id: &LoginId) -> Option<&mut HalfOpenLogin> {
        self.by_uid.get_mut(self.by_login.get(id)?)
    }

    pub fn by_uid(&self, uid: Uid) -> Option<&HalfOpenLogin> {
        self.by_uid.get(&uid)
    }

    pub fn insert(&mut self, now: Instant, login: HalfOpenLogin) {
        self.expire(now);
        while self.by_uid.len() >= self.max_entries
            && let Some((_, uid)) = self.expiry.pop_front()
        {
            self.evicted += u64::from(self.remove(uid).is_some());
        }
        let uid = login.uid;
        self.promise_count += 1;
        self.last_promise[usize::from(login.index)] = self.promise_count;
        self.promises[login.trust as usize][usize::from(login.index)] += 1;
        self.by_login.insert(login.id, uid);
        self.expiry.push_back((now + LIFETIME, uid));
        self.by_uid.insert(uid, login);
    }

    pub fn remove(&mut self, uid: Uid) -> Option<HalfOpenLogin> {
        let login = self.by_uid.remove(&uid)?;
        self.by_login.remove(&login.id);
        let promises = &mut self.promises[login.trust as usize][usize::from(login.index)];
        *promises = promises.saturating_sub(1);
        Some(login)
    }

    /// Removes logins whose time is up.
    pub fn expire(&mut self, now: Instant) {
        while let Some(&(at, uid)) = self.expiry.front()
            && (at <= now || !self.by_uid.contains_key(&uid))
        {
            self.expiry.pop_front();
            self.remove(uid);
        }
    }

    /// When the next login expires.
    pub fn expires_at(&self) -> Option<Instant> {
        self.expiry.front().map(|(at, _)| *at)
    }
}
