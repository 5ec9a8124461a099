//! Document 003: two queries without echo values; seven infos, then teams and players, in reply.

mod progress;
mod replies;

pub use replies::SessionReplies;

use crate::{
    Extension, MissingPart, Mod, Player, RawReply, ServerInfo, Team,
    exchange::{Context, Query, QueryProtocol, QueryToken, Received, Request, Requests, Token},
    responder::Datagrams,
};
use progress::SessionProgress;
use rallypoint_wire::{
    DecodeError, bloodmasters,
    query::{Detail, Protocol},
    session::{self, ClientDatagram, Info, ServerDatagram, Summary, Text, TextList},
    text,
};

/// The query part of the session protocol.
pub(crate) struct Session;

const INFOS: Request = Request(0);
const PLAYERS: Request = Request(1);

impl QueryProtocol for Session {
    const MAX_DATAGRAM: usize = session::MAX_DATAGRAM;
    const HAS_TOKEN: bool = false;
    const IS_TRIED_UNASKED: bool = true;
    const HAS_RESPONDER: bool = true;

    type State = SessionProgress;

    fn outstanding(progress: &SessionProgress, detail: Detail) -> Requests {
        let needs_infos = match detail {
            Detail::Presence => !progress.has_any_info(),
            Detail::Info | Detail::Players => !progress.has_all_infos(),
        };
        let needs_players = detail == Detail::Players && progress.lacks_players();
        Requests::only_if(INFOS, needs_infos).with(Requests::only_if(PLAYERS, needs_players))
    }

    /// The number of players may have changed: a request for the players is accompanied by one for their number.
    fn attempt(progress: &SessionProgress, detail: Detail) -> Requests {
        Self::outstanding(progress, detail).with(Requests::of(INFOS))
    }

    fn emit(
        progress: Option<&mut SessionProgress>,
        request: Request,
        _token: impl FnOnce() -> Token,
        out: &mut Vec<u8>,
    ) {
        if request == PLAYERS {
            if let Some(progress) = progress {
                progress.note_players_requested();
            }
            ClientDatagram::QueryPlayers.emit(out);
        } else {
            ClientDatagram::Query.emit(out);
        }
    }

    fn handle(
        progress: &mut SessionProgress,
        datagram: &[u8],
        detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        // Some replies of document 002 start like an info of document 003, but no info is also a complete reply.
        if bloodmasters::Reply::parse(datagram).is_ok_and(|reply| reply.is_complete()) {
            return Ok(Received::Foreign);
        }
        let datagram = ServerDatagram::parse(datagram)?;
        if !progress.accept(&datagram, context) {
            return Ok(Received::Redundant);
        }
        // Only the summary shows whether there are any players to request.
        let is_summary = matches!(datagram, ServerDatagram::Info(Info::Summary(_)));
        let wants_players = is_summary && detail == Detail::Players && progress.lacks_players();
        Ok(Received::accepted(Requests::only_if(PLAYERS, wants_players)))
    }

    fn is_query(quoted: &[u8]) -> bool {
        matches!(ClientDatagram::parse(quoted), Ok(ClientDatagram::Query | ClientDatagram::QueryPlayers))
    }

    fn finish(progress: &SessionProgress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut info = ServerInfo::from_session(raw.session());
        if detail == Detail::Players && progress.has_all_players() {
            // An empty server: its list of players is known to be empty.
            info.player_list.get_or_insert_default();
        }
        (info, progress.missing(detail))
    }

    fn replies(info: &ServerInfo) -> Vec<Datagrams> {
        vec![replies::infos(info), replies::players(info)]
    }

    /// A query is exactly one byte, so that an info that is sent to a server, misdirected or forged, is not answered (S2).
    fn queries(datagram: &[u8], mut answer: impl FnMut(Query) -> bool) -> bool {
        let kind = match ClientDatagram::parse(datagram) {
            Ok(ClientDatagram::Query) => 0,
            Ok(ClientDatagram::QueryPlayers) => 1,
            _ => return false,
        };
        answer(Query { kind, token: QueryToken::EMPTY, growth: 0 });
        true
    }
}

impl RawReply {
    /// The datagrams of document 003, if this is a reply of that protocol.
    pub fn session(&self) -> impl Iterator<Item = ServerDatagram<'_>> {
        self.datagrams().flat_map(ServerDatagram::parse)
    }
}

impl ServerInfo {
    /// The common view of the infos, teams and players in these datagrams; other datagrams are ignored. Of repeated infos and
    /// teams the last one counts; players are all kept (S10).
    #[must_use]
    pub fn from_session<'a>(datagrams: impl IntoIterator<Item = ServerDatagram<'a>>) -> Self {
        let mut server = Self::default();
        let mut ids = Vec::new();
        let mut names = Vec::new();
        for datagram in datagrams {
            match datagram {
                ServerDatagram::Info(Info::ModIds(list)) => ids = items(list),
                ServerDatagram::Info(Info::ModNames(list)) => names = items(list),
                ServerDatagram::Info(info) => server.apply_info(&info),
                ServerDatagram::Team(team) => {
                    let team = Team { id: team.team, name: show(team.name), ranked: team.ranked, color: team.color };
                    match server.teams.iter_mut().find(|known| known.id == team.id) {
                        Some(known) => *known = team,
                        None => server.teams.push(team),
                    }
                }
                ServerDatagram::Player(player) => server.player_list.get_or_insert_default().push(Player {
                    name: show(*player.username),
                    team: Some(player.team),
                    rank: Some(player.rank),
                    ping_ms: Some(player.ping.0.into()),
                    platform: Some(player.platform),
                    ..Player::default()
                }),
                _ => {}
            }
        }
        // The two lists belong together, item by item; one of them may be missing or shorter.
        let length = ids.len().max(names.len());
        let mut ids = ids.into_iter();
        let mut names = names.into_iter();
        server.mods = (0..length).map(|_| Mod { id: ids.next(), name: names.next() }).collect();
        server
    }

    fn apply_info(&mut self, info: &Info<'_>) {
        match *info {
            Info::Summary(summary) => self.apply_summary(&summary),
            Info::Title(title) => {
                self.name = Some(show(*title.name()));
                self.description = Some(show(title.description()));
            }
            Info::GameName(name) => self.game_name = Some(show(name)),
            Info::Map(map) => self.map = Some(show(map)),
            Info::Tags(tags) => self.tags = items(tags),
            Info::ModIds(_) | Info::ModNames(_) => {}
        }
    }

    fn apply_summary(&mut self, summary: &Summary<'_>) {
        self.game = Some(show(summary.game));
        let has_version = (summary.version_type, summary.version) != (0, 0);
        self.version = has_version.then(|| summary.version.to_string());
        self.players = Some(summary.players.into());
        self.max_players = Some(summary.max_players.into());
        // Numbers whose meaning is up to the game (S6). The version is unknown if it and its type are 0 (W43).
        let own = Extension::from([
            ("revision", summary.revision.into()),
            ("engine_revision", summary.engine_revision.into()),
            ("version_type", summary.version_type.into()),
            ("version", summary.version.into()),
        ]);
        self.extensions.insert(Protocol::Session, own);
    }
}

fn items(list: TextList<'_>) -> Vec<String> {
    list.iter().map(show).collect()
}

/// Decoded with replacement characters (S3), and safe to display.
fn show<const MAX: usize>(field: Text<'_, MAX>) -> String {
    text::sanitize(&field.to_str_lossy()).into_owned()
}
