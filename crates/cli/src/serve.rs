//! `rallypoint serve`: runs the lobby service.

mod args;
pub mod data_dir;
mod export;
mod free_memory;
mod notify;
mod recording;
mod report;

pub use args::Args;

use crate::{
    config::{self, ClusterSettings, LoadedConfig, SETTINGS, Settings, Sources},
    error::CommandError,
    log::Log,
    signals::{SignalAction, Signals},
    stdio::{print_line, print_stdout},
};
use jiff::Timestamp;
use rallypoint_cluster::{ClusterOptions, PreparedNode};
use rallypoint_lobby::{AdminFileError, DoorAddrs, LobbyOptions, LobbyService, LobbyStartError, ProbePool, TableScope};
use rallypoint_lobby_proto::doors::{DOORS, Door, DoorSockets};
use rallypoint_web::{ExportService, WebService, WebSources};
use recording::Recording;
use report::Reporter;
use std::{
    io::{self, IsTerminal},
    net::SocketAddr,
    path::PathBuf,
    time::{Duration, Instant},
};
use tracing::{error, info, warn};

/// Interval at which the statistics are checked.
const STATS_INTERVAL: Duration = Duration::from_secs(60);

/// Runs a lobby until SIGTERM or SIGINT.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let sources = args.sources()?;
    let loaded = sources.load()?;
    if args.print_config {
        return print_stdout(&config::print(&loaded.settings));
    }
    let data_dir = data_dir::choose(&loaded.settings, &sources.variables)?;
    if args.check_config {
        loaded.check_files()?;
        return print_stdout(&summary(&loaded, &data_dir));
    }
    rallypoint_udp::bound_free_memory();
    let log = Log::start(loaded.settings.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(CommandError::failed)?;
    let settings = loaded.settings.clone();
    let server = Server { sources, log, initial_settings: settings.clone(), settings };
    let result = runtime.block_on(server.run(&loaded, data_dir));
    // After a second signal, do not wait for tasks.
    runtime.shutdown_background();
    result
}

/// A running lobby and the sources of its settings.
struct Server {
    sources: Sources,
    log: Log,
    /// Settings at the start: those that need a restart are still in effect.
    initial_settings: Settings,
    /// Settings of the last successful load.
    settings: Settings,
}

impl Server {
    async fn run(mut self, loaded: &LoadedConfig, data_dir: PathBuf) -> Result<(), CommandError> {
        // Before anything else, so that no signal is missed once the ports are open.
        let mut signals = Signals::new().map_err(CommandError::failed)?;
        log_warnings(loaded);
        let node = prepare_node(&self.settings).await?;
        let mut options = options(&self.settings, data_dir.clone());
        options.cluster = node.as_ref().map(PreparedNode::identity);
        let service =
            LobbyService::start(options, &tokio::runtime::Handle::current()).map_err(|error| start_error(&error))?;
        let cluster = match node {
            Some(node) => Some(node.start(&service).await.map_err(CommandError::failed)?),
            None => None,
        };
        tokio::spawn(free_memory::release(service.clone()));
        let recording = Recording::start(&service, &self.settings.history, &data_dir);
        let export = export::start(&self.settings, &service, &data_dir)?;
        let web = self.start_web(&service, recording.as_ref(), export.as_ref())?;
        service.set_watched_servers(&self.settings.watch).await;
        let mut reporter = Reporter::new(&service);
        print_addresses(&service, web.as_ref());
        let page = web.as_ref().and_then(page_url);
        info!(
            version = env!("CARGO_PKG_VERSION"),
            data_dir = %data_dir.display(),
            listed = service.stats().listed,
            page,
            "serving"
        );
        // After the log: in a terminal, the last line is the one that is read.
        if let Some(page) = page.filter(|_| io::stdout().is_terminal()) {
            self.log.flush();
            print_line(&format!("Open {page} in a browser to see the list. Ctrl-C stops the lobby."));
        }
        notify::ready();
        let mut stats_interval = tokio::time::interval(STATS_INTERVAL);
        loop {
            tokio::select! {
                signal = signals.next() => match signal {
                    SignalAction::Reload => self.reload(&service, web.as_ref(), export.as_ref()).await,
                    SignalAction::Stop => break,
                },
                _ = stats_interval.tick() => reporter.report(&service),
                // Without that thread the list would never change again. After a restart, the saved list is loaded.
                () = service.ended() => return Err(CommandError::failed(
                    "the lobby thread failed; shutting down. This is a bug: please report it with the log",
                )),
            }
        }
        notify::stopping();
        info!("shutting down: finishing replies and saving the list");
        let finish = async {
            // While the list is complete: what is down on purpose is what mirrors are for.
            if let Some(export) = &export {
                export.shutdown().await;
            }
            if let Some(cluster) = cluster {
                cluster.shutdown().await;
            }
            let is_saved = shut_down(&service, web.as_ref()).await;
            if let Some(recording) = recording {
                recording.finish().await;
            }
            is_saved
        };
        tokio::select! {
            is_saved = finish => match is_saved {
                true => {
                    info!("stopped");
                    Ok(())
                }
                false => Err(CommandError::NotSaved(format!(
                    "stopped, but the list could not be saved to {}: the next start loads the previous save; check that the \
                     directory is writable and the disk has space",
                    data_dir.display()
                ))),
            },
            () = signals.stop_again() => Err(CommandError::failed("stopped immediately on a second signal; changes of the last seconds may not be saved")),
        }
    }

    /// Starts the web server, unless `web.listen` is off.
    fn start_web(
        &self,
        service: &LobbyService,
        recording: Option<&Recording>,
        export: Option<&ExportService>,
    ) -> Result<Option<WebService>, CommandError> {
        let mut options = self.settings.web();
        if options.listen.is_empty() {
            return Ok(None);
        }
        let configured = options.limits.connections;
        options.limits.connections = configured.min(service.other_descriptors()).max(1);
        if options.limits.connections < configured {
            let connections = options.limits.connections;
            info!(connections, "web.connections was reduced because of the system's limit of open files");
        }
        let sources =
            WebSources { lobby: service.clone(), history: recording.map(Recording::reader), export: export.cloned() };
        WebService::start(options, sources).map(Some).map_err(|error| match error {
            rallypoint_web::WebStartError::Bind(error) => CommandError::bind(&error, "--http"),
            error => CommandError::failed(error),
        })
    }

    /// Reloads the configuration. If it has errors, the current one stays in effect.
    async fn reload(&mut self, service: &LobbyService, web: Option<&WebService>, export: Option<&ExportService>) {
        notify::reloading();
        match self.sources.load() {
            Err(errors) => {
                errors.iter().for_each(|error| error!("{error}"));
                error!("the configuration was not reloaded: correct the errors above");
            }
            Ok(loaded) => {
                log_warnings(&loaded);
                service.set_watched_servers(&loaded.settings.watch).await;
                self.apply(service, web, export, loaded.settings).await;
            }
        }
        notify::ready();
    }

    async fn apply(
        &mut self,
        service: &LobbyService,
        web: Option<&WebService>,
        export: Option<&ExportService>,
        new: Settings,
    ) {
        let config = new.registry(Instant::now(), Timestamp::now());
        if let Err(error) = service.set_config(config).await {
            error!("the configuration was not reloaded: {error}");
            return;
        }
        if let Some(web) = web {
            web.set_settings(new.web().settings);
        }
        if let Some(export) = export {
            export.set_settings(export::export_settings(&new));
        }
        self.log.set_level(new.log.level);
        let (now, _) = changes(&self.settings, &new);
        // A setting that needs a restart keeps its first value until then, whatever the reloads in between.
        let (_, later) = changes(&self.initial_settings, &new);
        let changed = if now.is_empty() { "none".into() } else { now.join(", ") };
        info!(changed, bans = new.all_bans().count(), "configuration reloaded");
        if !later.is_empty() {
            warn!("these settings take effect only after a restart: {}", later.join(", "));
        }
        self.settings = new;
    }
}

/// The settings that differ: those that take effect at once, and those that need a restart.
fn changes(old: &Settings, new: &Settings) -> (Vec<&'static str>, Vec<&'static str>) {
    // The bans of a file can change although its name does not.
    let is_changed = |setting: &&config::Setting| {
        (setting.differs)(old, new) || setting.path == "ban_file" && old.more_bans != new.more_bans
    };
    let (now, later): (Vec<_>, Vec<_>) = SETTINGS.iter().filter(is_changed).partition(|setting| setting.reloads);
    let paths = |settings_table: Vec<&config::Setting>| settings_table.iter().map(|setting| setting.path).collect();
    (paths(now), paths(later))
}

/// Contacts the store of the cluster, if this lobby is a node of one.
async fn prepare_node(settings: &Settings) -> Result<Option<PreparedNode>, CommandError> {
    let node_name = settings.cluster.node_name();
    let ClusterSettings { url: Some(url), name, secret, outage_limit, .. } = settings.cluster.clone() else {
        return Ok(None);
    };
    let secret = secret.ok_or_else(|| {
        CommandError::Usage(
            "the nodes of a cluster need a common secret: set RALLYPOINT_CLUSTER_SECRET, or name a file with \
             cluster.secret_file"
                .into(),
        )
    })?;
    let max_servers = settings.registry.caps.total;
    let options = ClusterOptions { url, name, secret, node_name, outage_limit, max_servers };
    PreparedNode::connect(options).await.map(Some).map_err(CommandError::failed)
}

fn options(settings: &Settings, data_dir: PathBuf) -> LobbyOptions {
    // [::] means "IPv6 if there is any"; any other IPv6 address is required.
    let require_ipv6 = settings.doors.iter().any(|(_, addr)| addr.is_ipv6() && !addr.ip().is_unspecified());
    let has_web = !settings.web.listen.is_empty();
    let needs_all = has_web || settings.export.directory.is_some();
    LobbyOptions {
        doors: settings.doors.clone(),
        require_ipv6,
        registry: settings.registry(Instant::now(), Timestamp::now()),
        data_dir: Some(data_dir),
        save_every: settings.save_every,
        list: settings.list.clone(),
        receive_buffer: settings.receive_buffer,
        probe_sockets: ProbePool::MAX_SOCKETS,
        table_scope: if needs_all { TableScope::All } else { TableScope::Verifiable },
        other_descriptors: if has_web { settings.web.limits.connections } else { 0 },
        cluster: None,
    }
}

fn start_error(error: &LobbyStartError) -> CommandError {
    match error {
        LobbyStartError::Bind { door, error } => CommandError::bind(error, &door_flag(door)),
        LobbyStartError::Config(_) => CommandError::Usage(error.to_string()),
        LobbyStartError::NoAddress => CommandError::Usage(format!("{error}: set one with --lobby")),
        // These end with what to choose.
        LobbyStartError::DataDir { .. }
        | LobbyStartError::DataDirInUse { .. }
        | LobbyStartError::AdminFile(AdminFileError::Unreadable { .. }) => {
            CommandError::failed(format_args!("{error} with --data-dir"))
        }
        _ => CommandError::failed(error),
    }
}

/// The flag that chooses the addresses of a door.
fn door_flag(door: &Door) -> String {
    if door.is_default { format!("--{}", door.name) } else { format!("--door {}=ADDR:PORT", door.name) }
}

/// Prints the addresses for scripts; nothing else goes to standard output, unless that is a terminal.
fn print_addresses(service: &LobbyService, web: Option<&WebService>) {
    let addrs = service.local_addrs();
    let line = |(door, addr): (&Door, SocketAddr)| {
        let transports = door.sockets.as_ref().map_or("", DoorSockets::transports);
        format!("{} {transports} {addr}\n", door.name)
    };
    let doors = addrs.iter().map(line);
    let http = web.map(WebService::local_addrs).unwrap_or_default().iter().map(|addr| format!("http tcp {addr}\n"));
    // A closed standard output is no reason not to serve.
    let _ = print_stdout(&doors.chain(http).collect::<String>());
}

/// The URL of the web page on this machine.
fn page_url(web: &WebService) -> Option<String> {
    let addr = web.local_addrs().first()?;
    match addr.ip().is_unspecified() {
        true => Some(format!("http://localhost:{}/", addr.port())),
        false => Some(format!("http://{addr}/")),
    }
}

/// Stops the web server, which reads from the lobby, and then the lobby. Returns whether the list was saved.
async fn shut_down(service: &LobbyService, web: Option<&WebService>) -> bool {
    if let Some(web) = web {
        web.shutdown().await;
    }
    service.shutdown().await
}

fn log_warnings(loaded: &LoadedConfig) {
    if let Some(file) = &loaded.file {
        info!("using the configuration file {}", file.display());
    }
    for warning in &loaded.warnings {
        warn!("{warning}");
    }
}

fn summary(loaded: &LoadedConfig, data_dir: &std::path::Path) -> String {
    let settings = &loaded.settings;
    let file = loaded.file.as_ref().map_or("none".into(), |file| file.display().to_string());
    let addrs = |addrs: &[SocketAddr]| match addrs {
        [] => "off".into(),
        _ => addrs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    };
    let warnings: String = loaded.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
    format!(
        "the configuration is valid\n{warnings}file: {file}\ndata: {}\n{}web: {}\nbans: {}\nwatched: {}\n\
         cluster: {}\nTo see all settings: rallypoint serve --print-config\n",
        data_dir.display(),
        shown_doors(&settings.doors)
            .map(|door| format!("{}: {}\n", door.name, addrs(&settings.doors[door])))
            .collect::<String>(),
        addrs(&settings.web.listen),
        settings.all_bans().count(),
        settings.watch.len(),
        cluster_summary(&settings.cluster),
    )
}

/// The doors that are open by default, and the others that are open.
fn shown_doors(addrs: &DoorAddrs) -> impl Iterator<Item = &'static Door> {
    let is_shown = |door: &&Door| door.sockets.is_some() && (door.is_default || !addrs[*door].is_empty());
    DOORS.into_iter().filter(is_shown)
}

/// The cluster, its store without the password, and the name of this node.
fn cluster_summary(cluster: &ClusterSettings) -> String {
    let Some(url) = &cluster.url else { return "off".into() };
    let (name, node) = (&cluster.name, cluster.node_name());
    let secret = if cluster.secret.is_some() { "" } else { "; its secret is missing, so the lobby would not start" };
    format!("{name} at {url}, as node {node}{secret}")
}
