//! The operations whose instructions are counted.

use crate::{
    cipher,
    crowd::Crowd,
    exchange::Exchange,
    peers::{self, Broadcasting, Packed, Peer, Unpacked},
};
use rallypoint_session_proto::{Channel, ChannelMode, Encryption};
use std::{fmt, str::FromStr, time::Instant};

/// A message of one of this many players, and its ack.
pub const ONE_PLAYER: &str = "a message with 1 player";
pub const FULL_SERVER: &str = "a message with 255 players";
/// The cipher alone.
pub const SEAL: &str = "seal 400 bytes";
pub const OPEN: &str = "open 400 bytes";

/// The parts of a [`Messages`] that belong to each side.
pub const SENDER: &str = "*Exchange*sender_turn";
pub const RECEIVER: &str = "*Exchange*receiver_turn";

/// Messages of one kind, and their acks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    pub layer: Layer,
    /// Bytes of a message.
    pub size: usize,
    /// Messages per turn of the sender.
    pub batch: u64,
    pub is_from_client: bool,
    pub is_encrypted: bool,
}

/// What is above the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    None,
    Stream,
    Channel(ChannelMode),
    /// A reliable ordered channel whose messages are confirmed one by one.
    Receipts,
    /// A reliable ordered channel, whose messages are broadcast to a single player.
    Broadcast,
}

impl Messages {
    /// From a server to a client, in a plain session, as many at once as there are when a link is full.
    pub const fn new(layer: Layer, size: usize) -> Self {
        Self { layer, size, batch: 64, is_from_client: false, is_encrypted: false }
    }

    /// One per turn, as a game sends them.
    pub const fn single(layer: Layer, size: usize) -> Self {
        Self { batch: 1, ..Self::new(layer, size) }
    }

    pub const fn encrypted(self) -> Self {
        Self { is_encrypted: true, ..self }
    }

    /// Messages of this kind without a layer.
    pub const fn without_layer(self) -> Self {
        self.with_layer(Layer::None)
    }

    pub const fn with_layer(self, layer: Layer) -> Self {
        Self { layer, ..self }
    }

    fn run(self, count: u64) {
        let encryption = if self.is_encrypted { Encryption::Encrypted } else { Encryption::Plain };
        match self.layer {
            Layer::None => {
                let (now, server, client) = peers::plain(encryption);
                self.exchange(now, server, client, count);
            }
            Layer::Stream => {
                let (now, server, client) = peers::plain(encryption);
                Exchange::new(now, Packed::new(server), Unpacked::new(client), self.size, self.batch).run(count);
            }
            Layer::Channel(mode) => {
                let (now, server, client) = peers::channel(encryption, Channel::new(mode, self.size));
                self.exchange(now, server, client, count);
            }
            Layer::Receipts => {
                let channel = Channel::new(ChannelMode::ReliableOrdered, self.size);
                let (now, server, client) = peers::channel(encryption, Channel { receipts: true, ..channel });
                self.exchange(now, server, client, count);
            }
            Layer::Broadcast => {
                let channel = Channel::new(ChannelMode::ReliableOrdered, self.size);
                let (now, server, client) = peers::channel(encryption, channel);
                Exchange::new(now, Broadcasting(server), client, self.size, self.batch).run(count);
            }
        }
    }

    fn exchange(self, now: Instant, server: impl Peer, client: impl Peer, count: u64) {
        if self.is_from_client {
            Exchange::new(now, client, server, self.size, self.batch).run(count);
        } else {
            Exchange::new(now, server, client, self.size, self.batch).run(count);
        }
    }
}

const LAYERS: [(&str, Layer); 8] = [
    ("none", Layer::None),
    ("stream", Layer::Stream),
    ("ordered", Layer::Channel(ChannelMode::ReliableOrdered)),
    ("unordered", Layer::Channel(ChannelMode::ReliableUnordered)),
    ("sequenced", Layer::Channel(ChannelMode::Sequenced)),
    ("expiring", Layer::Channel(ChannelMode::Expiring)),
    ("receipts", Layer::Receipts),
    ("broadcast", Layer::Broadcast),
];

/// As in `ordered:400:64:server:plain`: layer, size, number per turn, sender, protection.
impl fmt::Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layer, size, batch, is_from_client, is_encrypted } = self;
        let name = LAYERS.iter().find(|(_, known)| known == layer).map_or("", |(name, _)| name);
        let sender = if *is_from_client { "client" } else { "server" };
        let protection = if *is_encrypted { "encrypted" } else { "plain" };
        write!(f, "{name}:{size}:{batch}:{sender}:{protection}")
    }
}

impl FromStr for Messages {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let [layer, size, batch, sender, protection] = text.split(':').collect::<Vec<_>>()[..] else { return Err(()) };
        let is = |text: &str, [first, second]: [&str; 2]| match text {
            _ if text == first => Ok(true),
            _ if text == second => Ok(false),
            _ => Err(()),
        };
        Ok(Self {
            layer: LAYERS.iter().find(|(name, _)| *name == layer).ok_or(())?.1,
            size: size.parse().map_err(drop)?,
            batch: batch.parse().map_err(drop)?,
            is_from_client: is(sender, ["client", "server"])?,
            is_encrypted: is(protection, ["encrypted", "plain"])?,
        })
    }
}

/// Runs one of the operations `iterations` times. Returns false if there is no such operation.
pub fn run(name: &str, iterations: u64) -> bool {
    let crowd = |players| {
        let mut crowd = Crowd::new(players);
        (0..iterations).for_each(|_| crowd.step());
    };
    match name {
        ONE_PLAYER => crowd(1),
        FULL_SERVER => crowd(255),
        SEAL => cipher::seal(iterations),
        OPEN => cipher::open(iterations),
        _ => match name.parse::<Messages>() {
            Ok(messages) => messages.run(iterations),
            Err(()) => return false,
        },
    }
    true
}
