//! Settings, with their ranges and defaults.

use crate::{
    ChannelIndex, ChannelMode, ChannelTable, ChannelTableError, Cipher, ConnectToken, PublicKey, StaticKey, TokenError,
    TokenVerifier,
};
use rallypoint_limit::{Budget, Rate};
use rallypoint_wire::session::{MAX_LOGIN_TEXT, STREAM_SUFFIX, SlotIndex, channels::GAME_SUFFIX};
use std::{ops::RangeInclusive, time::Duration};

/// Settings of a connection. Both sides of a game use the same window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// Maximum number of unacknowledged messages (S22). From 64 to 16,384; 4,096 by default.
    pub window: usize,
    /// Whether messages are delivered in the order in which they were sent, or on arrival (S27). In order by default.
    pub ordered: bool,
    /// Time without a datagram from the peer after which the session ends (S29). From 3 s to 5 minutes; 10 s by default.
    pub idle_timeout: Duration,
    /// Time without sending after which a keepalive is sent (S29). From 0.5 s to 30 s, and at most a third of
    /// [`idle_timeout`](Self::idle_timeout); 2 s by default.
    pub keepalive: Duration,
    /// Time without a new ack, although a message waits for one, after which the session ends (W52). A peer whose application
    /// reads nothing for a while, for example because it loads a level, acknowledges nothing once its window is full. From 5 s
    /// to an hour; 30 s by default.
    pub ack_timeout: Duration,
    /// Rate in bytes per second below which a stream counts as thin: its messages are resent early and, under loss, sent twice
    /// (S25). From 0, which disables it, to 1,000,000; 32,000 by default.
    pub thin_rate: u32,
    /// Maximum number of datagrams of the same length that are emitted together, to be sent in one system call. From 1 to 64;
    /// 32 by default.
    pub batch: usize,
    /// Maximum rate in bytes per second at which this side sends messages. It counts whole datagrams of document 003 with messages:
    /// with their headers, resends and copies, but without the headers of UDP and IP, and without acks and other control datagrams.
    /// Bursts of up to 25 ms at this rate, or two datagrams, are sent at once. At least 1,000; unlimited by default.
    pub send_rate: Option<u32>,
    /// Whether an encrypted session may use AES-256-GCM, which it does if its peer may use it as well, and ChaCha20-Poly1305
    /// otherwise (W84). By default, whether this machine has instructions for it.
    pub aes_256_gcm: bool,
    /// The number of the first message, for tests of the end of the number range.
    #[doc(hidden)]
    pub first_number: u32,
}

/// What the sessions of a game carry, the same on both sides. A server refuses the login of a client that has another layer.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Layer {
    /// Messages that fit into a datagram each.
    #[default]
    Messages,
    /// Messages that may be longer than a datagram, while small ones share datagrams (S33). They are delivered in order.
    Stream {
        /// Maximum length of a message in bytes. From 1 to 2^28 - 1.
        max_message: usize,
        /// Whether logins name the stream, so that a peer without one is refused (W118); false for a game whose protocol says that
        /// its sessions are streams, as the one of rooms does.
        is_named: bool,
    },
    /// Channels: each has its own order, reliability, priority and maximum size.
    Channels(ChannelTable),
}

/// Which logins a server accepts (S20).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncryptionPolicy {
    /// Only plain logins.
    Plain,
    /// Plain and encrypted logins.
    #[default]
    Either,
    /// Only encrypted logins.
    Encrypted,
}

/// Settings of an [`Endpoint`](crate::Endpoint).
///
/// ```
/// use rallypoint_session_proto::{EncryptionPolicy, EndpointConfig};
///
/// let config = EndpointConfig { encryption: EncryptionPolicy::Encrypted, ..EndpointConfig::for_game("tag") };
/// assert!(config.validate().is_ok());
///
/// let error = EndpointConfig { max_players: 256, ..config }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "max_players is 256: use 1 to 255");
/// ```
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The games that a login may name (S18). From 1 to 64, each of at most 127 bytes.
    pub games: Vec<String>,
    /// Maximum number of players. From 1 to 255; 64 by default.
    pub max_players: usize,
    /// Maximum number of players from one address, or one IPv6 /64. From 1 to 255; 32 by default.
    pub max_per_address: usize,
    /// Which logins are accepted.
    pub encryption: EncryptionPolicy,
    /// Whether encrypted logins with RSA-1024, which is obsolete, are accepted as well. Off by default.
    #[cfg(feature = "rsa")]
    pub rsa_1024: bool,
    /// The key by which clients recognise this server. Without it, a login that pins a key is refused.
    pub static_key: Option<StaticKey>,
    /// Maximum number of logins that wait for their first message (S14). From 16 to 65,536; 8,192 by default. Each takes about
    /// 1 kB, allocated when needed.
    pub half_open: usize,
    /// Maximum number of encrypted logins that are answered per second; each costs about 0.1 ms. A fifth of it is for logins
    /// that are seen for the first time, a fifth for known addresses, a fifth for clients that have shown that they receive what is
    /// sent to them (W83), and the rest for repeated logins (W65); at least one per second for each. From 1 to 1,000,000; 2,000
    /// by default.
    pub encrypted_logins: u32,
    /// Budget of query replies per address, in bytes (S11). By default a burst of 24 kB, which is the longest reply to either
    /// query, and 4 kB per second.
    pub query_host: Budget,
    /// Budget of query replies per /24 or /56. By default four times that of an address.
    pub query_net: Budget,
    /// Budget of query replies in total. By default a burst of 256 kB and 128 kB per second: a hundred people who look every
    /// few seconds.
    pub query_total: Budget,
    /// Maximum number of bytes of messages that are kept for all players together (S22); those that wait in the queues of channels
    /// may take a quarter of it (W124). From 1 MB to 64 GB; 256 MB by default.
    pub memory: usize,
    /// Settings of each connection. With channels `ordered` has no effect: each channel has its own order.
    pub connection: ConnectionConfig,
    /// What the sessions carry. Messages by default.
    pub layer: Layer,
    /// Verifies the tokens of players, without which they may not join. It needs channels, and
    /// [`static_key`](Self::static_key). None by default.
    pub tokens: Option<TokenVerifier>,
    /// Whether [`ServerEvent::LoginRequest`](crate::ServerEvent::LoginRequest) is raised for each player, and the application
    /// decides. It needs channels. Off by default: every player is accepted whose table and token are valid.
    pub decides_logins: bool,
    /// The channel of players whose game does not name channels (W115), and who therefore have no other: reliable and
    /// ordered, carried as a stream (S33), whether the game names that (W118) or not. None by default: such players are refused
    /// (S18).
    pub plain_channel: Option<ChannelIndex>,
}

/// How a client protects its session (S20). It never falls back to a weaker protection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// Not at all: every host on the path can read the messages.
    Plain,
    /// Against eavesdroppers.
    #[default]
    Encrypted,
    /// Against eavesdroppers and impostors: only the server with this key is accepted.
    Pinned(PublicKey),
    /// With RSA-1024, for servers that support nothing better. Obsolete: it stops only a casual eavesdropper.
    #[cfg(feature = "rsa")]
    Rsa1024,
}

/// Settings of a [`Client`](crate::Client).
///
/// ```
/// use rallypoint_session_proto::{ClientConfig, Encryption};
///
/// let config = ClientConfig { reconnect: true, ..ClientConfig::new("alice", "tag") };
/// assert_eq!(config.encryption, Encryption::Encrypted);
/// assert!(config.validate().is_ok());
/// assert_eq!(
///     ClientConfig::new("", "tag").validate().unwrap_err().to_string(),
///     "username must have 1 to 127 bytes and no control characters"
/// );
/// ```
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The player's name. From 1 to 127 bytes, without control characters.
    pub username: String,
    /// The game. At most 127 bytes, without control characters.
    pub game: String,
    /// How the session is protected.
    pub encryption: Encryption,
    /// Time after which an unanswered login fails (S12). From 0.5 s to 60 s; 5 s by default.
    pub login_timeout: Duration,
    /// Whether to log in again when the session ends without either side having closed it, and when a login is not answered
    /// or refused for a reason that can pass: the server is full, or the address has as many sessions as it may have (W50).
    pub reconnect: bool,
    /// Settings of the connection. With channels `ordered` has no effect: each channel has its own order.
    pub connection: ConnectionConfig,
    /// What the session carries, as the server's. Messages by default.
    pub layer: Layer,
    /// The token of the game's account service, if the server requires one. It needs channels, and [`Encryption::Pinned`].
    pub token: Option<ConnectToken>,
}

/// Why a configuration is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionConfigError {
    /// A number is out of range.
    #[error("{field} is {value}: use {min} to {max}")]
    Number {
        /// The name of the field.
        field: &'static str,
        /// The value of the field.
        value: u64,
        /// The smallest valid value.
        min: u64,
        /// The largest valid value.
        max: u64,
    },
    /// A duration is out of range.
    #[error("{field} is {value:?}: use {min:?} to {max:?}")]
    Duration {
        /// The name of the field.
        field: &'static str,
        /// The value of the field.
        value: Duration,
        /// The smallest valid value.
        min: Duration,
        /// The largest valid value.
        max: Duration,
    },
    /// The username cannot be used in a login.
    #[error("username must have 1 to 127 bytes and no control characters")]
    Username,
    /// A game cannot be used in a login.
    #[error("{field} must have at most 127 bytes and no control characters")]
    Game {
        /// The name of the field.
        field: &'static str,
    },
    /// The maximum length of a stream message is out of range.
    #[error("the maximum length of a stream message is {length}: use 1 to 268435455")]
    StreamLength {
        /// The requested length in bytes.
        length: usize,
    },
    /// A stream needs ordered delivery.
    #[error("a stream needs messages in order: set `ordered`")]
    UnorderedStream,
    /// Tokens, decisions about logins and a channel for players without channels are parts of sessions with channels.
    #[error("{setting} needs channels")]
    NeedsChannels {
        /// The name of the setting.
        setting: &'static str,
    },
    /// Connect tokens cannot be used with these settings.
    #[error(transparent)]
    Token(TokenError),
    /// The channels cannot be used with these settings.
    #[error(transparent)]
    Channels(#[from] ChannelTableError),
    /// A budget is invalid.
    #[error("{field}: {error}")]
    Budget {
        /// The name of the field.
        field: &'static str,
        /// The problem with it.
        error: rallypoint_limit::RateError,
    },
}

impl ConnectionConfig {
    /// Checks that every field is in range.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(&self) -> Result<(), SessionConfigError> {
        number("window", self.window, 64..=16_384)?;
        number("batch", self.batch, 1..=64)?;
        if let Some(rate) = self.send_rate {
            number("send_rate", rate as usize, 1_000..=u32::MAX as usize)?;
        }
        number("thin_rate", self.thin_rate as usize, 0..=1_000_000)?;
        duration("idle_timeout", self.idle_timeout, Duration::from_secs(3)..=Duration::from_mins(5))?;
        let max_keepalive = Duration::from_secs(30).min(self.idle_timeout / 3);
        duration("keepalive", self.keepalive, Duration::from_millis(500)..=max_keepalive)?;
        duration("ack_timeout", self.ack_timeout, Duration::from_secs(5)..=Duration::from_hours(1))
    }
}

impl EndpointConfig {
    /// The default settings of a server for one game.
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
            layer: Layer::default(),
            tokens: None,
            decides_logins: false,
            plain_channel: None,
        }
    }

    /// Sessions carry these channels instead of plain messages.
    #[must_use]
    pub fn channels(self, table: ChannelTable) -> Self {
        Self { layer: Layer::Channels(table), ..self }
    }

    /// Checks that every field is in range.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(&self) -> Result<(), SessionConfigError> {
        number("games", self.games.len(), 1..=64)?;
        self.games.iter().try_for_each(|name| game("games", name))?;
        number("max_players", self.max_players, 1..=SlotIndex::COUNT)?;
        number("max_per_address", self.max_per_address, 1..=SlotIndex::COUNT)?;
        number("half_open", self.half_open, 16..=65_536)?;
        number("encrypted_logins", self.encrypted_logins as usize, 1..=1_000_000)?;
        number("memory", self.memory, 1 << 20..=64 << 30)?;
        for (field, budget) in
            [("query_host", self.query_host), ("query_net", self.query_net), ("query_total", self.query_total)]
        {
            for rate in [budget.packets, budget.bytes].into_iter().flatten() {
                rate.validate().map_err(|error| SessionConfigError::Budget { field, error })?;
            }
        }
        self.connection.validate()?;
        self.layer.validate(&self.connection)?;
        self.layer.check_setting("tokens", self.tokens.is_some())?;
        self.layer.check_setting("decides_logins", self.decides_logins)?;
        self.layer.check_setting("plain_channel", self.plain_channel.is_some())?;
        if self.tokens.is_some() && self.static_key.is_none() {
            return Err(SessionConfigError::Token(TokenError::NotPinned));
        }
        match (&self.layer, self.plain_channel) {
            (Layer::Channels(table), Some(channel))
                if table.get(channel).is_none_or(|known| known.mode != ChannelMode::ReliableOrdered) =>
            {
                Err(ChannelTableError::Plain(channel.get()).into())
            }
            _ => Ok(()),
        }
    }

    /// The settings that connections and logins have below the layer.
    pub(crate) fn below_layer(mut self) -> Self {
        let named = |suffix| self.games.iter().map(move |game| format!("{game}{suffix}"));
        let mut games: Vec<String> = named(self.layer.game_suffix()).collect();
        if self.plain_channel.is_some() {
            games.extend(named(STREAM_SUFFIX).chain(named("")));
        }
        self.games = games;
        // The hello comes first: from then on, messages are delivered on arrival.
        self.connection.ordered |= self.layer.table().is_some();
        self
    }
}

impl Layer {
    /// What ends the game of a login (S18, W118).
    pub(crate) fn game_suffix(&self) -> &'static str {
        match self {
            Self::Channels(_) => GAME_SUFFIX,
            Self::Stream { is_named: true, .. } => STREAM_SUFFIX,
            Self::Messages | Self::Stream { .. } => "",
        }
    }

    /// The channels, if there are any.
    pub(crate) fn table(&self) -> Option<&ChannelTable> {
        if let Self::Channels(table) = self { Some(table) } else { None }
    }

    /// Whether messages of a channel expire, so that the time at which they are sent matters.
    #[inline]
    pub(crate) fn is_expiring(&self, channel: ChannelIndex) -> bool {
        matches!(self, Self::Channels(table) if table.is_expiring(channel))
    }

    fn validate(&self, connection: &ConnectionConfig) -> Result<(), SessionConfigError> {
        match *self {
            Self::Stream { max_message: length, .. } if !(1..1 << 28).contains(&length) => {
                Err(SessionConfigError::StreamLength { length })
            }
            Self::Stream { .. } if !connection.ordered => Err(SessionConfigError::UnorderedStream),
            _ => Ok(()),
        }
    }

    fn check_setting(&self, setting: &'static str, is_set: bool) -> Result<(), SessionConfigError> {
        if is_set && self.table().is_none() { Err(SessionConfigError::NeedsChannels { setting }) } else { Ok(()) }
    }
}

impl ClientConfig {
    /// The default settings of a client with this name, for this game.
    #[must_use]
    pub fn new(username: &str, game: &str) -> Self {
        Self {
            username: username.to_owned(),
            game: game.to_owned(),
            encryption: Encryption::default(),
            login_timeout: Duration::from_secs(5),
            reconnect: false,
            connection: ConnectionConfig::default(),
            layer: Layer::default(),
            token: None,
        }
    }

    /// The session carries these channels instead of plain messages. The server has the same.
    #[must_use]
    pub fn channels(self, table: ChannelTable) -> Self {
        Self { layer: Layer::Channels(table), ..self }
    }

    /// The settings that the connection and the login have below the layer.
    pub(crate) fn below_layer(mut self) -> Self {
        self.game.push_str(self.layer.game_suffix());
        // The hello comes first: from then on, messages are delivered on arrival.
        self.connection.ordered |= self.layer.table().is_some();
        self
    }

    /// Checks that every field is in range.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(&self) -> Result<(), SessionConfigError> {
        if self.username.is_empty() || !is_login_text(&self.username) {
            return Err(SessionConfigError::Username);
        }
        game("game", &self.game)?;
        duration("login_timeout", self.login_timeout, Duration::from_millis(500)..=Duration::from_secs(60))?;
        self.connection.validate()?;
        self.layer.validate(&self.connection)?;
        self.layer.check_setting("token", self.token.is_some())?;
        if self.token.is_some() && !matches!(self.encryption, Encryption::Pinned(_)) {
            return Err(SessionConfigError::Token(TokenError::NotPinned));
        }
        Ok(())
    }
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            window: 4_096,
            ordered: true,
            idle_timeout: Duration::from_secs(10),
            keepalive: Duration::from_secs(2),
            ack_timeout: Duration::from_secs(30),
            thin_rate: 32_000,
            batch: 32,
            send_rate: None,
            aes_256_gcm: Cipher::has_aes_instructions(),
            first_number: 0,
        }
    }
}

fn number(field: &'static str, value: usize, range: RangeInclusive<usize>) -> Result<(), SessionConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    let [value, min, max] = [value, *range.start(), *range.end()].map(|number| number as u64);
    Err(SessionConfigError::Number { field, value, min, max })
}

fn duration(field: &'static str, value: Duration, range: RangeInclusive<Duration>) -> Result<(), SessionConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    let (min, max) = range.into_inner();
    Err(SessionConfigError::Duration { field, value, min, max })
}

fn game(field: &'static str, text: &str) -> Result<(), SessionConfigError> {
    if is_login_text(text) { Ok(()) } else { Err(SessionConfigError::Game { field }) }
}

/// Whether a login can carry a text.
fn is_login_text(text: &str) -> bool {
    text.len() <= MAX_LOGIN_TEXT && !text.contains(char::is_control)
}
