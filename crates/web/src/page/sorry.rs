//! Errors, for people.

use super::frame::{Frame, page};
use crate::{filter::BadParameter, problem::Problem};
use askama::Template;
use axum::{
    http::{HeaderMap, header},
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

/// What is at an address where nothing is.
pub(crate) async fn nowhere() -> Problem {
    Problem::not_found("there is nothing at this address")
}

/// Whether an error should be told by a page: to people, and not by the API.
pub(crate) fn wants_page(path: &str, headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.contains("text/html") && !path.starts_with("/api/")
}

/// The same answer, as a page if it is a problem.
pub(crate) fn as_page(mut response: Response) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    let mut page = Sorry(problem).into_response();
    for name in [header::RETRY_AFTER, header::ALLOW] {
        page.headers_mut().extend(response.headers_mut().remove(&name).map(|value| (name, value)));
    }
    page
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
