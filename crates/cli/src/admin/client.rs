//! Asks a lobby's admin API.

use super::args::Args;
use crate::{
    ask::{
        Asking, Exit, Trouble,
        lobby::{Answer, Request, request},
        target::MasterList,
    },
    config::{Sources, read_token},
    failure::Failure,
};
use rallypoint_wire::text;
use serde_json::Value;

/// A lobby, and the token for it.
pub struct Client {
    url: MasterList,
    /// The line of the head that has the token.
    authorization: String,
    asking: Asking,
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
    pub fn new(args: &Args) -> Result<Self, Failure> {
        let token = token(args)?;
        let authorization = format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
        Ok(Self { url: args.url.clone(), authorization, asking: Asking::once(args.timeout) })
    }

    pub async fn get(&self, path: &str) -> Result<Value, Refused> {
        self.ask("GET", path, &[]).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Refused> {
        self.ask("POST", path, body.to_string().as_bytes()).await
    }

    pub async fn delete(&self, path: &str) -> Result<(), Refused> {
        self.ask("DELETE", path, &[]).await.map(drop)
    }

    async fn ask(&self, method: &str, path: &str, body: &[u8]) -> Result<Value, Refused> {
        let to = MasterList { path: format!("/api/v1/admin{path}"), ..self.url.clone() };
        let asked = Request { method, headers: &self.authorization, body };
        let place = format!("http://{}:{}", to.host, to.port);
        let failed = |trouble: Trouble| Refused { why: format!("{place}: {trouble}"), exit: trouble.exit() };
        let Answer { status, body, .. } = request(&to, asked, &self.asking).await.map_err(failed)?;
        if status == 204 {
            return Ok(Value::Null);
        }
        let answer: Option<Value> = serde_json::from_slice(&body).ok();
        match (status, answer) {
            (200 | 201, Some(answer)) => Ok(answer),
            (_, Some(problem)) if problem["detail"].is_string() => {
                let detail = problem["detail"].as_str().unwrap_or_default();
                Err(Refused::by_lobby(format!("{place} refuses: {}", text::harmless(detail))))
            }
            _ => Err(failed(Trouble::Malformed(format!("it answers with status {status}, and is no lobby")))),
        }
    }
}

/// The token: never a flag, because flags can be seen by everybody on the machine.
fn token(args: &Args) -> Result<String, Failure> {
    if let Some(file) = &args.token_file {
        let wrong = |wrong| Failure::failed(format!("{}: {wrong}", file.display()));
        return read_token(file).map(|(token, _)| token.expose().to_owned()).map_err(wrong);
    }
    if let Some(token) = std::env::var("RALLYPOINT_ADMIN_TOKEN").ok().filter(|token| !token.trim().is_empty()) {
        return Ok(token.trim().to_owned());
    }
    let missing = || {
        Failure::Usage(
            "there is no token: name the file that it is in with --token-file, or set RALLYPOINT_ADMIN_TOKEN; \
             rallypoint admin --help tells how to make one"
                .into(),
        )
    };
    let settings = Sources::new(None).load()?.settings;
    let token = settings.web.settings.admin_token.ok_or_else(missing)?;
    Ok(token.expose().to_owned())
}
