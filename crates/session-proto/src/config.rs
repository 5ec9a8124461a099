//! What can be set, with ranges and defaults.

use crate::{PublicKey, StaticKey};
use rallypoint_limit::{Budget, Rate};
use rallypoint_wire::session::{MAX_LOGIN_TEXT, SlotIndex};
use std::{ops::RangeInclusive, time::Duration};

/// How one connection behaves; both sides of a game use the same window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// How many messages may be unacknowledged (S22). From 64 to 16,384, by default 4,096.
    pub window: usize,
    /// Whether messages are delivered in the order in which they were sent, or as they arrive (S27). By default in order.
    pub ordered: bool,
    /// After so long without a datagram from the peer the session is closed (S29). From 3 s to 5 minutes, by default 10 s.
    pub idle_timeout: Duration,
    /// After so long without sending, a keepalive is sent (S29). From 0.5 s to 30 s, and at most a third of
    /// [`idle_timeout`](Self::idle_timeout); by default 2 s.
    pub keepalive: Duration,
    /// A stream of less than so many bytes per second is repeated early and, under loss, sent twice (S25). From 0, which
    /// turns it off, to 1,000,000; by default 32,000.
    pub thin_rate: u32,
    /// How many datagrams of the same length are given out at once, to be sent in one system call. From 1 to 64, by
    /// default 32.
    pub batch: usize,
    /// The number of the first message, for tests of what happens at the end of the numbers.
    #[doc(hidden)]
    pub first_number: u32,
}

/// Which logins a server accepts (S20).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncryptionPolicy {
    /// Only plain ones.
    Plain,
    /// Both.
    #[default]
    Either,
    /// Only encrypted ones.
    Encrypted,
}

/// How the server side of a socket behaves.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The games that a login may name (S18). From 1 to 64, each of at most 127 bytes.
    pub games: Vec<String>,
    /// How many players there can be. From 1 to 255, by default 64.
    pub max_players: usize,
    /// How many of them can come from one address, or one IPv6 /64. Who left within the last 10 s counts, too. From 1 to 255,
    /// by default 32.
    pub max_per_address: usize,
    /// Which logins are accepted.
    pub encryption: EncryptionPolicy,
    /// Whether encrypted logins with RSA-1024 are accepted, too. By default not: it is obsolete.
    #[cfg(feature = "rsa")]
    pub rsa_1024: bool,
    /// The key by which clients recognise this server. Without it a login that pins a key is refused.
    pub static_key: Option<StaticKey>,
    /// How many logins may wait for their first message (S14). From 16 to 65,536, by default 8,192; about 1 kB each, taken
    /// when they are needed.
    pub half_open: usize,
    /// How many encrypted logins are answered per second: each costs about 0.1 ms. From 1 to 1,000,000, by default 2,000.
    pub encrypted_logins: u32,
    /// What answers to queries may cost, in bytes, per address (S11). By default 24 kB at once, which is the longest answer to
    /// either question, and 4 kB per second.
    pub query_host: Budget,
    /// And per /24 or /56. By default four times as much.
    pub query_net: Budget,
    /// And in total. By default 256 kB at once and 128 kB per second: a hundred people who look every few seconds.
    pub query_total: Budget,
    /// How many bytes of messages are kept for all players together (S22). From 1 MB to 64 GB, by default 256 MB.
    pub memory: usize,
    /// How connections behave.
    pub connection: ConnectionConfig,
}

/// How a client protects its session (S20). It never falls back by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// Not at all: whoever can read the datagrams can read the messages.
    Plain,
    /// Against everybody who only listens.
    #[default]
    Encrypted,
    /// Also against everybody who is not the server with this key.
    Pinned(PublicKey),
    /// With RSA-1024, for servers that know nothing better. Obsolete: it keeps out those who only glance.
    #[cfg(feature = "rsa")]
    Rsa1024,
}

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Who plays. From 1 to 127 bytes, without control characters.
    pub username: String,
    /// The game. At most 127 bytes, without control characters.
    pub game: String,
    /// How the session is protected.
    pub encryption: Encryption,
    /// How long a login is tried (S12). From 0.5 s to 60 s, by default 5 s.
    pub login_timeout: Duration,
    /// Whether to log in again when the session ends without either side wanting it.
    pub reconnect: bool,
    /// How the connection behaves.
    pub connection: ConnectionConfig,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A number is out of its range.
    #[error("{field} is {value}: use {least} to {most}")]
    Range {
        /// Which one.
        field: &'static str,
        /// What it is.
        value: u64,
        /// The least it can be.
        least: u64,
        /// The most it can be.
        most: u64,
    },
    /// A time is out of its range.
    #[error("{field} is {value:?}: use {least:?} to {most:?}")]
    Time {
        /// Which one.
        field: &'static str,
        /// What it is.
        value: Duration,
        /// The least it can be.
        least: Duration,
        /// The most it can be.
        most: Duration,
    },
    /// A text cannot stand in a login.
    #[error("{field} must be at most 127 bytes without control characters, and a username not empty")]
    Text {
        /// Which one.
        field: &'static str,
    },
    /// A budget of bytes is not usable.
    #[error("{field}: {error}")]
    Budget {
        /// Which one.
        field: &'static str,
        /// What is wrong.
        error: rallypoint_limit::RateError,
    },
}

impl ConnectionConfig {
    /// Whether every field is in its range.
    ///
    /// # Errors
    /// Names the field and the range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (ms, secs) = (Duration::from_millis, Duration::from_secs);
        number("window", self.window, 64..=16_384)?;
        number("batch", self.batch, 1..=64)?;
        number("thin_rate", self.thin_rate as usize, 0..=1_000_000)?;
        time("idle_timeout", self.idle_timeout, secs(3)..=secs(300))?;
        time("keepalive", self.keepalive, ms(500)..=secs(30).min(self.idle_timeout / 3))
    }
}

impl EndpointConfig {
    /// A server for one game.
    #[must_use]
    pub fn for_game(game: &str) -> Self {
        let bytes = |rate, burst| Budget { packets: None, bytes: Some(Rate::per_second(rate, burst)) };
        Self {
            games: vec![game.to_owned()],
            max_players: 64,
            max_per_address: 32,
            encryption: EncryptionPolicy::default(),
            #[cfg(feature = "rsa")]
            rsa_1024: false,
            static_key: None,
            half_open: 8_192,
            encrypted_logins: 2_000,
            query_host: bytes(4_000, 24_000),
            query_net: bytes(16_000, 96_000),
            query_total: bytes(128_000, 256_000),
            memory: 256 << 20,
            connection: ConnectionConfig::default(),
        }
    }

    /// Whether every field is in its range.
    ///
    /// # Errors
    /// Names the field and the range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        number("games", self.games.len(), 1..=64)?;
        self.games.iter().try_for_each(|game| text("games", game))?;
        number("max_players", self.max_players, 1..=SlotIndex::COUNT)?;
        number("max_per_address", self.max_per_address, 1..=SlotIndex::COUNT)?;
        number("half_open", self.half_open, 16..=65_536)?;
        number("encrypted_logins", self.encrypted_logins as usize, 1..=1_000_000)?;
        number("memory", self.memory, 1 << 20..=64 << 30)?;
        for (field, budget) in
            [("query_host", self.query_host), ("query_net", self.query_net), ("query_total", self.query_total)]
        {
            for rate in [budget.packets, budget.bytes].into_iter().flatten() {
                rate.validate().map_err(|error| ConfigError::Budget { field, error })?;
            }
        }
        self.connection.validate()
    }
}

impl ClientConfig {
    /// A client with this name, for this game.
    #[must_use]
    pub fn new(username: &str, game: &str) -> Self {
        Self {
            username: username.to_owned(),
            game: game.to_owned(),
            encryption: Encryption::default(),
            login_timeout: Duration::from_secs(5),
            reconnect: false,
            connection: ConnectionConfig::default(),
        }
    }

    /// Whether every field is in its range.
    ///
    /// # Errors
    /// Names the field and the range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.username.is_empty() {
            return Err(ConfigError::Text { field: "username" });
        }
        text("username", &self.username)?;
        text("game", &self.game)?;
        time("login_timeout", self.login_timeout, Duration::from_millis(500)..=Duration::from_secs(60))?;
        self.connection.validate()
    }
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            window: 4_096,
            ordered: true,
            idle_timeout: Duration::from_secs(10),
            keepalive: Duration::from_secs(2),
            thin_rate: 32_000,
            batch: 32,
            first_number: 0,
        }
    }
}

fn number(field: &'static str, value: usize, range: RangeInclusive<usize>) -> Result<(), ConfigError> {
    let (least, most) = (*range.start() as u64, *range.end() as u64);
    if range.contains(&value) { Ok(()) } else { Err(ConfigError::Range { field, value: value as u64, least, most }) }
}

fn time(field: &'static str, value: Duration, range: RangeInclusive<Duration>) -> Result<(), ConfigError> {
    let (least, most) = (*range.start(), *range.end());
    if range.contains(&value) { Ok(()) } else { Err(ConfigError::Time { field, value, least, most }) }
}

fn text(field: &'static str, text: &str) -> Result<(), ConfigError> {
    let fits = text.len() <= MAX_LOGIN_TEXT && !text.contains(char::is_control);
    if fits { Ok(()) } else { Err(ConfigError::Text { field }) }
}
