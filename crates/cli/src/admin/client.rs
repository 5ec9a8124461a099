//! Asks a lobby's admin API.

use super::args::Args;
use crate::{
    config::{Sources, read_token},
    error::CommandError,
    exit::Exit,
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

/// No list of a lobby is longer.
pub const MOST: usize = 1_000_000;

/// The most that a lobby tells in one answer.
const PART: usize = 1_000;

/// A lobby, and the token for it.
pub struct Client {
    url: HttpUrl,
    /// Value of the Authorization header.
    authorization: String,
    config: ScanConfig,
}

/// What was not done.
#[derive(Debug)]
pub struct Refused {
    pub why: String,
    pub exit: Exit,
}

impl Refused {
    /// The lobby says no.
    pub fn by_lobby(why: impl Into<String>) -> Self {
        Self { why: why.into(), exit: Exit::Silent }
    }

    /// It does not even come to that.
    pub fn local(why: impl Into<String>) -> Self {
        Self { why: why.into(), exit: Exit::Local }
    }
}

impl Client {
    pub fn new(args: &Args) -> Result<Self, CommandError> {
        let token = token(args)?;
        let token = token.expose();
        let authorization = format!("Bearer {token}");
        Ok(Self { url: args.url.clone(), authorization, config: ScanConfig::without_retries(args.timeout) })
    }

    /// A list, or its first so many: the lobby tells it in parts. `path` is all but the part, with its `?`.
    pub async fn list(&self, path: &str, name: &str, most: usize) -> Result<Value, Refused> {
        let mut all = Vec::new();
        loop {
            let (offset, limit) = (all.len(), PART.min(most - all.len()));
            let mut answer = self.ask("GET", &format!("{path}offset={offset}&limit={limit}"), &[]).await?;
            let total = answer["total"].as_u64().map_or(most, |total| most.min(total as usize));
            let Value::Array(part) = answer[name].take() else {
                return Err(self.failed(&ProbeError::Malformed(format!("it tells no {name}, and is no lobby"))));
            };
            let is_end = part.is_empty();
            all.extend(part);
            if is_end || all.len() >= total {
                return Ok(json!({ name: all }));
            }
        }
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Refused> {
        self.ask("POST", path, body.to_string().as_bytes()).await
    }

    pub async fn delete(&self, path: &str) -> Result<(), Refused> {
        self.ask("DELETE", path, &[]).await.map(drop)
    }

    async fn ask(&self, method: &str, path: &str, body: &[u8]) -> Result<Value, Refused> {
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
                Err(Refused::by_lobby(format!("{} refuses: {}", self.place(), text::sanitize(detail))))
            }
            _ => Err(self.failed(&ProbeError::Malformed(format!("it answers with status {status}, and is no lobby")))),
        }
    }

    fn failed(&self, error: &ProbeError) -> Refused {
        Refused { why: format!("{}: {error}", self.place()), exit: error.into() }
    }

    fn place(&self) -> String {
        let scheme = if self.url.is_secure { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.url.host, self.url.port)
    }
}

/// The token: never a flag, because flags can be seen by everybody on the machine.
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
            "there is no token: name the file that it is in with --token-file, or set RALLYPOINT_ADMIN_TOKEN; \
             rallypoint admin --help tells how to make one"
                .into(),
        )
    };
    let settings = Sources::new(None).load()?.settings;
    match settings.admin_token_file {
        Some(file) => token_in(&file),
        None => settings.web.settings.admin_token.ok_or_else(missing),
    }
}

/// The token in a file; if that is not as it should be, but can be used, the operator gets to know.
fn token_in(file: &Path) -> Result<AdminToken, CommandError> {
    let (token, note) =
        read_token(file).map_err(|wrong| CommandError::Usage(format!("{}: {wrong}", file.display())))?;
    if let Some(note) = note {
        print_stderr(format_args!("note: {note}"));
    }
    Ok(token)
}
