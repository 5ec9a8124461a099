//! `rallypoint host`: runs a chat room with teams.

mod args;
mod key;
mod listing;

pub use args::Args;
pub use key::data_file;
pub use listing::ListingReports;

use crate::{
    announced_lobby::AnnouncedLobby,
    error::CommandError,
    input_lines::InputLines,
    signals::Signals,
    stdio::{print_line, print_stderr, print_stdout},
};
use rallypoint_announce::AnnounceStartError;
use rallypoint_room::{Console, Line, RoomServer, RoomStartError};
use rallypoint_session::SetupError;

/// Runs a room until `/quit` or a signal.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::failed)?;
    runtime.block_on(async {
        let mut signals = Signals::to_stop().map_err(CommandError::failed)?;
        let config = args.config()?;
        let (name, list_id) = (config.name.clone(), config.list_id);
        let mut server = RoomServer::start(config).await?;
        print_addresses(&server, args);
        let mut reports = ListingReports::start(&server, &name, list_id);
        let mut console = StdConsole::new();
        tokio::select! {
            result = server.run(&mut console) => result.map_err(CommandError::failed)?,
            () = reports.print() => {}
            () = signals.stop() => {}
        }
        print_stderr("closing the room");
        // A second Ctrl-C ends the program at once.
        tokio::select! {
            () = server.stop() => {}
            () = signals.stop_again() => {}
        }
        Ok(())
    })
}

/// Standard input, output and error as the console of a room.
pub struct StdConsole(InputLines);

impl StdConsole {
    pub fn new() -> Self {
        Self(InputLines::from_stdin())
    }
}

impl Console for StdConsole {
    async fn next_line(&mut self) -> Option<Line> {
        self.0.next().await
    }

    fn print(&mut self, line: &str) {
        print_line(line);
    }

    fn report(&mut self, notice: &str) {
        print_stderr(notice);
    }
}

impl From<RoomStartError> for CommandError {
    fn from(error: RoomStartError) -> Self {
        match error {
            RoomStartError::Session(SetupError::Bind(error)) => Self::bind(&error, "--listen"),
            RoomStartError::Metrics(error) => Self::bind(&error, "--metrics"),
            RoomStartError::Announce(error @ AnnounceStartError::LobbyNotFound(_)) => {
                Self::failed(format!("{error}, or leave out --lobby"))
            }
            RoomStartError::Announce(error) => error.into(),
            error => Self::failed(error),
        }
    }
}

/// Prints the addresses and the key, for users and scripts.
fn print_addresses(server: &RoomServer, args: &Args) {
    let lines: String = server.local_addrs().iter().map(|addr| format!("session udp {addr}\n")).collect();
    let metrics_line = server.metrics_addr().map_or(String::new(), |addr| format!("metrics tcp {addr}\n"));
    // A closed standard output is no reason not to serve.
    let _ = print_stdout(&format!("{lines}{metrics_line}key {}\n", server.public_key()));
    let Ok(list) = args.list().map(rallypoint_query::list_names::short_name) else { return };
    for AnnouncedLobby { host: lobby, .. } in &args.lobbies {
        print_stderr(format_args!("to see it in the list: rallypoint list {lobby}/{list} --query"));
    }
}
