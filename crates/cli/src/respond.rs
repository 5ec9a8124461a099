//! `rallypoint respond`: answers queries on behalf of a game.

mod args;
mod info_file;

pub use args::Args;

use crate::{
    error::CommandError,
    signals::{SignalAction, Signals},
    stdio::{print_stderr, print_stdout},
};
use info_file::InfoFile;
use rallypoint_query_proto::{Protocol, Responder, ResponderConfig, ServerInfo};
use rallypoint_udp::{EventLoop, EventLoopThread, UdpSocket, entropy};
use std::{net::SocketAddr, sync::Arc};

/// Size of the receive buffer in bytes, for bursts of queries.
const RECEIVE_BUFFER: usize = 1 << 20;

/// Answers queries until a signal arrives.
pub fn run(args: &Args) -> Result<(), CommandError> {
    if args.print_example {
        return print_stdout(InfoFile::EXAMPLE);
    }
    let Some(file) = args.info.as_deref().map(InfoFile::new) else {
        return Err(CommandError::Usage("no file with answers: set --info".into()));
    };
    let listeners = args.listeners();
    if listeners.is_empty() {
        return Err(CommandError::Usage(
            "no address to listen on: set --session ADDR:PORT, --bloodmasters ADDR:PORT, or another protocol".into(),
        ));
    }
    let info =
        file.read().map_err(|errors| CommandError::Usage(format!("the file with answers is not valid\n{errors}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::failed)?;
    runtime.block_on(answer(&file, &info, &listeners))
}

/// An address and the protocols answered there.
struct Listener {
    addr: SocketAddr,
    protocols: Vec<Protocol>,
}

async fn answer(file: &InfoFile<'_>, info: &ServerInfo, listeners: &[Listener]) -> Result<(), CommandError> {
    // Before anything else, so that no signal is missed once the ports are open.
    let mut signals = Signals::new().map_err(CommandError::failed)?;
    let mut threads = Vec::new();
    let mut lines = String::new();
    for listener in listeners {
        let socket = Arc::new(UdpSocket::bind(listener.addr, RECEIVE_BUFFER).map_err(CommandError::failed)?);
        for protocol in &listener.protocols {
            lines += &format!("{protocol} udp {}\n", socket.local_addr());
        }
        threads.push(start(listener, socket, info)?);
    }
    // A closed standard output is no reason not to answer.
    let _ = print_stdout(&lines);
    while signals.next().await == SignalAction::Reload {
        match file.read() {
            Ok(info) => {
                let info = Arc::new(info);
                for thread in &threads {
                    let info = info.clone();
                    thread.handle().run(move |responder, _| responder.set_info(&info));
                }
                print_stderr(format_args!("reloaded {file}"));
            }
            Err(errors) => print_stderr(format_args!("{errors}\nthe file was not reloaded: correct the errors above")),
        }
    }
    drop(threads);
    Ok(())
}

fn start(
    listener: &Listener,
    socket: Arc<UdpSocket>,
    info: &ServerInfo,
) -> Result<EventLoopThread<Responder>, CommandError> {
    let seed = entropy::u128().map_err(CommandError::failed)?;
    let config = ResponderConfig { protocols: listener.protocols.clone(), ..ResponderConfig::default() };
    let responder = Responder::new(config, seed, info).map_err(CommandError::failed)?;
    EventLoop::new(vec![socket])
        .and_then(|event_loop| event_loop.spawn("respond", responder, drop))
        .map_err(CommandError::failed)
}
