//! `GET /why`: why a server is not listed.

use super::{
    format,
    layout::{Layout, page},
};
use crate::{
    OutcomeAccess,
    api::outcomes::{OutcomesResponse, RepeatedOutcome},
    middleware::{ClientAddr, parse_addr},
    state::AppState,
};
use askama::Template;
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};
use std::{net::IpAddr, sync::Arc};

#[derive(Template)]
#[template(path = "why.html")]
struct WhyPage {
    layout: Layout,
    client: IpAddr,
    /// The content of the form field.
    address: String,
    /// Whether the client may see the outcomes of other addresses.
    can_choose: bool,
    outcomes: Result<OutcomesResponse, String>,
}

/// The outcomes that explain why the servers of some ports are listed or not.
struct Explanation<'a> {
    outcome: &'a RepeatedOutcome,
    /// The ports; none if no datagram could be parsed.
    ports: Vec<String>,
}

pub(super) async fn show(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = query.unwrap_or_default();
    let input = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "address");
    let input = input.map(|(_, value)| value.trim().to_owned()).filter(|value| !value.is_empty());
    let address = input.as_deref().map_or(Some(client.ip), parse_addr);
    let (status, outcomes) = match address {
        None => {
            let detail = "this is not an IP address; expected one such as 203.0.113.9 or 2001:db8::9";
            (StatusCode::BAD_REQUEST, Err(detail.to_owned()))
        }
        Some(address) => match OutcomesResponse::fetch(&state, client, address).await {
            Ok(outcomes) => (StatusCode::OK, Ok(outcomes)),
            Err(problem) => (problem.status(), Err(problem.detail)),
        },
    };
    let why = WhyPage {
        layout: Layout::new(&state, "Why is my server not listed?", "/why"),
        client: client.ip,
        address: input.unwrap_or_else(|| client.ip.to_string()).chars().take(60).collect(),
        can_choose: state.settings().outcomes == OutcomeAccess::Any || client.is_local,
        outcomes,
    };
    page(status, &why)
}

impl WhyPage {
    /// The outcomes that explain the current state: the latest of each port, because several servers can have one address.
    /// Ports with the same outcome are one explanation; refusals come first, then the latest. Datagrams that could not be
    /// parsed have no port. Unregistrations of a server that is gone already, which servers send because datagrams can be lost,
    /// explain nothing unless they are all that is known.
    fn explanations(outcomes: &OutcomesResponse) -> Vec<Explanation<'_>> {
        let mut latest: Vec<&RepeatedOutcome> = Vec::new();
        let is_decisive = |outcome: &&RepeatedOutcome| outcome.code != "not_registered";
        for outcome in outcomes.outcomes.iter().rev().filter(is_decisive) {
            if latest.iter().all(|other| other.port != outcome.port) {
                latest.push(outcome);
            }
        }
        if latest.is_empty() {
            latest.extend(outcomes.outcomes.last());
        }
        let mut explanations: Vec<Explanation<'_>> = Vec::new();
        for outcome in latest {
            let same = explanations.iter_mut().find(|other| other.outcome.text == outcome.text);
            match (same, outcome.port) {
                (Some(same), Some(port)) if !same.ports.is_empty() => same.ports.push(port.to_string()),
                _ => {
                    explanations
                        .push(Explanation { outcome, ports: outcome.port.iter().map(u16::to_string).collect() });
                }
            }
        }
        explanations.sort_by_key(|explanation| !explanation.outcome.refused);
        explanations
    }

    /// Whether the outcomes are those of several nodes of a cluster.
    fn has_nodes(outcomes: &OutcomesResponse) -> bool {
        outcomes.outcomes.iter().any(|outcome| outcome.node.is_some())
    }

    /// The CSS class of an outcome.
    fn class(outcome: &RepeatedOutcome) -> &'static str {
        match outcome {
            RepeatedOutcome { accepted: true, .. } => "good",
            RepeatedOutcome { refused: true, .. } => "bad",
            _ => "calm",
        }
    }
}
