//! Keeping a room in the list of its lobbies.

use super::{Args, GAME_NAME};
use crate::{
    announce::{
        self,
        listed::{Answer, Watched, change, watch},
        look::Looks,
        sender::Sender,
        server_id,
    },
    failure::{Failure, complain, say},
};
use rallypoint_lobby::Announcer;
use rallypoint_machine::Machine;
use rallypoint_session::PublicKey;
use rallypoint_wire::lobby::{Occupancy, Transport};
use std::{
    net::SocketAddr,
    num::NonZeroU16,
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// How long after the first word of goodbye the second is sent, in case the first is lost.
const GOODBYE_AGAIN: Duration = Duration::from_millis(200);

/// An announcer and its sockets.
pub struct Announcing {
    announcer: Announcer,
    sender: Sender,
    slots: u16,
    /// What becomes of it in each lobby.
    answers: JoinSet<(Watched, Answer)>,
}

impl Announcing {
    /// Starts to announce a room. Nothing, if no lobby was asked for.
    pub async fn start(args: &Args, port: u16, key: PublicKey) -> Result<Option<Self>, Failure> {
        let Some(port) = NonZeroU16::new(port).filter(|_| !args.lobbies.is_empty()) else { return Ok(None) };
        let lobbies = announce::resolve(&args.lobbies, &[]).await;
        let to = announce::addrs(&lobbies);
        if to.is_empty() {
            return Err(Failure::failed("no lobby was found to be listed in: leave out --lobby to go without"));
        }
        let cannot = |error| Failure::Usage(format!("the room cannot be announced: {error}"));
        let (id, name) = (server_id::choose(None)?, args.name.as_bytes());
        let mut announcer = Announcer::new(id, args.lobby_id, Transport::Udp, port, name, to, Instant::now())
            .map_err(|error| cannot(error.to_string()))?;
        let key = key.to_string();
        let keys = [("game", GAME_NAME), ("x-query", "session"), ("x-session-key", &key)];
        for (name, value) in keys {
            announcer.set_key(name.as_bytes(), value.as_bytes()).map_err(|error| cannot(error.to_string()))?;
        }
        let looks = Looks { lobby_id: args.lobby_id, transport: Transport::Udp, port, name: name.to_vec() };
        let mut answers = JoinSet::new();
        for lobby in lobbies {
            let (looks, x_query) = (looks.clone(), Some("session".into()));
            answers.spawn(watch(Watched { lobby, looks, x_query, api: None }));
        }
        let slots = args.max_players.into();
        let mut announcing = Self { announcer, sender: Sender::open()?, slots, answers };
        announcing.set_players(0);
        Ok(Some(announcing))
    }

    pub fn set_players(&mut self, players: usize) {
        let players = u16::try_from(players).unwrap_or(u16::MAX);
        self.announcer.set_occupancy(Occupancy { slots: self.slots, players, ..Occupancy::default() });
    }

    /// When [`send`](Self::send) is to be called.
    pub fn next(&self) -> Option<Instant> {
        self.announcer.poll_timeout()
    }

    /// Sends whatever is due.
    pub async fn send(&mut self) {
        for (to, datagram) in self.due() {
            self.sender.send(to, &datagram).await;
        }
    }

    /// Waits until it is clear whether a lobby lists the room, or until that changes, and says so.
    pub async fn hear(&mut self) {
        match self.answers.join_next().await {
            Some(Ok((watched, answer))) => {
                let is_listed = matches!(answer, Answer::Listed(_));
                match answer {
                    // Nobody may be reading, which is no reason not to serve.
                    Answer::Listed(text) => drop(say(&format!("-- {text}\n"))),
                    Answer::NotListed(text) => complain(text),
                }
                self.answers.spawn(change(watched, is_listed));
            }
            Some(Err(_)) => {}
            None => std::future::pending().await,
        }
    }

    /// Takes the room off the list. The protocol has no answers, so it is said twice.
    pub async fn stop(mut self) {
        self.announcer.stop();
        let goodbyes = self.due();
        for round in 0..2 {
            if round > 0 {
                tokio::time::sleep(GOODBYE_AGAIN).await;
            }
            for (to, goodbye) in &goodbyes {
                self.sender.send(*to, goodbye).await;
            }
        }
    }

    fn due(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        let (mut datagram, mut due) = (Vec::new(), Vec::new());
        while let Some(transmit) = self.announcer.poll_transmit(Instant::now(), &mut datagram) {
            due.push((transmit.to, std::mem::take(&mut datagram)));
        }
        due
    }
}
