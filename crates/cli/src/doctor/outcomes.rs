//! Queries the lobby for the reason why the server is not listed.

use super::{Doctor, report::Severity};
use crate::{
    error::CommandError,
    registration_outcomes::{self, ReportedOutcome, ReportedOutcomes},
};
use rallypoint_query::ProbeError;
use rallypoint_wire::text;
use std::{net::IpAddr, num::NonZeroU16, time::Duration};

/// How long a server that another one replaced counts as contested.
const CONTEST_TIME: Duration = Duration::from_secs(120);

/// How long ago the refusal of a test entry can be at most.
const TEST_TIME: Duration = Duration::from_secs(15);

/// Maximum number of nodes that are named.
const MAX_NAMES: usize = 8;

impl Doctor<'_> {
    /// Fetches the outcomes of each address from the web API of the lobby.
    pub(super) async fn fetch_outcomes(&self) -> Vec<Result<ReportedOutcomes, ProbeError>> {
        let mut results = Vec::new();
        for address in &self.diagnosis.addresses {
            results.push(registration_outcomes::fetch(&self.api, Some(address.ip), &self.args.scan.config(None)).await);
        }
        results
    }

    /// Whether the latest outcome of the server is that it is listed, and still counts.
    pub(super) fn is_accepted(&self, reported: &ReportedOutcomes) -> bool {
        let port = self.diagnosis.port;
        let decisive =
            registration_outcomes::decisive(&registration_outcomes::for_port(&reported.outcomes, port), port);
        port.is_some() && decisive.is_some_and(|outcome| outcome.accepted && outcome.is_within(CONTEST_TIME))
    }

    /// Reports that a listed server and another one replace each other, if the lobby's web API reports that.
    pub(super) fn report_contest(
        &mut self,
        results: &[Result<ReportedOutcomes, ProbeError>],
    ) -> Result<(), CommandError> {
        for reported in results.iter().flatten() {
            let candidates = registration_outcomes::for_port(&reported.outcomes, self.diagnosis.port);
            let is_recent = |outcome: &&&ReportedOutcome| outcome.is_contested() && outcome.is_within(CONTEST_TIME);
            if let Some(outcome) = candidates.iter().rev().find(is_recent) {
                self.diagnosis.is_contested = true;
                return self.report.push("outcomes", Severity::Problem, format!("the lobby reports {outcome}"));
            }
        }
        Ok(())
    }

    /// The lobby's reason for not listing a test entry from this machine, if its web API reports one.
    pub(super) async fn test_refusal(&self, port: NonZeroU16) -> Option<String> {
        let port = Some(port.get());
        let reported = registration_outcomes::fetch(&self.api, None, &self.args.scan.config(None)).await.ok()?;
        let candidates = registration_outcomes::for_port(&reported.outcomes, port);
        // The test entry has unregistered since.
        let refusal = candidates.iter().rfind(|outcome| outcome.refused && outcome.is_within(TEST_TIME));
        refusal.map(ToString::to_string)
    }

    /// Reports the reason from the web API of the lobby.
    pub(super) fn report_all_outcomes(
        &mut self,
        results: &[Result<ReportedOutcomes, ProbeError>],
    ) -> Result<(), CommandError> {
        let addresses: Vec<_> = self.diagnosis.addresses.iter().map(|address| address.ip).collect();
        for (ip, result) in addresses.into_iter().zip(results) {
            match result {
                Ok(reported) => self.report_outcomes(ip, reported)?,
                Err(error) => {
                    let why = match error {
                        ProbeError::Malformed(why) => format!("gave no useful response: {why}"),
                        _ => "does not answer".into(),
                    };
                    let text = format!(
                        "the reason is not available from the lobby: its web API ({}) {why}; set --api if it is elsewhere",
                        self.api
                    );
                    // One note is enough: the cause is the same for every address.
                    return self.report.push("outcomes", Severity::Note, text);
                }
            }
        }
        Ok(())
    }

    /// Reports the decisive outcome first, then a few others, newest first.
    fn report_outcomes(&mut self, ip: IpAddr, reported: &ReportedOutcomes) -> Result<(), CommandError> {
        let ReportedOutcomes { outcomes, silent_nodes } = reported;
        if !silent_nodes.is_empty() {
            let names: Vec<_> = silent_nodes.iter().take(MAX_NAMES).map(|name| text::sanitize(name)).collect();
            let more = if silent_nodes.len() > MAX_NAMES { " and others" } else { "" };
            let text = format!(
                "nodes of the lobby that did not respond: {}{more}. What they received is not known",
                names.join(", ")
            );
            self.report.push("outcomes", Severity::Note, text)?;
        }
        let candidates = registration_outcomes::for_port(outcomes, self.diagnosis.port);
        let decisive = registration_outcomes::decisive(&candidates, self.diagnosis.port);
        if candidates.is_empty() {
            let text = if !silent_nodes.is_empty() {
                format!("the other nodes of the lobby received nothing for this port from {ip} recently")
            } else if outcomes.is_empty() {
                format!("the lobby received nothing from {ip} recently: no server registers from there")
            } else {
                format!("the lobby received registrations from {ip} recently, but not for this port")
            };
            return self.report.push("outcomes", Severity::Note, text);
        }
        let is_other = |outcome: &&ReportedOutcome| decisive.is_none_or(|decisive| !std::ptr::eq(*outcome, decisive));
        let others = candidates.iter().rev().copied().filter(is_other).map(|other| (Severity::Note, other));
        let port = self.diagnosis.port;
        // A server with this port may never have sent anything.
        let is_unseen = port.is_some() && !outcomes.iter().any(|outcome| outcome.port == port);
        let may_be_of_another = |outcome: &ReportedOutcome| is_unseen && outcome.may_be_of_another();
        let first = decisive.map(|outcome| {
            let is_refused = outcome.refused && !may_be_of_another(outcome);
            self.diagnosis.is_refused |= is_refused;
            self.diagnosis.is_banned |= outcome.is_ban();
            self.diagnosis.is_check_failed |= outcome.is_failed_check();
            (if is_refused { Severity::Problem } else { Severity::Note }, outcome)
        });
        for (severity, outcome) in first.into_iter().chain(others).take(8) {
            let source = if may_be_of_another(outcome) {
                format!(", perhaps for another server at {ip}")
            } else {
                String::new()
            };
            self.report.push("outcomes", severity, format!("the lobby reports {outcome}{source}"))?;
        }
        Ok(())
    }
}
