//! `rallypoint doctor`: finds out why a server is not listed, and what to do about it.

mod diagnosis;
mod report;
mod test_entry;

use crate::{
    error::CommandError,
    local_lobby::LocalLobby,
    output::{
        details,
        terminal::{Terminal, wrap},
    },
    registration_outcomes::{self as outcomes, ReportedOutcome},
    runtime,
    scan_args::ScanArgs,
    stdio::print_stdout,
};
pub use diagnosis::AddressScope;
use diagnosis::{Address, Diagnosis};
use rallypoint_query::{
    FetchedServer, Host, HttpUrl, ListSummary, LobbyAddress, ProbeError, ScannedServer, ServerAddress, Target,
    connect_tcp, fetch_list, lobby_names, local_address_for, proto::Detail, resolve,
};
use rallypoint_wire::lobby::Transport;
use report::{Report, Severity};
use serde_json::json;
use std::{
    net::{SocketAddr, UdpSocket},
    num::NonZeroU16,
    process::ExitCode,
    str::FromStr,
    time::Duration,
};

/// Find out why a server is not listed, and what to do about it
///
/// Resolves the name, connects to the port and queries it over IPv4 and IPv6, searches the list of the lobby, and explains
/// what is wrong. Best run on another machine than that of the server, to see it as players and lobbies do.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "For examples and exit codes: rallypoint doctor --help")]
pub struct Args {
    // The next two have no doc comments because rustdoc would read the brackets as links.
    #[arg(help = "Server: host, host:port, [v6]:port, session://host, bloodmasters://host")]
    #[arg(value_name = "HOST[:PORT]", value_parser = server)]
    server: ServerAddress,

    #[arg(
        help = "Lobby that should list it: host[:port], followed by /gg2, /vanguard or /UUID for one of its lists, or the URL of its page [default: the lobby on this machine]"
    )]
    #[arg(long, value_name = "LOBBY|URL", env = "RALLYPOINT_LOBBY")]
    lobby: Option<LobbyRef>,

    /// Transport protocol of the game [default: detected]
    #[arg(long, value_name = "tcp|udp", value_parser = transport)]
    transport: Option<Transport>,

    /// If the server is not listed, register a test entry from this machine for a few seconds
    #[arg(long)]
    register_test: bool,

    /// URL of the lobby's web API [default: port 29950 of the lobby]
    #[arg(long, value_name = "URL", value_parser = outcomes::parse_api_url)]
    api: Option<HttpUrl>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    scan: ScanArgs,
}

const MORE: &str = "\
Examples:
  rallypoint doctor play.example.org:8190 --lobby lobby.example.org
  rallypoint doctor 203.0.113.5:45555 --transport udp \\
      --lobby lobby.example.org/vanguard
  rallypoint doctor play.example.org:8190 --register-test \\
      --lobby lobby.example.org
      on the machine of the server

Environment:
  RALLYPOINT_LOBBY  default of --lobby

Exit codes:
  0  no problem: the server is listed and reachable
  1  a problem was found; the last lines explain what to do
  2  wrong usage";

/// How long a server that another one replaced counts as contested.
const CONTEST_TIME: Duration = Duration::from_secs(120);

/// Runs all checks and prints their results and advice.
pub fn run(args: &Args) -> Result<ExitCode, CommandError> {
    args.scan.validate()?;
    let local = LocalLobby::load();
    let LobbyRef { address: lobby, page, api } = match &args.lobby {
        Some(lobby) => lobby.clone(),
        None => local.host().parse().map_err(CommandError::Usage)?,
    };
    let default_api = || {
        let port = local.http_port_of(&lobby.host, lobby.port());
        outcomes::api_url(lobby.host.clone(), port)
    };
    let api = args.api.clone().or(api).unwrap_or_else(default_api);
    let mut doctor = Doctor {
        args,
        page,
        api,
        report: Report::new(args.json),
        diagnosis: Diagnosis {
            host: args.server.host.to_string(),
            port: args.server.port.map(NonZeroU16::get),
            transport: args.transport,
            lobby: lobby.to_string().trim_start_matches("lobby://").to_owned(),
            ..Diagnosis::default()
        },
        lobby,
    };
    runtime::block_on(doctor.examine())?;
    let advice = doctor.diagnosis.advice();
    let is_healthy = !doctor.report.has_problem();
    let steps = doctor.report.checks();
    if args.json {
        let document =
            json!({ "ok": is_healthy, "steps": steps, "advice": if is_healthy { &[][..] } else { &advice } });
        print_stdout(&format!("{document:#}\n"))?;
    } else if is_healthy {
        print_stdout("\nNo problem found.\n")?;
    } else if !advice.is_empty() {
        print_stdout(&format!("\nWhat to do:\n{}", bullets(&advice)))?;
    }
    Ok(if is_healthy { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The advice as a bulleted list, wrapped to the width of the terminal.
fn bullets(advice: &[String]) -> String {
    let wide = Terminal::of_stdout().width.unwrap_or(usize::MAX).saturating_sub(4);
    let bullet = |advice: &String| format!("  * {}\n", wrap(advice, wide).join("\n    "));
    advice.iter().map(bullet).collect()
}

/// A lobby as given with `--lobby`.
#[derive(Clone, Debug)]
struct LobbyRef {
    address: LobbyAddress,
    /// Its page, if the lobby was given by its URL.
    page: Option<HttpUrl>,
    /// The API beside that page.
    api: Option<HttpUrl>,
}

/// `host[:port][/list]`, or the URL of a page: then the lobby is at its default port.
impl FromStr for LobbyRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with("http://") && !text.starts_with("https://") {
            let address = text.parse::<LobbyAddress>().map_err(|error| error.to_string())?;
            return Ok(Self { address, page: None, api: None });
        }
        let url = text.parse::<HttpUrl>().map_err(|error| error.to_string())?;
        let local = LocalLobby::load();
        let local_lobby = local.host().parse::<LobbyAddress>().ok();
        let is_local = |lobby: &LobbyAddress| local.http_port_of(&url.host, lobby.port()) == url.port;
        let port = local_lobby.filter(is_local).and_then(|lobby| lobby.port);
        let path = url.path.split('?').next().unwrap_or_default();
        let site = &path[..path.rfind('/').unwrap_or(0)];
        let api = outcomes::api_url(url.host.clone(), url.port);
        let api = HttpUrl { is_secure: url.is_secure, path: format!("{site}{}", api.path), ..api };
        let address = LobbyAddress { host: url.host.clone(), port, id: None };
        Ok(Self { address, page: Some(url), api: Some(api) })
    }
}

struct Doctor<'a> {
    args: &'a Args,
    lobby: LobbyAddress,
    page: Option<HttpUrl>,
    api: HttpUrl,
    report: Report,
    diagnosis: Diagnosis,
}

impl Doctor<'_> {
    async fn examine(&mut self) -> Result<(), CommandError> {
        let is_found = self.resolve().await?;
        if is_found {
            self.reach().await?;
        }
        // The list contains the transport protocol, so it is fetched before anything is printed.
        let list = self.list().await;
        if is_found {
            self.report_reachability()?;
        }
        self.report_list(list)?;
        if !is_found || !self.diagnosis.has_list {
            return Ok(());
        }
        let is_listed = self.diagnosis.matching().next().is_some();
        let outcomes = self.fetch_outcomes().await;
        // With another transport it is in this list.
        if !self.diagnosis.is_port_listed() {
            self.diagnosis.is_in_another_list = outcomes.iter().flatten().any(|outcomes| self.is_accepted(outcomes));
        }
        self.report_listing()?;
        if is_listed {
            self.report_contest(&outcomes)?;
        } else {
            self.report_all_outcomes(&outcomes)?;
        }
        self.report_transport()?;
        match self.args.register_test {
            // A test entry at the same address and port would replace the real one (L8).
            true if is_listed => self.report.push("test", Severity::Note, "no test entry needed: the server is listed"),
            true => self.test().await,
            false => Ok(()),
        }
    }

    async fn resolve(&mut self) -> Result<bool, CommandError> {
        let host = &self.args.server.host;
        let addrs = match resolve(host, 0, self.args.scan.config(None).only_family()).await {
            Ok(addrs) => addrs,
            Err(error) => {
                self.report.push("name", Severity::Problem, format!("{host}: {error}"))?;
                return Ok(false);
            }
        };
        self.diagnosis.is_found = true;
        let ips: Vec<_> = addrs.iter().map(SocketAddr::ip).collect();
        let shown: Vec<_> = ips.iter().map(ToString::to_string).collect();
        let text = match host {
            Host::Ip(ip) => format!("{ip} is an address: no name to resolve"),
            Host::Name(_) => format!("{host} resolves to {}", shown.join(", ")),
        };
        self.report.push("name", Severity::Ok, text)?;
        for &ip in &ips {
            let scope = match AddressScope::of(ip) {
                AddressScope::Public => continue,
                AddressScope::Private => "is a private address, not reachable from the internet",
                AddressScope::Loopback => "is a loopback address, reachable from this machine only",
            };
            self.report.push("name", Severity::Note, format!("{ip} {scope}"))?;
        }
        for ip in ips {
            let no_route = local_address_for(SocketAddr::new(ip, 9)).err().map(|_| {
                let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
                format!("{ip} was not tried: this machine has no {family} connection")
            });
            let is_here = !ip.is_loopback() && UdpSocket::bind((ip, 0)).is_ok();
            if let Some(why) = &no_route {
                self.report.push("name", Severity::Note, why.clone())?;
            } else if is_here {
                let text = format!(
                    "{ip} is this machine: only a test from elsewhere shows whether firewall and router let players in"
                );
                self.report.push("name", Severity::Note, text)?;
            }
            self.diagnosis.addresses.push(Address { ip, no_route, tcp: None, queries: Vec::new() });
        }
        Ok(true)
    }

    /// Connects to and queries all addresses at once.
    async fn reach(&mut self) -> Result<(), CommandError> {
        let Args { server, scan, .. } = self.args;
        // Both transports are tried even if one is given: it may be the wrong one.
        let port = self.diagnosis.port.filter(|_| server.protocol.is_none());
        let mut engine = scan.engine(Detail::Info)?;
        let mut connects = tokio::task::JoinSet::new();
        let mut probes = Vec::new();
        for (index, address) in self.diagnosis.addresses.iter().enumerate().filter(|(_, it)| it.no_route.is_none()) {
            if let Some(port) = port {
                let addr = SocketAddr::new(address.ip, port);
                let config = scan.config(None);
                connects.spawn(async move { (index, connect_tcp(&[addr], &config).await.map(drop)) });
            }
            for probe in server.probes(&[SocketAddr::new(address.ip, 0)], Detail::Players) {
                engine.probe(probes.len() as u64, vec![probe]);
                probes.push((index, probe));
            }
        }
        while let Some(group) = engine.next().await {
            let Some(&(index, probe)) = usize::try_from(group.key).ok().and_then(|key| probes.get(key)) else {
                continue;
            };
            let result = match group.result {
                Ok(reply) => {
                    let address = ServerAddress { host: Host::Ip(probe.address.ip()), port: None, protocol: None };
                    let mut record = ScannedServer::named(&address, 0);
                    record.apply_reply(reply);
                    Ok(summary(&record))
                }
                Err(failed) => Err(failed.error),
            };
            self.diagnosis.addresses[index].queries.push((probe.query.protocol, probe.address, result));
        }
        while let Some(Ok((index, result))) = connects.join_next().await {
            self.diagnosis.addresses[index].tcp = Some(result);
        }
        Ok(())
    }

    /// Reports which addresses answered. Which failures matter depends on the transport protocol.
    fn report_reachability(&mut self) -> Result<(), CommandError> {
        let transport = self.diagnosis.transport();
        let mut results = Vec::new();
        let answers = |address: &Address| match transport {
            Some(Transport::Tcp) => address.is_open(),
            _ => address.answers_query(),
        };
        let any_answers = self.diagnosis.addresses.iter().any(answers);
        for address in &self.diagnosis.addresses {
            if let Some(tcp) = &address.tcp {
                let at = SocketAddr::new(address.ip, self.diagnosis.port.unwrap_or(0));
                match tcp {
                    Ok(()) => results.push(("tcp", Severity::Ok, format!("{at} accepts connections"))),
                    // A server that answers queries need not accept connections.
                    Err(_) if transport == Some(Transport::Udp) => {}
                    // One family is enough, but players who have only the other one cannot connect.
                    Err(error) => {
                        let severity = if any_answers { Severity::Note } else { Severity::Problem };
                        results.push(("tcp", severity, format!("{at}: {error}")));
                    }
                }
            }
            for (protocol, at, result) in &address.queries {
                match result {
                    Ok(text) => {
                        results.push(("query", Severity::Ok, format!("{at} answers {protocol} queries: {text}")));
                    }
                    Err(_) if address.answers_query() || transport == Some(Transport::Tcp) => {}
                    Err(ProbeError::Refused) => {
                        let severity = if self.diagnosis.is_down() { Severity::Problem } else { Severity::Note };
                        let refused = ("query", severity, format!("{at}: {}", ProbeError::Refused));
                        // A refused port is refused for all protocols.
                        if !results.contains(&refused) {
                            results.push(refused);
                        }
                    }
                    Err(error) => {
                        results.push(("query", Severity::Note, format!("{at} ({protocol} query): {error}")));
                    }
                }
            }
        }
        let nothing = !any_answers
            && transport != Some(Transport::Udp)
            && !results.iter().any(|(_, severity, _)| *severity == Severity::Problem);
        for (step, severity, text) in results {
            self.report.push(step, severity, text)?;
        }
        if nothing && transport.is_none() {
            self.report.push("tcp", Severity::Problem, "no answer, neither to a connection nor to a query")?;
        }
        Ok(())
    }

    /// Reports that the server is reached over the other transport than the one that it is given, listed or registered with.
    fn report_transport(&mut self) -> Result<(), CommandError> {
        let Some(mismatch) = self.diagnosis.wrong_transport() else { return Ok(()) };
        let severity = if mismatch.is_certain { Severity::Problem } else { Severity::Note };
        self.report.push("transport", severity, mismatch.to_string())
    }

    /// Fetches the list and keeps the entries with the addresses of the server.
    async fn list(&mut self) -> Result<ListSummary, ProbeError> {
        let source = self.page.clone().map_or_else(|| Target::Lobby(self.lobby.clone()), Target::WebList);
        let ips: Vec<_> = self.diagnosis.addresses.iter().map(|address| address.ip).collect();
        let found = &mut self.diagnosis.listed;
        let take = |listed: FetchedServer| {
            if listed.endpoints.iter().any(|addr| ips.contains(&addr.ip())) {
                found.push(listed);
            }
        };
        let result = fetch_list(&source, &self.args.scan.config(None), take).await;
        self.diagnosis.has_list = result.is_ok();
        result
    }

    fn report_list(&mut self, list: Result<ListSummary, ProbeError>) -> Result<(), CommandError> {
        let lobby = self.page.as_ref().map_or_else(|| self.diagnosis.lobby.clone(), ToString::to_string);
        let (severity, text) = match list {
            Ok(ListSummary { servers: 1, .. }) => (Severity::Ok, format!("the list of {lobby} has 1 server")),
            Ok(ListSummary { servers, .. }) => (Severity::Ok, format!("the list of {lobby} has {servers} servers")),
            Err(error) => (Severity::Problem, format!("cannot fetch the list of {lobby}: {error}")),
        };
        self.report.push("lobby", severity, text)
    }

    fn report_listing(&mut self) -> Result<(), CommandError> {
        let found: Vec<_> = self.diagnosis.matching().cloned().collect();
        if found.is_empty() {
            let port = self.diagnosis.port.map_or_else(String::new, |port| format!(" with port {port}"));
            let (severity, text) = match (self.diagnosis.is_in_another_list, self.lobby.id) {
                (false, _) => (Severity::Problem, format!("the server is not in the list{port}")),
                (true, Some(list)) => {
                    let list = lobby_names::short_name(list);
                    (Severity::Problem, format!("the lobby lists the server{port}, but not in the list {list}"))
                }
                (true, None) => (
                    Severity::Note,
                    format!(
                        "the lobby lists the server{port}, but in none of the lists that were read: only its page has all"
                    ),
                ),
            };
            return self.report.push("listed", severity, text);
        }
        for listed in found {
            let shown: Vec<_> = listed.endpoints.iter().map(ToString::to_string).collect();
            let name = listed.info.name.as_deref().unwrap_or_default();
            self.report.push("listed", Severity::Ok, format!("listed as \"{name}\" at {}", shown.join(", ")))?;
            let has = |is_v4: bool| listed.endpoints.iter().any(|addr| addr.is_ipv4() == is_v4);
            for address in &self.diagnosis.addresses {
                if !has(address.ip.is_ipv4()) {
                    let family = if address.ip.is_ipv4() { "IPv4" } else { "IPv6" };
                    let text = format!(
                        "not listed by {family}, although {} is one of its addresses: the server does not register over {family}",
                        address.ip
                    );
                    self.report.push("listed", Severity::Note, text)?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Fetches the outcomes of each address from the web API of the lobby.
    async fn fetch_outcomes(&self) -> Vec<Result<Vec<ReportedOutcome>, ProbeError>> {
        let mut results = Vec::new();
        for address in &self.diagnosis.addresses {
            results.push(outcomes::fetch(&self.api, Some(address.ip), &self.args.scan.config(None)).await);
        }
        results
    }

    /// Whether the latest outcome of the server is that it is listed, and still counts.
    fn is_accepted(&self, outcomes: &[ReportedOutcome]) -> bool {
        let port = self.diagnosis.port;
        let decisive = outcomes::decisive(&outcomes::for_port(outcomes, port), port);
        port.is_some() && decisive.is_some_and(|outcome| outcome.accepted && outcome.is_within(CONTEST_TIME))
    }

    /// Reports that a listed server and another one replace each other, if the lobby's web API reports that.
    fn report_contest(&mut self, results: &[Result<Vec<ReportedOutcome>, ProbeError>]) -> Result<(), CommandError> {
        for outcomes in results.iter().flatten() {
            let candidates = outcomes::for_port(outcomes, self.diagnosis.port);
            let is_recent = |outcome: &&&ReportedOutcome| outcome.is_contested() && outcome.is_within(CONTEST_TIME);
            if let Some(outcome) = candidates.iter().rev().find(is_recent) {
                self.diagnosis.is_contested = true;
                return self.report.push("outcomes", Severity::Problem, format!("the lobby reports {outcome}"));
            }
        }
        Ok(())
    }

    /// Reports the reason from the web API of the lobby.
    fn report_all_outcomes(
        &mut self,
        results: &[Result<Vec<ReportedOutcome>, ProbeError>],
    ) -> Result<(), CommandError> {
        for result in results {
            match result {
                Ok(outcomes) => self.report_outcomes(outcomes)?,
                Err(error) => {
                    let why = match error {
                        ProbeError::Malformed(why) => format!("gave no useful response: {why}"),
                        _ => "does not answer".into(),
                    };
                    let text = format!(
                        "the reason is not available from the lobby: its web API ({}) {why}; set --api if it is elsewhere",
                        self.api
                    );
                    // The same for every address.
                    return self.report.push("outcomes", Severity::Note, text);
                }
            }
        }
        Ok(())
    }

    /// Reports the decisive outcome first, then a few others, newest first.
    fn report_outcomes(&mut self, outcomes: &[ReportedOutcome]) -> Result<(), CommandError> {
        let candidates = outcomes::for_port(outcomes, self.diagnosis.port);
        let decisive = outcomes::decisive(&candidates, self.diagnosis.port);
        if candidates.is_empty() {
            let text = if outcomes.is_empty() {
                "the lobby received nothing from this address recently: no server registers from there"
            } else {
                "the lobby received registrations from this address recently, but not for this port"
            };
            return self.report.push("outcomes", Severity::Note, text);
        }
        let is_other = |outcome: &&ReportedOutcome| decisive.is_none_or(|decisive| !std::ptr::eq(*outcome, decisive));
        let others = candidates.iter().rev().copied().filter(is_other).map(|other| (Severity::Note, other));
        let first = decisive.map(|outcome| {
            self.diagnosis.is_refused |= outcome.refused;
            self.diagnosis.is_check_failed |= outcome.is_failed_check();
            (if outcome.refused { Severity::Problem } else { Severity::Note }, outcome)
        });
        for (severity, outcome) in first.into_iter().chain(others).take(8) {
            self.report.push("outcomes", severity, format!("the lobby reports {outcome}"))?;
        }
        Ok(())
    }

    async fn test(&mut self) -> Result<(), CommandError> {
        let Some(port) = self.args.server.port else {
            return self.report.push("test", Severity::Note, "a test entry requires a port: HOST:PORT");
        };
        let transport = self.diagnosis.transport().unwrap_or(Transport::Tcp);
        let listed = test_entry::register(&self.lobby, transport, port, &self.args.scan.config(None)).await?;
        self.diagnosis.test = Some(!listed.is_empty());
        let shown: Vec<_> = listed.iter().map(ToString::to_string).collect();
        if listed.is_empty() {
            let text = format!("a test entry from this machine ({} {port}) was not listed", transport.as_str());
            self.report.push("test", Severity::Problem, text)
        } else {
            let text = format!("a test entry from this machine was listed at {} and removed again", shown.join(", "));
            self.report.push("test", Severity::Ok, text)
        }
    }
}

fn summary(record: &ScannedServer) -> String {
    let info = &record.info;
    let players = match (info.players, info.max_players) {
        (Some(players), Some(most)) => format!(", {players}/{most} players"),
        _ => String::new(),
    };
    let ping = record.ping_ms().map_or_else(String::new, |ping| format!(", {}", details::ping(ping)));
    format!("\"{}\"{players}{ping}", record.name())
}

fn server(text: &str) -> Result<ServerAddress, String> {
    match text.parse::<Target>().map_err(|error| error.to_string())? {
        Target::Server(server) => Ok(server),
        _ => Err("expected a game server such as play.example.org:8190; set the lobby with --lobby".into()),
    }
}

fn transport(text: &str) -> Result<Transport, &'static str> {
    match text {
        "tcp" => Ok(Transport::Tcp),
        "udp" => Ok(Transport::Udp),
        _ => Err("expected tcp or udp"),
    }
}
