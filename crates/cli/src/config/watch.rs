//! The `[[watch]]` tables: servers that the lobby probes because they cannot register.

use super::{
    nearest,
    setting_type::{SettingType, Value, ValueError, all, found, quoted},
};
use rallypoint_lobby::WatchTarget;
use rallypoint_query::{Host, ServerAddress, Target, lobby_names, proto::Protocol};
use rallypoint_wire::lobby::LobbyId;
use std::{collections::BTreeMap, num::NonZeroU16};
use toml::de::DeValue;

/// The keys of one `[[watch]]`.
pub const KEYS: [&str; 2] = ["server", "lobby"];

/// The type of the list of watched servers. A source that has one replaces the whole list.
pub struct WatchListType<'a> {
    /// Names of lobbies, so that they can be given by name.
    pub names: &'a BTreeMap<LobbyId, String>,
}

impl SettingType for WatchListType<'_> {
    type Of = Vec<WatchTarget>;

    fn expects(&self) -> String {
        "[[watch]] with server, such as \"bloodmasters://play.example.org:6969\" or \"session://203.0.113.1:45555\", \
         and with lobby, its name or UUID"
            .into()
    }

    fn set(&self, target: &mut Vec<WatchTarget>, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        let DeValue::Array(lines) = value.get_ref() else {
            return Err(vec![ValueError::new(format!("expected {}, {}", self.expects(), found(value.get_ref())))]);
        };
        let read = all(lines.iter().map(|line| self.read(line)))?;
        for (place, one) in read.iter().enumerate() {
            if read[..place].iter().any(|other| other.to_string() == one.to_string()) {
                return Err(vec![
                    ValueError::new(format!("{one} is listed twice; remove one of them")).at(lines[place].span()),
                ]);
            }
        }
        *target = read;
        Ok(())
    }

    fn show(&self, targets: &Vec<WatchTarget>) -> String {
        let targets: Vec<_> = targets.iter().map(|one| format!("{{ {} }}", lines(one).join(", "))).collect();
        format!("[{}]", targets.join(", "))
    }
}

impl WatchListType<'_> {
    /// Parses one table, or returns everything that is wrong with it.
    fn read(&self, line: &Value<'_>) -> Result<WatchTarget, Vec<ValueError>> {
        let Some(table) = line.get_ref().as_table() else {
            return Err(vec![ValueError::new(format!("expected {}", self.expects())).at(line.span())]);
        };
        let mut server = None;
        let mut lobby = None;
        let mut errors = Vec::new();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let text = || match value.get_ref().as_str() {
                Some(text) => Ok(text),
                None => Err(ValueError::new(format!("{name}: expected text, {}", found(value.get_ref())))),
            };
            let result = match name {
                "server" => text().and_then(read_server).map(|read| server = Some(read)),
                "lobby" => text().and_then(|text| self.read_lobby(text)).map(|read| lobby = Some(read)),
                unknown => {
                    let message = format!("unknown key {} in [[watch]]{}", quoted(unknown), nearest(unknown, KEYS));
                    Err(ValueError::new(message).at(key.span()))
                }
            };
            errors.extend(result.err().map(|error| error.at(value.span())));
        }
        for key in KEYS.iter().filter(|key| !table.keys().any(|known| known.get_ref() == **key)) {
            errors.push(ValueError::new(format!("this [[watch]] lacks {key}")).at(line.span()));
        }
        match (server, lobby) {
            (Some((server, protocol)), Some(lobby)) if errors.is_empty() => {
                let default = NonZeroU16::new(protocol.default_port());
                let host = match server.host {
                    Host::Ip(ip) => ip.to_string(),
                    Host::Name(name) => name.into(),
                };
                let port = server.port.or(default).ok_or_else(Vec::new)?;
                Ok(WatchTarget { host, port, protocol, lobby })
            }
            _ => Err(errors),
        }
    }

    fn read_lobby(&self, text: &str) -> Result<LobbyId, ValueError> {
        let fits = |name: &&String| !name.is_empty() && name.to_lowercase() == text.trim().to_lowercase();
        let named = self.names.iter().find(|(_, name)| fits(name)).map(|(id, _)| *id);
        named.map_or_else(|| lobby_names::find(text), Ok).map_err(|_| {
            let known: Vec<_> = self.names.values().filter(|name| !name.is_empty()).map(quoted).collect();
            ValueError::new(format!("lobby: expected a UUID or one of {}, not {}", known.join(", "), quoted(text)))
        })
    }
}

fn read_server(text: &str) -> Result<(ServerAddress, Protocol), ValueError> {
    match text.parse() {
        Ok(Target::Server(server @ ServerAddress { protocol: Some(protocol), .. })) => Ok((server, protocol)),
        _ => {
            let expected = "bloodmasters://host:port or session://host:port";
            Err(ValueError::new(format!("server: expected {expected}, not {}", quoted(text))))
        }
    }
}

/// The keys of one server, one per line.
pub fn lines(target: &WatchTarget) -> [String; 2] {
    [format!("server = {}", quoted(target)), format!("lobby = {}", quoted(target.lobby))]
}
