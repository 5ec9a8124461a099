//! Telling the owner whether the server has arrived in the list.

use super::{
    and,
    lobbies::Lobby,
    look::{self, Looks},
};
use crate::{
    ask::{
        Asking,
        options::Family,
        outcomes::{self, Outcome},
        route::route,
        target::{Host, Page},
    },
    config::names,
    doctor::Reach,
};
use rallypoint_wire::lobby::{LobbyId, Transport};
use std::{io, net::SocketAddr, time::Duration};

/// How long to wait before each look into the list: soon for those who wait for it; after the announcer's second
/// registration, in case the first was lost; and after the 5 seconds that a lobby takes to find out whether it can reach a
/// TCP server (L12).
const WAITS: [Duration; 4] =
    [Duration::from_millis(300), Duration::from_secs(1), Duration::from_millis(2_200), Duration::from_secs(4)];

/// How long between later looks: as often as the announcer says again that the server is there.
const AGAIN: Duration = Duration::from_secs(30);

/// How long between looks while it is there, if nobody says otherwise: often enough to be told soon if it is gone, and a list is not small.
pub const STILL: Duration = Duration::from_secs(60);

/// How long the lobby's web API has for its answer.
const API_PATIENCE: Duration = Duration::from_secs(3);

/// A server that should be in the list of a lobby.
#[derive(Clone, Debug)]
pub struct Watched {
    pub lobby: Lobby,
    pub looks: Looks,
    /// How the lobby is to query the server before it lists it, if it is to.
    pub x_query: Option<String>,
    /// Where the lobby's web API is, if not where it usually is.
    pub api: Option<Page>,
    /// How long between looks while it is there.
    pub every: Duration,
}

/// What there is to say about one lobby.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Listed(String),
    NotListed(String),
}

/// Looks into a lobby's list until the server is there, or there is no more hope.
pub async fn watch(watched: Watched) -> (Watched, Answer) {
    let Watched { lobby, looks: server, .. } = &watched;
    let mut last = Ok(Vec::new());
    for (look, wait) in WAITS.into_iter().enumerate() {
        tokio::time::sleep(wait).await;
        last = look_anywhere(lobby, server).await;
        let enough = match &last {
            // One family may have no way to the lobby; if it has, it does not take long.
            Ok(listed) if !listed.is_empty() => look > 0 || missing(lobby, listed).is_none(),
            Ok(_) => look == 2 && server.transport == Transport::Udp,
            // It may be starting just now, but it will not start for long.
            Err(_) => look == 1,
        };
        if enough {
            break;
        }
    }
    let host = &lobby.host;
    let answer = match last {
        Ok(listed) if !listed.is_empty() => Answer::Listed(is_listed(lobby, server, &listed)),
        Ok(_) => Answer::NotListed(not_listed(&format!("not listed by {host} yet"), &watched).await),
        Err(error) => Answer::NotListed(format!("cannot ask {host} for its list: {}", explain(&error))),
    };
    (watched, answer)
}

/// Looks into a lobby's list from time to time until the server that was not there is there, or the other way round, however
/// long that takes.
pub async fn change(mut watched: Watched, was_listed: bool) -> (Watched, Answer) {
    let mut presence = Presence { was_listed, missed: false };
    loop {
        let every = watched.every;
        tokio::time::sleep(if was_listed && !presence.missed { every } else { every.min(AGAIN) }).await;
        find_again(&mut watched.lobby).await;
        let Ok(listed) = look_anywhere(&watched.lobby, &watched.looks).await else {
            // That says nothing about the server.
            continue;
        };
        if presence.handle_look(!listed.is_empty()) {
            let answer = if was_listed {
                Answer::NotListed(not_listed(&format!("no longer listed by {}", watched.lobby.host), &watched).await)
            } else {
                Answer::Listed(is_listed(&watched.lobby, &watched.looks, &listed))
            };
            return (watched, answer);
        }
    }
}

/// Whether a server is where it was before.
struct Presence {
    was_listed: bool,
    /// Whether the last look did not find it.
    missed: bool,
}

impl Presence {
    /// A look has found the server, or not. Says whether that is a change. It is gone only when it was missed twice: a lobby
    /// that was just started again has to hear of it first.
    fn handle_look(&mut self, is_listed: bool) -> bool {
        let missed_before = std::mem::replace(&mut self.missed, !is_listed);
        if self.was_listed { missed_before && !is_listed } else { is_listed }
    }
}

/// It may have moved. If it cannot be found now, it stays where it was.
async fn find_again(lobby: &mut Lobby) {
    let addrs = lobby.host.resolve().await;
    if !addrs.is_empty() {
        lobby.addrs = addrs;
    }
}

fn is_listed(lobby: &Lobby, server: &Looks, listed: &[SocketAddr]) -> String {
    let others = missing(lobby, listed).map_or(String::new(), |family| {
        format!("; not by {family}: the lobby has not heard of it that way, or cannot reach port {} there", server.port)
    });
    format!("listed by {} as {}{others}", lobby.host, and(listed))
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

/// The family in which the server could be listed, but is not.
fn missing(lobby: &Lobby, listed: &[SocketAddr]) -> Option<Family> {
    let family = |addr: &SocketAddr| Family::of(addr.ip());
    lobby.addrs.iter().map(family).find(|wanted| listed.iter().all(|addr| family(addr) != *wanted))
}

/// What is wrong. The protocol has no answers: what was seen from here comes first, then what the lobby's web API says, and if
/// that says nothing, what is likely.
async fn not_listed(what: &str, watched: &Watched) -> String {
    let Watched { lobby, looks: server, .. } = watched;
    let (host, port) = (&lobby.host, server.port);
    let mut causes = Vec::new();
    if server.transport == Transport::Tcp && !look::answers_here(port).await {
        causes.push(format!("nothing answers at TCP port {port} of this machine; is the game server running?"));
    }
    match refusal(watched).await {
        Some(outcome) if causes.is_empty() => return format!("{what}: the lobby says {outcome}"),
        Some(outcome) => causes.push(format!("the lobby says {outcome}")),
        None => guess(watched, &mut causes),
    }
    let lines: String = causes.iter().enumerate().map(|(n, cause)| format!("\n  {}. {cause}", n + 1)).collect();
    let transport = if server.transport == Transport::Udp { " --transport udp" } else { "" };
    let is_usual = server.lobby_id == LobbyId::GANG_GARRISON_2;
    let list = if is_usual { String::new() } else { format!("/{}", names::shown(server.lobby_id)) };
    format!(
        "{what}. Likely causes, the likeliest first:{lines}\n\
         To find out: rallypoint doctor YOUR-ADDRESS:{port} --lobby {host}{list}{transport}"
    )
}

/// Why the lobby does not take the server, if its web API tells.
async fn refusal(watched: &Watched) -> Option<Outcome> {
    let Watched { lobby, looks: server, api, .. } = watched;
    let mut apis: Vec<_> = api.iter().cloned().collect();
    if apis.is_empty() {
        // It tells what became of whoever asks, which is another address in each family.
        apis.extend(lobby.addrs.iter().map(|addr| outcomes::usual(Host::Ip(addr.ip()))));
    }
    let port = Some(server.port.get());
    for api in apis {
        let Ok(outcomes) = outcomes::ask(&api, None, &Asking::once(API_PATIENCE)).await else { continue };
        let decisive = outcomes::decisive(&outcomes::about(&outcomes, port), port);
        if let Some(outcome) = decisive.filter(|outcome| outcome.refused) {
            return Some(outcome.clone());
        }
    }
    None
}

/// What can be wrong if nobody knows.
fn guess(watched: &Watched, causes: &mut Vec<String>) {
    let Watched { lobby, looks: server, x_query, .. } = watched;
    let port = server.port;
    let sources = lobby.addrs.iter().filter_map(|addr| route(*addr).ok());
    if let Some(source) = sources.into_iter().find(|ip| Reach::of(*ip) != Reach::Everywhere)
        && lobby.addrs.iter().all(|addr| Reach::of(addr.ip()) != Reach::Everywhere)
    {
        causes.push(format!("the lobby may not take servers with private addresses, and sees this one at {source}"));
    }
    match (server.transport, x_query) {
        (Transport::Tcp, _) => causes.push(format!(
            "the lobby cannot connect to port {port} from outside; is it open in the firewall and forwarded in the router?"
        )),
        (Transport::Udp, Some(query)) => {
            causes.push(format!("the lobby gets no answer when it queries UDP port {port} (x-query={query})"));
        }
        (Transport::Udp, None) => {}
    }
    causes.push("the datagrams do not arrive; does a firewall let UDP out to the lobby?".into());
    causes.push("the lobby refuses it: the address or the name is banned there, or has too many servers".into());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_gone_when_it_was_missed_twice() {
        let changes = |was_listed, looks: &[bool]| {
            let mut presence = Presence { was_listed, missed: false };
            looks.iter().map(|is_listed| presence.handle_look(*is_listed)).collect::<Vec<_>>()
        };
        assert_eq!(changes(true, &[true, false, true, false, false]), [false, false, false, false, true]);
        assert_eq!(changes(false, &[false, false, true]), [false, false, true]);
    }

    #[test]
    fn a_lobby_that_has_moved_is_found_again() {
        let host = "127.0.0.1:7".parse().unwrap();
        let mut lobby = Lobby { host, addrs: vec!["192.0.2.1:7".parse().unwrap()] };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(find_again(&mut lobby));
        assert_eq!(lobby.addrs, ["127.0.0.1:7".parse().unwrap()]);
    }
}
