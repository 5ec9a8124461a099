//! TeamSpeak 3: commands of the server query, one after the other, without a login.
//!
//! Which virtual server is meant, the address of the query does not tell: it is the one at the usual port or, if there is none, the
//! first one that runs.

#[cfg(test)]
mod tests;

use super::json;
use crate::{
    Extension, ExtensionValue, MissingPart, Player, RawReply, ServerInfo,
    exchange::{Accepted, Context, QueryProtocol, Received, Request, Requests, Token, Transport},
};
use rallypoint_wire::{
    DecodeError, DecodeErrorKind,
    query::{
        Detail, Protocol,
        teamspeak3::{self, Command, Entry, Line, number, unescape},
    },
    text,
};

/// The server query of TeamSpeak 3.
pub(crate) struct TeamSpeak3;

const USE_PORT: Request = Request(0);
const SERVER_LIST: Request = Request(1);
const USE_ID: Request = Request(2);
const SERVER_INFO: Request = Request(3);
const CLIENT_LIST: Request = Request(4);

/// How far the dialog has come.
#[derive(Debug, Default)]
pub(crate) struct Dialog {
    has_banner: bool,
    /// The command that is being answered.
    current: Option<u8>,
    /// Number of the virtual server to select.
    server_id: Option<u32>,
    info: Answer<Box<ServerInfo>>,
    clients: Answer<Vec<Player>>,
}

/// The reply to a command.
#[derive(Debug, Default)]
enum Answer<T> {
    #[default]
    Awaited,
    /// The line has arrived; the end of the reply has not.
    Begun(T),
    Complete(T),
    /// The server does not permit it.
    Denied,
}

impl<T> Answer<T> {
    fn is_over(&self) -> bool {
        matches!(self, Self::Complete(_) | Self::Denied)
    }

    fn value(&self) -> Option<&T> {
        match self {
            Self::Complete(value) => Some(value),
            Self::Awaited | Self::Begun(_) | Self::Denied => None,
        }
    }

    /// The reply has ended, with this number of an error. True if there is a value.
    fn end(&mut self, id: u32) -> bool {
        *self = match std::mem::take(self) {
            Self::Begun(value) if id == 0 => Self::Complete(value),
            _ => Self::Denied,
        };
        matches!(self, Self::Complete(_))
    }
}

impl QueryProtocol for TeamSpeak3 {
    const TRANSPORT: Transport = Transport::Tcp;
    const MAX_DATAGRAM: usize = teamspeak3::MAX_LINE;
    const HAS_TOKEN: bool = false;

    type State = Dialog;

    fn outstanding(dialog: &Dialog, detail: Detail) -> Requests {
        match detail {
            Detail::Presence => Requests::only_if(USE_PORT, !dialog.has_banner),
            Detail::Info => Requests::only_if(SERVER_INFO, !dialog.info.is_over()),
            Detail::Players => Requests::only_if(SERVER_INFO, !dialog.info.is_over())
                .with(Requests::only_if(CLIENT_LIST, !dialog.clients.is_over())),
        }
    }

    /// The server speaks first.
    fn attempt(_dialog: &Dialog, _detail: Detail) -> Requests {
        Requests::NONE
    }

    fn emit(dialog: Option<&mut Dialog>, request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let Some(dialog) = dialog else { return };
        dialog.current = Some(request.0);
        match request {
            USE_PORT => Command::UsePort(teamspeak3::VOICE_PORT),
            SERVER_LIST => Command::ServerList,
            // The first virtual server has this number.
            USE_ID => Command::UseId(dialog.server_id.unwrap_or(1)),
            SERVER_INFO => Command::ServerInfo,
            _ => Command::ClientList,
        }
        .emit(out);
    }

    fn frame(_dialog: &Dialog, received: &[u8]) -> Result<Option<usize>, DecodeError> {
        Ok(received.iter().position(|byte| *byte == b'\n').map(|at| at + 1))
    }

    fn handle(
        dialog: &mut Dialog,
        line: &[u8],
        detail: Detail,
        _context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let transient =
            |next| Ok(Received::Accepted(Accepted { next: Requests::of(next), is_transient: true, attempt: None }));
        let current = dialog.current.map(Request);
        match Line::parse(line) {
            Line::Banner if !dialog.has_banner => {
                dialog.has_banner = true;
                if detail == Detail::Presence { Ok(Received::accepted(Requests::NONE)) } else { transient(USE_PORT) }
            }
            _ if !dialog.has_banner => Err(DecodeError { field: "banner", kind: DecodeErrorKind::Mismatch }),
            Line::Banner | Line::Other => Ok(Received::Redundant),
            Line::End { id } => {
                dialog.current = None;
                match current {
                    Some(USE_PORT | USE_ID) if id == 0 => transient(SERVER_INFO),
                    Some(USE_PORT) => transient(SERVER_LIST),
                    Some(SERVER_LIST) => transient(USE_ID),
                    Some(SERVER_INFO) => {
                        let has_value = dialog.info.end(id);
                        match (has_value, detail) {
                            (_, Detail::Players) => {
                                let next = Requests::of(CLIENT_LIST);
                                Ok(Received::Accepted(Accepted { next, is_transient: !has_value, attempt: None }))
                            }
                            (true, _) => Ok(Received::accepted(Requests::NONE)),
                            (false, _) => Err(denied("serverinfo")),
                        }
                    }
                    Some(CLIENT_LIST) => {
                        let has_value = dialog.clients.end(id);
                        // What has arrived before is a reply without this part.
                        let is_any = has_value || dialog.info.value().is_some();
                        if is_any { Ok(Received::accepted(Requests::NONE)) } else { Err(denied("clientlist")) }
                    }
                    Some(USE_ID) => Err(denied("virtual server")),
                    _ => Ok(Received::Redundant),
                }
            }
            Line::Entries(entries) => {
                match current {
                    Some(SERVER_LIST) => {
                        let runs = |entry: &Entry<'_>| entry.get("virtualserver_status") == Some(b"online");
                        let server = entries.iter().find(runs).or_else(|| entries.iter().next());
                        dialog.server_id = server.and_then(|entry| entry.get("virtualserver_id").and_then(number));
                    }
                    Some(SERVER_INFO) => {
                        let entry = entries.iter().next().filter(|entry| entry.get("virtualserver_name").is_some());
                        let entry = entry.ok_or(DecodeError { field: "serverinfo", kind: DecodeErrorKind::Invalid })?;
                        dialog.info = Answer::Begun(Box::new(server_info(&entry)));
                    }
                    Some(CLIENT_LIST) => {
                        dialog.clients = Answer::Begun(entries.iter().filter_map(|entry| player(&entry)).collect());
                    }
                    _ => return Ok(Received::Redundant),
                }
                Ok(Received::Accepted(Accepted { is_transient: true, ..Accepted::default() }))
            }
        }
    }

    fn finish(dialog: &Dialog, detail: Detail, _raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut missing = Vec::new();
        let mut info = dialog.info.value().map_or_else(ServerInfo::default, |info| (**info).clone());
        if dialog.info.value().is_none() && detail != Detail::Presence {
            missing.push(MissingPart::Part("serverinfo"));
        }
        match dialog.clients.value() {
            Some(clients) => {
                info.players.get_or_insert(u16::try_from(clients.len()).unwrap_or(u16::MAX));
                info.player_list = Some(clients.clone());
            }
            None if detail == Detail::Players => missing.push(MissingPart::Part("clientlist")),
            None => {}
        }
        (info, missing)
    }
}

fn denied(field: &'static str) -> DecodeError {
    DecodeError { field, kind: DecodeErrorKind::Missing }
}

fn show(value: &[u8]) -> Option<String> {
    json::show(&text::display(&unescape(value)))
}

/// What the server shows of the clients that people use; the others are queries, of which this is one.
fn player(entry: &Entry<'_>) -> Option<Player> {
    let is_person = entry.get("client_type").is_none_or(|kind| kind == b"0");
    let name = entry.get("client_nickname").filter(|_| is_person)?;
    Some(Player { name: show(name).unwrap_or_default(), ..Player::default() })
}

fn server_info(entry: &Entry<'_>) -> ServerInfo {
    let get = |key: &str| entry.get(key).and_then(show);
    let value = |key: &str| entry.get(key).and_then(number);
    let field = |key: &str| value(key).map_or(ExtensionValue::Unknown, ExtensionValue::from);
    let count = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    let queries = value("virtualserver_queryclientsonline").unwrap_or(0);
    let clients = value("virtualserver_clientsonline").map(|clients| clients.saturating_sub(queries));
    let rule = |(key, value): (&[u8], &[u8])| {
        let name = show(key.strip_prefix(b"virtualserver_").unwrap_or(key))?;
        // A password, even if it is only a hash, is nothing to show.
        (name != "password").then(|| (name, show(value).unwrap_or_default()))
    };
    let extension = [
        ("server_id", field("virtualserver_id")),
        ("voice_port", field("virtualserver_port")),
        ("channels", field("virtualserver_channelsonline")),
        ("uptime_s", field("virtualserver_uptime")),
        ("reserved_slots", field("virtualserver_reserved_slots")),
    ];
    ServerInfo {
        name: get("virtualserver_name"),
        description: get("virtualserver_welcomemessage"),
        game: Some("teamspeak3".into()),
        game_name: Some("TeamSpeak 3".into()),
        version: get("virtualserver_version"),
        website: get("virtualserver_hostbutton_url"),
        password: entry.get("virtualserver_flag_password").map(|flag| flag == b"1"),
        players: clients.map(count),
        max_players: value("virtualserver_maxclients").map(count),
        rules: entry.iter().filter_map(rule).collect(),
        extensions: [(Protocol::TeamSpeak3, Extension::from(extension))].into(),
        ..ServerInfo::default()
    }
}
