//! The async client.

use crate::{
    ClientOptions, ConnectError, FakeNetwork, NotAcknowledged, PolledClient, SessionEvent, SetupError,
    drive::{Driven, Polled},
    port::Turn,
};
use rallypoint_session_proto::{ConnectionStats, LoginError, Reason, SendError};
use rallypoint_udp::{BindError, SocketKind, UdpSocket};
use std::{fmt, io, net::SocketAddr, sync::Arc, time::Instant};
use tokio::net::ToSocketAddrs;

/// A client of the session protocol. A task of the runtime drives it; all calls can be made from any task.
pub struct SessionClient {
    driven: Driven<PolledClient>,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Want {
    Event,
    Room,
    /// Nothing will happen any more.
    End,
}

impl Polled for PolledClient {
    type Want = Want;

    fn sockets(&self) -> &[Arc<UdpSocket>] {
        self.sockets()
    }

    fn turn(&mut self, now: Instant) -> Turn {
        self.turn(now)
    }

    fn is_there(&mut self, want: Want) -> bool {
        match want {
            Want::Event => self.has_event() || self.is_over(),
            Want::Room => self.is_settled(),
            Want::End => self.is_over(),
        }
    }
}

impl SessionClient {
    /// Logs in, and waits until the server has let us in. A name with several addresses is tried at each until one answers.
    /// To be called on a runtime.
    ///
    /// # Errors
    /// If a setting is wrong, there is no socket, the name has no address, or the server says no or nothing.
    pub async fn connect(server: impl ToSocketAddrs, options: impl Into<ClientOptions>) -> Result<Self, ConnectError> {
        let options = options.into();
        let mut last = None;
        for addr in tokio::net::lookup_host(server).await.map_err(ConnectError::NotFound)? {
            match Self::connect_to(addr, options.clone()).await {
                Err(error @ ConnectError::Login(LoginError::NoAnswer)) => last = Some(error),
                result => return result,
            }
        }
        Err(last.unwrap_or_else(|| ConnectError::NotFound(io::ErrorKind::NotFound.into())))
    }

    async fn connect_to(server: SocketAddr, options: ClientOptions) -> Result<Self, ConnectError> {
        let polled = PolledClient::connect_to(server, options)?;
        let local = polled.local_addr();
        let driven =
            Driven::start(polled).map_err(|error| SetupError::from(BindError::new(SocketKind::Udp, local, error)))?;
        let attempt = |client: &mut PolledClient| match client.next(&mut Vec::new()) {
            Some(SessionEvent::Connected) => Some(Ok(())),
            Some(SessionEvent::LoginFailed(error)) => Some(Err(error)),
            _ => None,
        };
        driven.until(Want::Event, attempt).await?;
        Ok(Self { driven })
    }

    /// The next message. What else happens is dropped; after the session's end this fails, unless the client was asked to
    /// reconnect: then it waits for the next session.
    ///
    /// # Errors
    /// Why the session is over.
    pub async fn recv(&self) -> Result<Vec<u8>, Reason> {
        let mut message = Vec::new();
        self.recv_into(&mut message).await.map(|()| message)
    }

    /// The next message, as [`recv`](Self::recv), in a buffer that can be used again and again.
    ///
    /// # Errors
    /// Why the session is over.
    pub async fn recv_into(&self, message: &mut Vec<u8>) -> Result<(), Reason> {
        loop {
            match self.event(message).await {
                Some(SessionEvent::Message) => return Ok(()),
                Some(SessionEvent::Disconnected(reason)) if self.driven.look(|client| client.is_over()) => {
                    return Err(reason);
                }
                Some(_) => {}
                None => return Err(Reason::Closed),
            }
        }
    }

    /// The next thing that happened; `None` when nothing will happen any more. If it is [`SessionEvent::Message`], the
    /// message is in `message`.
    pub async fn event(&self, message: &mut Vec<u8>) -> Option<SessionEvent> {
        let attempt = |client: &mut PolledClient| match client.next(message) {
            Some(event) => Some(Some(event)),
            None => client.is_over().then_some(None),
        };
        self.driven.until(Want::Event, attempt).await
    }

    /// Sends a message, reliably. Waits while the window is full.
    ///
    /// # Errors
    /// If it is too large or empty, or there is no session.
    pub async fn send(&self, message: &[u8]) -> Result<(), SendError> {
        let attempt = |client: &mut PolledClient| match client.send(message) {
            Err(SendError::WouldBlock) => None,
            result => Some(result),
        };
        let sent = self.driven.until(Want::Room, attempt).await;
        self.driven.wake();
        sent
    }

    /// Sends a message, reliably, or says at once that there is no room.
    ///
    /// # Errors
    /// As [`send`](Self::send), and if the window is full: [`SessionEvent::Writable`] tells when it is no longer.
    pub fn try_send(&self, message: &[u8]) -> Result<(), SendError> {
        self.driven.run(|client| client.send(message))
    }

    /// Delivers what is left, says goodbye, and waits until that is done; 2 s and a moment at most.
    ///
    /// # Errors
    /// If the server has not acknowledged everything that was sent, in this session or in one that was lost before.
    pub async fn close(self) -> Result<(), NotAcknowledged> {
        self.driven.run(PolledClient::close);
        self.driven.until(Want::End, |client| client.is_over().then_some(())).await;
        let is_delivered = self.driven.look(|client| client.is_delivered());
        self.driven.end().await;
        if is_delivered { Ok(()) } else { Err(NotAcknowledged) }
    }

    /// How the connection is doing, while there is one.
    #[must_use]
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.driven.look(|client| client.stats())
    }

    /// Whether messages can be sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.driven.look(|client| client.is_connected())
    }

    /// Whether nothing will happen any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driven.look(|client| client.is_over())
    }

    /// The longest message that can be sent, while there is a connection (S33).
    #[must_use]
    pub fn max_message(&self) -> Option<usize> {
        self.driven.look(|client| client.max_message())
    }

    /// Where the server is.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.driven.look(|client| client.server())
    }

    /// Where it sends from.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.driven.look(|client| client.local_addr())
    }

    /// Makes the network as bad as this from now on, or as it is again.
    pub fn set_fake(&self, fake: Option<FakeNetwork>) {
        self.driven.run(|client| client.set_fake(fake));
    }
}

impl fmt::Debug for SessionClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driven.look(|client| fmt::Debug::fmt(client, f))
    }
}
