//! Lobbies that are known by name.

use super::kind::{Kind, Value, Wrong, all, found, quoted};
use rallypoint_web::JoinLink;
use rallypoint_wire::lobby::LobbyId;
use std::collections::BTreeMap;
use toml::de::DeValue;

/// The list for rooms (`rallypoint host`): a number of its own, so that no game shows what it cannot join.
pub const ROOMS: &str = "6b7de0f4-5b2f-4c0e-9a57-0d1f6f3c8e21";

/// The lobbies that everybody knows, and short forms of their names for the command line.
const KNOWN: [(&str, &str, &str); 5] = [
    ("1ccf16b1-436d-856f-504d-cc1af306aaa7", "Gang Garrison 2", "gg2"),
    ("0e29560e-443a-93a3-e15e-7bd072df7506", "PyGG2 testing", "pygg2"),
    ("4fd0319b-5868-4f24-8b77-568cbb18fde9", "Vanguard", "vanguard"),
    (ROOMS, "Rallypoint rooms", "rooms"),
    ("c3c4f9d0-7f63-4d0b-8a0e-2b1d5e6f7a90", "Bloodmasters", "bloodmasters"),
];

/// Names by lobby. A file adds to what is there; an empty name takes one away.
pub struct Names;

/// The names that need no configuration.
pub fn known() -> BTreeMap<LobbyId, String> {
    KNOWN.iter().filter_map(|(id, name, _)| Some((id.parse().ok()?, (*name).to_owned()))).collect()
}

/// As a person would name a lobby: the short name if it is known, otherwise the UUID. [`find`] finds it by that.
pub fn shown(id: LobbyId) -> String {
    let is_it = |known: &str| known.parse::<LobbyId>().is_ok_and(|known| known == id);
    let known = KNOWN.iter().find(|(known, ..)| is_it(known));
    known.map_or_else(|| id.to_string(), |(_, _, short)| (*short).to_owned())
}

/// A lobby by its UUID or by one of the known names; upper and lower case, spaces and hyphens make no difference.
pub fn find(text: &str) -> Result<LobbyId, String> {
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let fits = |name: &str| plain(name) == plain(text);
    let known = KNOWN.iter().find(|(_, name, short)| fits(name) || fits(short));
    known.map_or(text, |(id, ..)| id).parse().map_err(|_| {
        let names: Vec<_> = KNOWN.iter().map(|(_, name, short)| format!("{short} ({name})")).collect();
        format!("expected the lobby's UUID or one of {}", names.join(", "))
    })
}

impl Kind for Names {
    type Of = BTreeMap<LobbyId, String>;

    fn expects(&self) -> String {
        "lobby UUIDs with their names".into()
    }

    fn set(&self, target: &mut Self::Of, value: &Value<'_>) -> Result<(), Vec<Wrong>> {
        target.extend(by_lobby(value, &self.expects(), "the name of a lobby", |name| Some(name.to_owned()))?);
        Ok(())
    }

    fn show(&self, names: &Self::Of) -> String {
        let names: Vec<_> = names.iter().map(|(id, name)| format!("{} = {}", quoted(id), quoted(name))).collect();
        format!("{{ {} }}", names.join(", "))
    }
}

/// Links that join a server, by lobby. A file adds to what is there.
pub struct Joins;

impl Kind for Joins {
    type Of = BTreeMap<LobbyId, JoinLink>;

    fn expects(&self) -> String {
        "lobby UUIDs with links".into()
    }

    fn set(&self, target: &mut Self::Of, value: &Value<'_>) -> Result<(), Vec<Wrong>> {
        let link = "a link with {address}, or {ip} and {port}, in it";
        target.extend(by_lobby(value, &self.expects(), link, |link| link.parse().ok())?);
        Ok(())
    }

    fn show(&self, links: &Self::Of) -> String {
        let links: Vec<_> = links.iter().map(|(id, link)| format!("{} = {}", quoted(id), quoted(link))).collect();
        if links.is_empty() { "{}".into() } else { format!("{{ {} }}", links.join(", ")) }
    }
}

/// A table of lobbies, each with a text that is read.
fn by_lobby<T>(
    value: &Value<'_>,
    expects: &str,
    each: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<(LobbyId, T)>, Vec<Wrong>> {
    let DeValue::Table(entries) = value.get_ref() else {
        return Err(vec![Wrong::new(format!("expected {expects}, {}", found(value.get_ref())))]);
    };
    all(entries.iter().map(|(id, text)| {
        let id = id.get_ref().parse::<LobbyId>().map_err(|_| {
            let message = format!("expected the UUID of a lobby, not {}", quoted(id.get_ref()));
            Wrong::new(message).at(id.span())
        })?;
        let value = text.get_ref().as_str().and_then(&read).ok_or_else(|| {
            let message = format!("expected {each}, {}", found(text.get_ref()));
            Wrong::new(message).at(text.span())
        })?;
        Ok((id, value))
    }))
}
