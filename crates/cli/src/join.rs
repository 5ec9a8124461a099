//! `rallypoint join`: a client for chat rooms, in the terminal.

mod args;

pub use args::Args;

use crate::{
    error::CommandError,
    host::{ALL_HEARD, ASK_IF_HEARD, GAME, LONGEST_MESSAGE, NOT_HEARD},
    lines::{Lines, too_long},
    pace::Pace,
    signals::Signals,
    stdio::{print_stderr, print_stdout},
};
use rallypoint_query::resolve;
use rallypoint_session::{
    ClientConfig, ClientEvent, ClientOptions, ConnectError, ConnectionStats, DisconnectReason, LoginError,
    NotAcknowledged, SendError, SessionClient,
};
use rallypoint_wire::{session, text};
use std::{
    cell::Cell,
    io::{IsTerminal, stdin, stdout},
    num::NonZeroU16,
    time::{Duration, Instant},
};

/// What is typed for this program, and not for the server.
pub const STATS: &str = "/stats";
pub const QUIT: &str = "/quit";

/// A room welcomes whoever comes in, and says that it has heard what was said, within this time.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Takes part until one side has had enough.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::failed)?;
    runtime.block_on(async {
        let mut signals = Signals::to_stop().map_err(CommandError::failed)?;
        let joined = tokio::select! {
            joined = Joined::start(args) => joined?,
            () = signals.stop() => return Ok(()),
        };
        let result = tokio::select! {
            result = joined.run() => result,
            () = signals.stop() => Ok(()),
        };
        let unsaid = joined.unsaid.get();
        // Whoever is in a hurry presses Ctrl-C again.
        let closed = tokio::select! {
            closed = joined.client.close() => closed,
            () = signals.stop_again() => Ok(()),
        };
        result?;
        closed.map_err(CommandError::failed)?;
        match unsaid {
            0 => Ok(()),
            1 => Err(CommandError::failed("one of the lines was not said")),
            _ => Err(CommandError::failed(format!("{unsaid} of the lines were not said"))),
        }
    })
}

struct Joined {
    client: SessionClient,
    /// How safe it is, in words.
    how: &'static str,
    team: Option<String>,
    /// A person types here: what was typed is replaced by what the server makes of it.
    is_typed: bool,
    /// How many lines could not be sent, or were not heard.
    unsaid: Cell<usize>,
}

impl Joined {
    async fn start(args: &Args) -> Result<Self, CommandError> {
        let port = args.server.port.map_or(session::PORT, NonZeroU16::get);
        let addrs = resolve(&args.server.host, port, None).await.map_err(CommandError::failed)?;
        let mut config = ClientConfig::new(&args.name.clone().unwrap_or_else(user), GAME);
        config.encryption = args.encryption();
        config.reconnect = !args.no_reconnect;
        let options = ClientOptions { stream: Some(LONGEST_MESSAGE), ..config.into() };
        let client = SessionClient::connect(&addrs[..], options).await.map_err(|error| explain(&error, args))?;
        let how = match (args.plain, args.key) {
            (true, _) => "not encrypted",
            (_, None) => "encrypted",
            (_, Some(_)) => "encrypted, and it is the server with that key",
        };
        let is_typed = stdin().is_terminal() && stdout().is_terminal();
        Ok(Self { client, how, team: args.team.clone(), is_typed, unsaid: Cell::new(0) })
    }

    async fn run(&self) -> Result<(), CommandError> {
        let mut message = Vec::new();
        self.come_in(&mut message).await?;
        let (mut lines, mut pace) = (Lines::of_stdin(), Pace::of_guest(Instant::now()));
        self.enter(&mut pace).await;
        let (mut is_lost, mut leaves_by) = (false, None);
        loop {
            let ready = pace.ready_at();
            let line = async {
                until(ready).await;
                lines.next().await
            };
            tokio::select! {
                event = self.client.next_event(&mut message) => match event {
                    Some(ClientEvent::Message) => {
                        let line = text::display(&message);
                        if leaves_by.is_some() && line == ALL_HEARD {
                            return Ok(());
                        }
                        self.hear(&line)?;
                    }
                    Some(ClientEvent::Connected) => {
                        is_lost = false;
                        self.tell("-- connected again")?;
                        self.enter(&mut pace).await;
                        if leaves_by.is_some() {
                            self.ask().await;
                        }
                    }
                    Some(ClientEvent::Disconnected(reason)) => {
                        if !self.comes_back(&reason) {
                            return Err(ended(&reason));
                        }
                        is_lost = true;
                        self.tell(&format!("-- the connection is lost ({}); trying again", lost(&reason)))?;
                    }
                    Some(ClientEvent::LoginFailed(error @ LoginError::Refused(_))) => return Err(refused(&error)),
                    Some(_) => {}
                    None => return Err(over()),
                },
                line = line, if leaves_by.is_none() => match line.as_ref().map(|line| line.as_deref().map(str::trim)) {
                    None | Some(Ok(QUIT)) => {
                        // A person has seen what became of the lines.
                        if self.is_typed || !self.ask().await {
                            return Ok(());
                        }
                        leaves_by = Some(Instant::now() + ANSWERS_WITHIN);
                    }
                    Some(Ok("")) => {}
                    Some(Ok(STATS)) => self.tell(&stats(self.client.stats()))?,
                    Some(Ok(line)) => {
                        if self.is_typed {
                            // The line as it was typed goes; it comes back from the server with a name before it.
                            print_stdout("\x1b[1A\x1b[2K")?;
                        }
                        pace.spend(Instant::now());
                        if let Err(error) = self.client.send(line.as_bytes()).await {
                            let why = if is_lost { "not connected".into() } else { error.to_string() };
                            self.not_said(&format!("this was not said ({why}): {}", text::sanitize(line)))?;
                        }
                    }
                    Some(Err(characters)) => self.not_said(&too_long(*characters))?,
                },
                () = until(leaves_by), if leaves_by.is_some() => return Err(CommandError::failed(NotAcknowledged)),
            }
        }
    }

    /// Waits for the first words of the room. Who is not wanted there hears that instead, and has said nothing yet.
    async fn come_in(&self, message: &mut Vec<u8>) -> Result<(), CommandError> {
        let first = async {
            loop {
                match self.client.next_event(message).await {
                    Some(ClientEvent::Message) => return Ok(()),
                    Some(ClientEvent::Disconnected(reason)) => return Err(ended(&reason)),
                    Some(_) => {}
                    None => return Err(over()),
                }
            }
        };
        let silent =
            |_| Err(CommandError::failed("the server lets people in, but does not welcome them: it is no room"));
        tokio::time::timeout(ANSWERS_WITHIN, first).await.unwrap_or_else(silent)?;
        self.tell(&format!("-- connected to {} ({}); /quit leaves", self.client.server(), self.how))?;
        self.tell(&text::display(message))
    }

    /// After coming in, also again.
    async fn enter(&self, pace: &mut Pace) {
        if let Some(team) = &self.team {
            pace.spend(Instant::now());
            // If the connection is gone again, the next one does it.
            let _: Result<(), SendError> = self.client.send(format!("/team {team}").as_bytes()).await;
        }
    }

    /// Asks the room to answer when it has dealt with all that was said; false if there is no connection.
    async fn ask(&self) -> bool {
        self.client.send(ASK_IF_HEARD.as_bytes()).await.is_ok()
    }

    fn comes_back(&self, reason: &DisconnectReason) -> bool {
        // The client decides; after an end that one side wanted there is nothing more to come.
        !matches!(reason, DisconnectReason::Closed) && !self.client.is_closed()
    }

    /// What somebody says, or the room.
    fn hear(&self, line: &str) -> Result<(), CommandError> {
        match line.strip_prefix("-- ") {
            Some(why) if line.starts_with(NOT_HEARD) => self.not_said(why),
            _ => self.tell(line),
        }
    }

    /// A person sees it among what is said; a program that writes into a pipe learns it from the exit code, too.
    fn not_said(&self, why: &str) -> Result<(), CommandError> {
        if self.is_typed {
            return self.tell(&format!("-- {why}"));
        }
        self.unsaid.set(self.unsaid.get() + 1);
        print_stderr(why);
        Ok(())
    }

    fn tell(&self, line: &str) -> Result<(), CommandError> {
        print_stdout(&format!("{line}\n"))
    }
}

async fn until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at.into()).await;
    }
}

/// The name of the user, if it can be used.
fn user() -> String {
    std::env::var("USER").ok().filter(|user| !user.is_empty() && user.len() < 128).unwrap_or_else(|| "guest".into())
}

fn stats(stats: Option<ConnectionStats>) -> String {
    match stats {
        None => "-- not connected".into(),
        Some(stats) => format!(
            "-- round trip {:.1} ms, {:.0} % lost; {} bytes sent, {} received, {} messages sent again",
            stats.rtt.unwrap_or_default().as_secs_f64() * 1e3,
            stats.loss * 100.0,
            stats.bytes_sent,
            stats.bytes_received,
            stats.resends
        ),
    }
}

fn explain(error: &ConnectError, args: &Args) -> CommandError {
    match error {
        ConnectError::Login(LoginError::TimedOut) if args.key.is_some() => CommandError::failed(
            "no answer from a server with that key: does it run, does a firewall let it through, and is the key right?",
        ),
        ConnectError::Login(LoginError::TimedOut) => CommandError::failed(
            "no answer: does the server run, is the port right, and does a firewall let it through (UDP)?",
        ),
        ConnectError::Login(error) => refused(error),
        error => CommandError::failed(error),
    }
}

fn refused(error: &LoginError) -> CommandError {
    CommandError::failed(text::sanitize(&error.to_string()))
}

fn over() -> CommandError {
    CommandError::failed("the session is over")
}

fn ended(reason: &DisconnectReason) -> CommandError {
    CommandError::failed(match reason {
        DisconnectReason::ClosedByPeer(why) if !why.is_empty() => {
            format!("the server ended it: {}", text::sanitize(why))
        }
        reason => text::sanitize(&reason.to_string()).into_owned(),
    })
}

fn lost(reason: &DisconnectReason) -> String {
    match reason {
        DisconnectReason::ClosedByPeer(why) if why == "unknown session" => "the server was restarted".into(),
        reason => text::sanitize(&reason.to_string()).into_owned(),
    }
}
