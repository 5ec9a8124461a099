//! `rallypoint serve`: a lobby.

mod args;
pub mod data_dir;
mod notify;
mod recording;
mod report;

pub use args::Args;

use crate::{
    config::{self, LoadedConfig, SETTINGS, Settings, Sources},
    error::CommandError,
    log::Log,
    signals::{Signals, Told},
    stdio::print_stdout,
};
use jiff::Timestamp;
use rallypoint_lobby::{LobbyOptions, LobbyService, StartError};
use rallypoint_web::{Admin, Asker, Parts, Watcher, WebService};
use recording::Recording;
use report::Reporter;
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};
use tracing::{error, info, warn};

/// How often the program looks at its own numbers.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Runs a lobby until it is told to stop.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let sources = args.sources()?;
    let loaded = sources.load()?;
    if args.print_config {
        return print_stdout(&config::print(&loaded.settings));
    }
    let data_dir = data_dir::choose(&loaded.settings, &sources.variables)?;
    if args.check_config {
        return print_stdout(&summary(&loaded, &data_dir));
    }
    let log = Log::start(loaded.settings.log);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(CommandError::failed)?;
    let result = runtime.block_on(Server { sources, log, settings: loaded.settings.clone() }.run(&loaded, data_dir));
    // After a second signal nothing is waited for.
    runtime.shutdown_background();
    result
}

/// A lobby that runs, and where its settings come from.
struct Server {
    sources: Sources,
    log: Log,
    settings: Settings,
}

impl Server {
    async fn run(mut self, loaded: &LoadedConfig, data_dir: PathBuf) -> Result<(), CommandError> {
        // Before anything else, so that no signal is missed once the ports are open.
        let mut signals = Signals::new().map_err(CommandError::failed)?;
        tell_notes(loaded);
        let admin = Admin::open(&data_dir).map_err(CommandError::failed)?;
        let options = LobbyOptions { more_bans: admin.bans(), ..options(&self.settings, data_dir.clone()) };
        let service =
            LobbyService::start(options, &tokio::runtime::Handle::current()).map_err(|error| start_failure(&error))?;
        let recording = Recording::start(&service, &self.settings.history, &data_dir);
        let asker = Asker::new(service.other_files() / 4);
        let web = self.start_web(&service, recording.as_ref(), &asker, admin)?;
        let told = web.as_ref().map(|web| web.live().telling());
        let mut watcher = Watcher::new(service.clone(), asker, told);
        watcher.set(&self.settings.watch).await;
        let mut reporter = Reporter::new(&service);
        tell_addresses(&service, web.as_ref());
        info!(version = env!("CARGO_PKG_VERSION"), data_dir = %data_dir.display(), listed = service.stats().listed, "serving");
        notify::ready();
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                told = signals.next() => match told {
                    Told::Reload => self.reload(&service, web.as_ref(), &mut watcher).await,
                    Told::Stop => break,
                },
                _ = look.tick() => reporter.look(&service),
                // The rest would go on giving out a list that nobody changes any more. Whoever starts the program again
                // finds the list as it was saved.
                () = service.ended() => return Err(CommandError::failed(
                    "the part that keeps the list has failed, so all of it ends; this is a fault of the program",
                )),
            }
        }
        notify::stopping();
        drop(watcher);
        info!("stopping: finishing replies, then saving the list");
        let finish = async {
            let is_saved = end(&service, web.as_ref()).await;
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
                    "stopped, but the list could not be saved to {}: the next start goes back to the last save; make the \
                     folder writable and see that the disk has room",
                    data_dir.display()
                ))),
            },
            () = signals.stop_again() => Err(CommandError::failed("stopped at once, on a second signal; the last seconds may not be saved")),
        }
    }

    /// The web server, if one is wanted.
    fn start_web(
        &self,
        service: &LobbyService,
        recording: Option<&Recording>,
        asker: &Asker,
        admin: Admin,
    ) -> Result<Option<WebService>, CommandError> {
        let mut options = self.settings.web();
        if options.listen.is_empty() {
            return Ok(None);
        }
        let wanted = options.limits.connections;
        options.limits.connections = wanted.min(service.other_files().saturating_sub(asker.sockets())).max(1);
        if options.limits.connections < wanted {
            let connections = options.limits.connections;
            info!(connections, "the system's limit of open files lowers that of web connections");
        }
        let parts = Parts {
            lobby: service.clone(),
            history: recording.map(Recording::handle),
            asker: Some(asker.clone()),
            admin: Some(admin),
        };
        WebService::start(options, parts).map(Some).map_err(|error| match error {
            rallypoint_web::StartError::Bind(error) => CommandError::bind(&error, "--http"),
            error => CommandError::failed(error),
        })
    }

    /// Reads the configuration again. A mistake in it changes nothing.
    async fn reload(&mut self, service: &LobbyService, web: Option<&WebService>, watcher: &mut Watcher) {
        notify::reloading();
        match self.sources.load() {
            Err(errors) => {
                errors.iter().for_each(|error| error!("{error}"));
                error!("the configuration stays as it was, because there are errors in the new one");
            }
            Ok(loaded) => {
                tell_notes(&loaded);
                watcher.set(&loaded.settings.watch).await;
                self.apply(service, web, loaded.settings).await;
            }
        }
        notify::ready();
    }

    async fn apply(&mut self, service: &LobbyService, web: Option<&WebService>, new: Settings) {
        let config = new.registry(Instant::now(), Timestamp::now());
        if let Err(error) = service.set_config(config).await {
            error!("the configuration stays as it was: {error}");
            return;
        }
        if let Some(web) = web {
            web.set_settings(new.web().settings);
        }
        self.log.set_level(new.log.level);
        let (now, later) = changes(&self.settings, &new);
        let changed = if now.is_empty() { "nothing".into() } else { now.join(", ") };
        info!(changed, bans = new.all_bans().count(), "the configuration was read again");
        if !later.is_empty() {
            warn!("these settings change only with a restart: {}", later.join(", "));
        }
        self.settings = new;
    }
}

/// The settings that are not the same: those that changed at once, and those that need a restart.
fn changes(old: &Settings, new: &Settings) -> (Vec<&'static str>, Vec<&'static str>) {
    // What is in a file, and what is not shown.
    let is_other = |path| match path {
        "ban_file" => old.more_bans != new.more_bans,
        "web.admin_token" => old.web.settings.admin_token != new.web.settings.admin_token,
        _ => false,
    };
    let is_changed = |setting: &&config::Setting| setting.show(old) != setting.show(new) || is_other(setting.path);
    let (now, later): (Vec<_>, Vec<_>) = SETTINGS.iter().filter(is_changed).partition(|setting| setting.reloads);
    let paths = |settings_table: Vec<&config::Setting>| settings_table.iter().map(|setting| setting.path).collect();
    (paths(now), paths(later))
}

fn options(settings: &Settings, data_dir: PathBuf) -> LobbyOptions {
    let (listen, legacy) = (settings.lobby_listen.clone(), settings.legacy_listen.clone());
    // [::] stands for "all there is", which may be nothing; any other address was meant as it is.
    let require_ipv6 = listen.iter().chain(&legacy).any(|addr| addr.is_ipv6() && !addr.ip().is_unspecified());
    LobbyOptions {
        listen,
        legacy,
        require_ipv6,
        registry: settings.registry(Instant::now(), Timestamp::now()),
        data_dir: Some(data_dir),
        save_every: settings.save_every,
        list: settings.list.clone(),
        receive_buffer: settings.receive_buffer,
        other_files: Asker::SOCKETS + if settings.web.listen.is_empty() { 0 } else { settings.web.limits.connections },
        ..LobbyOptions::default()
    }
}

fn start_failure(error: &StartError) -> CommandError {
    match error {
        StartError::BindLobby(error) => CommandError::bind(error, "--lobby"),
        StartError::BindLegacy(error) => CommandError::bind(error, "--legacy"),
        StartError::Config(_) | StartError::NoAddress => CommandError::Usage(error.to_string()),
        _ => CommandError::failed(error),
    }
}

/// What it listens on, for people and scripts: the one thing on standard output.
fn tell_addresses(service: &LobbyService, web: Option<&WebService>) {
    let addrs = service.local_addrs();
    let named = |name, addrs: &[_]| addrs.iter().map(|addr| format!("{name} {addr}\n")).collect::<String>();
    let http = named("http tcp", web.map(WebService::local_addrs).unwrap_or_default());
    // Nobody may be reading, which is no reason not to serve.
    let _ = print_stdout(&(named("lobby udp+tcp", &addrs.lobby) + &named("legacy udp+tcp", &addrs.legacy) + &http));
}

/// Ends both, the web server first: it shows what the lobby knows. Says whether the list is saved.
async fn end(service: &LobbyService, web: Option<&WebService>) -> bool {
    if let Some(web) = web {
        web.shutdown().await;
    }
    service.shutdown().await
}

fn tell_notes(loaded: &LoadedConfig) {
    if let Some(file) = &loaded.file {
        info!("settings from {}", file.display());
    }
    for note in &loaded.notes {
        warn!("{note}");
    }
}

fn summary(loaded: &LoadedConfig, data_dir: &std::path::Path) -> String {
    let settings = &loaded.settings;
    let file = loaded.file.as_ref().map_or("none".into(), |file| file.display().to_string());
    let addrs = |addrs: &[std::net::SocketAddr]| match addrs {
        [] => "off".into(),
        _ => addrs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    };
    let notes: String = loaded.notes.iter().map(|note| format!("note: {note}\n")).collect();
    format!(
        "configuration is fine\n{notes}file: {file}\ndata: {}\nlobby: {}\nlegacy: {}\nweb: {}\nbans: {}\nwatched: {}\n\
         All settings in force: rallypoint serve --print-config\n",
        data_dir.display(),
        addrs(&settings.lobby_listen),
        addrs(&settings.legacy_listen),
        addrs(&settings.web.listen),
        settings.all_bans().count(),
        settings.watch.len(),
    )
}
