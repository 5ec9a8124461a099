//! Announcing from a background thread.

use crate::{AnnounceConfig, AnnounceStartError, PolledAnnouncer};
use rallypoint_udp::clock;
use rallypoint_wire::lobby::Occupancy;
use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread::JoinHandle,
};

/// Keeps a game server registered with lobbies, from a thread of its own.
///
/// [`stop`](Self::stop) or dropping it unregisters the server, which takes about 200 ms.
///
/// ```
/// use rallypoint_announce::{AnnounceConfig, AnnounceThread, Occupancy};
///
/// # let lobby = std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?.to_string();
/// let mut config = AnnounceConfig::new("Bacon Town 24/7", 8190.try_into()?);
/// config.lobbies.push(lobby.parse()?); // such as "lobby.example.org"
/// let announce = AnnounceThread::start(config)?;
/// announce.set_occupancy(Occupancy { slots: 24, players: 1, ..Occupancy::default() });
/// announce.set_key("map", b"ctf_truefort");
/// announce.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AnnounceThread {
    commands: mpsc::Sender<Command>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Command {
    SetOccupancy(Occupancy),
    SetKey(String, Vec<u8>),
    Stop,
}

impl AnnounceThread {
    /// Opens the sockets and starts the thread. Names are resolved there: a lobby that cannot be found now is tried again
    /// later.
    ///
    /// # Errors
    /// If the configuration is not valid, or no socket or thread can be created.
    pub fn start(config: AnnounceConfig) -> Result<Self, AnnounceStartError> {
        let announcer = PolledAnnouncer::new(config)?;
        let (commands, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("announce".into())
            .spawn(move || run(announcer, &receiver))
            .map_err(AnnounceStartError::Thread)?;
        Ok(Self { commands, thread: Some(thread) })
    }

    /// Sets the current number of slots, players and bots. A change is sent at once, but at most one per second.
    pub fn set_occupancy(&self, occupancy: Occupancy) {
        self.command(Command::SetOccupancy(occupancy));
    }

    /// Sets a key: `name`, `map`, `game`, `x-...`. A value with which the registration would not be valid is ignored.
    pub fn set_key(&self, key: &str, value: &[u8]) {
        self.command(Command::SetKey(key.to_owned(), value.to_owned()));
    }

    /// Unregisters the server and ends the thread.
    pub fn stop(self) {}

    fn command(&self, command: Command) {
        // The thread ends after `Stop` only.
        let _ = self.commands.send(command);
    }
}

impl Drop for AnnounceThread {
    fn drop(&mut self) {
        self.command(Command::Stop);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; the game ends anyway.
            let _ = thread.join();
        }
    }
}

fn run(mut announcer: PolledAnnouncer, commands: &mpsc::Receiver<Command>) {
    loop {
        announcer.poll();
        // Failures are retried every 30 seconds, and there is no log to write them to.
        while announcer.next_event().is_some() {}
        let Some(at) = announcer.poll_timeout() else { return };
        match commands.recv_timeout(at.saturating_duration_since(clock::now())) {
            Ok(Command::SetOccupancy(occupancy)) => announcer.set_occupancy(occupancy),
            Ok(Command::SetKey(key, value)) => {
                let _ = announcer.set_key(&key, &value);
            }
            Ok(Command::Stop) => announcer.stop(),
            Err(RecvTimeoutError::Timeout) => {}
            // After `Stop` nothing more arrives: only the repetition is left to wait for.
            Err(RecvTimeoutError::Disconnected) => {
                announcer.stop();
                std::thread::sleep(at.saturating_duration_since(clock::now()));
            }
        }
    }
}
