//! Reading the list of a lobby, of a legacy lobby (L16), or a Bloodmasters master list (L17).

use crate::{
    Family, LobbyAddress, ProbeError, ScanConfig, Target,
    resolve::resolve,
    target::candidates,
    tcp::{TimedStream, connect},
};
use rallypoint_query_proto::{Detail, Probe, Protocol, ServerInfo, ServerQuery};
use rallypoint_wire::{
    legacy,
    lobby::{ListBlock, ListReader, ListRequest, ProtocolId, Transport},
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// A server in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedServer {
    /// What the list says about the server; empty for a master list, which has addresses only.
    pub info: ServerInfo,
    /// Addresses of the server, IPv6 first. At least one.
    pub endpoints: Vec<SocketAddr>,
    /// Protocol of the server, if the list implies it.
    pub protocol: Option<Protocol>,
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
}

/// Maximum number of entries in a list.
const MAX_SERVERS: usize = 1_000_000;

const READ_BUFFER: usize = 64 << 10;

/// Number of valid and invalid entries of a list.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    servers: usize,
    malformed: usize,
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
        Target::Lobby(lobby) => (&lobby.host, lobby.port()),
        Target::LegacyLobby(lobby, _) => (&lobby.host, lobby.legacy_port()),
        Target::MasterList(url) => (&url.host, url.port.get()),
        Target::Server(_) => return Err(ProbeError::Malformed("a server has no list".into())),
    };
    let addrs = resolve(host, port, config.only_family()).await?;
    let start = Instant::now();
    let stream = connect(&addrs, config).await?;
    let connect_time = start.elapsed();
    let from = stream.peer;
    let Count { servers, malformed } = match target {
        Target::Lobby(lobby) => read_lobby(stream, lobby, &mut on_server).await?,
        Target::LegacyLobby(_, protocol) => read_legacy_lobby(stream, *protocol, &mut on_server).await?,
        Target::MasterList(url) => read_master_list(stream, url, &mut on_server).await?,
        // Cannot happen: returned above.
        Target::Server(_) => Count::default(),
    };
    Ok(ListSummary { from, connect_time, servers, malformed })
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
        let protocols = candidates(&self.protocol);
        let probe = |addr: SocketAddr, protocol: Protocol| Probe::new(addr, ServerQuery { protocol, detail });
        endpoints.flat_map(|addr| protocols.iter().map(move |protocol| probe(*addr, *protocol))).collect()
    }
}

async fn read_lobby(
    mut stream: TimedStream,
    lobby: &LobbyAddress,
    on_server: &mut impl FnMut(FetchedServer),
) -> Result<Count, ProbeError> {
    let mut request = Vec::new();
    ListRequest { lobby_id: lobby.id() }.emit(&mut request);
    stream.write_all(&request).await?;
    let mut reader = ListReader::new();
    let mut buffer = vec![0; READ_BUFFER];
    let mut count = Count::default();
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return match reader.finish() {
                Ok(()) => Ok(count),
                // What arrived did not begin like a list.
                Err(error) if count.servers == 0 => Err(ProbeError::Malformed(format!(
                    "{error}; is this a lobby's port ({})?",
                    rallypoint_wire::lobby::PORT
                ))),
                Err(error) => Err(error.into()),
            };
        }
        reader.push(&buffer[..read]);
        while let Some(block) = reader.next_block() {
            let endpoints: Vec<_> = block.iter().flat_map(ListBlock::endpoints).collect();
            match block {
                Ok(block) if !endpoints.is_empty() => {
                    count.add_server()?;
                    on_server(FetchedServer { info: ServerInfo::from_list(&block), endpoints, protocol: None });
                }
                _ => count.add_malformed()?,
            }
        }
    }
}

async fn read_legacy_lobby(
    mut stream: TimedStream,
    protocol_id: ProtocolId,
    on_server: &mut impl FnMut(FetchedServer),
) -> Result<Count, ProbeError> {
    let mut request = Vec::new();
    legacy::ListRequest { protocol_id }.emit(&mut request);
    stream.write_all(&request).await?;
    let mut reader = legacy::ListReader::new();
    let mut buffer = vec![0; READ_BUFFER];
    let mut count = Count::default();
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            reader.finish()?;
            return Ok(count);
        }
        reader.push(&buffer[..read]);
        while let Some(entry) = reader.next_entry() {
            match entry {
                Ok(entry) => {
                    count.add_server()?;
                    let endpoints = vec![SocketAddr::from(entry.endpoint)];
                    on_server(FetchedServer { info: ServerInfo::from_legacy(&entry.info), endpoints, protocol: None });
                }
                Err(_) => count.add_malformed()?,
            }
        }
    }
}

#[cfg(feature = "http")]
async fn read_master_list(
    stream: TimedStream,
    url: &crate::HttpUrl,
    on_server: &mut impl FnMut(FetchedServer),
) -> Result<Count, ProbeError> {
    let body = crate::http::get_over(stream, url).await?;
    let mut lines = rallypoint_wire::bloodmasters::master_list::servers(&body);
    let mut count = Count::default();
    for endpoint in lines.by_ref() {
        count.add_server()?;
        let endpoints = vec![SocketAddr::from(endpoint)];
        on_server(FetchedServer { info: ServerInfo::default(), endpoints, protocol: Some(Protocol::Bloodmasters) });
    }
    count.malformed = lines.skipped();
    // A web page for people has many lines and no server.
    if count.servers == 0 && count.malformed > 0 {
        return Err(ProbeError::Malformed("it is not a list of servers".into()));
    }
    Ok(count)
}

#[cfg(not(feature = "http"))]
async fn read_master_list(
    _stream: TimedStream,
    _url: &crate::HttpUrl,
    _on_server: &mut impl FnMut(FetchedServer),
) -> Result<Count, ProbeError> {
    Err(ProbeError::Malformed("this program was built without HTTP".into()))
}

impl Count {
    fn add_server(&mut self) -> Result<(), ProbeError> {
        self.servers += 1;
        self.check()
    }

    fn add_malformed(&mut self) -> Result<(), ProbeError> {
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
