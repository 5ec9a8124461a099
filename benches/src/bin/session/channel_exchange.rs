//! Messages of a channel from a server to a client without sockets, for counting instructions beside those of plain messages.

use crate::{
    exchange::{BATCH, CLIENT, InFlight, SERVER, SIZE, log_in},
    library::ms,
};
use rallypoint_session_proto::{
    Channel, ChannelClient, ChannelClientConfig, ChannelIndex, ChannelMode, ChannelServer, ChannelServerConfig,
    ChannelTable, Encryption, PlayerId,
};
use std::time::Instant;

/// A server and its player, who take turns.
pub struct ChannelExchange {
    now: Instant,
    server: ChannelServer,
    player: PlayerId,
    client: ChannelClient,
    message: Vec<u8>,
    to_client: InFlight,
    to_server: InFlight,
    received: u64,
}

impl ChannelExchange {
    /// One channel of this mode, and messages of this size.
    pub fn new(mode: ChannelMode, size: usize) -> Self {
        let start = Instant::now();
        let table = ChannelTable::new([Channel::new(mode, size)]).expect("the table is valid");
        let config = ChannelServerConfig::new("bench", table.clone());
        let mut server = ChannelServer::new(start, config, [1; 32]).expect("the default configuration is valid");
        let mut config = ChannelClientConfig::new("bench", "bench", table);
        config.client.encryption = Encryption::Plain;
        let mut client =
            ChannelClient::new(start, SERVER.into(), config, [2; 32]).expect("the default configuration is valid");
        let now = log_in(start, &mut server, &mut client, |server, client| {
            client.is_connected() && server.players().next().is_some()
        });
        let player = server.players().next().expect("a player");
        Self {
            now,
            server,
            player,
            client,
            message: vec![7; size],
            to_client: InFlight::default(),
            to_server: InFlight::default(),
            received: 0,
        }
    }

    /// Sends at least this many messages.
    pub fn run(&mut self, count: u64) {
        let end = self.received + count;
        while self.received < end {
            self.sender_turn();
            self.receiver_turn();
        }
    }

    /// The sender handles acks, and sends a batch of messages.
    #[inline(never)]
    pub fn sender_turn(&mut self) {
        let Self { now, server, player, message, to_client, to_server, .. } = self;
        *now += ms(1);
        to_server.deliver(server, *now, CLIENT.into());
        for _ in 0..BATCH {
            let _ = server.send(*now, *player, ChannelIndex::default(), message);
        }
        to_client.fill(server, *now);
        // Credits, which are messages of the peer's layer.
        while server.recv(*now, *player).is_some() {}
    }

    /// The receiver reads messages, and acks them.
    #[inline(never)]
    pub fn receiver_turn(&mut self) {
        let Self { now, client, to_client, to_server, received, .. } = self;
        *now += ms(1);
        to_client.deliver(client, *now, SERVER.into());
        while client.recv(*now).is_some() {
            *received += 1;
        }
        to_server.fill(client, *now);
    }
}

/// A channel of reliable messages of the size of plain ones.
pub fn reliable() -> ChannelExchange {
    ChannelExchange::new(ChannelMode::ReliableOrdered, SIZE)
}
