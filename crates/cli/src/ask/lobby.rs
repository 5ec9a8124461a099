//! Getting the list of a lobby, of a legacy lobby (L16), or a Bloodmasters master list (L17).

use crate::ask::{
    Asking, Trouble,
    connect::{Stream, connect},
    http,
    options::Family,
    resolve::resolve,
    target::{Lobby, Page, Protocol, any_of, query},
};
use rallypoint_query_proto::{Probe, ServerInfo};
use rallypoint_wire::{
    bloodmasters::master_list,
    legacy,
    lobby::{ListReader, ListRequest, ProtocolId, Transport},
};
use std::{
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Where a list is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Lobby(Lobby),
    /// With the protocol that the client speaks: only servers of that one are told.
    Legacy(Lobby, ProtocolId),
    MasterList(Page),
}

/// A server of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What the list says about it: nothing, if it is a master list.
    pub info: ServerInfo,
    /// Where it is, IPv6 first. There is at least one.
    pub endpoints: Vec<SocketAddr>,
    /// What it speaks, if the list says so.
    pub protocol: Option<Protocol>,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Who told the list.
    pub from: SocketAddr,
    /// How long it took to connect: one round trip.
    pub connected: Duration,
    /// How many servers it has.
    pub servers: usize,
    /// How many more made no sense.
    pub malformed: usize,
}

/// No list has more servers than this.
const MOST_SERVERS: usize = 1_000_000;

/// Gets a list; servers are given out as they arrive. The time limit is for the connection and for every pause after it.
pub async fn fetch(source: &Source, asking: &Asking, mut each: impl FnMut(Listed)) -> Result<Fetched, Trouble> {
    let (host, port) = match source {
        Source::Lobby(lobby) => (&lobby.host, lobby.port(false)),
        Source::Legacy(lobby, _) => (&lobby.host, lobby.port(true)),
        Source::MasterList(list) => (&list.host, list.port.get()),
    };
    let addrs = resolve(host, port, asking.family()).await?;
    let connecting = Instant::now();
    let stream = connect(&addrs, asking).await?;
    let connected = connecting.elapsed();
    let from = stream.peer();
    let (servers, malformed) = match source {
        Source::Lobby(lobby) => lobby_list(stream, lobby, &mut each).await?,
        Source::Legacy(_, protocol) => legacy_list(stream, *protocol, &mut each).await?,
        Source::MasterList(list) => master_servers(stream, list, &mut each).await?,
    };
    Ok(Fetched { from, connected, servers, malformed })
}

impl Listed {
    /// How to ask the server itself, if that is possible: a game that is played over TCP has no query.
    pub fn probes(&self, players: bool, asking: &Asking) -> Vec<Probe> {
        let family = asking.family();
        let endpoints = self.endpoints.iter().filter(|addr| Family::fits(family, addr.ip()));
        let lobby = self.info.lobby.as_ref();
        if let Some(value) = lobby.and_then(|lobby| lobby.entry(b"x-query")) {
            let ask = |addr: &SocketAddr| Probe::from_x_query(value, *addr);
            let with_players = |target: Probe| Probe { query: query(target.query.protocol, players), ..target };
            return endpoints.filter_map(ask).map(with_players).collect();
        }
        if self.protocol.is_none() && lobby.is_none_or(|lobby| lobby.transport == Transport::Tcp) {
            return Vec::new();
        }
        let protocols = any_of(self.protocol);
        let each = |addr: &SocketAddr| {
            let addr = *addr;
            protocols.iter().map(move |protocol| Probe::new(addr, query(*protocol, players)))
        };
        endpoints.flat_map(each).collect()
    }
}

async fn lobby_list(
    mut stream: Stream,
    lobby: &Lobby,
    each: &mut impl FnMut(Listed),
) -> Result<(usize, usize), Trouble> {
    let mut request = Vec::new();
    ListRequest { lobby_id: lobby.id() }.emit(&mut request);
    stream.write_all(&request).await?;
    let (mut reader, mut buffer) = (ListReader::new(), vec![0; 64 << 10]);
    let (mut servers, mut malformed) = (0, 0);
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return match reader.finish() {
                Ok(()) => Ok((servers, malformed)),
                // Whatever that is, it has not begun like a list.
                Err(error) if servers == 0 => Err(Trouble::Malformed(format!(
                    "{error}; is this a lobby's port ({})?",
                    rallypoint_wire::lobby::PORT
                ))),
                Err(error) => Err(error.into()),
            };
        }
        reader.push(&buffer[..read]);
        while let Some(block) = reader.next_block() {
            let endpoints: Vec<_> = block.iter().flat_map(rallypoint_wire::lobby::ListBlock::endpoints).collect();
            match block {
                Ok(block) if !endpoints.is_empty() => {
                    servers += 1;
                    each(Listed { info: ServerInfo::from_list(&block), endpoints, protocol: None });
                }
                _ => malformed += 1,
            }
            enough(servers + malformed)?;
        }
    }
}

async fn legacy_list(
    mut stream: Stream,
    protocol_id: ProtocolId,
    each: &mut impl FnMut(Listed),
) -> Result<(usize, usize), Trouble> {
    let mut request = Vec::new();
    legacy::ListRequest { protocol_id }.emit(&mut request);
    stream.write_all(&request).await?;
    let (mut reader, mut buffer) = (legacy::ListReader::new(), vec![0; 64 << 10]);
    let (mut servers, mut malformed) = (0, 0);
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            reader.finish()?;
            return Ok((servers, malformed));
        }
        reader.push(&buffer[..read]);
        while let Some(entry) = reader.next_entry() {
            match entry {
                Ok(entry) => {
                    servers += 1;
                    let endpoints = vec![SocketAddr::from(entry.endpoint)];
                    each(Listed { info: ServerInfo::from_legacy(&entry.info), endpoints, protocol: None });
                }
                Err(_) => malformed += 1,
            }
            enough(servers + malformed)?;
        }
    }
}

async fn master_servers(stream: Stream, list: &Page, each: &mut impl FnMut(Listed)) -> Result<(usize, usize), Trouble> {
    let body = http::read_from(stream, list).await?;
    let mut lines = master_list::servers(&body);
    let mut servers = 0;
    for endpoint in lines.by_ref() {
        servers += 1;
        enough(servers)?;
        let endpoints = vec![SocketAddr::from(endpoint)];
        each(Listed { info: ServerInfo::default(), endpoints, protocol: Some(Protocol::Bloodmasters) });
    }
    // A page for people has many lines and no server.
    match lines.skipped() {
        skipped if servers == 0 && skipped > 0 => Err(Trouble::Malformed("it is not a list of servers".into())),
        skipped => Ok((servers, skipped)),
    }
}

fn enough(servers: usize) -> Result<(), Trouble> {
    if servers <= MOST_SERVERS { Ok(()) } else { Err(Trouble::Malformed(format!("over {MOST_SERVERS} servers"))) }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lobby(lobby) | Self::Legacy(lobby, _) => lobby.fmt(f),
            Self::MasterList(list) => list.fmt(f),
        }
    }
}
