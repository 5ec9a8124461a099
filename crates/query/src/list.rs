//! Reading lists: of a lobby, of a legacy lobby (L16), of a lobby's web page or API, and Bloodmasters master lists (L17).

mod all_lists;
mod lobby;
#[cfg(feature = "http")]
pub(crate) mod web;

use crate::{Family, LobbyAddress, ProbeError, ScanConfig, Target, resolve::resolve, target::candidates, tcp::connect};
use rallypoint_query_proto::{Detail, Probe, Protocol, ServerInfo, ServerQuery};
use rallypoint_wire::lobby::{ListId, Transport};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// A server in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedServer {
    /// The list's description of the server; empty for a master list, which has addresses only.
    pub info: ServerInfo,
    /// Addresses of the server, IPv6 first. At least one.
    pub endpoints: Vec<SocketAddr>,
    /// Protocol of the server, if the list implies it.
    pub protocol: Option<Protocol>,
    /// The list of the lobby that contains the server, if it is known.
    pub list: Option<ListId>,
    /// The name that the lobby's operator has given to a list that is not well known, if the lobby's API reports it.
    pub list_name: Option<Arc<str>>,
}

/// A list that was read completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListSummary {
    /// Address that the list came from.
    pub from: SocketAddr,
    /// Time that connecting took: one round trip.
    pub connect_time: Duration,
    /// Number of servers in the list.
    pub servers: usize,
    /// Number of entries that could not be parsed.
    pub malformed: usize,
    /// Whether its entries have numbers of players; those of a Bloodmasters master list do not.
    pub has_players: bool,
}

/// Maximum number of entries in a list.
const MAX_SERVERS: usize = 1_000_000;

/// Number of valid and invalid entries of a list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub servers: usize,
    pub malformed: usize,
}

/// Reads a list, and passes on its servers as they arrive. The timeout applies to the connection and to every pause after it.
///
/// # Errors
/// If the list cannot be had, or is invalid. A target that is a server has no list, which is an error, too.
pub async fn fetch_list(
    target: &Target,
    config: &ScanConfig,
    mut on_server: impl FnMut(FetchedServer),
) -> Result<ListSummary, ProbeError> {
    let (host, port) = match target {
        Target::Lobby(lobby) if lobby.id.is_none() => return all_lists::fetch(lobby, config, on_server).await,
        Target::Lobby(lobby) => (&lobby.host, lobby.port()),
        Target::LegacyLobby(lobby, _) => (&lobby.host, lobby.legacy_port()),
        Target::WebList(url) => return fetch_from_web(url, config, on_server).await,
        Target::Server(_) => return Err(ProbeError::Malformed("a server has no list".into())),
    };
    let addrs = resolve(host, port, config.only_family()).await?;
    let start = Instant::now();
    let stream = connect(&addrs, config).await?;
    let connect_time = start.elapsed();
    let from = stream.peer;
    let Count { servers, malformed } = match target {
        Target::LegacyLobby(_, protocol) => lobby::read_legacy_lobby(stream, *protocol, &mut on_server).await?,
        Target::Lobby(LobbyAddress { id: Some(id), .. }) => lobby::read_lobby(stream, *id, &mut on_server).await?,
        // Cannot happen: returned above.
        Target::Lobby(_) | Target::WebList(_) | Target::Server(_) => Count::default(),
    };
    Ok(ListSummary { from, connect_time, servers, malformed, has_players: true })
}

#[cfg(feature = "http")]
use web::fetch as fetch_from_web;

#[cfg(not(feature = "http"))]
async fn fetch_from_web(
    _url: &crate::HttpUrl,
    _config: &ScanConfig,
    _on_server: impl FnMut(FetchedServer),
) -> Result<ListSummary, ProbeError> {
    Err(ProbeError::Malformed("this program was built without HTTP".into()))
}

impl FetchedServer {
    /// The probes of this server: empty if it cannot be probed, because games that are played over TCP have no query.
    #[must_use]
    pub fn probes(&self, detail: Detail, family: Option<Family>) -> Vec<Probe> {
        let endpoints = self.endpoints.iter().filter(|addr| Family::allows(family, addr.ip()));
        let lobby = self.info.lobby.as_ref();
        if let Some(value) = lobby.and_then(|lobby| lobby.entry(b"x-query")) {
            return endpoints
                .filter_map(|addr| Probe::from_x_query(value, *addr))
                .map(|probe| Probe { query: ServerQuery { detail, ..probe.query }, ..probe })
                .collect();
        }
        if self.protocol.is_none() && lobby.is_none_or(|lobby| lobby.transport == Transport::Tcp) {
            return Vec::new();
        }
        let probe = |addr: SocketAddr, protocol: Protocol| Probe::new(addr, ServerQuery { protocol, detail });
        let protocols = |addr: &SocketAddr| candidates(self.protocol, Some(addr.port()));
        endpoints.flat_map(|addr| protocols(addr).map(move |protocol| probe(*addr, protocol))).collect()
    }
}

impl Count {
    pub fn add_server(&mut self) -> Result<(), ProbeError> {
        self.servers += 1;
        self.check()
    }

    pub fn add_malformed(&mut self) -> Result<(), ProbeError> {
        self.malformed += 1;
        self.check()
    }

    fn check(&self) -> Result<(), ProbeError> {
        match self.servers + self.malformed {
            0..=MAX_SERVERS => Ok(()),
            _ => Err(ProbeError::Malformed(format!("over {MAX_SERVERS} servers"))),
        }
    }
}
