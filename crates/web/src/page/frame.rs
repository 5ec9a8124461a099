//! What all pages have around them.

use super::assets;
use askama::Template;
use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
};

/// What all pages have around them: title, navigation, style and script.
#[derive(Debug)]
pub(super) struct Frame {
    pub title: String,
    /// The entry of the navigation that this page belongs to.
    pub here: &'static str,
    /// The script that makes it come alive.
    pub script: &'static str,
}

impl Frame {
    pub fn new(title: impl Into<String>, here: &'static str) -> Self {
        Self { title: title.into(), here, script: "times.js" }
    }

    pub fn with_script(self, script: &'static str) -> Self {
        Self { script, ..self }
    }

    /// The address of a script, style or picture.
    pub fn asset(&self, name: &str) -> &'static str {
        assets::url(name)
    }
}

/// A page as an answer. It shows what is now, so nobody keeps it.
pub(super) fn page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => {
            let fresh = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
            (status, fresh, Html(html)).into_response()
        }
        // Templates write into memory, and nothing in them fails by itself.
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
