//! `rallypoint doctor`: why is a server not listed, and what to do about it.

mod facts;
mod step;
mod test_entry;

use crate::{
    error::CommandError,
    output::terminal::{Terminal, wrap},
    registration_outcomes::{self as outcomes, Outcome},
    runtime,
    scan_args::ScanArgs,
    stdio::print_stdout,
};
pub use facts::Reach;
use facts::{Address, Facts};
use rallypoint_query::{
    Host, HttpUrl, ListSummary, ListedServer, LobbyAddress, ProbeError, ServerAddress, ServerRecord, Target,
    connect_tcp, fetch_list, local_address_for, proto::Detail, resolve,
};
use rallypoint_wire::lobby::Transport;
use serde_json::json;
use std::{
    net::{SocketAddr, UdpSocket},
    num::NonZeroU16,
    process::ExitCode,
};
use step::{Mark, Steps};

/// Find out why a server is not listed, and what to do about it
///
/// Looks up the name, connects to the port and queries it over both address families, looks into the lobby's list, and says
/// in plain words what is wrong. Best run from a machine that is not the server's own, as players and lobbies see it.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "More, with examples and exit codes: rallypoint doctor --help")]
pub struct Args {
    // These two are no doc comments, because of the brackets.
    #[arg(help = "The server: host, host:port, [v6]:port, session://host, bloodmasters://host")]
    #[arg(value_name = "HOST[:PORT]", value_parser = server)]
    server: ServerAddress,

    #[arg(help = "The lobby that should list it: host[:port], with /gg2, /vanguard or a UUID for one of its lists")]
    #[arg(long, value_name = "LOBBY", env = "RALLYPOINT_LOBBY", default_value = "localhost")]
    lobby: LobbyAddress,

    /// How players connect; without it, that is guessed from what answers
    #[arg(long, value_name = "tcp|udp", value_parser = transport)]
    transport: Option<Transport>,

    /// If it is not listed: register a test entry from here for a few seconds, to see whether the lobby takes it
    #[arg(long)]
    register_test: bool,

    /// Where the lobby's web API is, if not at its port 29950: http://host:port
    #[arg(long, value_name = "URL", value_parser = outcomes::api)]
    api: Option<HttpUrl>,

    /// One JSON document instead of lines
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    asking: ScanArgs,
}

const MORE: &str = "\
Examples:
  rallypoint doctor play.example.org:8190 --lobby lobby.example.org
  rallypoint doctor 203.0.113.5:45555 --transport udp \\
      --lobby lobby.example.org/vanguard
  rallypoint doctor play.example.org:8190 --register-test \\
      --lobby lobby.example.org
      on the server's own machine

Environment:
  RALLYPOINT_LOBBY  the lobby, if there is no --lobby

Exit codes:
  0  all is well: the server is listed, and can be reached
  1  a problem was found; the last lines say what to do
  2  wrong usage";

/// Looks at everything, and says what is wrong.
pub fn run(args: &Args) -> Result<ExitCode, CommandError> {
    args.asking.validate()?;
    let mut doctor = Doctor {
        args,
        steps: Steps::new(args.json),
        facts: Facts {
            host: args.server.host.to_string(),
            port: args.server.port.map(NonZeroU16::get),
            transport: args.transport,
            lobby: args.lobby.to_string().trim_start_matches("lobby://").to_owned(),
            ..Facts::default()
        },
    };
    runtime::block_on(doctor.examine())?;
    let advice = doctor.facts.advice();
    let is_well = !doctor.steps.has_problem();
    let steps = doctor.steps.all();
    if args.json {
        let document = json!({ "ok": is_well, "steps": steps, "advice": if is_well { &[][..] } else { &advice } });
        print_stdout(&format!("{document:#}\n"))?;
    } else if is_well {
        print_stdout("\nAll is well.\n")?;
    } else if !advice.is_empty() {
        print_stdout(&format!("\nWhat to do:\n{}", bullets(&advice)))?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Each with a star, in lines as wide as the terminal.
fn bullets(advice: &[String]) -> String {
    let wide = Terminal::of_stdout().width.unwrap_or(usize::MAX).saturating_sub(4);
    let bullet = |advice: &String| format!("  * {}\n", wrap(advice, wide).join("\n    "));
    advice.iter().map(bullet).collect()
}

struct Doctor<'a> {
    args: &'a Args,
    steps: Steps,
    facts: Facts,
}

impl Doctor<'_> {
    async fn examine(&mut self) -> Result<(), CommandError> {
        let is_found = self.resolve().await?;
        if is_found {
            self.reach().await?;
        }
        // The list says how players connect, so it is looked at before anything is told.
        let list = self.list().await;
        if is_found {
            self.tell_reached()?;
        }
        self.tell_list(list)?;
        if is_found && self.facts.has_list {
            self.tell_listed()?;
        }
        if !is_found || !self.facts.has_list {
            return Ok(());
        }
        let is_listed = self.facts.matching().next().is_some();
        if !is_listed {
            self.ask_lobby().await?;
        }
        match self.args.register_test {
            // A test entry at the same address and port would take the place of the real one (L8).
            true if is_listed => self.steps.push("test", Mark::Note, "no test entry is needed: the server is listed"),
            true => self.test().await,
            false => Ok(()),
        }
    }

    async fn resolve(&mut self) -> Result<bool, CommandError> {
        let host = &self.args.server.host;
        let addrs = match resolve(host, 0, self.args.asking.config(None).only_family()).await {
            Ok(addrs) => addrs,
            Err(trouble) => {
                self.steps.push("name", Mark::Problem, format!("{host}: {trouble}"))?;
                return Ok(false);
            }
        };
        self.facts.is_found = true;
        let ips: Vec<_> = addrs.iter().map(SocketAddr::ip).collect();
        let shown: Vec<_> = ips.iter().map(ToString::to_string).collect();
        let text = match host {
            Host::Ip(ip) => format!("{ip} is an address: there is no name to look up"),
            Host::Name(_) => format!("{host} is {}", shown.join(", ")),
        };
        self.steps.push("name", Mark::Ok, text)?;
        for &ip in &ips {
            let reach = match Reach::of(ip) {
                Reach::Everywhere => continue,
                Reach::Private => "is an address inside a home or company, not one of the internet",
                Reach::Loopback => "is this machine itself, and nobody else can reach it",
            };
            self.steps.push("name", Mark::Note, format!("{ip} {reach}"))?;
        }
        for ip in ips {
            let no_way = local_address_for(SocketAddr::new(ip, 9)).err().map(|_| {
                let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
                format!("this machine has no way to {ip}: it has no {family} connection, so that was not tried")
            });
            let is_here = !ip.is_loopback() && UdpSocket::bind((ip, 0)).is_ok();
            if let Some(why) = &no_way {
                self.steps.push("name", Mark::Note, why.clone())?;
            } else if is_here {
                let text = format!(
                    "{ip} is this machine: whether firewall and router let players in is seen only from elsewhere"
                );
                self.steps.push("name", Mark::Note, text)?;
            }
            self.facts.addresses.push(Address { ip, no_way, tcp: None, queries: Vec::new() });
        }
        Ok(true)
    }

    /// Connects and queries, at every address at once.
    async fn reach(&mut self) -> Result<(), CommandError> {
        let Args { server, asking, .. } = self.args;
        let tries_tcp = server.protocol.is_none() && self.args.transport != Some(Transport::Udp);
        let port = self.facts.port.filter(|_| tries_tcp);
        let mut engine = asking.engine(Detail::Info)?;
        let mut knocks = tokio::task::JoinSet::new();
        let mut asked = Vec::new();
        for (index, address) in self.facts.addresses.iter().enumerate().filter(|(_, it)| it.no_way.is_none()) {
            if let Some(port) = port {
                let addr = SocketAddr::new(address.ip, port);
                let config = asking.config(None);
                knocks.spawn(async move { (index, connect_tcp(&[addr], &config).await.map(drop)) });
            }
            if self.args.transport != Some(Transport::Tcp) {
                for probe in server.probes(&[SocketAddr::new(address.ip, 0)], Detail::Players) {
                    engine.probe(asked.len() as u64, vec![probe]);
                    asked.push((index, probe));
                }
            }
        }
        while let Some(finding) = engine.next().await {
            let Some(&(index, probe)) = usize::try_from(finding.key).ok().and_then(|key| asked.get(key)) else {
                continue;
            };
            let result = match finding.result {
                Ok(reply) => {
                    let address = ServerAddress { host: Host::Ip(probe.address.ip()), port: None, protocol: None };
                    let mut record = ServerRecord::named(&address, 0);
                    record.apply_reply(reply);
                    Ok(summary(&record))
                }
                Err(failed) => Err(failed.error),
            };
            self.facts.addresses[index].queries.push((probe.query.protocol, probe.address, result));
        }
        while let Some(Ok((index, result))) = knocks.join_next().await {
            self.facts.addresses[index].tcp = Some(result);
        }
        Ok(())
    }

    /// Tells what answered: what matters depends on how players connect.
    fn tell_reached(&mut self) -> Result<(), CommandError> {
        let transport = self.facts.transport();
        let mut told = Vec::new();
        let answers = |address: &Address| match transport {
            Some(Transport::Tcp) => address.is_open(),
            _ => address.answers_query(),
        };
        let any_answers = self.facts.addresses.iter().any(answers);
        for address in &self.facts.addresses {
            if let Some(tcp) = &address.tcp {
                let at = SocketAddr::new(address.ip, self.facts.port.unwrap_or(0));
                match tcp {
                    Ok(()) => told.push(("tcp", Mark::Ok, format!("{at} takes connections"))),
                    // A server that answers queries need not take connections.
                    Err(_) if transport == Some(Transport::Udp) => {}
                    // Of two families one is enough, but whoever has only the other one is left out.
                    Err(trouble) => {
                        let mark = if any_answers { Mark::Note } else { Mark::Problem };
                        told.push(("tcp", mark, format!("{at}: {trouble}")));
                    }
                }
            }
            for (protocol, at, result) in &address.queries {
                match result {
                    Ok(text) => told.push(("query", Mark::Ok, format!("{at} answers by {protocol}: {text}"))),
                    Err(_) if address.answers_query() || transport == Some(Transport::Tcp) => {}
                    Err(ProbeError::Refused) => {
                        let mark = if self.facts.is_down() { Mark::Problem } else { Mark::Note };
                        let refused = ("query", mark, format!("{at}: {}", ProbeError::Refused));
                        // A port is refused in whatever protocol.
                        if !told.contains(&refused) {
                            told.push(refused);
                        }
                    }
                    Err(trouble) => told.push(("query", Mark::Note, format!("{at} by {protocol}: {trouble}"))),
                }
            }
        }
        let nothing = !any_answers
            && transport != Some(Transport::Udp)
            && !told.iter().any(|(_, mark, _)| *mark == Mark::Problem);
        for (step, mark, text) in told {
            self.steps.push(step, mark, text)?;
        }
        if nothing && transport.is_none() {
            self.steps.push("tcp", Mark::Problem, "nothing answers: no connection, no query")?;
        }
        Ok(())
    }

    /// Gets the list, and keeps what is at the server's addresses.
    async fn list(&mut self) -> Result<ListSummary, ProbeError> {
        let source = Target::Lobby(self.args.lobby.clone());
        let ips: Vec<_> = self.facts.addresses.iter().map(|address| address.ip).collect();
        let found = &mut self.facts.listed;
        let take = |listed: ListedServer| {
            if listed.endpoints.iter().any(|addr| ips.contains(&addr.ip())) {
                found.push(listed);
            }
        };
        let result = fetch_list(&source, &self.args.asking.config(None), take).await;
        self.facts.has_list = result.is_ok();
        result
    }

    fn tell_list(&mut self, list: Result<ListSummary, ProbeError>) -> Result<(), CommandError> {
        let lobby = &self.facts.lobby;
        let (mark, text) = match list {
            Ok(ListSummary { servers: 1, .. }) => (Mark::Ok, format!("{lobby} gives its list (1 server)")),
            Ok(ListSummary { servers, .. }) => (Mark::Ok, format!("{lobby} gives its list ({servers} servers)")),
            Err(trouble) => (Mark::Problem, format!("{lobby} does not give its list: {trouble}")),
        };
        self.steps.push("lobby", mark, text)
    }

    fn tell_listed(&mut self) -> Result<(), CommandError> {
        let found: Vec<_> = self.facts.matching().cloned().collect();
        if found.is_empty() {
            let port = self.facts.port.map_or_else(String::new, |port| format!(" with port {port}"));
            return self.steps.push("listed", Mark::Problem, format!("the list does not have it{port}"));
        }
        for listed in found {
            let shown: Vec<_> = listed.endpoints.iter().map(ToString::to_string).collect();
            let name = listed.info.name.as_deref().unwrap_or_default();
            self.steps.push("listed", Mark::Ok, format!("the list has it as \"{name}\" at {}", shown.join(", ")))?;
            let has = |is_v4: bool| listed.endpoints.iter().any(|addr| addr.is_ipv4() == is_v4);
            for address in &self.facts.addresses {
                if !has(address.ip.is_ipv4()) {
                    let family = if address.ip.is_ipv4() { "IPv4" } else { "IPv6" };
                    let text = format!(
                        "it is not listed by {family}, although {} is one of its addresses: it does not announce itself by {family}",
                        address.ip
                    );
                    self.steps.push("listed", Mark::Note, text)?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// The lobby knows best why it does not list somebody.
    async fn ask_lobby(&mut self) -> Result<(), CommandError> {
        let Args { lobby, api, asking, .. } = self.args;
        let api = api.clone().unwrap_or_else(|| outcomes::usual(lobby.host.clone()));
        let ips: Vec<_> = self.facts.addresses.iter().map(|address| address.ip).collect();
        for ip in ips {
            match outcomes::ask(&api, Some(ip), &asking.config(None)).await {
                Ok(outcomes) => self.tell_outcomes(&outcomes)?,
                Err(trouble) => {
                    let why = match trouble {
                        ProbeError::Malformed(why) => format!("says nothing of use: {why}"),
                        _ => "does not answer".into(),
                    };
                    let text = format!(
                        "the lobby itself cannot be asked for the reason: its web API ({api}) {why}; --api says where it is"
                    );
                    // It is the same for every address.
                    return self.steps.push("outcomes", Mark::Note, text);
                }
            }
        }
        Ok(())
    }

    /// The one that decides, and then a few others, the latest first.
    fn tell_outcomes(&mut self, outcomes: &[Outcome]) -> Result<(), CommandError> {
        let about = outcomes::about(outcomes, self.facts.port);
        let decisive = outcomes::decisive(&about, self.facts.port);
        if about.is_empty() {
            let text = if outcomes.is_empty() {
                "the lobby has not heard of this address lately: nothing announces from there"
            } else {
                "the lobby has heard of this address lately, but not of this port"
            };
            return self.steps.push("outcomes", Mark::Note, text);
        }
        let is_other = |outcome: &&Outcome| decisive.is_none_or(|decisive| !std::ptr::eq(*outcome, decisive));
        let others = about.iter().rev().copied().filter(is_other).map(|other| (Mark::Note, other));
        let first = decisive.map(|outcome| {
            self.facts.is_refused |= outcome.refused;
            (if outcome.refused { Mark::Problem } else { Mark::Note }, outcome)
        });
        for (mark, outcome) in first.into_iter().chain(others).take(8) {
            self.steps.push("outcomes", mark, format!("the lobby says {outcome}"))?;
        }
        Ok(())
    }

    async fn test(&mut self) -> Result<(), CommandError> {
        let Some(port) = self.args.server.port else {
            return self.steps.push("test", Mark::Note, "a test entry needs the server's port: HOST:PORT");
        };
        let transport = self.facts.transport().unwrap_or(Transport::Tcp);
        let listed = test_entry::register(&self.args.lobby, transport, port, &self.args.asking.config(None)).await?;
        self.facts.test = Some(!listed.is_empty());
        let shown: Vec<_> = listed.iter().map(ToString::to_string).collect();
        if listed.is_empty() {
            let text = format!("a test entry from here ({} {port}) was not listed", transport.as_str());
            self.steps.push("test", Mark::Problem, text)
        } else {
            let text = format!("a test entry from here was listed at {}, and taken off again", shown.join(", "));
            self.steps.push("test", Mark::Ok, text)
        }
    }
}

fn summary(record: &ServerRecord) -> String {
    let info = &record.info;
    let players = match (info.players, info.max_players) {
        (Some(players), Some(most)) => format!(", {players}/{most} players"),
        _ => String::new(),
    };
    let ping = record.ping_ms().map_or_else(String::new, |ping| format!(", {ping:.0} ms"));
    format!("\"{}\"{players}{ping}", record.name())
}

fn server(text: &str) -> Result<ServerAddress, String> {
    match text.parse::<Target>().map_err(|error| error.to_string())? {
        Target::Server(server) => Ok(server),
        _ => Err("expected a game server such as play.example.org:8190; the lobby is named by --lobby".into()),
    }
}

fn transport(text: &str) -> Result<Transport, &'static str> {
    match text {
        "tcp" => Ok(Transport::Tcp),
        "udp" => Ok(Transport::Udp),
        _ => Err("expected tcp or udp"),
    }
}
