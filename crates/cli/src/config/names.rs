//! Names of lobbies.

use super::setting_type::{SettingType, Value, ValueError, all, found, quoted};
use rallypoint_web::JoinLink;
use rallypoint_wire::lobby::LobbyId;
use std::collections::BTreeMap;
use toml::de::DeValue;

/// ID of the list for rooms (`rallypoint host`). It is separate from those of games, which could not join a room.
pub const ROOMS: &str = "6b7de0f4-5b2f-4c0e-9a57-0d1f6f3c8e21";

/// Well-known lobbies: ID, name, and short name for the command line.
const KNOWN: [(&str, &str, &str); 5] = [
    ("1ccf16b1-436d-856f-504d-cc1af306aaa7", "Gang Garrison 2", "gg2"),
    ("0e29560e-443a-93a3-e15e-7bd072df7506", "PyGG2 testing", "pygg2"),
    ("4fd0319b-5868-4f24-8b77-568cbb18fde9", "Vanguard", "vanguard"),
    (ROOMS, "Rallypoint rooms", "rooms"),
    ("c3c4f9d0-7f63-4d0b-8a0e-2b1d5e6f7a90", "Bloodmasters", "bloodmasters"),
];

/// The type of `lobby.names`. A file adds to the defaults; an empty name removes one.
pub struct LobbyNamesType;

/// The default names.
pub fn known() -> BTreeMap<LobbyId, String> {
    KNOWN.iter().filter_map(|(id, name, _)| Some((id.parse().ok()?, (*name).to_owned()))).collect()
}

/// The short name of a well-known lobby, otherwise the UUID; [`find`] accepts both.
pub fn shown(id: LobbyId) -> String {
    let is_it = |known: &str| known.parse::<LobbyId>().is_ok_and(|known| known == id);
    let known = KNOWN.iter().find(|(known, ..)| is_it(known));
    known.map_or_else(|| id.to_string(), |(_, _, short)| (*short).to_owned())
}

/// Parses a UUID or one of the well-known names, ignoring case, spaces and hyphens.
pub fn find(text: &str) -> Result<LobbyId, String> {
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let fits = |name: &str| plain(name) == plain(text);
    let known = KNOWN.iter().find(|(_, name, short)| fits(name) || fits(short));
    known.map_or(text, |(id, ..)| id).parse().map_err(|_| {
        let names: Vec<_> = KNOWN.iter().map(|(_, name, short)| format!("{short} ({name})")).collect();
        format!("expected the lobby's UUID or one of {}", names.join(", "))
    })
}

impl SettingType for LobbyNamesType {
    type Of = BTreeMap<LobbyId, String>;

    fn expects(&self) -> String {
        "lobby UUIDs with their names".into()
    }

    fn set(&self, target: &mut Self::Of, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        target.extend(by_lobby(value, &self.expects(), "the name of a lobby", |name| Some(name.to_owned()))?);
        Ok(())
    }

    fn show(&self, names: &Self::Of) -> String {
        let names: Vec<_> = names.iter().map(|(id, name)| format!("{} = {}", quoted(id), quoted(name))).collect();
        format!("{{ {} }}", names.join(", "))
    }
}

/// The type of `web.joins`: links that join a server, by lobby.
pub struct JoinLinksType;

impl SettingType for JoinLinksType {
    type Of = BTreeMap<LobbyId, JoinLink>;

    fn expects(&self) -> String {
        "lobby UUIDs with links".into()
    }

    fn set(&self, target: &mut Self::Of, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let link = "a link that contains {address}, or {ip} and {port}";
        target.extend(by_lobby(value, &self.expects(), link, |link| link.parse().ok())?);
        Ok(())
    }

    fn show(&self, links: &Self::Of) -> String {
        let links: Vec<_> = links.iter().map(|(id, link)| format!("{} = {}", quoted(id), quoted(link))).collect();
        if links.is_empty() { "{}".into() } else { format!("{{ {} }}", links.join(", ")) }
    }
}

/// Parses a table from lobby IDs to strings.
fn by_lobby<T>(
    value: &Value<'_>,
    expects: &str,
    each: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<(LobbyId, T)>, Vec<ValueError>> {
    let DeValue::Table(entries) = value.get_ref() else {
        return Err(vec![ValueError::new(format!("expected {expects}, {}", found(value.get_ref())))]);
    };
    all(entries.iter().map(|(id, text)| {
        let id = id.get_ref().parse::<LobbyId>().map_err(|_| {
            let message = format!("expected the UUID of a lobby, not {}", quoted(id.get_ref()));
            ValueError::new(message).at(id.span())
        })?;
        let value = text.get_ref().as_str().and_then(&read).ok_or_else(|| {
            let message = format!("expected {each}, {}", found(text.get_ref()));
            ValueError::new(message).at(text.span())
        })?;
        Ok((id, value))
    }))
}
