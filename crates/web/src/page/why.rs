//! `GET /why`: why a server is not listed.

use super::{
    frame::{Frame, page},
    shown,
};
use crate::{
    Outcomes,
    api::outcomes::{Answer, Outcome},
    gate::Visitor,
    shared::Web,
};
use askama::Template;
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};
use std::net::IpAddr;

#[derive(Template)]
#[template(path = "why.html")]
struct WhyPage {
    frame: Frame,
    visitor: IpAddr,
    /// What was typed in.
    address: String,
    may_ask_for_others: bool,
    answer: Result<Answer, String>,
}

pub(super) async fn show(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = query.unwrap_or_default();
    let typed = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "address");
    let typed = typed.map(|(_, value)| value.trim().to_owned()).filter(|value| !value.is_empty());
    let address = typed.as_deref().map_or(Some(visitor.ip), read);
    let (status, answer) = match address {
        None => {
            let detail = "this is not an IP address: expected one such as 203.0.113.9 or 2001:db8::9";
            (StatusCode::BAD_REQUEST, Err(detail.to_owned()))
        }
        Some(address) => match Answer::ask(&web, visitor, address).await {
            Ok(answer) => (StatusCode::OK, Ok(answer)),
            Err(problem) => (problem.status(), Err(problem.detail)),
        },
    };
    let why = WhyPage {
        frame: Frame::new("Why is my server not listed?", "/why"),
        visitor: visitor.ip,
        address: typed.unwrap_or_else(|| visitor.ip.to_string()).chars().take(60).collect(),
        may_ask_for_others: web.settings().outcomes == Outcomes::Any || visitor.is_local,
        answer,
    };
    page(status, &why)
}

/// An address, as people paste it: perhaps with brackets, perhaps with a port.
fn read(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<std::net::SocketAddr>().ok().map(|addr| addr.ip());
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    text.parse().ok().or_else(with_port).or_else(in_brackets)
}

impl WhyPage {
    /// The answer to the question: the latest outcome, but for goodbyes of a server that is gone already, as they are said
    /// more than once.
    fn latest(answer: &Answer) -> Option<&Outcome> {
        let counts = |outcome: &&Outcome| outcome.code != "not_registered";
        answer.outcomes.iter().rfind(counts).or(answer.outcomes.last())
    }

    /// Its verdict, as a class.
    fn mood(outcome: &Outcome) -> &'static str {
        match outcome {
            Outcome { accepted: true, .. } => "good",
            Outcome { refused: true, .. } => "bad",
            _ => "calm",
        }
    }
}
