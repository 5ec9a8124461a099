//! `GET /api/v1/outcomes`: why a server is not listed.

use super::answer::JSON;
use crate::{Outcomes, filter::BadParameter, gate::Visitor, problem::Problem, shared::Web};
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use std::{net::IpAddr, time::Instant};

/// The last outcomes of an address.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    pub address: IpAddr,
    /// The latest last.
    pub outcomes: Vec<Outcome>,
}

/// What became of some registrations in a row.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// The reason code.
    pub code: &'static str,
    /// The same in plain words.
    pub text: String,
    /// The port that was to be registered, if that could be read.
    pub port: Option<u16>,
    /// Whether the server was in the list after this.
    pub accepted: bool,
    /// Whether the lobby did not do what was asked for.
    pub refused: bool,
    /// How often it happened in a row.
    pub times: u32,
    /// When it last happened.
    pub seconds_ago: u64,
}

/// `GET /api/v1/outcomes`
pub(super) async fn ask(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let address = parse(query.as_deref().unwrap_or_default())?.unwrap_or(visitor.ip);
    let answer = Answer::ask(&web, visitor, address).await?;
    let headers = [(header::CONTENT_TYPE, JSON), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((headers, serde_json::to_vec(&answer).unwrap_or_default()).into_response())
}

impl Answer {
    /// Asks the lobby for the outcomes of an address, if this visitor may know them.
    pub async fn ask(web: &Web, visitor: Visitor, address: IpAddr) -> Result<Self, Problem> {
        let address = address.to_canonical();
        if web.settings().outcomes == Outcomes::Own && address != visitor.ip && !visitor.is_local {
            let detail = format!(
                "address: only the outcomes of your own address, {}, can be asked for; ask from the machine of the server",
                visitor.ip
            );
            return Err(Problem::new(StatusCode::FORBIDDEN, detail).of("address"));
        }
        let (past, now) = (web.lobby.recent_outcomes(address).await, Instant::now());
        let outcomes = past.iter().map(|past| Outcome {
            code: past.outcome.code(),
            text: past.to_string(),
            port: past.port,
            accepted: past.outcome.is_listed(),
            refused: past.outcome.is_refusal(),
            times: past.times,
            seconds_ago: now.saturating_duration_since(past.at).as_secs(),
        });
        Ok(Self { address, outcomes: outcomes.collect() })
    }
}

fn parse(query: &str) -> Result<Option<IpAddr>, BadParameter> {
    let mut address = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "address" if value.is_empty() => {}
            "address" => {
                let wrong =
                    |_| BadParameter::new("address", "expected an IP address such as 203.0.113.9 or 2001:db8::9");
                address = Some(value.trim().parse().map_err(wrong)?);
            }
            _ => return Err(BadParameter::new(&name, "there is no such parameter; there is only address")),
        }
    }
    Ok(address)
}
