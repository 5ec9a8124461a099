//! `rallypoint respond`: answers queries for a game that has no query of its own.

mod args;
mod info_file;
mod section;

pub use args::Args;

use crate::{
    error::CommandError,
    signals::{SignalAction, Signals},
    stdio::{print_stderr, print_stdout},
};
use info_file::InfoFile;
use rallypoint_query_proto::{Responder, ResponderConfig, ServerInfo};
use rallypoint_udp::{EventLoop, EventLoopThread, UdpSocket, entropy};
use std::{net::SocketAddr, sync::Arc};

/// Room for a flood of queries while the thread is busy.
const RECEIVE_BUFFER: usize = 1 << 20;

/// Answers until it is told to stop.
pub fn run(args: &Args) -> Result<(), CommandError> {
    if args.print_example {
        return print_stdout(InfoFile::EXAMPLE);
    }
    let Some(file) = args.info.as_deref().map(InfoFile::new) else {
        return Err(CommandError::Usage("there is nothing to answer with: name a file with --info".into()));
    };
    let places = args.places();
    if places.is_empty() {
        return Err(CommandError::Usage(
            "there is nowhere to answer: give --session ADDR:PORT, --bloodmasters ADDR:PORT, or both".into(),
        ));
    }
    let info = file.read().map_err(|errors| CommandError::Usage(format!("what to answer cannot be read\n{errors}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::failed)?;
    runtime.block_on(answer(&file, &info, &places))
}

/// An address, and what is answered there.
struct Place {
    addr: SocketAddr,
    bloodmasters: bool,
    session: bool,
}

async fn answer(file: &InfoFile<'_>, info: &ServerInfo, places: &[Place]) -> Result<(), CommandError> {
    // Before anything else, so that no signal is missed once the ports are open.
    let mut signals = Signals::new().map_err(CommandError::failed)?;
    let (mut answering, mut lines) = (Vec::new(), String::new());
    for place in places {
        let socket = Arc::new(UdpSocket::bind(place.addr, RECEIVE_BUFFER).map_err(CommandError::failed)?);
        for (name, _) in place.protocols() {
            lines += &format!("{name} udp {}\n", socket.local_addr());
        }
        answering.push(start(place, socket, info)?);
    }
    // Nobody may be reading, which is no reason not to answer.
    let _ = print_stdout(&lines);
    while signals.next().await == SignalAction::Reload {
        match file.read() {
            Ok(info) => {
                let info = Arc::new(info);
                for driver in &answering {
                    let info = info.clone();
                    driver.handle().run(move |responder, _| responder.set_info(&info));
                }
                print_stderr(format_args!("read {file} again"));
            }
            Err(errors) => print_stderr(format_args!("{errors}\nthe answers stay as they were")),
        }
    }
    drop(answering);
    Ok(())
}

fn start(place: &Place, socket: Arc<UdpSocket>, info: &ServerInfo) -> Result<EventLoopThread<Responder>, CommandError> {
    let seed = entropy::u128().map_err(CommandError::failed)?;
    let config =
        ResponderConfig { bloodmasters: place.bloodmasters, session: place.session, ..ResponderConfig::default() };
    let responder = Responder::new(config, seed, info).map_err(CommandError::failed)?;
    EventLoop::new(vec![socket])
        .and_then(|event_loop| event_loop.spawn("respond", responder, drop))
        .map_err(CommandError::failed)
}

impl Place {
    /// What is answered here, by name.
    fn protocols(&self) -> impl Iterator<Item = (&'static str, bool)> {
        [("bloodmasters", self.bloodmasters), ("session", self.session)].into_iter().filter(|(_, is_on)| *is_on)
    }
}
