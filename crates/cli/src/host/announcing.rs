//! Keeping a room in the list of its lobbies.

use super::{Args, GAME_NAME};
use crate::{
    announce::{
        listed::{Answer, STILL, Watched, change, watch},
        look::Looks,
        server_id,
        voice::{Turn, Voice},
    },
    failure::{Failure, complain, say},
};
use rallypoint_lobby_proto::Announcer;
use rallypoint_session_proto::PublicKey;
use rallypoint_wire::lobby::{Occupancy, Transport};
use std::{num::NonZeroU16, time::Instant};
use tokio::task::JoinSet;

/// A room that is being announced.
pub struct Announcing {
    voice: Voice,
    slots: u16,
    /// What becomes of it in each lobby.
    answers: JoinSet<(Watched, Answer)>,
}

/// What there is to do.
pub enum News {
    Turn(Turn),
    /// A lobby lists the room, or does not, or that has changed.
    Answer(Box<Watched>, Answer),
}

impl Announcing {
    /// Starts to announce a room. Nothing, if no lobby was asked for.
    pub async fn start(args: &Args, port: u16, key: PublicKey) -> Result<Option<Self>, Failure> {
        let Some(port) = NonZeroU16::new(port).filter(|_| !args.lobbies.is_empty()) else { return Ok(None) };
        let cannot = |error| Failure::Usage(format!("the room cannot be announced: {error}"));
        let (id, name) = (server_id::choose(None)?, args.name.as_bytes());
        let mut announcer = Announcer::new(id, args.lobby_id, Transport::Udp, port, name, Vec::new(), Instant::now())
            .map_err(|error| cannot(error.to_string()))?;
        let key = key.to_string();
        let keys = [("game", GAME_NAME), ("x-query", "session"), ("x-session-key", &key)];
        for (name, value) in keys {
            announcer.set_key(name.as_bytes(), value.as_bytes()).map_err(|error| cannot(error.to_string()))?;
        }
        let nobody = || Failure::failed("no lobby was found to be listed in: leave out --lobby to go without");
        let voice = Voice::find(announcer, &args.lobbies).await?.ok_or_else(nobody)?;
        let looks = Looks { lobby_id: args.lobby_id, transport: Transport::Udp, port, name: name.to_vec() };
        let mut answers = JoinSet::new();
        for lobby in voice.lobbies().iter().cloned() {
            let (looks, x_query) = (looks.clone(), Some("session".into()));
            answers.spawn(watch(Watched { lobby, looks, x_query, api: None, every: STILL }));
        }
        let slots = args.max_players.into();
        let mut announcing = Self { voice, slots, answers };
        announcing.set_players(0);
        Ok(Some(announcing))
    }

    pub fn set_players(&mut self, players: usize) {
        let players = u16::try_from(players).unwrap_or(u16::MAX);
        self.voice.set_occupancy(Occupancy { slots: self.slots, players, ..Occupancy::default() });
    }

    /// Waits until there is something to do. It can be given up at any time.
    pub async fn next(&mut self) -> News {
        tokio::select! {
            turn = self.voice.next() => News::Turn(turn),
            Some(Ok((watched, answer))) = self.answers.join_next() => News::Answer(Box::new(watched), answer),
        }
    }

    /// Does it.
    pub async fn handle(&mut self, news: News) {
        match news {
            News::Turn(Turn::Due) => drop(self.voice.send().await),
            News::Turn(Turn::Moved) => {}
            News::Answer(watched, answer) => {
                let is_listed = matches!(answer, Answer::Listed(_));
                match answer {
                    // Nobody may be reading, which is no reason not to serve.
                    Answer::Listed(text) => drop(say(&format!("-- {text}\n"))),
                    Answer::NotListed(text) => complain(text),
                }
                self.answers.spawn(change(*watched, is_listed));
            }
        }
    }

    /// Takes the room off the list.
    pub async fn stop(self) {
        self.voice.goodbye(std::future::pending()).await;
    }
}
