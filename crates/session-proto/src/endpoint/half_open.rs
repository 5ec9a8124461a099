//! Logins that were answered, and whose first message has not come yet (S14).
//!
//! A login takes no slot. It lives ten seconds in a table of bounded size, oldest out first: so a flood of forged logins has
//! to fill the whole table within one round trip to be in the way of an honest player.

use crate::crypto::Secret;
use foldhash::quality::FixedState;
use rallypoint_wire::session::{Rand, SlotIndex, Uid};
use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    time::{Duration, Instant},
};

/// How long an answered login waits for its first message.
const LIVES: Duration = Duration::from_secs(10);

/// The address that a login came from, and the SHA-256 of its bytes.
pub(super) type LoginKey = (SocketAddr, [u8; 32]);

pub(super) struct HalfOpen {
    pub key: LoginKey,
    pub index: SlotIndex,
    pub uid: Uid,
    pub rand: Rand,
    /// In an encrypted session, what its keys are made of.
    pub secret: Option<Secret>,
    pub username: String,
    pub game: String,
    /// The answer, byte for byte the same for the same login (S12).
    pub answer: Vec<u8>,
    pub answered_at: Instant,
    /// Whether it was answered once only, so that the first message measures a round trip.
    pub answered_once: bool,
}

pub(super) struct HalfOpenTable {
    most: usize,
    by_uid: HashMap<u32, HalfOpen, FixedState>,
    by_login: HashMap<LoginKey, u32, FixedState>,
    /// In the order in which they came, with those that are already gone.
    order: VecDeque<(Instant, u32)>,
    /// How many logins are promised each index.
    promised: [u32; SlotIndex::COUNT],
    pub evicted: u64,
}

impl HalfOpenTable {
    pub fn new(most: usize, seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        Self {
            most,
            by_uid: HashMap::with_hasher(hasher.clone()),
            by_login: HashMap::with_hasher(hasher),
            order: VecDeque::new(),
            promised: [0; _],
            evicted: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.by_uid.len()
    }

    pub fn knows(&self, uid: Uid) -> bool {
        self.by_uid.contains_key(&uid.get())
    }

    pub fn is_promised(&self, index: usize) -> bool {
        self.promised.get(index).is_some_and(|&promises| promises > 0)
    }

    /// The login with these bytes from this address.
    pub fn by_login(&mut self, key: &LoginKey) -> Option<&mut HalfOpen> {
        self.by_uid.get_mut(self.by_login.get(key)?)
    }

    pub fn by_uid(&self, uid: Uid) -> Option<&HalfOpen> {
        self.by_uid.get(&uid.get())
    }

    pub fn insert(&mut self, now: Instant, login: HalfOpen) {
        self.expire(now);
        while self.by_uid.len() >= self.most
            && let Some((_, uid)) = self.order.pop_front()
        {
            self.evicted += u64::from(self.remove(Uid::new(uid)).is_some());
        }
        let uid = login.uid.get();
        self.promised[usize::from(login.index)] += 1;
        self.by_login.insert(login.key, uid);
        self.order.push_back((now + LIVES, uid));
        self.by_uid.insert(uid, login);
    }

    pub fn remove(&mut self, uid: Uid) -> Option<HalfOpen> {
        let login = self.by_uid.remove(&uid.get())?;
        self.by_login.remove(&login.key);
        let promises = &mut self.promised[usize::from(login.index)];
        *promises = promises.saturating_sub(1);
        Some(login)
    }

    pub fn expire(&mut self, now: Instant) {
        while let Some(&(at, uid)) = self.order.front()
            && (at <= now || !self.by_uid.contains_key(&uid))
        {
            self.order.pop_front();
            self.remove(Uid::new(uid));
        }
    }

    pub fn expires_at(&self) -> Option<Instant> {
        self.order.front().map(|(at, _)| *at)
    }
}
