//! The operator's decisions at run time: bans and notes, stored in the data directory beside the list, and an audit log of all
//! changes. The configuration file remains the operator's own and is never written.

mod audit;
mod lifted;
mod record;

pub use audit::AuditEntry;
pub use lifted::Lifts;
pub use record::{AdminRecord, Note, StoredBan};

use crate::{
    cluster::{BanChange, OperatorDecision},
    service::{LobbyThread, RegistryHandle},
    wall_clock::unix_now,
};
use arc_swap::{ArcSwap, Guard};
use audit::AuditLog;
use rallypoint_lobby_proto::{Ban, BanList, BanSubject, UnlistedServer};
use std::{
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use thiserror::Error;
use tokio::{runtime::Handle, sync::broadcast};

const FILE: &str = "admin.json";

/// Number of changes of bans that a subscriber may be behind before it misses some.
const CHANGE_BACKLOG: usize = 1_024;

/// Bans and notes that the operator has added at run time. Clones refer to the same store.
///
/// Every change is written to the audit log and to the disk before the registry applies it. If one of these fails, the
/// following steps do not happen.
///
/// ```
/// use rallypoint_lobby::{DoorAddrs, LobbyOptions, LobbyService};
/// use rallypoint_lobby_proto::{Ban, BanSubject};
///
/// # let dir = std::env::temp_dir().join(format!("rallypoint-admin-example-{}", std::process::id()));
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let any_port = vec!["127.0.0.1:0".parse()?];
/// let data_dir = Some(dir.clone());
/// let options = LobbyOptions { doors: DoorAddrs::lobby(any_port), data_dir, ..LobbyOptions::default() };
/// let lobby = LobbyService::start(options, &tokio::runtime::Handle::current())?;
///
/// let admin = lobby.admin().expect("the lobby has a data directory");
/// let subject = BanSubject::network("203.0.113.0/24".parse()?)?;
/// let ban = Ban { subject, reason: "spam".into(), until: None };
/// let (stored, is_new) = admin.put_ban(ban, [127, 0, 0, 1].into()).await?;
/// assert!(is_new);
/// admin.remove_ban(stored.id, [127, 0, 0, 1].into()).await?;
/// lobby.shutdown().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # std::fs::remove_dir_all(dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AdminStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    registry: RegistryHandle,
    /// Held during a change, so that the registry applies changes in their order.
    changing: Mutex<()>,
    record: ArcSwap<AdminRecord>,
    audit: AuditLog,
    /// Bans that were added, changed or lifted here, for the other nodes of a cluster.
    changes: broadcast::Sender<OperatorDecision>,
}

/// A change of the record: what it returns, and what has to be known of it elsewhere.
struct Change<T> {
    value: T,
    /// For the audit log.
    entries: Vec<AuditEntry>,
    /// For the other nodes of a cluster.
    decisions: Vec<OperatorDecision>,
}

impl<T> Change<T> {
    /// A change that concerns no ban.
    fn of_note(value: T, entry: AuditEntry) -> Self {
        Self { value, entries: vec![entry], decisions: Vec::new() }
    }
}

/// Why a change was not made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The maximum number of bans is reached.
    #[error("there are {} bans: remove some first", AdminRecord::MAX)]
    TooManyBans,
    /// The maximum number of notes is reached.
    #[error("there are {} notes: remove some first", AdminRecord::MAX)]
    TooManyNotes,
    /// All IDs are used up, which happens only if the file was edited.
    #[error("there are no IDs left: lower \"next\" in admin.json")]
    NoFreeId,
    /// No ban has this ID.
    #[error("there is no such ban; those of the configuration file can be changed only there")]
    NoSuchBan,
    /// No note has this ID.
    #[error("there is no such note")]
    NoSuchNote,
    /// The data directory cannot be read or written.
    #[error("the data directory cannot be used, so nothing was changed: {0}")]
    Storage(#[from] io::Error),
    /// The program is shutting down, or the change panicked.
    #[error("the change was interrupted")]
    Interrupted,
}

/// Why the operator's decisions cannot be read at the start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AdminFileError {
    /// The file exists but cannot be read.
    #[error(
        "cannot read {}: {source}; make it readable or move it away, or choose another data directory",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file was written by a later version of this program.
    #[error("{} was written by a later version of this program: use that one, or move the file away", .0.display())]
    TooNew(PathBuf),
    /// The file is damaged. Without it all bans of the operator would be lost, so the lobby does not start.
    #[error(
        "{} is damaged: {source}; restore it from a backup, or move it away to start without the bans that it contains",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: serde_json::Error,
    },
}

impl AdminRecord {
    /// Reads the record of a data directory. There need not be one, but one that cannot be parsed is an error: the bans of
    /// the operator must not be lost unnoticed.
    pub(crate) fn load(dir: &Path) -> Result<Self, AdminFileError> {
        let path = dir.join(FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(AdminFileError::Unreadable { path, source }),
        };
        // A later version may look different in everything else.
        if record::version(&bytes).is_some_and(|version| version > Self::VERSION) {
            return Err(AdminFileError::TooNew(path));
        }
        serde_json::from_slice(&bytes).map_err(|source| AdminFileError::Damaged { path, source })
    }
}

impl AdminStore {
    pub(crate) fn new(dir: &Path, record: AdminRecord, registry: RegistryHandle) -> Self {
        Self(Arc::new(Inner {
            path: dir.join(FILE),
            registry,
            changing: Mutex::default(),
            record: ArcSwap::from_pointee(record),
            audit: AuditLog::new(dir),
            changes: broadcast::Sender::new(CHANGE_BACKLOG),
        }))
    }

    /// All bans and notes. Bans that have ended are removed with the next change.
    pub fn record(&self) -> Guard<Arc<AdminRecord>> {
        self.0.record.load()
    }

    /// Adds a ban, or replaces the one with the same subject. Returns whether it is new. `by` is the operator's address, for the
    /// audit log.
    pub async fn put_ban(&self, ban: Ban, by: IpAddr) -> Result<(StoredBan, bool), AdminError> {
        let change = move |record: &mut AdminRecord| {
            let entry = ban_entry("ban", &ban, by);
            let decision = record.decide(BanChange::Put(ban.clone()));
            Ok(Change { value: record.put_ban(ban, entry.time)?, entries: vec![entry], decisions: vec![decision] })
        };
        self.change(change).await
    }

    /// Removes a server from the list and bans it, and optionally its addresses, until the given time.
    pub async fn unlist(
        &self,
        server: UnlistedServer,
        ban_addresses: bool,
        reason: &str,
        until: SystemTime,
        by: IpAddr,
    ) -> Result<(), AdminError> {
        let reason: Arc<str> = reason.into();
        let ban = move |subject| Ban { subject, reason: Arc::clone(&reason), until: Some(until) };
        let addresses = if ban_addresses { server.addresses.clone() } else { Vec::new() };
        let change = move |record: &mut AdminRecord| {
            let mut bans = vec![("unlist", ban(BanSubject::Server(server)))];
            bans.extend(addresses.iter().map(|addr| ("ban", ban(BanSubject::Network(addr.ip().into())))));
            let mut change = Change { value: (), entries: Vec::new(), decisions: Vec::new() };
            for (action, ban) in bans {
                let entry = ban_entry(action, &ban, by);
                record.put_ban(ban.clone(), entry.time)?;
                change.entries.push(entry);
                change.decisions.push(record.decide(BanChange::Put(ban)));
            }
            Ok(change)
        };
        self.change(change).await
    }

    /// Removes a ban.
    pub async fn remove_ban(&self, id: u64, by: IpAddr) -> Result<(), AdminError> {
        let change = move |record: &mut AdminRecord| {
            let removed = record.remove_ban(id).ok_or(AdminError::NoSuchBan)?;
            let entry = AuditEntry { until: None, ..ban_entry("unban", &removed.ban, by) };
            let decision = record.decide(BanChange::Lifted(removed.ban.subject));
            Ok(Change { value: (), entries: vec![entry], decisions: vec![decision] })
        };
        self.change(change).await
    }

    /// Adds a note about a server or a network.
    pub async fn add_note(&self, about: String, text: String, by: IpAddr) -> Result<Note, AdminError> {
        let change = move |record: &mut AdminRecord| {
            let entry = entry("note", about.clone(), text.clone(), by);
            Ok(Change::of_note(record.add_note(about, text, entry.time)?, entry))
        };
        self.change(change).await
    }

    /// Removes a note.
    pub async fn remove_note(&self, id: u64, by: IpAddr) -> Result<(), AdminError> {
        let change = move |record: &mut AdminRecord| {
            let removed = record.remove_note(id).ok_or(AdminError::NoSuchNote)?;
            Ok(Change::of_note((), entry("forget_note", removed.about, removed.text, by)))
        };
        self.change(change).await
    }

    /// Subscribes to bans that are added, changed or lifted here, in the order in which they take effect. A subscriber that
    /// misses some finds them in the [`record`](Self::record).
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<OperatorDecision> {
        self.0.changes.subscribe()
    }

    /// Applies decisions of operators at other nodes of a cluster. They are not in the audit log, which each node keeps for its own
    /// operator's decisions. Those that were made before what is known here are left out: an operator may have decided without
    /// contact with the others. Returns the number of bans for which there was no room.
    pub async fn apply_shared(&self, decisions: Vec<OperatorDecision>) -> Result<usize, AdminError> {
        let record = self.record();
        let has_news = decisions.iter().any(|decision| record.accepts(decision));
        drop(record);
        if !has_news {
            return Ok(0);
        }
        let apply = move |record: &mut AdminRecord| {
            let mut left_out = 0;
            for decision in decisions {
                match record.apply_shared(decision) {
                    Ok(()) => {}
                    Err(AdminError::TooManyBans) => left_out += 1,
                    Err(error) => return Err(error),
                }
            }
            Ok(Change { value: left_out, entries: Vec::new(), decisions: Vec::new() })
        };
        self.change(apply).await
    }

    /// The audit log, latest entry first.
    pub async fn audit(&self) -> Result<Vec<AuditEntry>, AdminError> {
        let inner = Arc::clone(&self.0);
        uninterrupted(move || Ok(inner.audit.entries()?)).await
    }

    /// Makes a change: audit log, disk, registry, other nodes, in this order.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut AdminRecord) -> Result<Change<T>, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        let store = Arc::clone(&self.0);
        let runtime = Handle::current();
        uninterrupted(move || {
            let _guard = store.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let mut record = AdminRecord::clone(&store.record.load());
            let utc = SystemTime::now();
            record.remove_ended(utc);
            let Change { value, entries, decisions } = change(&mut record)?;
            store.audit.add(&entries)?;
            rallypoint_files::replace(&store.path, &serde_json::to_vec(&record).map_err(io::Error::other)?)?;
            entries.iter().for_each(log_action);
            let bans = BanList::new(record.bans.iter().map(|stored| stored.ban.clone()), Instant::now(), utc);
            store.record.store(Arc::new(record));
            let apply = move |thread: &mut LobbyThread, now| thread.registry.set_admin_bans(now, bans);
            runtime.block_on(store.registry.commands.call(apply));
            // Before the next change can be made: of two decisions about a ban, the other nodes must not get the later one first.
            for decision in decisions {
                // It fails without subscribers, which is fine.
                let _ = store.changes.send(decision);
            }
            Ok(value)
        })
        .await
    }
}

/// Logs what the operator did. Addresses are masked, as everywhere in the log; the audit log has them in full.
fn log_action(entry: &AuditEntry) {
    let AuditEntry { from, action, about, reason, .. } = entry;
    let address = about.parse().map(|ip: IpAddr| crate::MaskedAddr(ip).to_string());
    let about = address.as_ref().unwrap_or(about);
    let reason = Some(reason).filter(|reason| !reason.is_empty());
    tracing::info!(about, reason, by = %crate::MaskedAddr(*from), "the operator changed bans or notes: {action}");
}

fn entry(action: &str, about: String, reason: String, by: IpAddr) -> AuditEntry {
    AuditEntry { time: unix_now(), from: by, action: action.into(), about, reason, until: None }
}

fn ban_entry(action: &str, ban: &Ban, by: IpAddr) -> AuditEntry {
    let seconds = |until: SystemTime| until.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let until = ban.until.map(seconds);
    AuditEntry { until, ..entry(action, ban.subject.to_string(), ban.reason.to_string(), by) }
}

/// Runs work that waits for the disk on a thread of its own, so that it completes even if the caller stops waiting: a change must
/// not be left half done.
async fn uninterrupted<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AdminError> + Send + 'static,
) -> Result<T, AdminError> {
    let result = tokio::task::spawn_blocking(work).await.unwrap_or(Err(AdminError::Interrupted));
    if let Err(AdminError::Storage(error)) = &result {
        tracing::warn!(%error, "cannot store or read the operator's decisions");
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::poll_fn, task::Poll};
    use tokio::sync::oneshot;

    #[test]
    fn a_change_completes_even_if_the_caller_stops_waiting() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (go, wait) = oneshot::channel::<()>();
            let (done, is_done) = oneshot::channel();
            let mut work = Box::pin(uninterrupted(move || {
                let _ = wait.blocking_recv();
                done.send(()).unwrap();
                Ok(())
            }));
            assert!(poll_fn(|context| Poll::Ready(work.as_mut().poll(context).is_pending())).await);
            drop(work);
            go.send(()).unwrap();
            is_done.await.unwrap();
        });
    }

    #[test]
    fn a_damaged_file_is_an_error_and_is_not_touched() {
        for content in ["", "{\"version\":1,", "[]", "{\"version\":1,\"next\":1,\"bans\":[{}],\"notes\":[]}"] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(FILE), content).unwrap();
            let error = AdminRecord::load(dir.path()).unwrap_err();
            assert!(matches!(error, AdminFileError::Damaged { .. }), "{content}");
            assert!(error.to_string().contains("is damaged"), "{error}");
            assert_eq!(fs::read_to_string(dir.path().join(FILE)).unwrap(), content);
        }
    }

    #[test]
    fn a_file_of_a_later_version_is_not_touched_whatever_it_contains() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), r#"{"version":2,"bans":{}}"#).unwrap();
        let error = AdminRecord::load(dir.path()).unwrap_err();
        assert!(matches!(error, AdminFileError::TooNew(_)));
        assert!(error.to_string().contains("later version"), "{error}");
        assert!(dir.path().join(FILE).exists());
    }
}
