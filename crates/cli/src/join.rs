//! `rallypoint join`: a terminal client for chat rooms.

mod args;
mod console;
mod line_editor;

pub use args::Args;

use crate::{
    error::{CommandError, with_hint},
    host,
    known_keys::KnownKeys,
    port_hints,
    signals::Signals,
    stdio::print_stderr,
};
use console::Console;
use rallypoint_query::resolve;
use rallypoint_room::{
    GREETING, LineLimiter, Presence, QUIT, RATE_LIMITED, RECEIPT, RECEIPT_REQUEST, RoomConnection, RoomEvent, STATS,
    reachability, too_long_message,
};
use rallypoint_session::{
    ClientEvent, ConnectError, ConnectionStats, DisconnectReason, Encryption, LoginError, PublicKey, SendError,
};
use rallypoint_wire::{session, text};
use std::{
    cell::{Cell, RefCell},
    num::NonZeroU16,
    time::{Duration, Instant},
};

/// Time limit for the welcome of a room and for its receipt.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Takes part in a room until the user leaves or the session ends.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::failed)?;
    runtime.block_on(async {
        let mut signals = Signals::to_stop().map_err(CommandError::failed)?;
        let client = tokio::select! {
            client = RoomClient::start(args) => client?,
            () = signals.stop() => return Ok(()),
        };
        let result = tokio::select! {
            result = client.run() => result,
            () = signals.stop() => Ok(()),
        };
        let RoomClient { client, console, unsent_lines, is_unconfirmed, .. } = client;
        // Restores the terminal, in which Ctrl-C is a key.
        drop(console);
        let unsent_lines = unsent_lines.get();
        // A second Ctrl-C ends the program at once.
        let closed = tokio::select! {
            closed = client.close() => closed,
            () = signals.stop_again() => Ok(()),
        };
        result?;
        closed.map_err(CommandError::failed)?;
        if is_unconfirmed.get() {
            print_stderr("note: all lines arrived, but the room did not confirm that it has processed them");
        }
        match unsent_lines {
            0 => Ok(()),
            1 => Err(CommandError::failed("one line was not sent")),
            _ => Err(CommandError::failed(format!("{unsent_lines} lines were not sent"))),
        }
    })
}

struct RoomClient {
    client: RoomConnection,
    /// Description of the encryption.
    security: &'static str,
    team: Option<String>,
    /// The name of this guest: the room may have given it another one than requested.
    own_name: RefCell<String>,
    console: Console,
    /// Number of lines that could not be sent or were dropped by the room.
    unsent_lines: Cell<usize>,
    /// Whether the room gave no receipt.
    is_unconfirmed: Cell<bool>,
}

impl RoomClient {
    async fn start(args: &Args) -> Result<Self, CommandError> {
        let port = args.server.port.map_or(session::PORT, NonZeroU16::get);
        let addrs = resolve(&args.server.host, port, None).await.map_err(CommandError::failed)?;
        let name = args.name.clone().unwrap_or_else(user_name);
        let server = format!("{}:{port}", args.server.host);
        let mut known = KnownKeys::load(host::data_file("known_servers"));
        let remembered = known.get(&server);
        if let (Some(new), Some(old)) = (args.key, remembered)
            && new != old
        {
            print_stderr(format_args!("warning: the key of {server} has changed: it was {old}, and --key is {new}"));
        }
        let key = args.key.or(remembered).filter(|_| !args.plain);
        let encryption = match key {
            _ if args.plain => Encryption::Plain,
            Some(key) => Encryption::Pinned(key),
            None => Encryption::Encrypted,
        };
        let connected = tokio::select! {
            connected = RoomConnection::connect(&addrs, &name, encryption, !args.no_reconnect) => connected,
            failure = reachability::failure(&addrs) => return Err(CommandError::failed(with_hint(&failure, port_hint(args)))),
        };
        let client = connected.map_err(|error| match (&error, key) {
            (ConnectError::Login(_), Some(old)) if args.key.is_none() => {
                changed_key_error(&error, &server, old, &known)
            }
            _ => connect_error(&error, args),
        })?;
        if let Some(key) = key {
            // Failing to store it is not an error of the session.
            if let Err(warning) = known.remember(&server, key) {
                print_stderr(warning);
            }
        }
        let security = match (args.plain, key) {
            (true, _) => "not encrypted",
            (_, None) => "encrypted",
            (_, Some(_)) => "encrypted, server key verified",
        };
        let (team, console) = (args.team.clone(), Console::new());
        let own_name = RefCell::new(name);
        let (unsent_lines, is_unconfirmed) = (Cell::new(0), Cell::new(false));
        Ok(Self { client, security, team, own_name, console, unsent_lines, is_unconfirmed })
    }

    async fn run(&self) -> Result<(), CommandError> {
        let mut message = Vec::new();
        self.await_welcome(&mut message).await?;
        let mut limiter = LineLimiter::for_client(Instant::now());
        self.join_team(&mut limiter).await;
        let mut is_lost = false;
        let mut receipt_deadline = None;
        loop {
            let ready = limiter.ready_at();
            let line = async {
                tokio::select! {
                    () = until(ready) => {}
                    () = self.console.edit() => {}
                }
                self.console.next_line().await
            };
            tokio::select! {
                event = self.client.next_event(&mut message) => match event {
                    Some(RoomEvent::Presence(report)) => {
                        let prompt = Presence::parse(report).prompt(&self.own_name.borrow());
                        self.console.set_prompt(&prompt);
                    }
                    Some(RoomEvent::Line(line)) => {
                        let line = text::display(line);
                        if receipt_deadline.is_some() && line == RECEIPT {
                            return Ok(());
                        }
                        self.print_message(&line)?;
                    }
                    Some(RoomEvent::Session(ClientEvent::Connected)) => {
                        is_lost = false;
                        self.print_line("-- reconnected")?;
                        self.join_team(&mut limiter).await;
                        if receipt_deadline.is_some() {
                            self.request_receipt().await;
                        }
                    }
                    Some(RoomEvent::Session(ClientEvent::Disconnected(reason))) => {
                        if !self.will_reconnect(&reason) {
                            return Err(disconnect_error(&reason));
                        }
                        is_lost = true;
                        self.print_line(&format!("-- connection lost ({}); reconnecting", describe_loss(&reason)))?;
                    }
                    Some(RoomEvent::Session(ClientEvent::LoginFailed(error))) if !error.is_transient() => {
                        return Err(login_error(&error));
                    }
                    Some(_) => {}
                    None => return Err(session_ended()),
                },
                line = line, if receipt_deadline.is_none() => match line.as_ref().map(|line| line.as_deref().map(str::trim)) {
                    None | Some(Ok(QUIT)) => {
                        // An interactive user has seen the echo of each line.
                        if self.console.is_interactive() || !self.request_receipt().await {
                            return Ok(());
                        }
                        receipt_deadline = Some(Instant::now() + REPLY_TIMEOUT);
                    }
                    Some(Ok("")) => {}
                    Some(Ok(STATS)) => self.print_line(&stats(self.client.stats()))?,
                    Some(Ok(line)) => {
                        // The server echoes it with the name of the user.
                        limiter.spend(Instant::now());
                        if let Err(error) = self.client.send(line.as_bytes()).await {
                            let why = if is_lost { "not connected".into() } else { error.to_string() };
                            self.report_unsent(&format!("not sent ({why}): {}", text::sanitize(line)))?;
                        }
                    }
                    Some(Err(characters)) => self.report_unsent(&too_long_message(*characters))?,
                },
                is_typing = self.console.typing_changed() => self.client.send_typing(is_typing),
                () = until(receipt_deadline), if receipt_deadline.is_some() => {
                    // Other software may not know the request. Whether all lines arrived shows when the session is closed.
                    self.is_unconfirmed.set(true);
                    return Ok(());
                }
            }
        }
    }

    /// Waits for the first message of the room. A refused guest is disconnected instead, before it has sent anything.
    async fn await_welcome(&self, message: &mut Vec<u8>) -> Result<(), CommandError> {
        let first = async {
            loop {
                match self.client.next_event(message).await {
                    Some(RoomEvent::Line(_)) => return Ok(()),
                    Some(RoomEvent::Session(ClientEvent::Disconnected(reason))) => {
                        return Err(disconnect_error(&reason));
                    }
                    Some(_) => {}
                    None => return Err(session_ended()),
                }
            }
        };
        let silent =
            |_| Err(CommandError::failed("the server accepted the login but sent no welcome: it is not a room"));
        tokio::time::timeout(REPLY_TIMEOUT, first).await.unwrap_or_else(silent)?;
        self.print_line(&format!("-- connected to {} ({}); /quit leaves", self.client.server(), self.security))?;
        self.print_message(&text::display(message))
    }

    /// Joins the team of `--team`, after each connect.
    async fn join_team(&self, limiter: &mut LineLimiter) {
        if let Some(team) = &self.team {
            limiter.spend(Instant::now());
            // If the connection is lost again, this is repeated after the next reconnect.
            let _: Result<(), SendError> = self.client.send(format!("/team {team}").as_bytes()).await;
        }
    }

    /// Requests a receipt for all lines so far; false if there is no connection.
    async fn request_receipt(&self) -> bool {
        self.client.send(RECEIPT_REQUEST.as_bytes()).await.is_ok()
    }

    fn will_reconnect(&self, reason: &DisconnectReason) -> bool {
        // After an intended end the client does not reconnect.
        !matches!(reason, DisconnectReason::Closed) && !self.client.is_closed()
    }

    /// Prints a message of the room, or counts it as a refusal.
    fn print_message(&self, line: &str) -> Result<(), CommandError> {
        if let Some((name, _)) = line.strip_prefix(GREETING).and_then(|rest| rest.split_once(';')) {
            name.clone_into(&mut self.own_name.borrow_mut());
        }
        match line.strip_prefix("-- ") {
            Some(why) if line.starts_with(RATE_LIMITED) => self.report_unsent(why),
            _ => self.print_line(line),
        }
    }

    /// Reports a line that was not sent: in the chat if interactive, otherwise on standard error and by the exit code.
    fn report_unsent(&self, why: &str) -> Result<(), CommandError> {
        if self.console.is_interactive() {
            return self.print_line(&format!("-- {why}"));
        }
        self.unsent_lines.set(self.unsent_lines.get() + 1);
        print_stderr(why);
        Ok(())
    }

    fn print_line(&self, line: &str) -> Result<(), CommandError> {
        self.console.print(line)
    }
}

async fn until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at.into()).await;
    }
}

/// The name of the user, if it is valid.
fn user_name() -> String {
    std::env::var("USER").ok().filter(|user| !user.is_empty() && user.len() < 128).unwrap_or_else(|| "guest".into())
}

fn stats(stats: Option<ConnectionStats>) -> String {
    match stats {
        None => "-- not connected".into(),
        Some(stats) => format!(
            "-- round trip {:.1} ms, {:.0} % loss; {} bytes sent, {} received, {} retransmissions",
            stats.rtt.unwrap_or_default().as_secs_f64() * 1e3,
            stats.loss * 100.0,
            stats.bytes_sent,
            stats.bytes_received,
            stats.resends
        ),
    }
}

fn connect_error(error: &ConnectError, args: &Args) -> CommandError {
    match error {
        ConnectError::Login(LoginError::TimedOut) if args.key.is_some() => CommandError::failed(
            "no answer from a server with that key: check that it is running, that no firewall blocks UDP, and the key",
        ),
        ConnectError::Login(LoginError::TimedOut) => CommandError::failed(with_hint(
            "no answer: check that the server is running, the port, and that no firewall blocks UDP",
            port_hint(args),
        )),
        ConnectError::Login(error) => login_error(error),
        error => CommandError::failed(error),
    }
}

/// A hint if the port is one of a lobby.
fn port_hint(args: &Args) -> Option<String> {
    args.server.port.and_then(|port| port_hints::for_server(&args.server.host, port.get()))
}

/// A server that was joined with a key before cannot be joined with it now.
fn changed_key_error(error: &ConnectError, server: &str, key: PublicKey, known: &KnownKeys<PublicKey>) -> CommandError {
    CommandError::failed(format!(
        "{}; {server} had the key {key} before: if it has a new one, give that as --key, or remove its line from {}",
        text::sanitize(&error.to_string()),
        known.file()
    ))
}

fn login_error(error: &LoginError) -> CommandError {
    CommandError::failed(text::sanitize(&error.to_string()))
}

fn session_ended() -> CommandError {
    CommandError::failed("the session has ended")
}

fn disconnect_error(reason: &DisconnectReason) -> CommandError {
    CommandError::failed(match reason {
        DisconnectReason::ClosedByPeer(why) if !why.is_empty() => {
            format!("the server closed the connection: {}", text::sanitize(why))
        }
        reason => text::sanitize(&reason.to_string()).into_owned(),
    })
}

fn describe_loss(reason: &DisconnectReason) -> String {
    match reason {
        DisconnectReason::ClosedByPeer(why) if why == "unknown session" => "the server was restarted".into(),
        reason => text::sanitize(&reason.to_string()).into_owned(),
    }
}
