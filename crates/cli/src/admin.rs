//! `rallypoint admin`: manages bans and notes of a running lobby through its admin API.

mod args;
mod client;
mod show;

pub use args::Args;

use crate::{
    error::CommandError,
    exit::Exit,
    output::terminal::Terminal,
    runtime,
    stdio::{print_stderr, print_stdout},
};
use args::{NoteArgs, Subject, UnbanArgs, UnbanTarget, UnlistArgs, Verb};
use client::{AdminRequestError, Client, MAX_ITEMS};
use rallypoint_udp::entropy;
use serde_json::{Value, json};
use std::time::Duration;

pub fn run(args: &Args) -> Result<Exit, CommandError> {
    if let Verb::Token = args.verb {
        return print_stdout(&format!("{}\n", new_token()?)).map(|()| Exit::Answered);
    }
    let client = Client::new(args)?;
    let result = runtime::block_on(async {
        let result = execute(&client, &args.verb).await;
        if let (Ok(_), Verb::Ban { .. } | Verb::Unban(_) | Verb::Unlist(_)) = (&result, &args.verb) {
            warn_about_cluster(&client).await;
        }
        Ok(result)
    })?;
    match result {
        Ok(output) => {
            let text = if args.json { format!("{}\n", output.json) } else { output.text };
            print_stdout(&text).map(|()| Exit::Answered)
        }
        Err(AdminRequestError { message, exit }) => {
            print_stderr(format_args!("rallypoint: {message}"));
            Ok(exit)
        }
    }
}

/// The result of a command, as text and as JSON.
struct Output {
    text: String,
    json: Value,
}

async fn execute(client: &Client, verb: &Verb) -> Result<Output, AdminRequestError> {
    let terminal = Terminal::of_stdout();
    match verb {
        Verb::Ban { subject, reason, until, time } => ban(client, subject, reason, until.as_deref(), *time).await,
        Verb::Unban(args) => unban(client, args).await,
        Verb::Bans => {
            let json = client.list("/bans?", "bans", MAX_ITEMS).await?;
            Ok(Output { text: show::bans(&json, terminal), json })
        }
        Verb::Unlist(args) => unlist(client, args).await,
        Verb::Note(args) => note(client, args).await,
        Verb::Notes { about } => {
            let about = about.as_ref().map_or(String::new(), |about| format!("about={}&", percent_encode(about)));
            let json = client.list(&format!("/notes?{about}"), "notes", MAX_ITEMS).await?;
            Ok(Output { text: show::notes(&json, terminal), json })
        }
        Verb::Forget { id } => {
            client.delete(&format!("/notes/{id}")).await?;
            Ok(Output { text: format!("note {id} removed\n"), json: json!({ "forgotten": id }) })
        }
        Verb::Audit { limit } => {
            let json = client.list("/audit?", "entries", usize::from(*limit)).await?;
            Ok(Output { text: show::audit(&json, terminal), json })
        }
        Verb::Token => Err(AdminRequestError::local("a token is generated without a lobby")),
    }
}

async fn ban(
    client: &Client,
    subject: &Subject,
    reason: &str,
    until: Option<&str>,
    time: Option<Duration>,
) -> Result<Output, AdminRequestError> {
    let mut body = json!({ "reason": reason });
    match (&subject.network, &subject.name) {
        (Some(network), _) => body["network"] = network.to_string().into(),
        (None, name) => body["name"] = name.clone().into(),
    }
    if let Some(until) = until {
        body["until"] = until.into();
    }
    if let Some(time) = time {
        body["seconds"] = time.as_secs().into();
    }
    let json = client.post("/bans", &body).await?;
    Ok(Output { text: format!("banned: {}\n", show::ban(&json)), json })
}

async fn unban(client: &Client, args: &UnbanArgs) -> Result<Output, AdminRequestError> {
    let is_same =
        |text: &Value, wanted: &UnbanTarget| text.as_str().is_some_and(|text| text.parse().as_ref() == Ok(wanted));
    let (id, ban) = match (&args.ban, &args.name) {
        // Each node of a cluster numbers its bans itself, so the answer names what was banned.
        (Some(UnbanTarget::Id(id)), _) => find(client, |ban| ban["id"] == *id).await?,
        (Some(wanted), _) => {
            find(client, |ban| is_same(&ban["network"], wanted) || is_same(&ban["server"]["id"], wanted)).await?
        }
        (None, name) => find(client, |ban| ban["name"] == name.as_deref().unwrap_or_default().trim()).await?,
    };
    client.delete(&format!("/bans/{id}")).await?;
    Ok(Output { text: format!("ban {id} removed: {}\n", show::subject(&ban)), json: json!({ "unbanned": id }) })
}

/// Warns if the lobby is a node of a cluster that cannot share a change of bans now.
async fn warn_about_cluster(client: &Client) {
    if let Some(problem) = client.cluster_problem().await {
        print_stderr(format_args!(
            "warning: this holds at this node only, until the store of the cluster can be used again ({problem}); then the other \
             nodes follow"
        ));
    }
}

/// The first removable ban that matches, and its ID.
async fn find(client: &Client, is_match: impl Fn(&Value) -> bool) -> Result<(u64, Value), AdminRequestError> {
    let bans = client.list("/bans?", "bans", MAX_ITEMS).await?;
    let known: Vec<_> = bans["bans"].as_array().into_iter().flatten().filter(|ban| is_match(ban)).collect();
    known.iter().find_map(|ban| Some((ban["id"].as_u64()?, (*ban).clone()))).ok_or_else(|| match known.is_empty() {
        true => AdminRequestError::by_lobby("no such ban: rallypoint admin bans lists them"),
        false => AdminRequestError::by_lobby("this ban is in the configuration file of the lobby: remove it there"),
    })
}

async fn unlist(client: &Client, args: &UnlistArgs) -> Result<Output, AdminRequestError> {
    let mut body = json!({ "reason": args.reason, "ban": args.ban });
    if let Some(time) = args.time {
        body["seconds"] = time.as_secs().into();
    }
    let json = client.post(&format!("/servers/{}/unlist", args.server), &body).await?;
    Ok(Output { text: show::unlisted(&json), json })
}

async fn note(client: &Client, args: &NoteArgs) -> Result<Output, AdminRequestError> {
    let json = client.post("/notes", &json!({ "about": args.about, "text": args.text })).await?;
    Ok(Output { text: format!("note {} added\n", json["id"]), json })
}

/// Percent-encodes text for a URL.
fn percent_encode(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'.' | b':' | b'/' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// A random token of 256 bits.
fn new_token() -> Result<String, CommandError> {
    let bytes: [u8; 32] = entropy::bytes().map_err(CommandError::failed)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
