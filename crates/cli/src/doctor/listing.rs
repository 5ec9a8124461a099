//! Searches the list of the lobby for the server.

use super::{Doctor, report::Severity};
use crate::error::CommandError;
use rallypoint_query::{FetchedServer, ListSummary, ProbeError, Target, fetch_list, lobby_names};

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

    pub(super) fn report_listing(&mut self) -> Result<(), CommandError> {
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
}
