//! A chat room: who is in it, and what is said to whom. It knows no network.

mod command;
mod names;

use crate::{
    lines::{LONGEST_LINE, too_long},
    pace::Pace,
};
use command::{Command, Meaning};
use rallypoint_query_proto::{Player, ServerInfo, Team};
use rallypoint_wire::text;
use std::time::{Duration, Instant};

/// Who was sent away cannot come back for so long.
pub const AWAY_FOR: Duration = Duration::from_secs(10 * 60);

/// The answer to /who is told in lines of about so many bytes.
const LINE_OF_NAMES: usize = 400;

/// What a client says that wants to know whether everything before it was dealt with, and the answer: nothing that people see.
pub const ASK_IF_HEARD: &str = "/heard";
pub const ALL_HEARD: &str = "-- heard";

/// What is told to a guest, with the line, of which nothing was heard: it was said too fast.
pub const NOT_HEARD: &str = "-- not so fast: this was not heard";

/// The colours of teams in server browsers.
const COLORS: [[u8; 3]; 6] =
    [[204, 51, 51], [51, 102, 204], [51, 153, 51], [204, 153, 0], [153, 51, 153], [0, 153, 153]];

/// What the room wants to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act<P> {
    /// Tell this guest something.
    Tell(P, String),
    /// Send this guest away, for this reason.
    Kick(P, String),
    /// Show this to whoever runs the room.
    Log(String),
}

/// A room with guests, who are known by `P`.
#[derive(Debug)]
pub struct Room<P> {
    teams: Vec<String>,
    welcome: Option<String>,
    guests: Vec<Guest<P>>,
    acts: Vec<Act<P>>,
}

#[derive(Debug)]
struct Guest<P> {
    id: P,
    name: String,
    presence: Presence,
    /// By its place in the list of teams.
    team: Option<usize>,
    pace: Pace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Here,
    /// A goodbye came, which nothing proves yet (S28).
    Leaving,
    /// And then somebody else came who has the name now.
    Gone,
}

impl<P: Copy + PartialEq> Room<P> {
    pub fn new(teams: Vec<String>, welcome: Option<String>) -> Self {
        Self { teams, welcome, guests: Vec::new(), acts: Vec::new() }
    }

    /// What is to be done since the last time.
    pub fn take_acts(&mut self) -> Vec<Act<P>> {
        std::mem::take(&mut self.acts)
    }

    pub fn len(&self) -> usize {
        self.present().count()
    }

    /// Somebody comes in. Names are made different from each other.
    pub fn handle_join(&mut self, now: Instant, id: P, username: &str) {
        if let Some(welcome) = self.welcome.clone() {
            self.tell(id, welcome);
        }
        let name = self.free_name(username);
        let (presence, pace) = (Presence::Here, Pace::of_room(now));
        self.guests.push(Guest { id, name: name.clone(), presence, team: None, pace });
        self.greet(id, &name, username);
    }

    /// Somebody seems to leave: the name can be had by whoever comes now.
    pub fn handle_closing(&mut self, id: P) {
        if let Some(guest) = self.guests.iter_mut().find(|guest| guest.id == id && guest.presence == Presence::Here) {
            guest.presence = Presence::Leaving;
        }
    }

    /// Somebody is gone.
    pub fn handle_leave(&mut self, id: P, why: &str) {
        if let Some(at) = self.guests.iter().position(|guest| guest.id == id) {
            let Guest { name, presence, .. } = self.guests.remove(at);
            if presence == Presence::Gone {
                return;
            }
            let why = if why.is_empty() { String::new() } else { format!(" ({})", text::sanitize(why)) };
            self.tell_all(&format!("-- {name} has left{why}"), |_| true);
        }
    }

    /// Somebody says something.
    pub fn handle_line(&mut self, now: Instant, id: P, line: &[u8], ping: impl Fn(P) -> Option<Duration>) {
        let line = text::display(line);
        let line = line.trim();
        self.come_back(id);
        let Some(guest) = self.guests.iter_mut().find(|guest| guest.id == id) else { return };
        if line.is_empty() {
            return;
        }
        if line == ASK_IF_HEARD {
            return self.tell(id, ALL_HEARD.into());
        }
        let characters = line.chars().count();
        if characters > LONGEST_LINE {
            return self.tell(id, format!("-- {}", too_long(characters)));
        }
        if !guest.pace.is_ready(now) {
            return self.tell(id, format!("{NOT_HEARD}: {line}"));
        }
        guest.pace.spend(now);
        let (name, team) = (guest.name.clone(), guest.team);
        match Meaning::of(line) {
            Meaning::Said(line) => self.tell_all(&format!("{name}: {line}"), |_| true),
            Meaning::Command(Command::Me, "") => self.tell(id, "-- what do you do? /me waves".into()),
            Meaning::Command(Command::Me, what) => self.tell_all(&format!("* {name} {what}"), |_| true),
            Meaning::Command(Command::Who, _) => self.who(ping).into_iter().for_each(|line| self.tell(id, line)),
            Meaning::Command(Command::Team, wanted) => self.choose_team(id, wanted),
            Meaning::Command(Command::TeamTalk, what) => match team {
                Some(at) if !what.is_empty() => {
                    let line = format!("[{}] {name}: {what}", self.teams[at]);
                    self.tell_all(&line, |guest| guest.team == team);
                }
                Some(_) => self.tell(id, "-- what do you want to say to your team? /t hello".into()),
                None => self.tell(id, format!("-- you are in no team yet: /team {}", self.team_names())),
            },
            Meaning::Command(Command::Help, _) => self.tell(id, format!("-- {}", Command::help())),
            Meaning::Unknown("kick") => self.tell(id, "-- only whoever runs the server can do that".into()),
            Meaning::Unknown(other) => self.tell(id, format!("-- there is no /{other}; there is: {}", Command::help())),
        }
    }

    /// Whoever runs the room says something, or asks for something.
    pub fn handle_console(&mut self, line: &str, ping: impl Fn(P) -> Option<Duration>) {
        let line = text::sanitize(line.trim()).into_owned();
        match command::split(&line) {
            None if line.is_empty() => {}
            None => self.tell_all(&format!("-- server: {line}"), |_| true),
            Some(("who", _)) => {
                self.who(ping).into_iter().for_each(|line| self.log(line));
            }
            Some(("kick", "")) => self.log("-- whom? /kick NAME REASON".into()),
            Some(("kick", whom)) => {
                let (name, reason) = whom.split_once(' ').unwrap_or((whom, ""));
                let guest = self.present().find(|guest| names::is_same(&guest.name, name));
                match guest.map(|guest| (guest.id, guest.name.clone())) {
                    Some((id, name)) => {
                        let reason = if reason.is_empty() { "kicked".into() } else { format!("kicked: {reason}") };
                        self.acts.push(Act::Kick(id, reason.clone()));
                        self.handle_leave(id, &reason);
                        let minutes = AWAY_FOR.as_secs() / 60;
                        self.log(format!("-- {name} is sent away; for {minutes} minutes nobody gets in from there"));
                    }
                    None => self.log(format!("-- nobody is called {name:?}; /who is here")),
                }
            }
            Some(_) => self.log("-- what is typed is said to all; /who is here · /kick NAME REASON · /quit".into()),
        }
    }

    /// What server browsers show of it.
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
            let missing = if wanted.is_empty() { String::new() } else { format!("there is no team {wanted}; ") };
            return self.tell(id, format!("-- {missing}the teams are: {}", self.team_names()));
        };
        let team = self.teams[at].clone();
        let Some(guest) = self.guests.iter_mut().find(|guest| guest.id == id) else { return };
        if guest.team.replace(at) != Some(at) {
            let line = format!("-- {} is in team {team} now", guest.name);
            self.tell_all(&line, |_| true);
        }
    }

    /// Who is here, in as many lines as that takes.
    fn who(&self, ping: impl Fn(P) -> Option<Duration>) -> Vec<String> {
        let each = |guest: &Guest<P>| {
            let team = guest.team.map(|at| self.teams[at].clone());
            let ping = ping(guest.id).map(|ping| format!("{} ms", ping.as_millis()));
            let about: Vec<_> = team.into_iter().chain(ping).collect();
            if about.is_empty() { guest.name.clone() } else { format!("{} ({})", guest.name, about.join(", ")) }
        };
        let mut lines = vec![match self.len() {
            0 => "-- nobody is here".into(),
            count => format!("-- {count} here:"),
        }];
        for (n, guest) in self.present().map(each).enumerate() {
            match lines.last_mut() {
                Some(line) if line.len() < LINE_OF_NAMES => {
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

    /// Whoever says something has not left. If somebody else has the name by now, there has to be another.
    fn come_back(&mut self, id: P) {
        let Some(at) = self.guests.iter().position(|guest| guest.id == id) else { return };
        if self.guests[at].presence == Presence::Gone {
            let asked = self.guests[at].name.clone();
            let name = self.free_name(&asked);
            self.guests[at].name.clone_from(&name);
            self.guests[at].presence = Presence::Here;
            self.greet(id, &name, &asked);
        }
        self.guests[at].presence = Presence::Here;
    }

    fn greet(&mut self, id: P, name: &str, asked: &str) {
        if name != asked {
            let asked = text::sanitize(asked).into_owned();
            self.tell(id, format!("-- the name {asked:?} is taken, or cannot be used here: you have another"));
        }
        self.tell(id, format!("-- you are {name}; /help says what can be done"));
        self.tell_all(&format!("-- {name} has joined"), |guest| guest.id != id);
    }

    fn team_names(&self) -> String {
        self.teams.join(", ")
    }

    /// A name that can be typed and that nobody else has. Who seems to leave has it no longer.
    fn free_name(&mut self, username: &str) -> String {
        let name = names::plain(username);
        let leaves = |guest: &&mut Guest<P>| guest.presence == Presence::Leaving && names::is_same(&guest.name, &name);
        if let Some(guest) = self.guests.iter_mut().find(leaves) {
            guest.presence = Presence::Gone;
            let line = format!("-- {} has left", guest.name);
            self.tell_all(&line, |guest| guest.presence != Presence::Gone);
        }
        let is_free = |name: &str| !self.present().any(|guest| names::is_same(&guest.name, name));
        if is_free(&name) {
            return name;
        }
        // There are fewer guests than numbers.
        (2..).map(|number| format!("{name}-{number}")).find(|name| is_free(name)).unwrap_or(name)
    }

    fn tell(&mut self, to: P, line: String) {
        self.acts.push(Act::Tell(to, line));
    }

    fn tell_all(&mut self, line: &str, whom: impl Fn(&Guest<P>) -> bool) {
        let all = self.guests.iter().filter(|guest| whom(guest)).map(|guest| Act::Tell(guest.id, line.to_owned()));
        self.acts.extend(all);
        self.log(line.to_owned());
    }

    fn log(&mut self, line: String) {
        self.acts.push(Act::Log(line));
    }
}

/// In the protocol, 0 is no team.
fn team_number(at: usize) -> u8 {
    u8::try_from(at + 1).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests;
