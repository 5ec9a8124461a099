//! Announcing on a tokio runtime.

use crate::{AnnounceConfig, AnnounceEvent, AnnounceStartError, PolledAnnouncer, ResolvedLobby};
use rallypoint_wire::lobby::Occupancy;
use std::{future::Future, net::SocketAddr};
use tokio::time;

/// Keeps a game server registered with lobbies, from an async task.
///
/// [`next_event`](Self::next_event) does the work, so it belongs into a `select!` beside whatever else the task waits
/// for. Dropping this does not unregister the server: [`stop`](Self::stop) does.
///
/// ```
/// use rallypoint_announce::{AnnounceConfig, AnnounceTask};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let lobby = std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?.to_string();
/// let mut config = AnnounceConfig::new("Bacon Town 24/7", 8190.try_into()?);
/// config.lobbies.push(lobby.parse()?); // such as "lobby.example.org"
/// let mut announce = AnnounceTask::start(config).await?;
/// # let ctrl_c = std::future::ready(());
/// tokio::select! {
///     event = announce.next_event() => println!("{event}"),
///     () = ctrl_c => {}
/// }
/// announce.stop(std::future::pending()).await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct AnnounceTask {
    polled: PolledAnnouncer,
}

impl AnnounceTask {
    /// Opens the sockets and resolves the names of the lobbies. Nothing is sent yet.
    ///
    /// # Errors
    /// If the configuration is not valid, no socket can be opened, or no lobby has an address.
    pub async fn start(config: AnnounceConfig) -> Result<Self, AnnounceStartError> {
        let hosts = config.lobbies.clone();
        let mut polled = PolledAnnouncer::new(config)?;
        polled.resolve_now();
        while polled.is_resolving() {
            sleep_until_due(&polled).await;
            polled.resolve_now();
        }
        if polled.lobbies().is_empty() { Err(AnnounceStartError::LobbyNotFound(hosts)) } else { Ok(Self { polled }) }
    }

    /// Sends the registrations that are due, until there is something to report. Cancel-safe.
    pub async fn next_event(&mut self) -> AnnounceEvent {
        loop {
            self.polled.poll();
            if let Some(event) = self.polled.next_event() {
                return event;
            }
            sleep_until_due(&self.polled).await;
        }
    }

    /// Sends the registrations that are due now, and returns the events so far.
    pub fn poll(&mut self) -> Vec<AnnounceEvent> {
        self.polled.poll();
        std::iter::from_fn(|| self.polled.next_event()).collect()
    }

    /// Sets the current number of slots, players and bots. A change is sent by [`next_event`](Self::next_event), at most
    /// once per second.
    pub fn set_occupancy(&mut self, occupancy: Occupancy) {
        self.polled.set_occupancy(occupancy);
    }

    /// The lobbies whose addresses are known.
    #[must_use]
    pub fn lobbies(&self) -> &[ResolvedLobby] {
        self.polled.lobbies()
    }

    /// The addresses of all lobbies, sorted, each once.
    #[must_use]
    pub fn addrs(&self) -> Vec<SocketAddr> {
        self.polled.addrs()
    }

    /// Number of registrations that have left this machine, each datagram counted.
    #[must_use]
    pub fn registrations_sent(&self) -> u64 {
        self.polled.registrations_sent()
    }

    /// Unregisters the server: twice, 200 ms apart, because lobbies do not acknowledge it; without that pause as soon as
    /// `skip_wait` completes.
    pub async fn stop(mut self, skip_wait: impl Future<Output = ()>) {
        self.polled.stop();
        if !self.polled.is_finished() {
            tokio::select! {
                () = sleep_until_due(&self.polled) => {}
                () = skip_wait => {}
            }
        }
        self.polled.finish();
    }
}

async fn sleep_until_due(polled: &PolledAnnouncer) {
    match polled.poll_timeout() {
        Some(at) => time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
