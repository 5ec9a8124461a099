//! Lobbies that are known by name.

use super::kind::{Kind, Value, Wrong, all, found, quoted};
use rallypoint_wire::lobby::LobbyId;
use std::collections::BTreeMap;
use toml::de::DeValue;

/// The lobbies that everybody knows, and short forms of their names for the command line.
const KNOWN: [(&str, &str, &str); 3] = [
    ("1ccf16b1-436d-856f-504d-cc1af306aaa7", "Gang Garrison 2", "gg2"),
    ("0e29560e-443a-93a3-e15e-7bd072df7506", "PyGG2 testing", "pygg2"),
    ("4fd0319b-5868-4f24-8b77-568cbb18fde9", "Vanguard", "vanguard"),
];

/// Names by lobby. A file adds to what is there; an empty name takes one away.
pub struct Names;

/// The names that need no configuration.
pub fn known() -> BTreeMap<LobbyId, String> {
    KNOWN.iter().filter_map(|(id, name, _)| Some((id.parse().ok()?, (*name).to_owned()))).collect()
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
        let DeValue::Table(names) = value.get_ref() else {
            return Err(vec![Wrong::new(format!("expected {}, {}", self.expects(), found(value.get_ref())))]);
        };
        let new = all(names.iter().map(|(id, name)| {
            let id = id.get_ref().parse::<LobbyId>().map_err(|_| {
                let message = format!("expected the UUID of a lobby, not {}", quoted(id.get_ref()));
                Wrong::new(message).at(id.span())
            })?;
            let text = name.get_ref().as_str().ok_or_else(|| {
                let message = format!("expected the name of a lobby, {}", found(name.get_ref()));
                Wrong::new(message).at(name.span())
            })?;
            Ok((id, text.to_owned()))
        }))?;
        target.extend(new);
        Ok(())
    }

    fn show(&self, names: &Self::Of) -> String {
        let names: Vec<_> = names.iter().map(|(id, name)| format!("{} = {}", quoted(id), quoted(name))).collect();
        format!("{{ {} }}", names.join(", "))
    }
}
