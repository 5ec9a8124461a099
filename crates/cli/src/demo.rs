//! `rallypoint demo`: a lobby with pretend servers, for a first look.

use crate::{
    error::CommandError,
    host::{ListingReports, StdConsole},
    listen_addr::listen_addr,
    local_lobby::DEFAULT_HTTP_PORT,
    signals::Signals,
    stdio::{print_stderr, print_stdout},
};
use rallypoint_query::list_names;
use rallypoint_room::{Demo, DemoConfig, DemoStartError, MAX_CROWD};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Show all of it on this machine: a lobby, its page, pretend servers and a chat room
///
/// Starts a lobby with its page, and 30 pretend servers of several games that come, go, and change maps and players.
/// They register through the real protocols, and many of them answer queries. Their history of the last week is made up.
/// Everything stays on this machine (127.0.0.1), unless --http names another address, and nothing is left behind after Ctrl-C.
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub struct Args {
    /// Address of the page [default: port 29950 of 127.0.0.1, or a free port]
    #[arg(long, value_name = "ADDR:PORT", value_parser = |text: &str| listen_addr(text, DEFAULT_HTTP_PORT.get()))]
    http: Option<SocketAddr>,

    /// Add servers with names and texts that try to break out of their place, and with answers that do not agree
    #[arg(long, hide = true)]
    hostile: bool,

    /// Add servers that only register, until there is this number of them
    #[arg(long, hide = true, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=i64::from(MAX_CROWD)))]
    servers: u16,
}

const MORE: &str = "\
Examples:
  rallypoint demo
      prints the address of the page, and what to try in another terminal
  rallypoint demo --http 127.0.0.1:8080
      the page at another port

Exit codes:
  0  ended by Ctrl-C, or by /quit in the console of the room
  1  failed to start; the last line states the reason
  2  wrong usage";

/// Runs the demo until Ctrl-C.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(CommandError::failed)?;
    let result = runtime.block_on(async {
        let mut signals = Signals::to_end().map_err(CommandError::failed)?;
        let config = DemoConfig { http: args.http, hostile: args.hostile, servers: args.servers };
        let mut demo = Demo::start(&config).await.map_err(|error| match error {
            DemoStartError::Room(error) => error.into(),
            DemoStartError::Web(error) => CommandError::failed(format_args!("{error} with --http")),
            error => CommandError::failed(error),
        })?;
        print_what_to_try(&demo)?;
        let rooms = list_names::find(list_names::ROOMS).map_err(CommandError::failed)?;
        let mut reports = ListingReports::start(demo.room(), Demo::ROOM_NAME, rooms);
        let mut console = StdConsole::new();
        tokio::select! {
            result = demo.run(&mut console) => result.map_err(CommandError::failed)?,
            () = reports.print() => {}
            () = signals.stop() => {}
        }
        print_stderr("ending the demo\nclosing the room");
        tokio::select! {
            () = demo.stop() => {}
            () = signals.stop_again() => {}
        }
        Ok(())
    });
    runtime.shutdown_background();
    result
}

/// Prints the addresses and a few commands. They name this program as it was called, so that they can be copied.
fn print_what_to_try(demo: &Demo) -> Result<(), CommandError> {
    let program = std::env::args().next().filter(|name| !name.is_empty()).unwrap_or_else(|| "rallypoint".into());
    let listening = demo.web_addr();
    let page = reachable_here(listening);
    let extent = if listening.ip().is_loopback() {
        "All of it stays on this machine"
    } else {
        "Other machines can open the page; the rest stays on this one"
    };
    let lobby = match demo.lobby_addr().port() {
        rallypoint_wire::lobby::PORT => demo.lobby_addr().ip().to_string(),
        _ => demo.lobby_addr().to_string(),
    };
    // The page names all lists of the lobby. If it is at another port than usual, the commands have to be given that one.
    let lists = if page.port() == DEFAULT_HTTP_PORT.get() { lobby.clone() } else { format!("http://{page}/") };
    let watched = if lists == lobby { format!("lobby://{lobby}") } else { lists.clone() };
    let session = demo.session_port();
    let room = demo.room().local_addrs().first().map_or(String::new(), SocketAddr::to_string);
    print_stdout(&format!(
        "A lobby with {count} pretend servers and a chat room. {extent}.\n\n  \
         page      http://{page}/\n\n\
         In another terminal:\n\n  \
         {program} browse {lists}\n  \
         {program} list {lists} --query --sort players\n  \
         {program} query session://127.0.0.1:{session}\n  \
         {program} watch {watched}\n  \
         {program} join {room} --name YOU\n\n\
         Servers, players and their history of the last week are made up. Ctrl-C ends the demo and leaves nothing behind.\n\
         The chat room follows; lines that you type here are sent to its guests.\n\n",
        count = demo.servers(),
    ))
}

/// An address of this machine at which a program on it reaches a listener at all addresses.
fn reachable_here(listening: SocketAddr) -> SocketAddr {
    match listening {
        SocketAddr::V4(addr) if addr.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, addr.port()).into(),
        SocketAddr::V6(addr) if addr.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, addr.port()).into(),
        addr => addr,
    }
}
