//! `rallypoint announce`: keeps a game server in the list of a lobby.

mod args;
pub mod listed;
pub mod lobbies;
pub mod look;
pub mod sender;
pub mod server_id;

pub use args::Args;

use crate::{
    failure::{Failure, complain},
    signals::Signals,
};
use listed::{Answer, Watched, change, watch};
use lobbies::Host;
use look::Looks;
use rallypoint_lobby::Announcer;
use rallypoint_machine::Machine;
use rallypoint_wire::lobby::ServerId;
use sender::Sender;
use std::{
    io::Write,
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time};

/// How often names are looked up again: lobbies move, too.
const RESOLVE_EVERY: Duration = Duration::from_secs(5 * 60);

/// How long after the first word of goodbye the second is sent, in case the first is lost.
const GOODBYE_AGAIN: Duration = Duration::from_millis(200);

/// Announces a server until it is told to stop.
pub fn run(args: &Args) -> Result<(), Failure> {
    let id = server_id::choose(args.id_file.as_deref())?;
    // Whatever is wrong with the description is told before anything is sent.
    args.announcer(id, Vec::new(), Instant::now())?;
    for key in args.odd_keys() {
        complain(format_args!("note: \"{key}\" is not a key that clients know; keys of your own begin with x-"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    runtime.block_on(async { Announcement::start(args, id).await?.run().await })
}

/// A server that is being announced.
struct Announcement<'a> {
    args: &'a Args,
    id: ServerId,
    lobbies: Vec<Lobby>,
    announcer: Announcer,
    sender: Sender,
    signals: Signals,
    /// Which lobbies list the server, as far as they were asked.
    listed_by: Vec<Host>,
    /// Whether one ever did.
    was_listed: bool,
    /// Whether a lobby was asked, and did not list it.
    is_missed: bool,
}

/// A lobby, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lobby {
    host: Host,
    addrs: Vec<SocketAddr>,
}

impl<'a> Announcement<'a> {
    async fn start(args: &'a Args, id: ServerId) -> Result<Self, Failure> {
        let signals = Signals::to_end().map_err(Failure::failed)?;
        let sender = Sender::open()?;
        let lobbies = resolve(&args.lobbies, &[]).await;
        let to = addrs(&lobbies);
        if to.is_empty() {
            return Err(Failure::failed("no lobby was found, so there is nobody to announce to"));
        }
        let announcer = args.announcer(id, to, Instant::now())?;
        let (listed_by, was_listed, is_missed) = (Vec::new(), false, false);
        Ok(Self { args, id, lobbies, announcer, sender, signals, listed_by, was_listed, is_missed })
    }

    async fn run(mut self) -> Result<(), Failure> {
        self.greet();
        if !self.send().await && self.args.once {
            return Err(Failure::failed("the registration could not be sent to any address"));
        }
        let mut answers = self.ask();
        let mut all_listed = true;
        let mut resolve_again = time::interval_at(time::Instant::now() + RESOLVE_EVERY, RESOLVE_EVERY);
        while !(self.args.once && answers.is_empty()) {
            let next = self.announcer.poll_timeout().unwrap_or_else(|| Instant::now() + RESOLVE_EVERY);
            tokio::select! {
                () = self.signals.stop() => return self.stop().await,
                () = time::sleep_until(next.into()) => drop(self.send().await),
                Some(Ok((watched, answer))) = answers.join_next() => {
                    let is_listed = self.tell(&watched, &answer);
                    all_listed &= is_listed;
                    if !self.args.once {
                        answers.spawn(change(watched, is_listed));
                    }
                }
                _ = resolve_again.tick() => self.resolve_again().await?,
            }
        }
        if all_listed { Ok(()) } else { Err(Failure::failed("the server is not listed")) }
    }

    fn greet(&self) {
        let Args { name, port, transport, .. } = self.args;
        let to = and(&addrs(&self.lobbies));
        let end = if self.args.once { "" } else { "; Ctrl-C takes it off the list" };
        self.say(&format!("announcing {name:?} ({} {port}) to {to}{end}", transport.as_str()));
    }

    /// Sends whatever is due. Says whether anything could be sent.
    async fn send(&mut self) -> bool {
        let (mut datagram, mut sent) = (Vec::new(), false);
        while let Some(transmit) = self.announcer.poll_transmit(Instant::now(), &mut datagram) {
            sent |= self.sender.send(transmit.to, &datagram).await;
            datagram.clear();
        }
        sent
    }

    /// Asks every lobby, in the background, whether the server has arrived in its list.
    fn ask(&self) -> JoinSet<(Watched, Answer)> {
        let mut answers = JoinSet::new();
        if !self.args.no_check {
            let Args { lobby_id, transport, port, .. } = *self.args;
            let looks = Looks { lobby_id, transport, port, name: self.args.name.clone().into_bytes() };
            for lobby in self.lobbies.iter().cloned() {
                let (looks, x_query, api) = (looks.clone(), self.args.x_query(), self.args.api.clone());
                answers.spawn(watch(Watched { lobby, looks, x_query, api }));
            }
        }
        answers
    }

    fn tell(&mut self, watched: &Watched, answer: &Answer) -> bool {
        let host = &watched.lobby.host;
        self.listed_by.retain(|other| other != host);
        match answer {
            Answer::Listed(text) => {
                self.say(text);
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

    async fn resolve_again(&mut self) -> Result<(), Failure> {
        let lobbies = resolve(&self.args.lobbies, &self.lobbies).await;
        if lobbies != self.lobbies {
            self.announcer = self.args.announcer(self.id, addrs(&lobbies), Instant::now())?;
            self.lobbies = lobbies;
            self.greet();
        }
        Ok(())
    }

    /// Takes the server off the list. The protocol has no answers, so it is said twice.
    async fn stop(mut self) -> Result<(), Failure> {
        let (mut datagram, mut goodbyes) = (Vec::new(), Vec::new());
        self.announcer.stop();
        while let Some(transmit) = self.announcer.poll_transmit(Instant::now(), &mut datagram) {
            goodbyes.push((transmit.to, std::mem::take(&mut datagram)));
        }
        for (to, goodbye) in &goodbyes {
            self.sender.send(*to, goodbye).await;
        }
        // Whoever is in a hurry presses Ctrl-C again.
        tokio::select! {
            () = time::sleep(GOODBYE_AGAIN) => {}
            () = self.signals.stop() => {}
        }
        for (to, goodbye) in &goodbyes {
            self.sender.send(*to, goodbye).await;
        }
        // A lobby does not answer a goodbye, so nothing is claimed that was not seen.
        self.say(match self {
            _ if !self.listed_by.is_empty() => "taken off the list",
            _ if self.was_listed => "stopped; it was no longer in the list",
            _ if self.is_missed => return Err(Failure::failed("stopped; it was never seen in the list")),
            _ if self.args.no_check => "stopped; a goodbye was sent",
            _ => "stopped before it was seen in the list; a goodbye was sent",
        });
        Ok(())
    }

    fn say(&self, text: &str) {
        if !self.args.quiet {
            // If nobody reads this any more, the server still wants to be in the list.
            let _ = writeln!(std::io::stdout(), "{text}");
        }
    }
}

/// Looks all names up. What cannot be found now stays where it was before.
pub async fn resolve(hosts: &[Host], before: &[Lobby]) -> Vec<Lobby> {
    let mut lobbies = Vec::new();
    for host in hosts {
        let known = before.iter().find(|lobby| lobby.host == *host);
        match (host.resolve().await, known) {
            (Ok(mut addrs), _) if !addrs.is_empty() => {
                // The order of a name's addresses changes with every look, which is no change.
                addrs.sort();
                lobbies.push(Lobby { host: host.clone(), addrs });
            }
            (_, Some(known)) => lobbies.push(known.clone()),
            (Ok(_), None) => complain(format_args!("the lobby {host} has no address")),
            (Err(_), None) => {
                complain(format_args!("the lobby {host} cannot be found: is the name right, and is there a network?"));
            }
        }
    }
    lobbies
}

/// All addresses of all lobbies, each once.
pub fn addrs(lobbies: &[Lobby]) -> Vec<SocketAddr> {
    let mut addrs: Vec<_> = lobbies.iter().flat_map(|lobby| &lobby.addrs).copied().collect();
    addrs.sort();
    addrs.dedup();
    addrs
}

/// `a`, `a and b`, `a, b and c`.
fn and(addrs: &[SocketAddr]) -> String {
    let shown: Vec<_> = addrs.iter().map(ToString::to_string).collect();
    match &shown[..] {
        [some @ .., last] if !some.is_empty() => format!("{} and {last}", some.join(", ")),
        _ => shown.concat(),
    }
}
