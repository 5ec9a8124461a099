//! Checks whether a lobby lists the server, and explains why not.

use super::{
    join_with_and,
    list_lookup::{EntryMatcher, Lookup, find_entry, is_port_open_locally},
};
use crate::{
    doctor::AddressScope,
    local_lobby::LocalLobby,
    port_hints,
    registration_outcomes::{self as outcomes, ReportedOutcome},
};
use rallypoint_announce::{LobbyHost, ResolvedLobby};
use rallypoint_query::{Family, Host, HttpUrl, ScanConfig, list_names, local_address_for};
use rallypoint_wire::lobby::{ListId, Transport};
use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Delays before the checks after the start: soon, because the user is waiting; after the announcer's second registration,
/// in case the first was lost; and after the 5 seconds that a lobby takes to check whether a TCP server is reachable (L12).
const INITIAL_DELAYS: [Duration; 4] =
    [Duration::from_millis(300), Duration::from_secs(1), Duration::from_millis(2_200), Duration::from_secs(4)];

/// Interval of the registrations, and the longest interval between checks while the server is not listed.
const UNLISTED_INTERVAL: Duration = Duration::from_secs(30);

/// Time from the start to the second registration, which the others follow at their interval.
const SECOND_REGISTRATION: Duration = Duration::from_secs(3);

/// Time after a registration in which a lobby has checked a server that is running, and lists it.
const LISTING_DELAY: Duration = Duration::from_secs(2);

/// Default interval between checks while the server is listed: short enough to report soon that it is gone, and long enough
/// for lists that are not small.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(60);

/// Number of requests for the reason why a listed server was removed, until it registers again.
const REFUSAL_CHECKS: u32 = 6;

/// Time limit for a request to the lobby's web API.
const API_TIMEOUT: Duration = Duration::from_secs(3);

/// Time limit for resolving a lobby's name.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Watches whether one lobby lists the server.
#[derive(Clone, Debug)]
pub struct ListingMonitor {
    pub lobby: ResolvedLobby,
    pub server: EntryMatcher,
    /// The protocol by which the lobby queries the server before it lists it, if any.
    pub x_query: Option<String>,
    /// URL of the lobby's web API, if not the default one.
    pub api: Option<HttpUrl>,
    /// Interval between checks while the server is listed.
    pub interval: Duration,
    /// When the server began to register.
    pub start: Instant,
    /// The name of another server that registers at the same address and port, if there is one.
    pub rival: Option<String>,
}

/// Whether one lobby lists the server, with a message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListingStatus {
    Listed(String),
    NotListed(String),
    /// The list cannot be read.
    Unknown(String),
}

impl ListingMonitor {
    /// The status after the start: checks the list until the server is listed, or has had enough time for it.
    pub async fn initial_status(mut self) -> (Self, ListingStatus) {
        let Self { lobby, server, .. } = &self;
        let mut last = Ok(Vec::new());
        for (check, delay) in INITIAL_DELAYS.into_iter().enumerate() {
            tokio::time::sleep(delay).await;
            last = find_in_list(lobby, server).await.map(|found| found.endpoints);
            let is_final = match &last {
                // One family may have no route to the lobby; if it has one, it does not take long.
                Ok(listed) if !listed.is_empty() => check > 0 || missing_family(lobby, listed).is_none(),
                Ok(_) => check == 2 && server.transport == Transport::Udp,
                // The lobby may be starting right now, but that does not take long.
                Err(_) => check == 1,
            };
            if is_final {
                break;
            }
        }
        if let Ok(listed) = &last {
            self.server.known_at.clone_from(listed);
        }
        let status = match last {
            Ok(listed) if listed.is_empty() => {
                let reason = reported_refusal(&self).await.refusal();
                let summary = format!("not listed by {} yet", self.lobby.host);
                ListingStatus::NotListed(not_listed_message(&summary, &self, reason, false).await)
            }
            found => self.status(found, Presence::Missing).await,
        };
        (self, status)
    }

    /// The next status that differs from the last one, however long that takes.
    pub async fn next_change(mut self, last: Presence) -> (Self, ListingStatus) {
        let mut detector = ChangeDetector { last, is_suspected: false, is_contested: self.rival.is_some() };
        loop {
            let is_steady = last == Presence::Listed && !detector.is_suspected;
            let interval = check_interval(self.interval, is_steady, detector.is_contested);
            let is_missing = last != Presence::Listed && !detector.is_contested;
            tokio::time::sleep(until_check(self.start.elapsed(), interval, is_missing)).await;
            resolve_again(&mut self.lobby).await;
            let found = find_in_list(&self.lobby, &self.server).await;
            if let Ok(Lookup { endpoints, rival: Some(rival) }) = &found
                && endpoints.is_empty()
                && self.rival.is_none()
            {
                let text = rival_message(&self, rival);
                self.rival = Some(rival.clone());
                return (self, ListingStatus::NotListed(text));
            }
            let found = found.map(|found| found.endpoints);
            let presence = match &found {
                Ok(listed) if listed.is_empty() => Presence::Missing,
                Ok(_) => Presence::Listed,
                Err(_) => Presence::Unknown,
            };
            if detector.handle_check(presence) {
                if let Ok(listed) = &found
                    && presence == Presence::Listed
                {
                    self.server.known_at.clone_from(listed);
                    self.rival = None;
                }
                let status = self.status(found, last).await;
                return (self, status);
            }
        }
    }

    async fn status(&self, found: io::Result<Vec<SocketAddr>>, last: Presence) -> ListingStatus {
        let host = &self.lobby.host;
        match found {
            Ok(listed) if listed.is_empty() && last == Presence::Listed => {
                let summary = format!("no longer listed by {host}");
                // The lobby reports the reason with the outcome of the next registration.
                let reason = self.wait_for_refusal().await;
                ListingStatus::NotListed(not_listed_message(&summary, self, reason, true).await)
            }
            Ok(listed) if listed.is_empty() => {
                let reason = reported_refusal(self).await.refusal();
                ListingStatus::NotListed(
                    not_listed_message(&format!("not listed by {host}"), self, reason, false).await,
                )
            }
            Ok(listed) => ListingStatus::Listed(listed_message(&self.lobby, &self.server, &listed)),
            Err(error) => {
                let port = self.lobby.addrs.first().map_or(0, SocketAddr::port);
                let hint = port_hints::for_lobby(port).map_or_else(String::new, |hint| format!(" {hint}."));
                ListingStatus::Unknown(format!("cannot fetch the list of {host}: {}{hint}", describe_error(&error)))
            }
        }
    }

    /// The lobby's reason for removing the server, as soon as its web API reports one, but not after the next registration.
    async fn wait_for_refusal(&self) -> Option<ReportedOutcome> {
        for _ in 0..REFUSAL_CHECKS {
            match reported_refusal(self).await {
                ApiReport::Refusal(outcome) => return Some(outcome),
                ApiReport::NoRefusal => tokio::time::sleep(UNLISTED_INTERVAL / REFUSAL_CHECKS).await,
                ApiReport::NoAnswer => break,
            }
        }
        reported_refusal(self).await.refusal()
    }
}

/// The result of checking a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The server is in the list.
    Listed,
    /// The server is not in the list.
    Missing,
    /// The list could not be read.
    Unknown,
}

impl ListingStatus {
    /// The result of the check.
    pub const fn presence(&self) -> Presence {
        match self {
            Self::Listed(_) => Presence::Listed,
            Self::NotListed(_) => Presence::Missing,
            Self::Unknown(_) => Presence::Unknown,
        }
    }
}

/// Detects that a server has appeared in a list or disappeared from it, and that a lobby has stopped answering.
struct ChangeDetector {
    /// The last report.
    last: Presence,
    /// Whether the last check differed from what was reported.
    is_suspected: bool,
    /// Whether another server registers at the same address and port: then one check that finds the server means nothing.
    is_contested: bool,
}

impl ChangeDetector {
    /// Returns whether the result of a check is a change. A server counts as gone, and a lobby as silent, when two checks in a
    /// row found that: a lobby that has just been restarted lists a server only after its next registration.
    fn handle_check(&mut self, presence: Presence) -> bool {
        let was_suspected = std::mem::replace(&mut self.is_suspected, presence != self.last);
        let is_plain = presence == Presence::Listed && !self.is_contested;
        presence != self.last && (is_plain || was_suspected)
    }
}

/// Interval between checks. With a rival, both servers are in the list by turns: frequent checks would report every turn, and
/// only those shortly before a registration can tell that the rival is gone.
fn check_interval(configured: Duration, is_steady: bool, is_contested: bool) -> Duration {
    match (is_steady, is_contested) {
        (_, true) => UNLISTED_INTERVAL,
        (true, false) => configured,
        (false, false) => configured.min(UNLISTED_INTERVAL),
    }
}

/// Time until the next check. It is made shortly before a registration, where possible: a server that another one replaces with
/// its own registrations is missing from the list at that time, and in the list just after. While a server is missing, a check
/// also follows each registration, because that is when a game that was started in the meantime is listed.
fn until_check(elapsed: Duration, interval: Duration, is_missing: bool) -> Duration {
    if interval < UNLISTED_INTERVAL {
        return interval;
    }
    let period = UNLISTED_INTERVAL.as_secs();
    let due = (elapsed + interval).as_secs();
    let before = Duration::from_secs(due - due % period + period - 1).saturating_sub(elapsed);
    if !is_missing {
        return before;
    }
    let phase = Duration::from_secs(elapsed.as_secs() % period) + Duration::from_nanos(elapsed.subsec_nanos().into());
    let after = SECOND_REGISTRATION + LISTING_DELAY;
    let times = [after, Duration::from_secs(period - 1), after + UNLISTED_INTERVAL];
    times.into_iter().find(|time| *time > phase).map_or(before, |time| time - phase)
}

fn rival_message(monitor: &ListingMonitor, rival: &str) -> String {
    let ListingMonitor { lobby, server, .. } = monitor;
    format!(
        "another server registers at the same address and port: {} lists \"{rival}\" at {}. Each replaces the other every 30 \
         seconds: stop one of them, or use another port.",
        lobby.host,
        join_with_and(&server.known_at)
    )
}

/// Updates the addresses of a lobby; keeps the previous ones if its name cannot be resolved now.
async fn resolve_again(lobby: &mut ResolvedLobby) {
    let addrs = resolve(lobby.host.clone()).await;
    if !addrs.is_empty() {
        lobby.addrs = addrs;
    }
}

async fn resolve(host: LobbyHost) -> Vec<SocketAddr> {
    let resolve = tokio::task::spawn_blocking(move || host.resolve());
    tokio::time::timeout(RESOLVE_TIMEOUT, resolve).await.ok().and_then(Result::ok).unwrap_or_default()
}

fn listed_message(lobby: &ResolvedLobby, server: &EntryMatcher, listed: &[SocketAddr]) -> String {
    let note = missing_family(lobby, listed).map_or(String::new(), |family| {
        let port = server.port;
        format!(
            "; not by {family}: the lobby received no registration over {family}, or cannot reach port {port} there"
        )
    });
    format!("listed by {} as {}{note}", lobby.host, join_with_and(listed))
}

/// Searches the list at the first address of the lobby that answers.
///
/// # Errors
/// If none answers: the error of the first address.
pub async fn find_in_list(lobby: &ResolvedLobby, server: &EntryMatcher) -> io::Result<Lookup> {
    let mut first_error = None;
    for addr in &lobby.addrs {
        match find_entry(*addr, server).await {
            Ok(listed) => return Ok(listed),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    first_error.map_or(Ok(Lookup::default()), Err)
}

/// An address family in which the lobby is reachable, but the server is not listed.
fn missing_family(lobby: &ResolvedLobby, listed: &[SocketAddr]) -> Option<Family> {
    let family = |addr: &SocketAddr| Family::of(addr.ip());
    lobby.addrs.iter().map(family).find(|wanted| listed.iter().all(|addr| family(addr) != *wanted))
}

/// Explains why the server is not listed. The protocol has no answers, so the causes are those observed on this machine,
/// then those reported by the lobby's web API, and without such a report the likely ones.
async fn not_listed_message(
    summary: &str,
    monitor: &ListingMonitor,
    reason: Option<ReportedOutcome>,
    was_listed: bool,
) -> String {
    let ListingMonitor { lobby, server, .. } = monitor;
    let host = &lobby.host;
    let port = server.port;
    let mut causes = Vec::new();
    if server.transport == Transport::Tcp && !is_port_open_locally(port).await {
        causes.push(format!("TCP port {port} of this machine accepts no connections; is the game server running?"));
    }
    match reason {
        Some(outcome) if causes.is_empty() => return format!("{summary}: the lobby reports {outcome}"),
        Some(outcome) => causes.push(format!("the lobby reports {outcome}")),
        None => causes.extend(likely_causes(monitor, was_listed)),
    }
    let lines: String = causes.iter().enumerate().map(|(n, cause)| format!("\n  {}. {cause}", n + 1)).collect();
    let transport = if server.transport == Transport::Udp { " --transport udp" } else { "" };
    let is_default_list = server.list_id == ListId::GANG_GARRISON_2;
    let list = if is_default_list { String::new() } else { format!("/{}", list_names::short_name(server.list_id)) };
    format!(
        "{summary}. Likely causes, most likely first:{lines}\n\
         To find out: rallypoint doctor YOUR-ADDRESS:{port} --lobby {host}{list}{transport}"
    )
}

/// The answer of the lobby's web API about the registrations of the server.
enum ApiReport {
    /// Its reason for not listing the server.
    Refusal(ReportedOutcome),
    NoRefusal,
    /// There is no API, or it is somewhere else.
    NoAnswer,
}

impl ApiReport {
    fn refusal(self) -> Option<ReportedOutcome> {
        match self {
            Self::Refusal(outcome) => Some(outcome),
            Self::NoRefusal | Self::NoAnswer => None,
        }
    }
}

/// Queries the lobby's web API for its reason not to list the server.
async fn reported_refusal(monitor: &ListingMonitor) -> ApiReport {
    let ListingMonitor { lobby, server, api, .. } = monitor;
    let mut apis: Vec<_> = api.iter().cloned().collect();
    if apis.is_empty() {
        let local_lobby = LocalLobby::load();
        // The API reports on the address of the client, which differs between the two families.
        apis.extend(lobby.addrs.iter().map(|addr| {
            let host = Host::Ip(addr.ip());
            let port = local_lobby.http_port_of(&host, addr.port());
            outcomes::api_url(host, port)
        }));
    }
    let port = Some(server.port.get());
    let mut report = ApiReport::NoAnswer;
    for api in apis {
        let Ok(reported) = outcomes::fetch(&api, None, &ScanConfig::without_retries(API_TIMEOUT)).await else {
            continue;
        };
        report = ApiReport::NoRefusal;
        let decisive = outcomes::decisive(&outcomes::for_port(&reported.outcomes, port), port);
        // Outcomes from before the start are those of other servers at this address.
        let is_own = |outcome: &&ReportedOutcome| outcome.is_within(monitor.start.elapsed() + Duration::from_secs(1));
        if let Some(outcome) = decisive.filter(|outcome| outcome.refused).filter(is_own) {
            return ApiReport::Refusal(outcome.clone());
        }
    }
    report
}

/// The usual reasons why a server is not listed, most likely first.
fn likely_causes(monitor: &ListingMonitor, was_listed: bool) -> Vec<String> {
    let ListingMonitor { lobby, server, x_query, .. } = monitor;
    let port = server.port;
    let mut causes = Vec::new();
    let sources = lobby.addrs.iter().filter_map(|addr| local_address_for(*addr).ok());
    if let Some(source) = sources.into_iter().find(|ip| AddressScope::of(*ip) != AddressScope::Public)
        && lobby.addrs.iter().all(|addr| AddressScope::of(addr.ip()) != AddressScope::Public)
        && !was_listed
    {
        causes.push(format!("the lobby may not accept servers with private addresses; it sees this one at {source}"));
    }
    match (server.transport, x_query) {
        (Transport::Tcp, _) => causes.push(format!(
            "the lobby cannot connect to port {port} from outside; is it open in the firewall and forwarded in the router?"
        )),
        (Transport::Udp, Some(query)) => {
            causes.push(format!("UDP port {port} does not answer the lobby's queries (x-query={query})"));
        }
        (Transport::Udp, None) => {}
    }
    causes.push("the registrations do not arrive; does a firewall block outgoing UDP to the lobby?".into());
    causes.push(
        "the lobby refuses the server: its address or name is banned, or its address has too many servers".into(),
    );
    causes
}

fn describe_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "the connection was refused; is it the right lobby (--lobby), and is it running?".into()
        }
        io::ErrorKind::TimedOut => "it did not answer in time.".into(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            "this machine has no route to it; is there a network connection?".into()
        }
        _ => format!("{error}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sentences() {
        for kind in [io::ErrorKind::ConnectionRefused, io::ErrorKind::TimedOut, io::ErrorKind::NetworkUnreachable] {
            let text = describe_error(&kind.into());
            assert!(text.ends_with(['.', '?']) && !text.contains("os error"), "{text}");
        }
    }

    #[test]
    fn a_server_is_gone_and_a_lobby_silent_when_two_checks_in_a_row_found_that() {
        use Presence::{Listed, Missing, Unknown};
        let changes = |last, checks: &[Presence]| {
            let mut detector = ChangeDetector { last, is_suspected: false, is_contested: false };
            checks.iter().map(|presence| detector.handle_check(*presence)).collect::<Vec<_>>()
        };
        assert_eq!(changes(Listed, &[Listed, Missing, Listed, Missing, Missing]), [false, false, false, false, true]);
        assert_eq!(changes(Listed, &[Unknown, Listed, Unknown, Unknown]), [false, false, false, true]);
        assert_eq!(changes(Missing, &[Missing, Missing, Listed]), [false, false, true]);
        assert_eq!(changes(Unknown, &[Unknown, Unknown, Listed]), [false, false, true]);
        assert_eq!(changes(Unknown, &[Missing, Missing]), [false, true]);
    }

    #[test]
    fn w100_a_contested_server_is_checked_only_before_its_registrations() {
        let often = Duration::from_millis(50);
        for (is_steady, configured) in [(true, often), (false, often), (true, DEFAULT_INTERVAL)] {
            let interval = check_interval(configured, is_steady, true);
            let check = until_check(Duration::from_millis(31_200), interval, false) + Duration::from_millis(31_200);
            assert_eq!((check.as_secs() + 1) % UNLISTED_INTERVAL.as_secs(), 0, "{configured:?}, {is_steady}");
        }
        assert_eq!(check_interval(often, true, false), often);
        assert_eq!(check_interval(DEFAULT_INTERVAL, false, false), UNLISTED_INTERVAL);
    }

    #[test]
    fn checks_are_made_shortly_before_a_registration() {
        let check = |elapsed, interval| {
            (Duration::from_millis(elapsed)
                + until_check(Duration::from_millis(elapsed), Duration::from_secs(interval), false))
            .as_millis()
        };
        assert_eq!(check(300, 60), 89_000);
        assert_eq!(check(89_100, 60), 149_000);
        assert_eq!(check(1_300, 30), 59_000);
        assert_eq!(check(500, 1), 1_500, "a short interval stays as it is");
    }

    #[test]
    fn a_missing_server_is_also_looked_for_after_each_registration() {
        // Registrations are sent after 0, 3, 33 and 63 seconds.
        let mut elapsed = Duration::from_millis(7_500);
        let checks = [0; 5].map(|_| {
            elapsed += until_check(elapsed, UNLISTED_INTERVAL, true);
            elapsed.as_millis()
        });
        assert_eq!(checks, [29_000, 35_000, 59_000, 65_000, 89_000]);
        let often = Duration::from_secs(1);
        assert_eq!(until_check(elapsed, often, true), often, "a short interval stays as it is");
    }

    #[test]
    fn a_lobby_whose_address_changed_is_resolved_again() {
        let host = "127.0.0.1:7".parse().unwrap();
        let mut lobby = ResolvedLobby { host, addrs: vec!["192.0.2.1:7".parse().unwrap()] };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(resolve_again(&mut lobby));
        assert_eq!(lobby.addrs, ["127.0.0.1:7".parse().unwrap()]);
    }
}
