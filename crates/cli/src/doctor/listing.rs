//! Searches the list of the lobby for the server.

use super::{Doctor, report::Severity};
use crate::{
    error::CommandError,
    registration_outcomes::{self, ReportedOutcomes},
};
use rallypoint_query::{FetchedServer, ListSummary, ProbeError, Target, fetch_list, list_names};
use std::net::SocketAddr;

/// Maximum number of servers of one address that are named.
const MAX_SHOWN: usize = 8;

impl Doctor<'_> {
    /// Fetches the list and keeps the entries with the addresses of the server.
    pub(super) async fn list(&mut self) -> Result<ListSummary, ProbeError> {
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

    pub(super) fn report_list(&mut self, list: Result<ListSummary, ProbeError>) -> Result<(), CommandError> {
        let lobby = self.page.as_ref().map_or_else(|| self.diagnosis.lobby.clone(), ToString::to_string);
        let (severity, text) = match list {
            Ok(ListSummary { servers: 1, .. }) => (Severity::Ok, format!("the list of {lobby} has 1 server")),
            Ok(ListSummary { servers, .. }) => (Severity::Ok, format!("the list of {lobby} has {servers} servers")),
            Err(error) => (Severity::Problem, format!("cannot fetch the list of {lobby}: {error}")),
        };
        self.report.push("lobby", severity, text)
    }

    /// Chooses the port of a server that was given without one: that of the only listed server at its address. Returns whether
    /// there is at most one; several are reported.
    pub(super) fn choose_port(&mut self) -> Result<bool, CommandError> {
        let host = &self.diagnosis.host;
        let listed = &self.diagnosis.listed;
        let is_here = |addr: &&SocketAddr| self.diagnosis.addresses.iter().any(|it| it.ip == addr.ip());
        let named = |server: &FetchedServer| {
            let addr = server.endpoints.iter().find(is_here)?;
            Some((addr.port(), format!("\"{}\" ({addr})", server.info.name.as_deref().unwrap_or_default())))
        };
        let found: Vec<_> = listed.iter().filter_map(named).collect();
        match &found[..] {
            [] => Ok(true),
            [(port, name)] => {
                let text = format!("no port was given: {name} is examined, the only server that is listed at {host}");
                self.diagnosis.port = Some(*port);
                self.report.push("listed", Severity::Note, text)?;
                Ok(true)
            }
            _ => {
                let shown: Vec<_> = found.iter().take(MAX_SHOWN).map(|(_, name)| &**name).collect();
                let more = match found.len().saturating_sub(MAX_SHOWN) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let count = found.len();
                let text =
                    format!("no port was given, and {count} servers are listed at {host}: {}{more}", shown.join(", "));
                self.diagnosis.is_ambiguous = true;
                self.report.push("listed", Severity::Problem, text)?;
                Ok(false)
            }
        }
    }

    pub(super) fn report_listing(
        &mut self,
        outcomes: &[Result<ReportedOutcomes, ProbeError>],
    ) -> Result<(), CommandError> {
        if let Some((transport, listed)) = self.diagnosis.listed_over_other_transport() {
            let shown: Vec<_> = listed.endpoints.iter().map(ToString::to_string).collect();
            let name = listed.info.name.as_deref().unwrap_or_default();
            let transport = transport.as_str().to_uppercase();
            let text = format!("listed as \"{name}\" at {}, but as a {transport} server", shown.join(", "));
            return self.report.push("listed", Severity::Problem, text);
        }
        let found: Vec<_> = self.diagnosis.matching().cloned().collect();
        if found.is_empty() {
            let port = self.diagnosis.port.map_or_else(String::new, |port| format!(" with port {port}"));
            let (severity, text) = match (self.diagnosis.is_in_another_list, self.lobby.id) {
                (false, _) => (Severity::Problem, format!("the server is not in the list{port}")),
                (true, Some(list)) => {
                    let list = list_names::short_name(list);
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
            for (address, reported) in self.diagnosis.addresses.iter().zip(outcomes) {
                if !has(address.ip.is_ipv4()) {
                    let family = if address.ip.is_ipv4() { "IPv4" } else { "IPv6" };
                    let why = missing_family(family, reported, self.diagnosis.port);
                    let text =
                        format!("not listed by {family}, although {} is one of its addresses: {why}", address.ip);
                    self.report.push("listed", Severity::Note, text)?;
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Why a server that is listed is not listed by one of its address families, as far as the lobby reports it.
fn missing_family(family: &str, reported: &Result<ReportedOutcomes, ProbeError>, port: Option<u16>) -> String {
    let Ok(reported) = reported else {
        return format!("the server does not register over {family}, or the lobby cannot reach it there");
    };
    let candidates = registration_outcomes::for_port(&reported.outcomes, port);
    match registration_outcomes::decisive(&candidates, port).filter(|outcome| outcome.refused) {
        Some(outcome) => format!("the lobby reports {outcome}"),
        None => format!("the server does not register over {family}"),
    }
}
