//! The layout that all pages share, and rendered pages as responses.

use super::{MIN_COMPRESSED, assets};
use crate::{WebSettings, prebuilt_lists::gzip, state::AppState};
use askama::Template;
use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use bytes::Bytes;
use std::sync::Arc;

/// The variable parts of the layout: title, current entry of the navigation, script, and what the operator has configured.
#[derive(Debug)]
pub(super) struct Layout {
    pub title: String,
    /// The address of the navigation entry that the page belongs to; empty for none.
    pub current: &'static str,
    /// The name of the script that updates the page.
    pub script: &'static str,
    /// The preview of a link to the page in a chat.
    pub preview: Option<LinkPreview>,
    /// The address of an Atom feed.
    pub feed: Option<String>,
    settings: Arc<WebSettings>,
    /// The address of the operator's logo.
    logo: Option<String>,
}

/// The preview of a link to a page in a chat (Open Graph).
#[derive(Debug)]
pub(super) struct LinkPreview {
    pub description: String,
    /// The absolute address of the page.
    pub url: String,
    /// The absolute address of a picture.
    pub image: Option<String>,
}

impl Layout {
    pub fn new(state: &AppState, title: impl Into<String>, current: &'static str) -> Self {
        let settings = Arc::clone(&state.settings());
        let logo = state.site_files.load().logo.as_ref().map(|logo| format!("/logo?v={:x}", logo.version));
        let logo = logo.map(|logo| format!("{}{logo}", settings.site.base()));
        Self { title: title.into(), current, script: "times.js", preview: None, feed: None, settings, logo }
    }

    /// Adds an Atom feed at this address, below the base path.
    pub fn with_feed(self, address: &str) -> Self {
        let feed = Some(format!("{}{address}", self.base()));
        Self { feed, ..self }
    }

    pub fn with_preview(self, preview: LinkPreview) -> Self {
        Self { preview: Some(preview), ..self }
    }

    pub fn with_script(self, script: &'static str) -> Self {
        Self { script, ..self }
    }

    /// The path that is put before every address.
    pub fn base(&self) -> &str {
        self.settings.site.base()
    }

    /// The title of the site.
    pub fn site(&self) -> &str {
        &self.settings.site.title
    }

    /// The address of a script, style or image.
    pub fn asset(&self, name: &str) -> String {
        format!("{}{}", self.base(), assets::url(name))
    }

    /// The address of the logo.
    pub fn logo(&self) -> String {
        self.logo.clone().unwrap_or_else(|| self.asset("icon.svg"))
    }

    /// The address of the style sheet with the operator's colour.
    pub fn theme(&self) -> Option<String> {
        let color = self.settings.site.color?.to_string();
        Some(format!("{}/theme.css?c={}", self.base(), color.trim_start_matches('#')))
    }
}

/// The address of this site as the client knows it, with the base path, for what a client copies or shares. It is shown to this
/// client only, so forged headers do no harm.
pub(super) fn site_url(headers: &HeaderMap, settings: &WebSettings) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_host = |host: &&str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
    let scheme = if text("x-forwarded-proto") == Some("https") { "https" } else { "http" };
    format!("{scheme}://{}{}", text("host").filter(is_host).unwrap_or("localhost"), settings.site.base())
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
