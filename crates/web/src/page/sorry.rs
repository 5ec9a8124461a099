//! Errors, for people.

use super::frame::{Frame, page};
use crate::{filter::BadParameter, problem::Problem};
use askama::Template;
use axum::{
    http::{HeaderMap, Uri, header},
    response::{IntoResponse, Response},
};

/// A page that says what was wrong.
#[derive(Debug)]
pub(crate) struct Sorry(Problem);

#[derive(Template)]
#[template(path = "sorry.html")]
struct SorryPage<'a> {
    frame: Frame,
    detail: &'a str,
}

/// What is at an address where nothing is: a page for people, JSON for programs.
pub(crate) async fn nowhere(uri: Uri, headers: HeaderMap) -> Response {
    let problem = Problem::not_found("there is nothing at this address");
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if accept.contains("text/html") && !uri.path().starts_with("/api/") {
        Sorry(problem).into_response()
    } else {
        problem.into_response()
    }
}

impl From<Problem> for Sorry {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<BadParameter> for Sorry {
    fn from(bad: BadParameter) -> Self {
        Self(bad.into())
    }
}

impl IntoResponse for Sorry {
    fn into_response(self) -> Response {
        let status = self.0.status();
        let title = status.canonical_reason().unwrap_or("Error");
        page(status, &SorryPage { frame: Frame::new(title, ""), detail: &self.0.detail })
    }
}
