//! The chat room as a state machine: guests, teams, commands and the lines sent to each guest. No I/O.

mod command;
mod names;

use crate::{
    MAX_LINE,
    channels::{IDLE, MAX_PRESENCE, TYPING},
    line_limiter::LineLimiter,
    too_long_message,
};
use command::{Command, ParsedLine};
use rallypoint_query_proto::{Player, ServerInfo, Team};
use rallypoint_wire::text;
use std::time::{Duration, Instant};

/// Time for which the network of a kicked guest is banned.
pub const KICK_BAN: Duration = Duration::from_secs(10 * 60);

/// Approximate maximum length of the lines of `/who` in bytes.
const WHO_LINE: usize = 400;

/// Sent by a client to learn whether all earlier lines were processed. Not shown to users, nor is the reply.
pub const RECEIPT_REQUEST: &str = "/heard";

/// Reply to [`RECEIPT_REQUEST`].
pub const RECEIPT: &str = "-- heard";

/// First words of the greeting; the name of the guest follows, which is not the requested one if that is taken.
pub const GREETING: &str = "-- you are ";

/// Start of the reply to a line that exceeded the rate limit and was dropped; the line follows.
pub const RATE_LIMITED: &str = "-- too many lines at once; not delivered";

/// Colours of teams in server browsers.
const COLORS: [[u8; 3]; 6] =
    [[204, 51, 51], [51, 102, 204], [51, 153, 51], [204, 153, 0], [153, 51, 153], [0, 153, 153]];

/// An action that the owner of the room has to perform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomAction<P> {
    /// Send a line to a guest.
    Send(P, String),
    /// Disconnect a guest with a reason, and ban its network.
    Kick(P, String),
    /// Print a line on the console of the operator.
    Log(String),
}

/// A chat room. Guests are identified by `P`.
#[derive(Debug)]
pub struct Room<P> {
    teams: Vec<String>,
    welcome: Option<String>,
    guests: Vec<Guest<P>>,
    actions: Vec<RoomAction<P>>,
}

#[derive(Debug)]
struct Guest<P> {
    id: P,
    name: String,
    presence: Presence,
    /// Index into the list of teams.
    team: Option<usize>,
    limiter: LineLimiter,
    is_typing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Present,
    /// A disconnect was received, which may be forged (S28).
    Leaving,
    /// Another guest has taken the name since.
    Gone,
}

impl<P: Copy + PartialEq> Room<P> {
    pub fn new(teams: Vec<String>, welcome: Option<String>) -> Self {
        Self { teams, welcome, guests: Vec::new(), actions: Vec::new() }
    }

    /// Takes the pending actions.
    pub fn take_actions(&mut self) -> Vec<RoomAction<P>> {
        std::mem::take(&mut self.actions)
    }

    pub fn len(&self) -> usize {
        self.present().count()
    }

    /// Adds a guest, with a unique name.
    pub fn handle_join(&mut self, now: Instant, id: P, username: &str) {
        if let Some(welcome) = self.welcome.clone() {
            self.send(id, welcome);
        }
        let name = self.free_name(username);
        let limiter = LineLimiter::for_room(now);
        let presence = Presence::Present;
        self.guests.push(Guest { id, name: name.clone(), presence, team: None, limiter, is_typing: false });
        self.greet(id, &name, username);
    }

    /// A guest seems to leave: from now on its name is available to others.
    pub fn handle_closing(&mut self, id: P) {
        if let Some(guest) = self.guests.iter_mut().find(|guest| guest.id == id && guest.presence == Presence::Present)
        {
            guest.presence = Presence::Leaving;
        }
    }

    /// Removes a guest.
    pub fn handle_leave(&mut self, id: P, why: &str) {
        if let Some(at) = self.guests.iter().position(|guest| guest.id == id) {
            let Guest { name, presence, .. } = self.guests.remove(at);
            if presence == Presence::Gone {
                return;
            }
            let why = if why.is_empty() { String::new() } else { format!(" ({})", text::sanitize(why)) };
            self.broadcast(&format!("-- {name} left{why}"), |_| true);
        }
    }

    /// Handles a report of a guest, that it is typing or not. Returns whether that is new.
    pub fn handle_presence(&mut self, id: P, report: &[u8]) -> bool {
        let is_typing = report == TYPING.as_bytes();
        let Some(guest) = self.guests.iter_mut().find(|guest| guest.id == id) else { return false };
        std::mem::replace(&mut guest.is_typing, is_typing) != is_typing
    }

    /// The presence report: the number of guests, then a line `NAME TEAM PING STATE` for each, as far as they fit.
    pub fn presence(&self, ping: impl Fn(P) -> Option<Duration>) -> String {
        let mut report = format!("{}\n", self.len());
        for guest in self.present() {
            let team = guest.team.map_or("-", |at| &self.teams[at]);
            let ping = ping(guest.id).map_or_else(|| "-".into(), |ping| ping.as_millis().to_string());
            let state = if guest.is_typing { TYPING } else { IDLE };
            let line = format!("{} {} {ping} {state}\n", guest.name, team.replace(' ', "_"));
            if report.len() + line.len() <= MAX_PRESENCE {
                report.push_str(&line);
            }
        }
        report
    }

    /// Handles a line from a guest.
    pub fn handle_line(&mut self, now: Instant, id: P, line: &[u8], ping: impl Fn(P) -> Option<Duration>) {
        let line = text::display(line);
        let line = line.trim();
        self.mark_present(id);
        let Some(guest) = self.guests.iter_mut().find(|guest| guest.id == id) else { return };
        if line.is_empty() {
            return;
        }
        if line == RECEIPT_REQUEST {
            return self.send(id, RECEIPT.into());
        }
        let characters = line.chars().count();
        if characters > MAX_LINE {
            return self.send(id, format!("-- {}", too_long_message(characters)));
        }
        if !guest.limiter.is_ready(now) {
            return self.send(id, format!("{RATE_LIMITED}: {line}"));
        }
        guest.limiter.spend(now);
        let name = guest.name.clone();
        let team = guest.team;
        match ParsedLine::parse(line) {
            ParsedLine::Chat(line) => self.broadcast(&format!("{name}: {line}"), |_| true),
            ParsedLine::Command(Command::Me, "") => self.send(id, "-- usage: /me ACTION, such as /me waves".into()),
            ParsedLine::Command(Command::Me, what) => self.broadcast(&format!("* {name} {what}"), |_| true),
            ParsedLine::Command(Command::Who, _) => {
                self.guest_list(ping).into_iter().for_each(|line| self.send(id, line));
            }
            ParsedLine::Command(Command::Team, wanted) => self.choose_team(id, wanted),
            ParsedLine::Command(Command::TeamTalk, what) => match team {
                Some(at) if !what.is_empty() => {
                    let line = format!("[{}] {name}: {what}", self.teams[at]);
                    self.broadcast(&line, |guest| guest.team == team);
                }
                Some(_) => self.send(id, "-- usage: /t TEXT, such as /t hello".into()),
                None => self
                    .send(id, format!("-- join a team first, with /team NAME; the teams are: {}", self.team_names())),
            },
            ParsedLine::Command(Command::Help, _) => self.send(id, format!("-- {}", Command::help())),
            ParsedLine::Unknown("kick") => self.send(id, "-- only the operator of the server can do that".into()),
            ParsedLine::Unknown(other) => {
                self.send(id, format!("-- unknown command /{other}; commands: {}", Command::help()));
            }
        }
    }

    /// Handles a line typed by the operator.
    pub fn handle_console(&mut self, line: &str, ping: impl Fn(P) -> Option<Duration>) {
        let line = text::sanitize(line.trim()).into_owned();
        match command::split_command(&line) {
            None if line.is_empty() => {}
            None => self.broadcast(&format!("-- server: {line}"), |_| true),
            Some(("who", _)) => {
                self.guest_list(ping).into_iter().for_each(|line| self.log(line));
            }
            Some(("kick", "")) => self.log("-- usage: /kick NAME REASON".into()),
            Some(("kick", rest)) => {
                let (name, reason) = rest.split_once(' ').unwrap_or((rest, ""));
                let guest = self.present().find(|guest| names::is_same(&guest.name, name));
                match guest.map(|guest| (guest.id, guest.name.clone())) {
                    Some((id, name)) => {
                        let reason = if reason.is_empty() { "kicked".into() } else { format!("kicked: {reason}") };
                        self.actions.push(RoomAction::Kick(id, reason.clone()));
                        self.handle_leave(id, &reason);
                        let minutes = KICK_BAN.as_secs() / 60;
                        self.log(format!("-- {name} was kicked; their network is banned for {minutes} minutes"));
                    }
                    None => self.log(format!("-- no guest is called {name:?}; /who lists them")),
                }
            }
            Some(_) => {
                self.log("-- commands: /who · /kick NAME REASON · /quit; other lines are sent to all guests".into());
            }
        }
    }

    /// The answer to queries of server browsers.
    pub fn info(&self, base: &ServerInfo, ping: impl Fn(P) -> Option<Duration>) -> ServerInfo {
        let team = |(n, name): (usize, &String)| Team {
            id: team_number(n),
            name: name.clone(),
            ranked: false,
            color: COLORS[n % COLORS.len()],
        };
        let player = |guest: &Guest<P>| Player {
            name: guest.name.clone(),
            team: Some(guest.team.map_or(0, team_number)),
            ping_ms: ping(guest.id).map(|ping| i32::try_from(ping.as_millis()).unwrap_or(i32::MAX)),
            ..Player::default()
        };
        ServerInfo {
            players: Some(u16::try_from(self.len()).unwrap_or(u16::MAX)),
            teams: self.teams.iter().enumerate().map(team).collect(),
            player_list: Some(self.present().map(player).collect()),
            ..base.clone()
        }
    }

    fn choose_team(&mut self, id: P, wanted: &str) {
        let Some(at) = self.teams.iter().position(|team| team.eq_ignore_ascii_case(wanted)) else {
            let missing = if wanted.is_empty() { String::new() } else { format!("unknown team {wanted}; ") };
            return self.send(id, format!("-- {missing}the teams are: {}", self.team_names()));
        };
        let team = self.teams[at].clone();
        let Some(guest) = self.guests.iter_mut().find(|guest| guest.id == id) else { return };
        if guest.team.replace(at) != Some(at) {
            let line = format!("-- {} joined team {team}", guest.name);
            self.broadcast(&line, |_| true);
        }
    }

    /// The guests, in as many lines as necessary.
    fn guest_list(&self, ping: impl Fn(P) -> Option<Duration>) -> Vec<String> {
        let each = |guest: &Guest<P>| {
            let team = guest.team.map(|at| self.teams[at].clone());
            let ping = ping(guest.id).map(|ping| format!("{} ms", ping.as_millis()));
            let about: Vec<_> = team.into_iter().chain(ping).collect();
            if about.is_empty() { guest.name.clone() } else { format!("{} ({})", guest.name, about.join(", ")) }
        };
        let mut lines = vec![match self.len() {
            0 => "-- the room is empty".into(),
            count => format!("-- {count} in the room:"),
        }];
        for (n, guest) in self.present().map(each).enumerate() {
            match lines.last_mut() {
                Some(line) if line.len() < WHO_LINE => {
                    line.push_str(if n == 0 { " " } else { ", " });
                    line.push_str(&guest);
                }
                _ => lines.push(format!("-- and {guest}")),
            }
        }
        lines
    }

    fn present(&self) -> impl Iterator<Item = &Guest<P>> {
        self.guests.iter().filter(|guest| guest.presence != Presence::Gone)
    }

    /// A guest that sends a line has not left. If its name was given away meanwhile, it gets another one.
    fn mark_present(&mut self, id: P) {
        let Some(at) = self.guests.iter().position(|guest| guest.id == id) else { return };
        if self.guests[at].presence == Presence::Gone {
            let asked = self.guests[at].name.clone();
            let name = self.free_name(&asked);
            self.guests[at].name.clone_from(&name);
            self.guests[at].presence = Presence::Present;
            self.greet(id, &name, &asked);
        }
        self.guests[at].presence = Presence::Present;
    }

    fn greet(&mut self, id: P, name: &str, asked: &str) {
        if name != asked {
            let shown = text::sanitize(asked);
            self.send(
                id,
                match names::sanitize_name(asked) == asked {
                    true => format!("-- another guest has the name {shown:?}"),
                    false => {
                        format!("-- {shown:?} cannot be used: a name has letters and digits, with - _ . in between")
                    }
                },
            );
        }
        self.send(id, format!("{GREETING}{name}; /help lists the commands"));
        self.broadcast(&format!("-- {name} joined"), |guest| guest.id != id);
    }

    fn team_names(&self) -> String {
        self.teams.join(", ")
    }

    /// A unique name that can be typed. The names of guests that seem to leave are available.
    fn free_name(&mut self, username: &str) -> String {
        let name = names::sanitize_name(username);
        let leaves = |guest: &&mut Guest<P>| guest.presence == Presence::Leaving && names::is_same(&guest.name, &name);
        if let Some(guest) = self.guests.iter_mut().find(leaves) {
            guest.presence = Presence::Gone;
            let line = format!("-- {} left", guest.name);
            self.broadcast(&line, |guest| guest.presence != Presence::Gone);
        }
        let is_free = |name: &str| !self.present().any(|guest| names::is_same(&guest.name, name));
        if is_free(&name) {
            return name;
        }
        // Always found: there are fewer guests than numbers.
        (2..).map(|number| format!("{name}-{number}")).find(|name| is_free(name)).unwrap_or(name)
    }

    fn send(&mut self, to: P, line: String) {
        self.actions.push(RoomAction::Send(to, line));
    }

    fn broadcast(&mut self, line: &str, is_recipient: impl Fn(&Guest<P>) -> bool) {
        let all = self
            .guests
            .iter()
            .filter(|guest| is_recipient(guest))
            .map(|guest| RoomAction::Send(guest.id, line.to_owned()));
        self.actions.extend(all);
        self.log(line.to_owned());
    }

    fn log(&mut self, line: String) {
        self.actions.push(RoomAction::Log(line));
    }
}

/// Number of a team in the protocol, where 0 means no team.
fn team_number(at: usize) -> u8 {
    u8::try_from(at + 1).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests;
