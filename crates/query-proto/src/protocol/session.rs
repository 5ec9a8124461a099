//! Document 003: two queries without echo values; seven infos, then teams and players, in reply.

use super::{QueryProtocol, Request, Requests, session_progress::SessionProgress};
use crate::{Detail, MissingPart, Mod, Player, RawReply, ServerInfo, Team, secret::TableKey};
use rallypoint_wire::{
    DecodeError,
    bloodmasters::Echo,
    session::{self, ClientDatagram, Info, ServerDatagram, Summary, Text, TextList},
    text,
};

/// The query part of the session protocol.
pub(crate) struct Session;

impl QueryProtocol for Session {
    const NAME: &'static str = "session";
    const DEFAULT_PORT: u16 = session::PORT;
    const HAS_ECHO: bool = false;
    const HAS_UNMISTAKABLE_REPLIES: bool = false;

    type Message<'a> = ServerDatagram<'a>;
    type Progress = SessionProgress;

    fn parse(bytes: &[u8]) -> Result<ServerDatagram<'_>, DecodeError> {
        ServerDatagram::parse(bytes)
    }

    fn is_unmistakable(_datagram: &ServerDatagram<'_>) -> bool {
        false
    }

    fn echo(_datagram: &ServerDatagram<'_>) -> Option<Echo> {
        None
    }

    fn emit(request: Request, _echo: impl FnOnce() -> Echo, out: &mut Vec<u8>) {
        match request {
            Request::Info => ClientDatagram::Query.emit(out),
            Request::Players => ClientDatagram::QueryPlayers.emit(out),
        }
    }

    fn is_query(quoted: &[u8]) -> bool {
        matches!(ClientDatagram::parse(quoted), Ok(ClientDatagram::Query | ClientDatagram::QueryPlayers))
    }

    fn note_players_requested(progress: &mut SessionProgress) {
        progress.note_players_requested();
    }

    fn accept(progress: &mut SessionProgress, datagram: &ServerDatagram<'_>, key: TableKey) -> bool {
        progress.accept(datagram, key)
    }

    /// Only the summary shows whether there are any players to request.
    fn changes_requests(datagram: &ServerDatagram<'_>) -> bool {
        matches!(datagram, ServerDatagram::Info(Info::Summary(_)))
    }

    fn outstanding(progress: &SessionProgress, detail: Detail) -> Requests {
        match detail {
            Detail::Presence => Requests { info: !progress.has_any_info(), players: false },
            Detail::Info => Requests { info: !progress.has_all_infos(), players: false },
            Detail::Players => Requests { info: !progress.has_all_infos(), players: progress.lacks_players() },
        }
    }

    fn finish(progress: &SessionProgress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut info = ServerInfo::from_session(raw.session());
        if detail == Detail::Players && progress.has_all_players() {
            // An empty server: its list of players is known to be empty.
            info.player_list.get_or_insert_default();
        }
        (info, progress.missing(detail))
    }
}

impl RawReply {
    /// The datagrams of document 003, if this is a reply of that protocol.
    pub fn session(&self) -> impl Iterator<Item = ServerDatagram<'_>> {
        self.datagrams().flat_map(ServerDatagram::parse)
    }
}

/// Fields of a server that exist in document 003 only: numbers whose meaning is up to the game (S6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// Revision of the protocol that the server speaks.
    pub revision: u8,
    /// Revision of the game's engine.
    pub engine_revision: u32,
    /// How to read [`version`](Self::version).
    pub version_type: u8,
    /// Version of the game; unknown if this and the type are 0 (W43).
    pub version: u32,
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
                    spectator: false,
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
        self.session = Some(SessionInfo {
            revision: summary.revision,
            engine_revision: summary.engine_revision,
            version_type: summary.version_type,
            version: summary.version,
        });
    }
}

fn items(list: TextList<'_>) -> Vec<String> {
    list.iter().map(show).collect()
}

/// Decoded with replacement characters (S3), and safe to display.
fn show<const MAX: usize>(field: Text<'_, MAX>) -> String {
    text::sanitize(&field.to_str_lossy()).into_owned()
}
