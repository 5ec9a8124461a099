//! `rallypoint doctor`: finds out why a server is not listed, and what to do about it.

mod address_scope;
mod diagnosis;
mod listing;
mod lobby_ref;
mod outcomes;
mod reachability;
mod report;
mod test_entry;

use crate::{
    error::CommandError,
    local_lobby::LocalLobby,
    output::terminal::{Terminal, wrap},
    registration_outcomes, runtime,
    scan_args::ScanArgs,
    stdio::print_stdout,
};
pub use address_scope::AddressScope;
use diagnosis::Diagnosis;
use lobby_ref::LobbyRef;
use rallypoint_query::{HttpUrl, LobbyAddress, ServerAddress, Target, proto::Protocol};
use rallypoint_wire::lobby::Transport;
use report::{Report, Severity};
use serde_json::json;
use std::{num::NonZeroU16, process::ExitCode};

/// Find out why a server is not listed, and what to do about it
///
/// Resolves the name, connects to the port and queries it over IPv4 and IPv6, searches the list of the lobby, and explains
/// what is wrong. Run it on another machine than the server's, to see the server as players and lobbies do.
#[derive(clap::Args)]
#[command(after_long_help = MORE, after_help = "For examples and exit codes: rallypoint doctor --help")]
pub struct Args {
    // The next two have no doc comments because rustdoc would read the brackets as links.
    #[arg(help = "Server: host, host:port, [v6]:port or PROTOCOL://host, such as session://host")]
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
    #[arg(long, value_name = "URL", value_parser = registration_outcomes::parse_api_url)]
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
        registration_outcomes::api_url(lobby.host.clone(), port)
    };
    let api = args.api.clone().or(api).unwrap_or_else(default_api);
    let mut doctor = Doctor {
        args,
        page,
        api,
        report: Report::new(args.json),
        diagnosis: Diagnosis {
            host: args.server.host.to_string(),
            port: args.server.port.map(NonZeroU16::get).or(args.server.protocol.map(Protocol::default_port)),
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

/// The examination of one server.
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
        // The list contains the port and the transport protocol, so it is fetched before anything else is done.
        let list = self.list().await;
        if is_found && self.diagnosis.port.is_none() && !self.choose_port()? {
            return self.report_list(list);
        }
        if is_found {
            self.reach().await?;
            self.report_reachability()?;
        }
        self.report_list(list)?;
        if !is_found || !self.diagnosis.has_list {
            return Ok(());
        }
        let is_listed = self.diagnosis.matching().next().is_some();
        let outcomes = self.fetch_outcomes().await;
        let is_listed_otherwise = self.diagnosis.listed_over_other_transport().is_some();
        if !is_listed && !is_listed_otherwise {
            self.diagnosis.is_in_another_list = outcomes.iter().flatten().any(|outcomes| self.is_accepted(outcomes));
        }
        self.report_listing(&outcomes)?;
        if is_listed {
            self.report_contest(&outcomes)?;
        } else if !is_listed_otherwise {
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

    async fn test(&mut self) -> Result<(), CommandError> {
        let Some(port) = self.diagnosis.port.and_then(NonZeroU16::new) else {
            return self.report.push("test", Severity::Note, "a test entry requires a port: HOST:PORT");
        };
        let transport = self.diagnosis.transport().unwrap_or(Transport::Tcp);
        let listed = test_entry::register(&self.lobby, transport, port, &self.args.scan.config(None)).await?;
        self.diagnosis.test = Some(!listed.is_empty());
        let shown: Vec<_> = listed.iter().map(ToString::to_string).collect();
        if listed.is_empty() {
            let reason = self.test_refusal(port).await;
            self.diagnosis.is_test_refused = reason.is_some();
            let reason = reason.map_or_else(String::new, |why| format!(": the lobby reports {why}"));
            let text = format!("a test entry from this machine ({} {port}) was not listed{reason}", transport.as_str());
            self.report.push("test", Severity::Problem, text)
        } else {
            let text = format!("a test entry from this machine was listed at {} and removed again", shown.join(", "));
            self.report.push("test", Severity::Ok, text)
        }
    }
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
