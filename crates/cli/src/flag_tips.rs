//! Tips for flags that a command does not have, but that its users expect.

use clap::{
    Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Adds a tip to an error about an unknown flag, if there is one for this command.
pub fn add(error: &mut Error, command: &str) {
    let flag = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) => flag.clone(),
        _ => return,
    };
    let name = flag.split('=').next().unwrap_or_default();
    if let Some(tip) = tip(command, name) {
        // A flag that is only spelled similarly, and its usage.
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
}

fn tip(command: &str, flag: &str) -> Option<&'static str> {
    match (command, flag) {
        ("serve", "--port" | "--listen" | "--bind") => Some(
            "the lobby has --lobby ADDR:PORT, its page --http ADDR:PORT, and the port for old games --legacy ADDR:PORT, \
             such as --http 0.0.0.0:8080",
        ),
        ("demo", "--port" | "--listen" | "--bind") => {
            Some("the page has --http ADDR:PORT, such as --http 127.0.0.1:8080")
        }
        ("host", "--port" | "--bind") => Some("write --listen ADDR:PORT, such as --listen 0.0.0.0:45556"),
        ("list" | "browse" | "watch", "--lobby" | "--server" | "--host") => {
            Some("write the lobby without a flag: HOST, or lobby://HOST")
        }
        ("query" | "check" | "ping" | "doctor" | "join", "--port") => Some("write the port after the host: HOST:PORT"),
        ("list" | "browse" | "watch", "--port") => Some("write the port after the host: HOST:PORT"),
        ("query" | "check" | "ping" | "doctor" | "join", "--server" | "--host") => {
            Some("write the server without a flag: HOST or HOST:PORT")
        }
        ("query" | "check", "--lobby") => Some("write a lobby as lobby://HOST"),
        ("announce", "--server" | "--host") => {
            Some("write --lobby HOST for the lobby, and --port for the port of the game")
        }
        ("browse" | "watch", "--list") => Some("write the list after the lobby: lobby://HOST/NAME"),
        _ => None,
    }
}
