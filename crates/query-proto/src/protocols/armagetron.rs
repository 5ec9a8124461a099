//! Armagetron Advanced: a short query, without which servers ignore a long one, and the long query. Neither has a token.

#[cfg(test)]
mod tests;

use crate::{
    Extension, ExtensionValue, MissingPart, Player, RawReply, ServerInfo,
    exchange::{Accepted, Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        armagetron::{self, Info, Query, Response, strip_colours},
    },
    text,
};

/// The query protocol of Armagetron Advanced.
pub(crate) struct Armagetron;

const SHORT: Request = Request(0);
const LONG: Request = Request(1);

/// Which replies have arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_short: bool,
    has_long: bool,
}

impl QueryProtocol for Armagetron {
    const MAX_DATAGRAM: usize = armagetron::MAX_DATAGRAM;
    const HAS_TOKEN: bool = false;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        match detail {
            Detail::Presence => Requests::only_if(SHORT, !progress.has_short && !progress.has_long),
            _ => Requests::only_if(LONG, !progress.has_long),
        }
    }

    /// The short query comes first each time, in case the server restarts or the first one was lost.
    fn attempt(progress: &Progress, detail: Detail) -> Requests {
        let outstanding = Self::outstanding(progress, detail);
        outstanding.with(Requests::only_if(SHORT, !outstanding.is_empty()))
    }

    fn emit(_progress: Option<&mut Progress>, request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        if request == LONG { Query::Long } else { Query::Short }.emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        detail: Detail,
        _context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let is_short = Response::parse(datagram)? == Response::Short;
        let has_arrived = if is_short { &mut progress.has_short } else { &mut progress.has_long };
        if std::mem::replace(has_arrived, true) {
            return Ok(Received::Redundant);
        }
        let is_transient = is_short && detail != Detail::Presence;
        Ok(Received::Accepted(Accepted { is_transient, ..Accepted::default() }))
    }

    fn is_query(quoted: &[u8]) -> bool {
        Query::is_query(quoted)
    }

    fn finish(_progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let long = raw.datagrams().flat_map(Response::parse).find_map(|response| match response {
            Response::Long(info) => Some(info),
            Response::Short => None,
        });
        let mut missing = Vec::new();
        if long.is_none() && detail != Detail::Presence {
            missing.push(MissingPart::Part("the long description"));
        }
        (server_info(long.as_ref()), missing)
    }
}

fn server_info(info: Option<&Info>) -> ServerInfo {
    let game = ServerInfo {
        game: Some("armagetron".into()),
        game_name: Some("Armagetron Advanced".into()),
        ..ServerInfo::default()
    };
    let Some(info) = info else { return game };
    let shown = |text: &Option<Vec<u8>>| text.as_deref().map(show).filter(|text| !text.is_empty());
    let is_set = |bit: u16| info.flags.map_or(ExtensionValue::Unknown, |flags| (flags & bit != 0).into());
    let version = |index: usize| info.versions.map_or(ExtensionValue::Unknown, |versions| versions[index].into());
    let extension = Extension::from([
        ("oldest_protocol", version(0)),
        ("latest_protocol", version(1)),
        ("authentication_required", is_set(1)),
        ("custom_map", is_set(2)),
        ("team_play", is_set(4)),
    ]);
    ServerInfo {
        name: Some(show(&info.name)),
        description: shown(&info.options),
        version: shown(&info.release),
        website: shown(&info.website),
        players: info.users.try_into().ok(),
        max_players: info.max_users.and_then(|users| users.try_into().ok()),
        player_list: info
            .user_names
            .as_deref()
            .map(|names| players(names, info.user_ids.as_deref().unwrap_or_default())),
        extensions: [(Protocol::Armagetron, extension)].into(),
        ..game
    }
}

/// The players by their names and their identifiers, which have a line each.
fn players(names: &[u8], ids: &[u8]) -> Vec<Player> {
    let mut ids = ids.split(|byte| *byte == b'\n');
    let names = names.split(|byte| *byte == b'\n');
    // An empty name is no player: it is what follows the last line break.
    let named = names.map(|name| (name, ids.next().unwrap_or_default())).filter(|(name, _)| !name.is_empty());
    named
        .map(|(name, id)| {
            let id = if id.is_empty() { ExtensionValue::Unknown } else { show(id).into() };
            Player { name: show(name), extension: Extension::from([("global_id", id)]), ..Player::default() }
        })
        .collect()
}

fn show(bytes: &[u8]) -> String {
    text::display(&strip_colours(bytes)).trim().to_owned()
}
