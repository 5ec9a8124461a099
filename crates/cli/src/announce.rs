//! `rallypoint announce`: keeps a game server in the list of a lobby.

mod args;
pub mod listed;
pub mod lobbies;
pub mod look;
pub mod sender;
pub mod server_id;
pub mod voice;

pub use args::Args;

use crate::{
    failure::{Failure, complain},
    signals::Signals,
};
use listed::{Answer, STILL, Watched, change, watch};
use lobbies::{Host, addrs};
use look::Looks;
use rallypoint_lobby_proto::Announcer;
use rallypoint_wire::lobby::DEFAULT_MAX_REGISTRATION;
use std::{net::SocketAddr, time::Instant};
use tokio::task::JoinSet;
use voice::{Turn, Voice};

/// Announces a server until it is told to stop.
pub fn run(args: &Args) -> Result<(), Failure> {
    let id = server_id::choose(args.id_file.as_deref())?;
    let announcer = args.announcer(id, Instant::now())?;
    for key in args.odd_keys() {
        complain(format_args!("note: \"{key}\" is not a key that clients know; keys of your own begin with x-"));
    }
    let size = announcer.size();
    if size > DEFAULT_MAX_REGISTRATION {
        complain(format_args!(
            "note: the registration has {size} bytes, and a lobby takes {DEFAULT_MAX_REGISTRATION} unless it is set up \
             otherwise; use fewer or shorter keys"
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    runtime.block_on(async { Announcement::start(args, announcer).await?.run().await })
}

/// A server that is being announced.
struct Announcement<'a> {
    args: &'a Args,
    voice: Voice,
    signals: Signals,
    /// Which lobbies list the server, as far as they were asked.
    listed_by: Vec<Host>,
    /// Whether one ever did.
    was_listed: bool,
    /// Whether a lobby was asked, and did not list it.
    is_missed: bool,
}

impl<'a> Announcement<'a> {
    async fn start(args: &'a Args, announcer: Announcer) -> Result<Self, Failure> {
        let signals = Signals::to_end().map_err(Failure::failed)?;
        let voice = Voice::find(announcer, &args.lobbies).await?;
        let nobody = || Failure::failed("no lobby was found, so there is nobody to announce to");
        let (listed_by, was_listed, is_missed) = (Vec::new(), false, false);
        Ok(Self { args, voice: voice.ok_or_else(nobody)?, signals, listed_by, was_listed, is_missed })
    }

    async fn run(mut self) -> Result<(), Failure> {
        self.greet();
        if !self.voice.send().await && self.args.once {
            return Err(Failure::failed("the registration could not be sent to any address"));
        }
        let mut answers = self.ask();
        let mut all_listed = true;
        while !(self.args.once && answers.is_empty()) {
            tokio::select! {
                () = self.signals.stop() => return self.stop().await,
                turn = self.voice.next() => match turn {
                    Turn::Due => drop(self.voice.send().await),
                    Turn::Moved => self.greet(),
                },
                Some(Ok((watched, answer))) = answers.join_next() => {
                    let is_listed = self.tell(&watched, &answer);
                    all_listed &= is_listed;
                    if !self.args.once {
                        answers.spawn(change(watched, is_listed));
                    }
                }
            }
        }
        if all_listed { Ok(()) } else { Err(Failure::failed("the server is not listed")) }
    }

    fn greet(&self) {
        let Args { name, port, transport, .. } = self.args;
        let to = and(&addrs(self.voice.lobbies()));
        let end = if self.args.once { "" } else { "; Ctrl-C takes it off the list" };
        self.args.say(&format!("announcing {name:?} ({} {port}) to {to}{end}", transport.as_str()));
    }

    /// Asks every lobby, in the background, whether the server has arrived in its list.
    fn ask(&self) -> JoinSet<(Watched, Answer)> {
        let mut answers = JoinSet::new();
        if !self.args.no_check {
            let Args { lobby_id, transport, port, .. } = *self.args;
            let looks = Looks { lobby_id, transport, port, name: self.args.name.clone().into_bytes() };
            let every = self.args.check_every.unwrap_or(STILL);
            for lobby in self.voice.lobbies().iter().cloned() {
                let (looks, x_query, api) = (looks.clone(), self.args.x_query(), self.args.api.clone());
                answers.spawn(watch(Watched { lobby, looks, x_query, api, every }));
            }
        }
        answers
    }

    fn tell(&mut self, watched: &Watched, answer: &Answer) -> bool {
        let host = &watched.lobby.host;
        self.listed_by.retain(|other| other != host);
        match answer {
            Answer::Listed(text) => {
                self.args.say(text);
                self.listed_by.push(host.clone());
                self.was_listed = true;
            }
            Answer::NotListed(text) => {
                complain(text);
                self.is_missed = true;
            }
        }
        matches!(answer, Answer::Listed(_))
    }

    async fn stop(self) -> Result<(), Failure> {
        let Self { args, voice, mut signals, listed_by, was_listed, is_missed } = self;
        // Whoever is in a hurry presses Ctrl-C again.
        voice.goodbye(signals.stop()).await;
        // A lobby does not answer a goodbye, so nothing is claimed that was not seen.
        args.say(match () {
            () if !listed_by.is_empty() => "taken off the list",
            () if was_listed => "stopped; it was no longer in the list",
            () if is_missed => return Err(Failure::failed("stopped; it was never seen in the list")),
            () if args.no_check => "stopped; a goodbye was sent",
            () => "stopped before it was seen in the list; a goodbye was sent",
        });
        Ok(())
    }
}

/// `a`, `a and b`, `a, b and c`.
fn and(addrs: &[SocketAddr]) -> String {
    let shown: Vec<_> = addrs.iter().map(ToString::to_string).collect();
    match &shown[..] {
        [some @ .., last] if !some.is_empty() => format!("{} and {last}", some.join(", ")),
        _ => shown.concat(),
    }
}
