//! `GET /api/v1/outcomes`: the outcomes of recent registrations, the reasons why a server is not listed.

use super::{response::JSON, schema::OutcomeParameters};
use crate::{OutcomeAccess, filter::InvalidParameter, middleware::ClientAddr, problem::Problem, state::AppState};
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use rallypoint_lobby::AllOutcomes;
use serde::Serialize;
use std::{net::IpAddr, sync::Arc, time::Duration};
use utoipa::ToSchema;

/// The recent outcomes of an address.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Outcomes)]
pub(crate) struct OutcomesResponse {
    /// The address.
    #[schema(value_type = String)]
    pub address: IpAddr,
    /// The outcomes, the latest last: in a cluster, those of all nodes.
    pub outcomes: Vec<RepeatedOutcome>,
    /// Names of the nodes of a cluster that did not answer in time.
    pub silent_nodes: Vec<String>,
}

/// Consecutive datagrams with the same outcome.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Outcome)]
pub(crate) struct RepeatedOutcome {
    /// Name of the node of a cluster that received them. Null without a cluster.
    #[schema(required)]
    pub node: Option<String>,
    /// The reason code.
    pub code: &'static str,
    /// The reason in plain English.
    pub text: String,
    /// The port in the registration, if it could be parsed.
    #[schema(required)]
    pub port: Option<u16>,
    /// Whether the server was in the list afterwards.
    pub accepted: bool,
    /// Whether the lobby refused what was requested.
    pub refused: bool,
    /// Number of consecutive datagrams with this outcome.
    pub times: u32,
    /// Time in seconds since the last of them.
    pub seconds_ago: u64,
    /// Age in seconds of the failed check that is the reason: its result applies to all registrations for a while. Null for other
    /// outcomes.
    #[schema(required)]
    pub checked_seconds_ago: Option<u64>,
    /// Time in seconds until a registration causes another check; 0 if the next one does. Null for other outcomes.
    #[schema(required)]
    pub check_again_in_seconds: Option<u64>,
}

impl RepeatedOutcome {
    /// When the server was checked, and when it is checked again, in one sentence; `None` unless it was refused because of a check.
    pub fn check_times(&self) -> Option<String> {
        let again = match self.check_again_in_seconds? {
            0 => "the next registration is checked again".into(),
            seconds => format!("registrations are checked again in {seconds} s"),
        };
        Some(format!("Checked {} s ago; {again}", self.checked_seconds_ago?))
    }
}

/// The outcomes of the last registrations from an address
#[utoipa::path(
    get,
    operation_id = "list_outcomes",
    path = "/api/v1/outcomes",
    params(OutcomeParameters),
    responses(
        (status = 200, description = "The outcomes, the latest last.", body = OutcomesResponse),
        (status = 403, description = "It is not the client's own address."),
    )
)]
pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let address = parse(query.as_deref().unwrap_or_default())?.unwrap_or(client.ip);
    let outcomes = OutcomesResponse::fetch(&state, client, address).await?;
    let headers = [(header::CONTENT_TYPE, JSON), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((headers, serde_json::to_vec(&outcomes).unwrap_or_default()).into_response())
}

impl OutcomesResponse {
    /// Fetches the outcomes of an address from the lobby, if this client may see them.
    pub async fn fetch(state: &AppState, client: ClientAddr, address: IpAddr) -> Result<Self, Problem> {
        let address = address.to_canonical();
        if state.settings().outcomes == OutcomeAccess::Own && address != client.ip && !client.is_local {
            let detail = format!(
                "address: only the outcomes of your own address, {}, are available to you; \
                 send the request from the machine of the server",
                client.ip
            );
            return Err(Problem::new(StatusCode::FORBIDDEN, detail).with_parameter("address"));
        }
        let AllOutcomes { outcomes, silent } = state.lobby.all_outcomes(address).await;
        let outcomes = outcomes.into_iter().map(|outcome| RepeatedOutcome {
            node: outcome.node.map(|node| node.to_string()),
            code: outcome.code,
            text: outcome.text,
            port: outcome.port,
            accepted: outcome.is_listed,
            refused: outcome.is_refusal,
            times: outcome.times,
            seconds_ago: outcome.age.as_secs(),
            checked_seconds_ago: outcome.failed_check.map(|check| check.age.as_secs()),
            check_again_in_seconds: outcome.failed_check.map(|check| rounded_up(check.repeatable_in)),
        });
        Ok(Self { address, outcomes: outcomes.collect(), silent_nodes: silent })
    }
}

/// Whole seconds, so that what is to come is not due too early.
fn rounded_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

fn parse(query: &str) -> Result<Option<IpAddr>, InvalidParameter> {
    let mut address = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "address" => {
                let expected = "expected an IP address such as 203.0.113.9 or 2001:db8::9";
                let parsed = value.parse();
                address = Some(parsed.map_err(|_| InvalidParameter::new("address", expected))?);
            }
            _ => return Err(InvalidParameter::unknown(&name, &["address"])),
        }
    }
    Ok(address)
}
