//! Client of the admin API.

use super::args::Args;
use crate::{
    config::{Sources, read_token},
    error::CommandError,
    exit::Exit,
    local_lobby::LocalLobby,
    stdio::print_stderr,
};
use rallypoint_query::{
    HttpUrl, ProbeError, ScanConfig,
    http::{self, HttpRequest, HttpResponse},
};
use rallypoint_web::AdminToken;
use rallypoint_wire::text;
use serde_json::{Value, json};
use std::path::Path;

/// Maximum number of items requested of a list.
pub const MAX_ITEMS: usize = 1_000_000;

/// Maximum number of items per response.
const PAGE_SIZE: usize = 1_000;

/// A lobby and its admin token.
pub struct Client {
    url: HttpUrl,
    /// Value of the Authorization header.
    authorization: String,
    config: ScanConfig,
}

/// A request that failed, with the exit code.
#[derive(Debug)]
pub struct AdminRequestError {
    pub message: String,
    pub exit: Exit,
}

impl AdminRequestError {
    /// The lobby refused the request.
    pub fn by_lobby(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: Exit::Silent }
    }

    /// The request could not be made.
    pub fn local(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: Exit::Local }
    }
}

impl Client {
    pub fn new(args: &Args) -> Result<Self, CommandError> {
        let token = token(args)?;
        let token = token.expose();
        let authorization = format!("Bearer {token}");
        let url = match (&args.url, &args.config) {
            (Some(url), _) => url.clone(),
            (None, Some(_)) => LocalLobby::new(&Sources::new(args.config.clone()).load()?.settings).web_url(),
            (None, None) => LocalLobby::load().web_url(),
        };
        Ok(Self { url, authorization, config: ScanConfig::without_retries(args.timeout) })
    }

    /// Up to `max` items of a list, fetched page by page. `path` ends with `?` or `&`.
    pub async fn list(&self, path: &str, name: &str, max: usize) -> Result<Value, AdminRequestError> {
        let mut all = Vec::new();
        loop {
            let (offset, limit) = (all.len(), PAGE_SIZE.min(max - all.len()));
            let mut answer = self.send("GET", &format!("{path}offset={offset}&limit={limit}"), &[]).await?;
            let total = answer["total"].as_u64().map_or(max, |total| max.min(total as usize));
            let Value::Array(part) = answer[name].take() else {
                return Err(
                    self.failed(&ProbeError::Malformed(format!("the response has no {name}: this is not a lobby")))
                );
            };
            let is_end = part.is_empty();
            all.extend(part);
            if is_end || all.len() >= total {
                return Ok(json!({ name: all }));
            }
        }
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, AdminRequestError> {
        self.send("POST", path, body.to_string().as_bytes()).await
    }

    pub async fn delete(&self, path: &str) -> Result<(), AdminRequestError> {
        self.send("DELETE", path, &[]).await.map(drop)
    }

    /// Why the lobby cannot share bans with its cluster; `None` if it can, or is not a node of one.
    pub async fn cluster_problem(&self) -> Option<String> {
        let to = HttpUrl { path: "/readyz".into(), ..self.url.clone() };
        let request = HttpRequest { method: "GET", headers: &[], body: &[] };
        let response = http::send(&to, request, &self.config).await.ok()?;
        let ready: Value = serde_json::from_slice(&response.body).ok()?;
        let problem = &ready["cluster_problem"];
        (ready["cluster"] == "disconnected" || problem["code"] == "bans_not_shared").then(|| {
            let detail = problem["detail"].as_str().unwrap_or("see its log");
            text::sanitize(detail).into_owned()
        })
    }

    async fn send(&self, method: &str, path: &str, body: &[u8]) -> Result<Value, AdminRequestError> {
        let to = HttpUrl { path: format!("/api/v1/admin{path}"), ..self.url.clone() };
        let headers = [("Authorization", &*self.authorization), ("Content-Type", "application/json")];
        let request = HttpRequest { method, headers: &headers, body };
        let response = http::send(&to, request, &self.config).await;
        let HttpResponse { status, body, .. } = response.map_err(|error| self.failed(&error))?;
        if status == 204 {
            return Ok(Value::Null);
        }
        let answer: Option<Value> = serde_json::from_slice(&body).ok();
        match (status, answer) {
            (200 | 201, Some(answer)) => Ok(answer),
            (_, Some(problem)) if problem["detail"].is_string() => {
                let detail = problem["detail"].as_str().unwrap_or_default();
                Err(AdminRequestError::by_lobby(format!("{} refused: {}", self.base_url(), text::sanitize(detail))))
            }
            _ => Err(self.failed(&ProbeError::Malformed(format!("HTTP status {status}: this is not a lobby")))),
        }
    }

    fn failed(&self, error: &ProbeError) -> AdminRequestError {
        AdminRequestError { message: format!("{}: {error}", self.base_url()), exit: error.into() }
    }

    fn base_url(&self) -> String {
        let scheme = if self.url.is_secure { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.url.host, self.url.port)
    }
}

/// The token. It is never a flag, because all users of the machine can see the arguments of a process.
fn token(args: &Args) -> Result<AdminToken, CommandError> {
    if let Some(file) = &args.token_file {
        return token_in(file);
    }
    if let Some(token) = std::env::var("RALLYPOINT_ADMIN_TOKEN").ok().filter(|token| !token.trim().is_empty()) {
        return AdminToken::new(token.trim())
            .map_err(|error| CommandError::Usage(format!("RALLYPOINT_ADMIN_TOKEN: {error}")));
    }
    let missing = || {
        CommandError::Usage(
            "no admin token: give its file with --token-file, or set RALLYPOINT_ADMIN_TOKEN; rallypoint admin --help \
             explains how to create one"
                .into(),
        )
    };
    let settings = Sources::new(args.config.clone()).load()?.settings;
    match settings.admin_token_file {
        Some(file) => token_in(&file),
        None => settings.web.settings.admin_token.ok_or_else(missing),
    }
}

/// The token in a file; prints a warning if other users can read it.
fn token_in(file: &Path) -> Result<AdminToken, CommandError> {
    let (token, warning) =
        read_token(file).map_err(|error| CommandError::Usage(format!("{}: {error}", file.display())))?;
    if let Some(warning) = warning {
        print_stderr(format_args!("warning: {warning}"));
    }
    Ok(token)
}
