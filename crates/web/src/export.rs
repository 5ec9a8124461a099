//! What a lobby's copies for mirrors contain (W120): its documents, as the API and the page show them.

mod document;
mod page;

use crate::ListNames;
use arc_swap::ArcSwap;
use rallypoint_lobby::{LobbyService, TableSnapshot};
use rallypoint_lobby_proto::PublishedList;
use rallypoint_mirror::{CopySnapshot, CopySource, CopyWriter, ExportError, ExportKey, ListFile, minisign::PublicKey};
use rallypoint_query::list_names;
use rallypoint_wire::lobby::ListId;
use std::{cmp::Reverse, ops::Deref, path::PathBuf, sync::Arc, time::Duration};

/// Maximum number of raw lists: any server can open a list of its own. Lists with a name come first, then those with the most
/// servers. `servers.json` contains the servers of all lists.
const MAX_LISTS: usize = 256;

/// Where, how often and with which key copies are written.
#[derive(Debug)]
pub struct ExportOptions {
    /// The directory, for copies alone. It is created if it does not exist.
    pub directory: PathBuf,
    /// Minimum time between two copies, from 1 s to 1 h. Default: 5 s. A copy of a very long list is written less often.
    pub interval: Duration,
    /// The key that signs the files.
    pub key: ExportKey,
    /// The settings that can be changed while it runs.
    pub settings: ExportSettings,
}

/// The contents of a copy that come from the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportSettings {
    /// Names under which players know the lobby: its host, with its port if it is not the default one. A client that was asked
    /// for another lobby refuses the copy. Default: none, then the key alone identifies the lobby.
    pub hosts: Vec<String>,
    /// How long clients use a copy, unless their user sets another time. Default: a day.
    pub max_age: Duration,
    /// The address of the live page. Default: none.
    pub page_url: Option<String>,
    /// Where copies are published, for the live page. Default: none.
    pub mirrors: Vec<String>,
    /// Title of the page. Default: "Rallypoint".
    pub title: String,
    /// Names of the lists.
    pub names: ListNames,
}

impl ExportOptions {
    /// The default interval and settings.
    #[must_use]
    pub fn new(directory: PathBuf, key: ExportKey) -> Self {
        Self { directory, interval: Duration::from_secs(5), key, settings: ExportSettings::default() }
    }
}

impl Default for ExportSettings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            max_age: Duration::from_secs(24 * 60 * 60),
            page_url: None,
            mirrors: Vec::new(),
            title: "Rallypoint".into(),
            names: ListNames::default(),
        }
    }
}

/// A running export: the writer, and the settings of what it writes. Clones refer to the same one.
#[derive(Clone, Debug)]
pub struct ExportService {
    writer: CopyWriter,
    settings: Arc<ArcSwap<ExportSettings>>,
}

impl ExportService {
    /// Starts to write copies of a lobby's list. Has to be called within a runtime.
    ///
    /// # Errors
    /// If the directory cannot be written to, or contains something else.
    pub fn start(options: ExportOptions, lobby: LobbyService) -> Result<Self, ExportError> {
        let ExportOptions { directory, interval, key, settings } = options;
        let settings = Arc::new(ArcSwap::from_pointee(settings));
        let source = Source { lobby, settings: Arc::clone(&settings) };
        Ok(Self { writer: CopyWriter::start(directory, interval, key, source)?, settings })
    }

    /// The description of the lobby in its copies.
    pub(crate) fn settings(&self) -> Arc<ExportSettings> {
        self.settings.load_full()
    }

    /// Replaces what copies say about the lobby, from the next copy on.
    pub fn set_settings(&self, settings: ExportSettings) {
        self.settings.store(Arc::new(settings));
    }
}

impl Deref for ExportService {
    type Target = CopyWriter;

    fn deref(&self) -> &CopyWriter {
        &self.writer
    }
}

/// A lobby whose list is copied.
struct Source {
    lobby: LobbyService,
    settings: Arc<ArcSwap<ExportSettings>>,
}

impl CopySource for Source {
    type Snapshot = Snapshot;

    async fn until_current(&self) {
        self.lobby.servers().until_current().await;
    }

    async fn ended(&self) {
        self.lobby.ended().await;
    }

    fn state(&self) -> (u64, bool) {
        let table = self.lobby.servers().snapshot();
        (table.version(), table.is_empty())
    }

    fn snapshot(&self) -> Snapshot {
        let table = Arc::clone(&self.lobby.servers().snapshot());
        let settings = self.settings.load_full();
        let lists = self.lobby.lists().snapshot();
        let mut lists: Vec<_> = lists.lists().map(|(id, list)| (*id, Arc::clone(list))).collect();
        lists.sort_by_key(|(id, list)| (settings.names.name(id).is_none(), Reverse(list.count()), *id));
        lists.truncate(MAX_LISTS);
        Snapshot { table, lists, settings }
    }
}

struct Snapshot {
    table: Arc<TableSnapshot>,
    /// The lists that have files of their own.
    lists: Vec<(ListId, Arc<PublishedList>)>,
    settings: Arc<ExportSettings>,
}

impl CopySnapshot for Snapshot {
    fn lists(&self) -> Vec<ListFile> {
        let file = |id: ListId, version| ListFile { id, name: list_names::short_name(id), version };
        self.lists.iter().map(|(id, list)| file(*id, list.version())).collect()
    }

    fn list(&self, list: &ListFile) -> Vec<u8> {
        let found = self.lists.iter().find(|(id, _)| *id == list.id);
        found.map(|(_, list)| list.pieces().collect::<Vec<_>>().concat()).unwrap_or_default()
    }

    fn is_list_name(name: &str) -> bool {
        list_names::find(name).is_ok_and(|id| list_names::short_name(id) == name)
    }

    fn document(&self, lists: &[ListFile], made_at: u64) -> Vec<u8> {
        document::write(&self.table, lists, &self.settings, made_at)
    }

    fn page(&self, key: PublicKey, made_at: u64) -> Vec<u8> {
        page::write(&self.table, &self.settings, key, made_at)
    }
}
