//! Names of lobbies.

use super::setting_type::{SettingType, Value, ValueError, all, found, quoted};
use rallypoint_query::lobby_names;
use rallypoint_web::JoinLink;
use rallypoint_wire::lobby::LobbyId;
use std::collections::BTreeMap;
use toml::de::DeValue;

/// The type of `lobby.names`. A file adds to the defaults; an empty name removes one.
pub struct LobbyNamesType;

/// The default names.
pub fn known() -> BTreeMap<LobbyId, String> {
    lobby_names::known().map(|lobby| (lobby.id, lobby.name.to_owned())).collect()
}

impl SettingType for LobbyNamesType {
    type Of = BTreeMap<LobbyId, String>;

    fn expects(&self) -> String {
        "lobbies (UUIDs or well-known names) with their names".into()
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
        "lobbies (UUIDs or well-known names) with links".into()
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
        let id = lobby_names::find(id.get_ref()).map_err(|unknown| {
            let message = format!("{unknown}, not {}", quoted(id.get_ref()));
            ValueError::new(message).at(id.span())
        })?;
        let value = text.get_ref().as_str().and_then(&read).ok_or_else(|| {
            let message = format!("expected {each}, {}", found(text.get_ref()));
            ValueError::new(message).at(text.span())
        })?;
        Ok((id, value))
    }))
}
