//! `rallypoint announce`: keeps a game server in the list of a lobby.

mod args;
pub mod list_lookup;
pub mod listing_monitor;
mod player_source;
pub mod server_id;

pub use args::Args;

use crate::{error::CommandError, signals::Signals, stdio::print_stderr};
use listing_monitor::{DEFAULT_INTERVAL, ListingMonitor, ListingStatus, Presence, find_in_list};
use player_source::PlayerCount;
use rallypoint_announce::{AnnounceConfig, AnnounceEvent, AnnounceStartError, AnnounceTask, LobbyHost};
use rallypoint_query::list_names;
use rallypoint_wire::lobby::{DEFAULT_MAX_REGISTRATION, ListId};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};

/// Time limit for the check whether a lobby has removed the server, at the end.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(2);

/// Announces a server until a signal arrives.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let config = args.config(server_id::load_or_generate(args.id_file.as_deref())?)?;
    for key in args.unknown_keys() {
        print_stderr(format_args!("note: \"{key}\" is not a key that clients know; private keys start with x-"));
    }
    let size = config.registration_size()?;
    if size > DEFAULT_MAX_REGISTRATION {
        print_stderr(format_args!(
            "note: the registration has {size} bytes, and lobbies accept {DEFAULT_MAX_REGISTRATION} unless configured \
             otherwise; use fewer or shorter keys"
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::failed)?;
    runtime.block_on(async { Announcement::start(args, config).await?.run().await })
}

/// An invalid description of the server is a mistake in the arguments; every other error is a failure.
impl From<AnnounceStartError> for CommandError {
    fn from(error: AnnounceStartError) -> Self {
        match error {
            AnnounceStartError::InvalidKey { .. } => Self::Usage(error.to_string()),
            error => Self::failed(error),
        }
    }
}

/// A server that is being announced.
struct Announcement<'a> {
    args: &'a Args,
    /// The list in which the server is to appear.
    list: ListId,
    task: AnnounceTask,
    signals: Signals,
    /// Lobbies that listed the server at the last check.
    listed_by: Vec<LobbyHost>,
    /// Whether any lobby has ever listed it.
    was_listed: bool,
    /// Whether a check has found it missing.
    was_missing: bool,
    start: Instant,
    /// Counts of players, if they are polled.
    counts: Option<mpsc::Receiver<Result<PlayerCount, String>>>,
    /// Whether the last count failed.
    is_count_missing: bool,
}

impl<'a> Announcement<'a> {
    async fn start(args: &'a Args, mut config: AnnounceConfig) -> Result<Self, CommandError> {
        let signals = Signals::to_end().map_err(CommandError::failed)?;
        let mut first_count = None;
        let counts = args.players_from.clone().map(|source| {
            let (sender, counts) = mpsc::channel(1);
            (source, sender, counts)
        });
        let counts = match counts {
            Some((source, sender, counts)) => {
                first_count = Some(source.count().await);
                tokio::spawn(source.poll(sender));
                Some(counts)
            }
            None => None,
        };
        if let Some(Ok(count)) = &first_count {
            config.occupancy = count.apply(config.occupancy);
        }
        let list = config.list_id;
        let task = AnnounceTask::start(config).await?;
        let mut announcement = Self {
            counts,
            is_count_missing: false,
            args,
            list,
            task,
            signals,
            listed_by: Vec::new(),
            was_listed: false,
            was_missing: false,
            start: Instant::now(),
        };
        if let Some(count) = first_count {
            announcement.handle_count(count);
        }
        Ok(announcement)
    }

    /// Announces a new number of players. A count that fails is reported once, until one succeeds again.
    fn handle_count(&mut self, count: Result<PlayerCount, String>) {
        match count {
            Ok(count) => {
                self.is_count_missing = false;
                self.task.set_occupancy(count.apply(self.args.occupancy()));
            }
            Err(error) if !self.is_count_missing => {
                self.is_count_missing = true;
                print_stderr(format_args!("the number of players is not updated: {error}"));
            }
            Err(_) => {}
        }
    }

    async fn run(mut self) -> Result<(), CommandError> {
        for event in self.task.poll() {
            self.report_event(&event);
        }
        if self.task.registrations_sent() == 0 && self.args.once {
            return Err(CommandError::failed("the registration could not be sent to any address"));
        }
        let mut statuses = self.start_monitors();
        let mut all_listed = true;
        while !(self.args.once && statuses.is_empty()) {
            tokio::select! {
                () = self.signals.stop() => return self.stop().await,
                event = self.task.next_event() => self.report_event(&event),
                Some(count) = next_count(&mut self.counts) => self.handle_count(count),
                Some(Ok((monitor, status))) = statuses.join_next() => {
                    self.report_status(&monitor, &status);
                    all_listed &= status.presence() == Presence::Listed;
                    if !self.args.once {
                        statuses.spawn(monitor.next_change(status.presence()));
                    }
                }
            }
        }
        if all_listed { Ok(()) } else { Err(CommandError::failed("the server is not listed")) }
    }

    fn report_event(&self, event: &AnnounceEvent) {
        match event {
            AnnounceEvent::LobbiesResolved => {
                let Args { name, port, transport, .. } = self.args;
                let to = join_with_and(&self.task.addrs());
                let hint = if self.args.once { "" } else { "; Ctrl-C removes it from the list" };
                let (transport, list) = (transport.as_str(), list_names::short_name(self.list));
                self.args.print(&format!("announcing {name:?} ({transport} {port}) to the list {list} of {to}{hint}"));
            }
            event => print_stderr(event),
        }
    }

    /// Checks in the background whether each lobby lists the server.
    fn start_monitors(&self) -> JoinSet<(ListingMonitor, ListingStatus)> {
        let mut statuses = JoinSet::new();
        if !self.args.no_check {
            let interval = self.args.check_every.unwrap_or(DEFAULT_INTERVAL);
            for lobby in self.task.lobbies() {
                let monitor = ListingMonitor {
                    lobby: lobby.clone(),
                    server: self.args.entry_matcher(self.list),
                    x_query: self.args.x_query(),
                    api: self.args.api.clone(),
                    interval,
                    start: self.start,
                    rival: None,
                };
                statuses.spawn(monitor.initial_status());
            }
        }
        statuses
    }

    /// Prints a new status.
    fn report_status(&mut self, monitor: &ListingMonitor, status: &ListingStatus) {
        let host = &monitor.lobby.host;
        // A lobby that does not answer may still list the server.
        if status.presence() != Presence::Unknown {
            self.listed_by.retain(|other| other != host);
        }
        match status {
            ListingStatus::Listed(text) => {
                self.args.print(text);
                self.listed_by.push(host.clone());
                self.was_listed = true;
            }
            ListingStatus::NotListed(text) => {
                print_stderr(text);
                self.was_missing = true;
            }
            ListingStatus::Unknown(text) => {
                let consequence = if self.args.once { "" } else { " The server continues to register." };
                print_stderr(format_args!("{text}{consequence}"));
                self.was_missing |= !self.was_listed;
            }
        }
    }

    async fn stop(self) -> Result<(), CommandError> {
        let Self { args, list, task, mut signals, listed_by, was_listed, was_missing, .. } = self;
        let listed_by: Vec<_> =
            task.lobbies().iter().filter(|lobby| listed_by.contains(&lobby.host)).cloned().collect();
        // A second Ctrl-C skips the pause before the repetition.
        task.stop(signals.stop()).await;
        // Lobbies do not acknowledge an unregistration, so the message claims only what was observed.
        let server = args.entry_matcher(list);
        for lobby in &listed_by {
            let find = timeout(REMOVAL_TIMEOUT, find_in_list(lobby, &server));
            let is_removed = tokio::select! {
                found = find => matches!(found, Ok(Ok(found)) if found.endpoints.is_empty()),
                () = signals.stop() => false,
            };
            if !is_removed {
                let host = &lobby.host;
                print_stderr(format_args!(
                    "{host} does not confirm the removal; it may list the server until the lease ends (70 s by default)"
                ));
                return Ok(());
            }
        }
        args.print(match () {
            () if !listed_by.is_empty() => "removed from the list",
            () if was_listed => "stopped; the server was no longer listed",
            () if was_missing => return Err(CommandError::failed("stopped; the server never appeared in the list")),
            () if args.no_check => "stopped; an unregistration was sent",
            () => "stopped before the server appeared in the list; an unregistration was sent",
        });
        Ok(())
    }
}

async fn next_count(
    counts: &mut Option<mpsc::Receiver<Result<PlayerCount, String>>>,
) -> Option<Result<PlayerCount, String>> {
    match counts {
        Some(counts) => counts.recv().await,
        None => None,
    }
}

/// `a`, `a and b`, `a, b and c`.
fn join_with_and(addrs: &[SocketAddr]) -> String {
    let shown: Vec<_> = addrs.iter().map(ToString::to_string).collect();
    match &shown[..] {
        [some @ .., last] if !some.is_empty() => format!("{} and {last}", some.join(", ")),
        _ => shown.concat(),
    }
}
