//! Starting a lobby: sockets, saved state, threads and tasks, in the order in which they depend on each other.

use super::{
    LobbyOptions, LobbyService, LobbyStartError, bind,
    datagram_doors::DatagramDoors,
    descriptors::Descriptors,
    event_batches::{BACKLOG, EventBatches},
    event_log::EventLog,
    handle::RegistryHandle,
    loss_meter::LossMeter,
    probing::Probing,
    refusal_log::RefusalLog,
    save::{Saves, SharedSaveStats},
    thread::{LobbyThread, SharedDoorStats},
};
use crate::{
    AdminRecord, AdminStore, ClusterLink, LogThrottle, WallClock,
    cluster::Duties,
    data_dir::DataDir,
    list::ListService,
    service::Inner,
    table::{self, ServerFeed, ServerTable},
};
use arc_swap::ArcSwap;
use rallypoint_lobby_proto::{BanList, HashKeys, Registry};
use rallypoint_udp::{EventLoop, clock, entropy};
use std::{
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::SystemTime,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, broadcast, watch},
};

/// Fraction (1/8) of the memory cap for replies of servers to probes, in addition to the registry.
const ANSWER_SHARE: usize = 8;

/// Fraction (1/8) of the memory cap for outdated lists that slow readers keep from being freed.
const HELD_SHARE: usize = 8;

/// Fraction (1/16) of the memory cap for popular list replies in memory-backed files.
const REPLY_FILE_SHARE: usize = 16;

/// Starts everything, or nothing.
pub(super) fn start(options: LobbyOptions, runtime: &Handle) -> Result<LobbyService, LobbyStartError> {
    let now = clock::now();
    let descriptors = Descriptors::claim(&options);
    let memory = options.registry.caps.memory;
    // Datagrams that arrive while the saved list is read wait in the sockets.
    let bound = bind::bind(&options)?;
    let data_dir = options.data_dir.as_deref().map(DataDir::open).transpose()?;
    let public_ids = match &options.cluster {
        Some(node) => node.public_id_key,
        None => data_dir.as_ref().map_or_else(|| Ok(entropy::bytes()?), DataDir::public_id_key)?,
    };
    let keys = HashKeys { tables: entropy::u64()?, public_ids };
    let doors = DatagramDoors::new(&bound.udp_doors, &keys);
    let mut registry = Registry::new(descriptors.limit_config(options.registry), keys, now)?;
    if options.cluster.is_some() {
        registry.enable_replication(now, entropy::bytes()?);
    }
    let changes = options.cluster.as_ref().map(|_| Arc::new(Notify::new()));
    let node_name: Option<Arc<str>> = options.cluster.as_ref().map(|node| node.name.as_str().into());
    let mut admin_record = None;
    if let Some(data_dir) = &data_dir {
        let record = AdminRecord::load(data_dir.path())?;
        let bans = record.bans.iter().map(|stored| stored.ban.clone());
        registry.set_admin_bans(now, BanList::new(bans, now, SystemTime::now()));
        restore(&mut registry, data_dir)?;
        admin_record = Some((data_dir.path().to_owned(), record));
    }
    let lists = registry.lists();
    let mut list_limits = descriptors.limit_list(&options.list);
    list_limits.held_bytes = list_limits.held_bytes.min(memory / HELD_SHARE);
    let files = memory / REPLY_FILE_SHARE;
    let list =
        ListService::start(bound.tcp, lists.clone(), list_limits, files, runtime).map_err(LobbyStartError::Thread)?;

    let stats = Arc::new(ArcSwap::from_pointee(registry.stats()));
    let door_stats = SharedDoorStats::default();
    let events = broadcast::Sender::new(BACKLOG);
    let (is_alive, alive) = watch::channel(());
    let check_bytes = Arc::new(AtomicU64::new(0));
    let event_loop = EventLoop::new(bound.udp.clone()).map_err(LobbyStartError::Thread)?;
    let thread = LobbyThread {
        registry,
        doors,
        events: EventBatches::new(events.clone(), now),
        stats: stats.clone(),
        door_stats: door_stats.clone(),
        saves: None,
        runtime: runtime.clone(),
        commands: event_loop.handle().clone(),
        log: EventLog::new(now),
        check_errors: LogThrottle::default(),
        check_bytes: check_bytes.clone(),
        refusals: RefusalLog::default(),
        losses: LossMeter::new(bound.udp.clone()),
        stats_at: None,
        stats_published: now,
        has_more_events: true,
        changes: changes.clone(),
        coordinator: None,
        _is_alive: is_alive,
    };
    let thread = event_loop.spawn("lobby", thread, drop).map_err(LobbyStartError::Thread)?;
    let registry = RegistryHandle { commands: thread.handle().clone(), stats, events, alive };

    let admin = admin_record.map(|(dir, record)| AdminStore::new(&dir, record, registry.clone()));
    let save_stats = SharedSaveStats::default();
    if let Some(data_dir) = data_dir {
        let commands = registry.commands.clone();
        let written = move || commands.run(LobbyThread::handle_written);
        let saves = Saves::start(data_dir, options.save_every, now, save_stats.clone(), written)
            .map_err(LobbyStartError::Thread)?;
        registry.commands.run(move |thread, _| thread.saves = Some(saves));
    }

    let server_table = ServerTable::new(now, WallClock::new(now, SystemTime::now()), options.table_scope)
        .with_answer_bytes(memory / ANSWER_SHARE);
    let (feed, results) = ServerFeed::new(Arc::clone(server_table.published()));
    let feed = Arc::new(feed);
    let table_task = runtime.spawn(table::run(server_table, registry.clone(), Arc::clone(&feed), results));
    let duties = Duties::default();
    let probing = match descriptors.probe_sockets {
        0 => None,
        sockets => Some(Probing::start(
            sockets,
            registry.clone(),
            Arc::clone(&feed),
            node_name.clone(),
            duties.clone(),
            entropy::u128()?,
            runtime,
        )),
    };
    for socket in &bound.udp {
        tracing::info!(addr = %socket.local_addr(), receive_buffer = socket.recv_buffer_size(), "listening");
    }
    let link = |changes| ClusterLink {
        registry: registry.clone(),
        changes,
        status: Arc::default(),
        duties,
        feed: Arc::clone(&feed),
        peers: Arc::default(),
        is_probing: probing.is_some(),
    };
    let cluster = changes.map(link);
    Ok(LobbyService(Arc::new(Inner {
        addrs: bound.addrs,
        door_stats,
        sockets: bound.udp,
        lists,
        registry,
        list,
        saves: save_stats,
        memory: memory.into(),
        check_bytes,
        descriptors,
        admin,
        feed,
        table_task: table_task.abort_handle(),
        probing,
        cluster,
        node_name,
        thread: Mutex::new(Some(thread)),
    })))
}

/// Restores the saved list. A file that cannot be read is renamed, and the lobby starts empty.
fn restore(registry: &mut Registry, data_dir: &DataDir) -> Result<(), LobbyStartError> {
    let Some(save) = data_dir.servers()? else { return Ok(()) };
    match registry.restore(clock::now(), &save) {
        Ok(servers) => tracing::info!(servers, "restored the saved list"),
        Err(error) => data_dir.set_servers_aside(&error),
    }
    Ok(())
}
