//! The task of an async client: its start, its login, and what callers wait for.

use crate::{
    ConnectError, SetupError,
    driver_task::{DriverTask, PolledSession},
};
use rallypoint_session_proto::{ClientEvent, DisconnectReason, LoginError};
use rallypoint_udp::{BindError, SocketKind};
use std::{io, net::SocketAddr};
use tokio::net::ToSocketAddrs;

/// The condition that a caller of an async client waits for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ClientInterest<R> {
    /// The next event.
    Event,
    /// Room for a message, on a channel if there are channels.
    Room(R),
    /// The end of the client.
    Closed,
}

/// Resolves the server's name, and calls `connect` with each of its addresses until one answers.
pub(crate) async fn connect_any<C, F: Future<Output = Result<C, ConnectError>>>(
    server: impl ToSocketAddrs,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<C, ConnectError> {
    let mut last = None;
    for addr in tokio::net::lookup_host(server).await.map_err(ConnectError::Resolve)? {
        match connect(addr).await {
            Err(error @ ConnectError::Login(LoginError::TimedOut)) => last = Some(error),
            result => return result,
        }
    }
    Err(last.unwrap_or_else(|| ConnectError::Resolve(io::ErrorKind::NotFound.into())))
}

/// Starts the task of a client, and waits for the end of its login. `next_event` takes the client's next event.
pub(crate) async fn log_in<C, R>(
    client: C,
    local: SocketAddr,
    mut next_event: impl FnMut(&mut C) -> Option<ClientEvent>,
) -> Result<DriverTask<C>, ConnectError>
where
    C: PolledSession<Interest = ClientInterest<R>>,
{
    let driver =
        DriverTask::start(client).map_err(|error| SetupError::from(BindError::new(SocketKind::Udp, local, error)))?;
    let attempt = |client: &mut C| match next_event(client) {
        Some(ClientEvent::Connected) => Some(Ok(())),
        Some(ClientEvent::LoginFailed(error)) => Some(Err(error)),
        _ => None,
    };
    driver.wait_for(ClientInterest::Event, attempt).await?;
    Ok(driver)
}

/// The result of a caller that waits for a message, after this event. `None`: it waits for the next event.
pub(crate) fn recv_result(
    event: Option<ClientEvent>,
    is_closed: impl FnOnce() -> bool,
) -> Option<Result<(), DisconnectReason>> {
    match event {
        Some(ClientEvent::Message) => Some(Ok(())),
        Some(ClientEvent::Disconnected(reason)) if is_closed() => Some(Err(reason)),
        Some(_) => None,
        None => Some(Err(DisconnectReason::Closed)),
    }
}
