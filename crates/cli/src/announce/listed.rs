//! Telling the owner whether the server has arrived in the list.

use super::{
    Lobby, and,
    look::{self, Looks},
};
use rallypoint_wire::lobby::Transport;
use std::{io, net::SocketAddr, time::Duration};

/// When the list is looked at, after the first registration: soon for those who wait, and late enough for a lobby that
/// takes its 5 seconds to find out whether it can reach the server (L12).
const LOOKS: [Duration; 4] =
    [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// What there is to say about one lobby.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Listed(String),
    NotListed(String),
}

/// Looks into a lobby's list until the server is there, or there is no more hope.
pub async fn watch(lobby: Lobby, server: Looks) -> Answer {
    let mut last = Ok(Vec::new());
    for wait in LOOKS {
        tokio::time::sleep(wait).await;
        last = look_anywhere(&lobby, &server).await;
        if last.as_ref().is_ok_and(|listed| is_complete(&lobby, listed)) {
            break;
        }
    }
    let host = &lobby.host;
    match last {
        Ok(listed) if !listed.is_empty() => Answer::Listed(format!("listed by {host} as {}", and(&listed))),
        Ok(_) => Answer::NotListed(format!("not listed by {host} yet: {}", why(&server).await)),
        Err(error) => Answer::NotListed(format!("cannot ask {host} for its list: {}", explain(&error))),
    }
}

/// The list by the first address that answers.
async fn look_anywhere(lobby: &Lobby, server: &Looks) -> io::Result<Vec<SocketAddr>> {
    let mut result = Ok(Vec::new());
    for addr in &lobby.addrs {
        result = look::look(*addr, server).await;
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Whether the server is listed in every family in which it could be.
fn is_complete(lobby: &Lobby, listed: &[SocketAddr]) -> bool {
    lobby.addrs.iter().all(|addr| listed.iter().any(|listed| listed.is_ipv4() == addr.is_ipv4()))
}

async fn why(server: &Looks) -> String {
    let port = server.port;
    match server.transport {
        Transport::Tcp if !look::answers_here(port).await => format!(
            "nothing answers at TCP port {port} of this machine; start the game server, and it is listed within a minute"
        ),
        Transport::Tcp => format!(
            "a lobby lists a TCP server once it could connect to it; is port {port} open in the firewall and forwarded \
             in the router?"
        ),
        Transport::Udp => "the lobby may refuse it, or the datagrams may be lost on the way (UDP port 29944)".into(),
    }
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "nothing answers there; is it the right lobby (--lobby), and does it run?".into()
        }
        io::ErrorKind::TimedOut => "it does not answer in time".into(),
        _ => error.to_string(),
    }
}
