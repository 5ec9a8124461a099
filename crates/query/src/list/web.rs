//! Reading a list over HTTP: from the API of a lobby, which its page leads to, or from a Bloodmasters master list (L17).

use super::{Count, FetchedServer, ListSummary};
use crate::{
    Host, HttpUrl, ProbeError, ScanConfig,
    http::{self, HttpRequest, HttpResponse},
    list_names,
    resolve::resolve,
    tcp::connect,
};
use rallypoint_mirror::KEY_FILE;
use rallypoint_query_proto::{LobbyInfo, Protocol, ServerInfo};
use rallypoint_wire::{
    bloodmasters::master_list,
    lobby::{ListId, Transport},
    text,
};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    num::NonZeroU16,
    sync::Arc,
    time::{Duration, Instant},
};

/// Default port of a lobby's page and API.
pub(crate) const HTTP_PORT: NonZeroU16 = NonZeroU16::new(29_950).expect("29950 is not 0");

/// The path of the API that names all lists.
pub(crate) const LISTS: &str = "/api/v1/lists";

/// Maximum size of the file with the key of a copy, in bytes.
const MAX_KEY_FILE: usize = 1_024;

/// Maximum number of responses that a list is divided into.
const MAX_PARTS: usize = 1_000;

/// Reads the list that a URL leads to: itself, or the API beside a page.
pub(super) async fn fetch(
    url: &HttpUrl,
    config: &ScanConfig,
    mut on_server: impl FnMut(FetchedServer),
) -> Result<ListSummary, ProbeError> {
    let mut failure = None;
    for path in candidates(&url.path) {
        let Fetched { response, from, connect_time } = get(url, &path, config).await?;
        // Beside a document that does not exist, there is nothing that its address leads to.
        let is_missing = path == url.path && matches!(response.status, 404 | 410);
        let count = match response.into_body() {
            Err(error) if is_missing => return Err(error),
            Ok(body) => read(url, &path, body, config, &mut on_server).await,
            Err(error) => Err(error),
        };
        match count {
            Ok(ReadList { count: Count { servers, malformed }, has_players }) => {
                return Ok(ListSummary { from, connect_time, servers, malformed, has_players });
            }
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match is_copy(url, config).await {
        true => Err(ProbeError::StaticCopy),
        false => Err(failure.unwrap_or_else(not_a_list)),
    }
}

/// Whether a URL leads to the static copy of a lobby's list, which has a key of its lobby beside it.
async fn is_copy(url: &HttpUrl, config: &ScanConfig) -> bool {
    let path = url.path.split('?').next().unwrap_or_default();
    let directory = &path[..=path.rfind('/').unwrap_or(0)];
    let key = HttpUrl { path: format!("{directory}{KEY_FILE}"), ..url.clone() };
    match get_at_most(&key, config, MAX_KEY_FILE).await {
        Ok(Fetched { response, .. }) => response.into_body().is_ok_and(|body| body.starts_with(b"untrusted comment: ")),
        Err(_) => false,
    }
}

/// The lists that the API of a lobby reports, with the names that its operator has given them.
pub(super) async fn lists(host: &Host, config: &ScanConfig) -> Result<Vec<(ListId, Option<Arc<str>>)>, ProbeError> {
    lists_at(&lists_url(host), config).await
}

async fn lists_at(url: &HttpUrl, config: &ScanConfig) -> Result<Vec<(ListId, Option<Arc<str>>)>, ProbeError> {
    let document: ListsDocument = serde_json::from_slice(&http::get(url, config).await?).map_err(|_| not_a_list())?;
    let with_servers = document.lists.into_iter().filter(|list| list.servers > 0);
    let named = |list: ListDocument| {
        let name = list.name.filter(|name| !name.is_empty());
        Some((list.id.parse().ok()?, name.map(|name| text::sanitize(&name).into())))
    };
    Ok(with_servers.filter_map(named).collect())
}

/// The address of a lobby's API at its default port: its lists, and the key of what it exports.
pub(crate) fn lists_url(host: &Host) -> HttpUrl {
    HttpUrl { is_secure: false, host: host.clone(), port: HTTP_PORT, path: LISTS.into() }
}

/// Parameters of a page that the API has as well: what they select is what the page shows.
const FILTERS: [&str; 10] =
    ["q", "list", "game", "map", "version", "verified", "not_empty", "not_full", "no_password", "both_families"];

/// Where the list of a URL may be, in the order of trying: the document itself, the API beside it (a page may be below the
/// root of its site), for a document the API at the root, and for a directory the master list of a site without an API.
fn candidates(path: &str) -> Vec<String> {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    if let Some((site, list)) = path.split_once("/lists/") {
        let list = list.split('/').next().unwrap_or_default();
        return vec![format!("{site}/api/v1/servers?list={list}")];
    }
    let directory = &path[..=path.rfind('/').unwrap_or(0)];
    let mut candidates = Vec::new();
    if directory != path {
        candidates.push(query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}")));
    }
    let is_filter = |parameter: &&str| {
        parameter.split_once('=').is_some_and(|(name, value)| FILTERS.contains(&name) && !value.is_empty())
    };
    let filters: Vec<_> = query.into_iter().flat_map(|query| query.split('&')).filter(is_filter).collect();
    let parameters = if filters.is_empty() { String::new() } else { format!("?{}", filters.join("&")) };
    candidates.push(format!("{directory}api/v1/servers{parameters}"));
    if directory != "/" && directory != path {
        candidates.push(format!("/api/v1/servers{parameters}"));
    }
    if directory == path {
        candidates.push(format!("{}{}", directory.trim_end_matches('/'), master_list::PATH));
    }
    candidates
}

/// A response, and where it came from.
pub(crate) struct Fetched {
    pub response: HttpResponse,
    pub from: SocketAddr,
    pub connect_time: Duration,
}

async fn get(url: &HttpUrl, path: &str, config: &ScanConfig) -> Result<Fetched, ProbeError> {
    let url = HttpUrl { path: path.to_owned(), ..url.clone() };
    get_at_most(&url, config, http::MAX_LIST).await
}

/// Reads a document of at most this many bytes.
pub(crate) async fn get_at_most(url: &HttpUrl, config: &ScanConfig, max: usize) -> Result<Fetched, ProbeError> {
    let addrs = resolve(&url.host, url.port.get(), config.only_family()).await?;
    let start = Instant::now();
    let stream = connect(&addrs, config).await?;
    let connect_time = start.elapsed();
    let from = stream.peer;
    let request = HttpRequest { method: "GET", headers: &[("Accept", "application/json, text/plain")], body: &[] };
    let response = http::send_over(stream, url, request, max).await?;
    Ok(Fetched { response, from, connect_time })
}

/// A list that was read.
struct ReadList {
    count: Count,
    has_players: bool,
}

/// Reads a document, and the rest of a list that the API returns in parts.
async fn read(
    url: &HttpUrl,
    path: &str,
    body: Vec<u8>,
    config: &ScanConfig,
    on_server: &mut impl FnMut(FetchedServer),
) -> Result<ReadList, ProbeError> {
    if body.first() != Some(&b'{') {
        return Ok(ReadList { count: read_master_list(&body, on_server)?, has_players: false });
    }
    let mut count = Count::default();
    let mut next = body;
    // Names of lists, requested when there is a list that is not well known.
    let mut names: Option<HashMap<ListId, Option<Arc<str>>>> = None;
    for _ in 0..MAX_PARTS {
        let part: ServersDocument = serde_json::from_slice(&next).map_err(|_| not_a_list())?;
        let read = part.offset.saturating_add(part.servers.len() as u64);
        let is_last = part.servers.is_empty() || read >= part.total;
        for document in part.servers {
            match document.into_server() {
                Some(mut server) => {
                    count.add_server()?;
                    if let Some(list) = server.list.filter(|list| !list_names::is_known(*list)) {
                        if names.is_none() {
                            names = Some(fetch_list_names(url, path, config).await);
                        }
                        server.list_name = names.as_ref().and_then(|names| names.get(&list).cloned()).flatten();
                    }
                    on_server(server);
                }
                None => count.add_malformed()?,
            }
        }
        if is_last {
            break;
        }
        let separator = if path.contains('?') { '&' } else { '?' };
        let Fetched { response, .. } = get(url, &format!("{path}{separator}offset={read}"), config).await?;
        next = response.into_body()?;
    }
    Ok(ReadList { count, has_players: true })
}

/// The names that an API has for its lists, from beside its list of servers. Lists without names are an inconvenience, not an
/// error.
async fn fetch_list_names(url: &HttpUrl, servers: &str, config: &ScanConfig) -> HashMap<ListId, Option<Arc<str>>> {
    let servers = servers.split('?').next().unwrap_or_default();
    let Some(api) = servers.strip_suffix("servers") else { return HashMap::new() };
    let url = HttpUrl { path: format!("{api}lists"), ..url.clone() };
    lists_at(&url, config).await.unwrap_or_default().into_iter().collect()
}

/// The lists of the API. Only the fields that are used are kept, so that a hostile document takes no more memory than it has
/// bytes.
#[derive(Deserialize)]
struct ListsDocument {
    lists: Vec<ListDocument>,
}

#[derive(Deserialize)]
struct ListDocument {
    id: String,
    name: Option<String>,
    servers: u64,
}

/// The servers of the API, or a part of them.
#[derive(Deserialize)]
struct ServersDocument {
    #[serde(default)]
    total: u64,
    #[serde(default)]
    offset: u64,
    servers: Vec<ServerDocument>,
}

/// A server of the API.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServerDocument {
    list: Option<String>,
    name: Option<String>,
    game: Option<String>,
    game_name: Option<String>,
    map: Option<String>,
    version: Option<String>,
    website: Option<String>,
    password: Option<bool>,
    numplayers: Option<u16>,
    maxplayers: Option<u16>,
    numbots: Option<u16>,
    addresses: AddressesDocument,
    transport: String,
    protocol_id: Option<String>,
    raw: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AddressesDocument {
    ipv4: Option<String>,
    ipv6: Option<String>,
}

impl ServerDocument {
    /// The server; `None` if it has no valid address.
    pub fn into_server(self) -> Option<FetchedServer> {
        let shown =
            |text: Option<String>| text.filter(|text| !text.is_empty()).map(|text| text::sanitize(&text).into_owned());
        let address = |text: Option<String>| text.and_then(|text| text.parse::<SocketAddr>().ok());
        let endpoints: Vec<_> =
            [address(self.addresses.ipv6), address(self.addresses.ipv4)].into_iter().flatten().collect();
        let lobby = LobbyInfo {
            transport: if self.transport == "tcp" { Transport::Tcp } else { Transport::Udp },
            endpoints: endpoints.clone(),
            protocol_id: self.protocol_id.and_then(|id| id.parse().ok()),
            entries: self.raw.into_iter().map(|(key, value)| (key.into_bytes(), value.into_bytes())).collect(),
        };
        let info = ServerInfo {
            name: shown(self.name),
            game: shown(self.game),
            game_name: shown(self.game_name),
            map: shown(self.map),
            version: shown(self.version),
            website: shown(self.website),
            password: self.password,
            players: self.numplayers,
            max_players: self.maxplayers,
            bots: self.numbots,
            lobby: Some(lobby),
            ..ServerInfo::default()
        };
        let list = self.list.and_then(|id| id.parse().ok());
        (!endpoints.is_empty()).then_some(FetchedServer { info, endpoints, protocol: None, list, list_name: None })
    }
}

fn read_master_list(body: &[u8], on_server: &mut impl FnMut(FetchedServer)) -> Result<Count, ProbeError> {
    let mut lines = master_list::servers(body);
    let mut count = Count::default();
    for endpoint in lines.by_ref() {
        count.add_server()?;
        let endpoints = vec![SocketAddr::from(endpoint)];
        let protocol = Some(Protocol::Bloodmasters);
        on_server(FetchedServer { info: ServerInfo::default(), endpoints, protocol, list: None, list_name: None });
    }
    count.malformed = lines.skipped();
    // A web page for people has many lines and no server.
    if count.servers == 0 && count.malformed > 0 {
        return Err(not_a_list());
    }
    Ok(count)
}

fn not_a_list() -> ProbeError {
    ProbeError::Malformed("it is neither the page of a lobby nor a list of servers".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_leads_to_the_api_beside_it() {
        for (path, expected) in [
            ("/", vec!["/api/v1/servers", "/bloodmasterslist.php"]),
            ("/?list=a&page=2", vec!["/api/v1/servers?list=a", "/bloodmasterslist.php"]),
            ("/?q=a+b&game=&not_empty=1&sort=name", vec!["/api/v1/servers?q=a+b&not_empty=1", "/bloodmasterslist.php"]),
            ("/lists/gg2", vec!["/api/v1/servers?list=gg2"]),
            ("/games/lists/gg2/feed.atom", vec!["/games/api/v1/servers?list=gg2"]),
            ("/games/", vec!["/games/api/v1/servers", "/games/bloodmasterslist.php"]),
            ("/servers/1", vec!["/servers/1", "/servers/api/v1/servers", "/api/v1/servers"]),
            ("/list.php?x=1", vec!["/list.php?x=1", "/api/v1/servers"]),
        ] {
            assert_eq!(candidates(path), expected, "{path}");
        }
    }
}
