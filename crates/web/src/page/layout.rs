//! The layout that all pages share, and rendered pages as responses.

use super::{MIN_COMPRESSED, assets};
use crate::prebuilt_lists::gzip;
use askama::Template;
use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use bytes::Bytes;

/// The variable parts of the layout: title, current entry of the navigation, script.
#[derive(Debug)]
pub(super) struct Layout {
    pub title: String,
    /// The address of the navigation entry that the page belongs to; empty for none.
    pub current: &'static str,
    /// The name of the script that updates the page.
    pub script: &'static str,
}

impl Layout {
    pub fn new(title: impl Into<String>, current: &'static str) -> Self {
        Self { title: title.into(), current, script: "times.js" }
    }

    pub fn with_script(self, script: &'static str) -> Self {
        Self { script, ..self }
    }

    /// The address of a script, style or image.
    pub fn asset(&self, name: &str) -> &'static str {
        assets::url(name)
    }
}

/// Renders a page. Clients must not keep it, because it shows the current state.
pub(super) fn page(status: StatusCode, template: &impl Template) -> Response<Body> {
    render(status, template).map(Body::from)
}

/// Renders a page that is counted and compressed by its handler.
pub(super) fn render(status: StatusCode, template: &impl Template) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    match template.render() {
        Ok(html) => {
            *response.status_mut() = status;
            *response.body_mut() = html.into();
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        // Templates write to memory, and no expression in them fails.
        Err(error) => {
            tracing::error!(%error, "cannot render a page");
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        }
    }
    response
}

/// Compresses a rendered page for a client that accepts gzip: a list of 200 servers shrinks to a twentieth.
pub(super) fn compress(mut response: Response<Bytes>, accepts_gzip: bool) -> Response<Bytes> {
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if accepts_gzip && response.body().len() >= MIN_COMPRESSED {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response = response.map(|html| gzip(&html));
    }
    response
}
