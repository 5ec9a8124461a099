//! The task of an async server: its start, its end, and what callers wait for.

use crate::{
    SetupError,
    driver_task::{DriverTask, PolledSession},
};
use rallypoint_session_proto::PlayerId;
use rallypoint_udp::{BindError, SocketKind};
use std::net::SocketAddr;

/// The condition that a caller of an async server waits for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ServerInterest<R> {
    /// The next event.
    Event,
    /// A message of this player, or the end of its session.
    Message(PlayerId),
    /// Room for a message to this player, on a channel if there are channels; or the end of its session.
    Room(PlayerId, R),
    /// The end of all sessions.
    Empty,
}

/// Starts the task of a server that is bound to this address.
pub(crate) fn start<S: PolledSession>(server: S, local: Option<SocketAddr>) -> Result<DriverTask<S>, SetupError> {
    // There is always a socket.
    let local = local.unwrap_or_else(|| ([0, 0, 0, 0], 0).into());
    Ok(DriverTask::start(server).map_err(|error| BindError::new(SocketKind::Udp, local, error))?)
}
