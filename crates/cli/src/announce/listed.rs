//! Telling the owner whether the server has arrived in the list.

use super::{
    Lobby, and,
    look::{self, Looks},
};
use rallypoint_wire::lobby::Transport;
use std::{io, net::SocketAddr, time::Duration};

/// How long to wait before each look into the list: soon for those who wait for it; after the announcer's second
/// registration, in case the first was lost; and after the 5 seconds that a lobby takes to find out whether it can reach a
/// TCP server (L12).
const WAITS: [Duration; 4] =
    [Duration::from_millis(300), Duration::from_secs(1), Duration::from_millis(2_200), Duration::from_secs(4)];

/// What there is to say about one lobby.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Listed(String),
    NotListed(String),
}

/// Looks into a lobby's list until the server is there, or there is no more hope.
pub async fn watch(lobby: Lobby, server: Looks) -> Answer {
    let mut last = Ok(Vec::new());
    for (look, wait) in WAITS.into_iter().enumerate() {
        tokio::time::sleep(wait).await;
        last = look_anywhere(&lobby, &server).await;
        let enough = match &last {
            // One family may have no way to the lobby; if it has, it does not take long.
            Ok(listed) if !listed.is_empty() => look > 0 || is_complete(&lobby, listed),
            Ok(_) => look == 2 && server.transport == Transport::Udp,
            // It may be starting just now, but it will not start for long.
            Err(_) => look == 1,
        };
        if enough {
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

/// The list by the first address that answers; if none does, what is wrong with the first.
async fn look_anywhere(lobby: &Lobby, server: &Looks) -> io::Result<Vec<SocketAddr>> {
    let mut trouble = None;
    for addr in &lobby.addrs {
        match look::look(*addr, server).await {
            Ok(listed) => return Ok(listed),
            Err(error) => trouble = trouble.or(Some(error)),
        }
    }
    trouble.map_or(Ok(Vec::new()), Err)
}

/// Whether the server is listed in every family in which it could be.
fn is_complete(lobby: &Lobby, listed: &[SocketAddr]) -> bool {
    lobby.addrs.iter().all(|addr| listed.iter().any(|listed| listed.is_ipv4() == addr.is_ipv4()))
}

async fn why(server: &Looks) -> String {
    let port = server.port;
    match server.transport {
        Transport::Tcp if !look::answers_here(port).await => {
            format!("nothing answers at TCP port {port} of this machine; is the game server running?")
        }
        Transport::Tcp => format!(
            "a lobby lists a TCP server once it could connect to it; is port {port} open in the firewall and forwarded \
             in the router?"
        ),
        Transport::Udp => "the lobby may refuse it, or a firewall may not let the datagrams through".into(),
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
