//! The async server.

use crate::{
    FakeNetwork, PolledServer, ServerEvent, ServerOptions, SetupError,
    drive::{Driven, Polled},
    port::Turn,
};
use rallypoint_query_proto::ServerInfo;
use rallypoint_session_proto::{ConnectionStats, EndpointStats, PlayerId, SendError};
use rallypoint_udp::{BindError, SocketKind, UdpSocket};
use std::{
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// What is left is delivered for 2 s, and then goodbye is said three times (S28).
const LONGEST_GOODBYE: Duration = Duration::from_millis(2_500);

/// A server of the session protocol.
///
/// A task of the runtime drives it; all calls can be made from any task. Either one loop asks for
/// [`event`](Self::event), or every player has a task of its own, with [`accept`](Self::accept) and [`recv`](Self::recv).
///
/// ```
/// use rallypoint_session::{ServerEvent, ServerOptions, SessionClient, SessionServer};
/// use rallypoint_session_proto::{ClientConfig, EndpointConfig};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut options = ServerOptions::from(EndpointConfig::for_game("tag"));
/// options.listen = vec!["127.0.0.1:0".parse()?];
/// let server = SessionServer::bind(options).await?;
///
/// let client = SessionClient::connect(server.local_addrs()[0], ClientConfig::new("alice", "tag")).await?;
/// client.send(b"hello").await?;
///
/// let mut message = Vec::new();
/// loop {
///     match server.event(&mut message).await {
///         ServerEvent::Joined { username, .. } => assert_eq!(username, "alice"),
///         ServerEvent::Message(player) => break server.send(player, &message).await?,
///         _ => {}
///     }
/// }
/// assert_eq!(client.recv().await?, b"hello");
/// # Ok(()) }
/// ```
pub struct SessionServer {
    driven: Driven<PolledServer>,
}

/// A player who has come in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Joined {
    /// Who.
    pub player: PlayerId,
    /// The name, without control characters. Nothing proves it, and several players may have the same.
    pub username: String,
    /// The game that was asked for.
    pub game: String,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Want {
    Event,
    Message(PlayerId),
    Room(PlayerId),
    /// Nobody is left.
    Nobody,
}

impl Polled for PolledServer {
    type Want = Want;

    fn sockets(&self) -> &[Arc<UdpSocket>] {
        self.sockets()
    }

    fn turn(&mut self, now: Instant) -> Turn {
        self.turn(now)
    }

    fn is_there(&mut self, want: Want) -> bool {
        match want {
            Want::Event => self.has_event(),
            Want::Message(player) => {
                self.connection(player).is_none_or(rallypoint_session_proto::Connection::is_readable)
            }
            Want::Room(player) => self.is_settled(player),
            Want::Nobody => self.players().next().is_none(),
        }
    }
}

impl SessionServer {
    /// Opens the sockets, and is ready for players. To be called on a runtime.
    ///
    /// # Errors
    /// If a setting is wrong, or a socket cannot be opened.
    pub async fn bind(options: impl Into<ServerOptions>) -> Result<Self, SetupError> {
        let polled = PolledServer::bind(options)?;
        let addr = polled.local_addrs().next().unwrap_or_else(|| ([0, 0, 0, 0], 0).into());
        let driven = Driven::start(polled).map_err(|error| BindError::new(SocketKind::Udp, addr, error))?;
        Ok(Self { driven })
    }

    /// The next thing that happened. If it is [`ServerEvent::Message`], the message is in `message`. Whoever stops waiting
    /// loses nothing, so it can stand in a `select!`.
    pub async fn event(&self, message: &mut Vec<u8>) -> ServerEvent {
        self.driven.until(Want::Event, |server| server.next(message)).await
    }

    /// The next player who comes in. What else happened until then is dropped: with this, messages are asked for with
    /// [`recv`](Self::recv).
    pub async fn accept(&self) -> Joined {
        let attempt = |server: &mut PolledServer| {
            while server.has_event() {
                if let Some(ServerEvent::Joined { player, username, game }) = server.next_event() {
                    return Some(Joined { player, username, game });
                }
            }
            None
        };
        self.driven.until(Want::Event, attempt).await
    }

    /// The next message of a player, in `message`; false when the player is gone.
    pub async fn recv(&self, player: PlayerId, message: &mut Vec<u8>) -> bool {
        let attempt = |server: &mut PolledServer| {
            let received = server.recv(player, message);
            (received || server.connection(player).is_none()).then_some(received)
        };
        self.driven.until(Want::Message(player), attempt).await
    }

    /// Sends a message to a player, reliably. Waits while the window is full.
    ///
    /// # Errors
    /// If it is too large or empty, or there is no such player any more.
    pub async fn send(&self, player: PlayerId, message: &[u8]) -> Result<(), SendError> {
        let attempt = |server: &mut PolledServer| match server.send(player, message) {
            Err(SendError::WouldBlock) => None,
            result => Some(result),
        };
        let sent = self.driven.until(Want::Room(player), attempt).await;
        self.driven.wake();
        sent
    }

    /// Sends a message to a player, reliably, or says at once that there is no room.
    ///
    /// # Errors
    /// As [`send`](Self::send), and if the window is full: [`ServerEvent::Writable`] tells when it is no longer.
    pub fn try_send(&self, player: PlayerId, message: &[u8]) -> Result<(), SendError> {
        self.driven.run(|server| server.send(player, message))
    }

    /// Delivers what is left to a player, says goodbye for this reason, and ends the session. False if there is no such
    /// player. [`ServerEvent::Left`] follows.
    pub fn disconnect(&self, player: PlayerId, reason: &str) -> bool {
        self.driven.run(|server| server.disconnect(player, reason))
    }

    /// Says goodbye to all players for this reason, and waits until they have heard it; 2 s and a moment at most.
    pub async fn shutdown(self, reason: &str) {
        self.driven.run(|server| {
            let players: Vec<_> = server.players().collect();
            for player in players {
                server.disconnect(player, reason);
            }
        });
        let nobody = self.driven.until(Want::Nobody, |server| server.players().next().is_none().then_some(()));
        // Somebody may come in only now.
        let _ = tokio::time::timeout(LONGEST_GOODBYE, nobody).await;
        self.driven.end().await;
    }

    /// All players.
    #[must_use]
    pub fn players(&self) -> Vec<PlayerId> {
        self.driven.look(|server| server.players().collect())
    }

    /// How a player's connection is doing.
    #[must_use]
    pub fn stats(&self, player: PlayerId) -> Option<ConnectionStats> {
        self.driven.look(|server| server.stats(player))
    }

    /// Where a player is. A player can claim to have moved to somebody else's address, so whatever has consequences for an
    /// address asks for [`proven_addr`](Self::proven_addr).
    #[must_use]
    pub fn addr(&self, player: PlayerId) -> Option<SocketAddr> {
        self.driven.look(|server| Some(server.connection(player)?.peer()))
    }

    /// Where a player was when that was last proved, at the latest by the login (S31).
    #[must_use]
    pub fn proven_addr(&self, player: PlayerId) -> Option<SocketAddr> {
        self.driven.look(|server| Some(server.connection(player)?.proven_peer()))
    }

    /// Whether a player's messages are encrypted.
    #[must_use]
    pub fn is_encrypted(&self, player: PlayerId) -> Option<bool> {
        self.driven.look(|server| Some(server.connection(player)?.is_encrypted()))
    }

    /// The longest message that can be sent to a player (S33).
    #[must_use]
    pub fn max_message(&self, player: PlayerId) -> Option<usize> {
        self.driven.look(|server| server.max_message(player))
    }

    /// What the whole server has counted.
    #[must_use]
    pub fn endpoint_stats(&self) -> EndpointStats {
        self.driven.look(|server| server.endpoint_stats())
    }

    /// What queries are answered with, from now on.
    pub fn set_info(&self, info: &ServerInfo) {
        self.driven.look(|server| server.set_info(info));
    }

    /// Where it listens: the real ports, also if any were asked for.
    #[must_use]
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.driven.look(|server| server.local_addrs().collect())
    }

    /// Makes the network as bad as this from now on, or as it is again.
    pub fn set_fake(&self, fake: Option<FakeNetwork>) {
        self.driven.run(|server| server.set_fake(fake));
    }
}

impl fmt::Debug for SessionServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driven.look(|server| fmt::Debug::fmt(server, f))
    }
}
