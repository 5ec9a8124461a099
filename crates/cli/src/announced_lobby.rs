//! A lobby that a server registers with, as `--lobby` takes it.

use crate::error::CommandError;
use rallypoint_announce::LobbyHost;
use rallypoint_query::list_names;
use rallypoint_wire::lobby::ListId;
use std::str::FromStr;

/// A lobby, and the list in which the server is to appear, if it was named: `host[:port][/list]`, as all commands take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncedLobby {
    pub host: LobbyHost,
    pub list: Option<ListId>,
}

impl AnnouncedLobby {
    /// The list that `--list` or the lobbies name; `default` if none of them does. A server is in one list.
    pub fn common_list(lobbies: &[Self], list_id: Option<ListId>, default: ListId) -> Result<ListId, CommandError> {
        let mut lists = list_id.into_iter().chain(lobbies.iter().filter_map(|lobby| lobby.list));
        let first = lists.next().unwrap_or(default);
        match lists.find(|list| *list != first) {
            None => Ok(first),
            Some(other) => Err(CommandError::Usage(format!(
                "a server is announced to one list, but {} and {} are named: run the command once for each",
                list_names::short_name(first),
                list_names::short_name(other)
            ))),
        }
    }

    /// The lobbies without their lists.
    pub fn hosts(lobbies: &[Self]) -> Vec<LobbyHost> {
        lobbies.iter().map(|lobby| lobby.host.clone()).collect()
    }
}

impl From<LobbyHost> for AnnouncedLobby {
    fn from(host: LobbyHost) -> Self {
        Self { host, list: None }
    }
}

impl FromStr for AnnouncedLobby {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with("http://") || text.starts_with("https://") {
            let host = text.split("://").nth(1).and_then(|rest| rest.split(['/', ':']).next()).unwrap_or_default();
            return Err(format!("this is the address of a page; servers register with the lobby itself: {host}"));
        }
        let text = text.strip_prefix("lobby://").unwrap_or(text);
        let (host, list) = text.split_once('/').unwrap_or((text, ""));
        let list = Some(list.trim_end_matches('/')).filter(|list| !list.is_empty());
        Ok(Self {
            host: host.parse().map_err(|error: rallypoint_announce::ParseLobbyHostError| error.to_string())?,
            list: list.map(list_names::find).transpose().map_err(|error| error.to_string())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lobby_may_name_its_list() {
        let parse = |text: &str| text.parse::<AnnouncedLobby>().map(|lobby| (lobby.host.to_string(), lobby.list));
        let rooms = list_names::find("rooms").ok();
        assert_eq!(parse("lobby.example.org"), Ok(("lobby.example.org".into(), None)));
        assert_eq!(parse("lobby.example.org/"), Ok(("lobby.example.org".into(), None)));
        assert_eq!(parse("lobby.example.org:4000/rooms"), Ok(("lobby.example.org:4000".into(), rooms)));
        assert_eq!(parse("lobby://[2001:db8::1]/rooms"), Ok(("[2001:db8::1]".into(), rooms)));
        assert!(parse("lobby.example.org/quake").unwrap_err().contains("gg2"));
        assert!(parse("http://lobby.example.org:29950/").unwrap_err().ends_with("itself: lobby.example.org"));
    }

    #[test]
    fn a_server_is_in_one_list() {
        let lobbies = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
        let [gg2, rooms] = ["gg2", "rooms"].map(|name| list_names::find(name).unwrap());
        let list = |texts: &[&str], id| AnnouncedLobby::common_list(&lobbies(texts), id, gg2).ok();
        assert_eq!(list(&["a"], None), Some(gg2));
        assert_eq!(list(&["a", "b/rooms"], None), Some(rooms));
        assert_eq!(list(&["b/rooms"], Some(rooms)), Some(rooms));
        assert_eq!(list(&["b/rooms"], Some(gg2)), None);
        assert_eq!(list(&["a/gg2", "b/rooms"], None), None);
    }
}
