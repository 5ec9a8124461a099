//! Reading all lists of a lobby.
//!
//! Document 001 has no request for the lists that a lobby has. Those that are well known are requested, and those that the
//! lobby's API reports, if it is at its default port.

use super::{FetchedServer, ListSummary, MAX_SERVERS, fetch_list};
use crate::{LobbyAddress, ProbeError, ScanConfig, Target, list_names};
use rallypoint_wire::lobby::ListId;
use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    task::JoinSet,
    time::sleep,
};

/// Maximum number of lists that are read: so that an API cannot make this program send any number of requests.
const MAX_LISTS: usize = 64;

/// How long to wait for the API after all well-known lists have been read: it is missing in other lobby software, and a
/// firewall may drop requests.
const API_GRACE: Duration = Duration::from_millis(300);

/// Reads all lists at the same time. It is an error if none of them can be read.
pub(super) async fn fetch(
    lobby: &LobbyAddress,
    config: &ScanConfig,
    mut on_server: impl FnMut(FetchedServer),
) -> Result<ListSummary, ProbeError> {
    let (sender, mut servers) = unbounded_channel();
    let mut reads =
        Reads { lobby, config, sender, tasks: JoinSet::new(), requested: HashSet::new(), count: Arc::default() };
    for known in list_names::known() {
        reads.start(known.id, None);
    }
    let api = lists_of_api(lobby, config);
    tokio::pin!(api);
    let mut is_api_pending = true;
    let mut complete: Option<ListSummary> = None;
    let mut failure = None;
    while !reads.tasks.is_empty() || (is_api_pending && complete.is_some()) {
        tokio::select! {
            Some(server) = servers.recv() => on_server(server),
            Some(read) = reads.tasks.join_next() => match read {
                Ok(Ok(summary)) => complete = Some(complete.map_or(summary, |sum| sum.plus(summary))),
                Ok(Err(error)) => failure = failure.or(Some(error)),
                // The task panicked or was cancelled: neither happens.
                Err(_) => {}
            },
            lists = &mut api, if is_api_pending => {
                is_api_pending = false;
                lists.into_iter().for_each(|(list, name)| reads.start(list, name));
            }
            () = sleep(API_GRACE), if reads.tasks.is_empty() => break,
        }
    }
    while let Ok(server) = servers.try_recv() {
        on_server(server);
    }
    complete.ok_or_else(|| failure.unwrap_or_else(ProbeError::incomplete))
}

/// Lists that are being read.
struct Reads<'a> {
    lobby: &'a LobbyAddress,
    config: &'a ScanConfig,
    sender: UnboundedSender<FetchedServer>,
    tasks: JoinSet<Result<ListSummary, ProbeError>>,
    requested: HashSet<ListId>,
    /// Number of servers of all lists together.
    count: Arc<AtomicUsize>,
}

impl Reads<'_> {
    fn start(&mut self, list: ListId, name: Option<Arc<str>>) {
        if self.requested.len() >= MAX_LISTS || !self.requested.insert(list) {
            return;
        }
        let target = Target::Lobby(LobbyAddress { id: Some(list), ..self.lobby.clone() });
        let config = self.config.clone();
        let sender = self.sender.clone();
        let count = self.count.clone();
        self.tasks.spawn(async move {
            let on_server = |server: FetchedServer| {
                if count.fetch_add(1, Ordering::Relaxed) < MAX_SERVERS {
                    let _ = sender.send(FetchedServer { list_name: name.clone(), ..server });
                }
            };
            // Boxed, because `fetch_list` calls this function, but for a single list only.
            Box::pin(fetch_list(&target, &config, on_server)).await
        });
    }
}

impl ListSummary {
    /// The totals of two lists of the same lobby.
    fn plus(self, other: Self) -> Self {
        Self { servers: self.servers + other.servers, malformed: self.malformed + other.malformed, ..self }
    }
}

/// The lists that the API of the lobby reports; none if it does not answer. A lobby at a port of its own may have its API
/// anywhere, and another lobby may have the default one.
#[cfg(feature = "http")]
async fn lists_of_api(lobby: &LobbyAddress, config: &ScanConfig) -> Vec<(ListId, Option<Arc<str>>)> {
    match lobby.port() {
        rallypoint_wire::lobby::PORT => super::web::lists(&lobby.host, config).await.unwrap_or_default(),
        _ => Vec::new(),
    }
}

#[cfg(not(feature = "http"))]
async fn lists_of_api(_lobby: &LobbyAddress, _config: &ScanConfig) -> Vec<(ListId, Option<Arc<str>>)> {
    Vec::new()
}
