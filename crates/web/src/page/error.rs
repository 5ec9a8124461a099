//! Errors as pages.

use super::layout::{Layout, page};
use crate::{filter::InvalidParameter, problem::Problem, state::AppState};
use askama::Template;
use axum::response::{IntoResponse, Response};

/// An error that is always shown as a page, whatever the client accepts.
#[derive(Debug)]
pub(crate) struct PageError(Problem);

/// Marks the response of a [`PageError`], for the middleware that renders it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlwaysPage;

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    layout: Layout,
    detail: &'a str,
}

/// The page of a problem.
pub(crate) fn error_page(state: &AppState, problem: &Problem) -> Response {
    let status = problem.status();
    let title = status.canonical_reason().unwrap_or("Error");
    page(status, &ErrorPage { layout: Layout::new(state, title, ""), detail: &problem.detail })
}

impl From<Problem> for PageError {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<InvalidParameter> for PageError {
    fn from(invalid: InvalidParameter) -> Self {
        Self(invalid.into())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let mut response = self.0.into_response();
        response.extensions_mut().insert(AlwaysPage);
        response
    }
}
