//! `rallypoint admin`: what the operator of a lobby decides while it runs.

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
use args::{BanArgs, KnownBan, NoteArgs, UnbanArgs, UnlistArgs, Verb};
use client::{Client, MOST, Refused};
use rallypoint_udp::entropy;
use serde_json::{Value, json};

pub fn run(args: &Args) -> Result<Exit, CommandError> {
    if let Verb::Token = args.verb {
        return print_stdout(&format!("{}\n", new_token()?)).map(|()| Exit::Answered);
    }
    let client = Client::new(args)?;
    let result = runtime::block_on(async { Ok(work(&client, &args.verb).await) })?;
    match result {
        Ok(done) => {
            let text = if args.json { format!("{}\n", done.json) } else { done.text };
            print_stdout(&text).map(|()| Exit::Answered)
        }
        Err(Refused { why, exit }) => {
            print_stderr(format_args!("rallypoint: {why}"));
            Ok(exit)
        }
    }
}

/// What came of it, for people and for programs.
struct Done {
    text: String,
    json: Value,
}

async fn work(client: &Client, verb: &Verb) -> Result<Done, Refused> {
    let terminal = Terminal::of_stdout();
    match verb {
        Verb::Ban(args) => ban(client, args).await,
        Verb::Unban(args) => unban(client, args).await,
        Verb::Bans => {
            let json = client.list("/bans?", "bans", MOST).await?;
            Ok(Done { text: show::bans(&json, terminal), json })
        }
        Verb::Unlist(args) => unlist(client, args).await,
        Verb::Note(args) => note(client, args).await,
        Verb::Notes { about } => {
            let about = about.as_ref().map_or(String::new(), |about| format!("about={}&", escaped(about)));
            let json = client.list(&format!("/notes?{about}"), "notes", MOST).await?;
            Ok(Done { text: show::notes(&json, terminal), json })
        }
        Verb::Forget { id } => {
            client.delete(&format!("/notes/{id}")).await?;
            Ok(Done { text: format!("note {id} is forgotten\n"), json: json!({ "forgotten": id }) })
        }
        Verb::Audit { limit } => {
            let json = client.list("/audit?", "entries", usize::from(*limit)).await?;
            Ok(Done { text: show::audit(&json, terminal), json })
        }
        Verb::Token => Err(Refused::local("a token is made without a lobby")),
    }
}

async fn ban(client: &Client, args: &BanArgs) -> Result<Done, Refused> {
    let mut wanted = json!({ "reason": args.reason });
    match (&args.whom.network, &args.whom.name) {
        (Some(network), _) => wanted["network"] = network.to_string().into(),
        (None, name) => wanted["name"] = name.clone().into(),
    }
    if let Some(until) = &args.until {
        wanted["until"] = until.clone().into();
    }
    if let Some(time) = args.time {
        wanted["seconds"] = time.as_secs().into();
    }
    let json = client.post("/bans", &wanted).await?;
    Ok(Done { text: format!("banned: {}\n", show::ban(&json)), json })
}

async fn unban(client: &Client, args: &UnbanArgs) -> Result<Done, Refused> {
    let is_known =
        |text: &Value, meant: &KnownBan| text.as_str().is_some_and(|text| text.parse().as_ref() == Ok(meant));
    let id = match (&args.ban, &args.name) {
        (Some(KnownBan::Id(id)), _) => *id,
        (Some(meant), _) => {
            find(client, |ban| is_known(&ban["network"], meant) || is_known(&ban["server"]["id"], meant)).await?
        }
        (None, name) => find(client, |ban| ban["name"] == name.as_deref().unwrap_or_default().trim()).await?,
    };
    client.delete(&format!("/bans/{id}")).await?;
    Ok(Done { text: format!("ban {id} is removed\n"), json: json!({ "unbanned": id }) })
}

/// The number of a ban that can be removed.
async fn find(client: &Client, is_meant: impl Fn(&Value) -> bool) -> Result<u64, Refused> {
    let bans = client.list("/bans?", "bans", MOST).await?;
    let known: Vec<_> = bans["bans"].as_array().into_iter().flatten().filter(|ban| is_meant(ban)).collect();
    known.iter().find_map(|ban| ban["id"].as_u64()).ok_or_else(|| match known.is_empty() {
        true => Refused::by_lobby("there is no such ban: see rallypoint admin bans"),
        false => Refused::by_lobby("this ban is in the lobby's configuration: remove it there"),
    })
}

async fn unlist(client: &Client, args: &UnlistArgs) -> Result<Done, Refused> {
    let mut wanted = json!({ "reason": args.reason, "ban": args.ban });
    if let Some(time) = args.time {
        wanted["seconds"] = time.as_secs().into();
    }
    let json = client.post(&format!("/servers/{}/unlist", args.server), &wanted).await?;
    Ok(Done { text: show::unlisted(&json), json })
}

async fn note(client: &Client, args: &NoteArgs) -> Result<Done, Refused> {
    let json = client.post("/notes", &json!({ "about": args.about, "text": args.text })).await?;
    Ok(Done { text: format!("noted as {}\n", json["id"]), json })
}

/// A text within an address.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'.' | b':' | b'/' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// A token that nobody can guess.
fn new_token() -> Result<String, CommandError> {
    let bytes: [u8; 32] = entropy::bytes().map_err(CommandError::failed)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
