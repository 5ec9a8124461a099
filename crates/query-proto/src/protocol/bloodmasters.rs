//! Document 002: one query with an echo value, one datagram in reply.

use super::{QueryProtocol, Request, Requests};
use crate::{Detail, MissingPart, Player, RawReply, ServerInfo, Team, secret::TableKey};
use rallypoint_wire::{
    DecodeError,
    bloodmasters::{self, Echo, GameType, Info, Reply, Rules},
    text,
};

/// The Bloodmasters query protocol.
pub(crate) struct Bloodmasters;

/// Whether a reply has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_reply: bool,
}

impl QueryProtocol for Bloodmasters {
    const NAME: &'static str = "bloodmasters";
    const DEFAULT_PORT: u16 = bloodmasters::PORT;
    const HAS_ECHO: bool = true;
    const HAS_UNMISTAKABLE_REPLIES: bool = true;

    type Message<'a> = Reply<'a>;
    type Progress = Progress;

    fn parse(bytes: &[u8]) -> Result<Reply<'_>, DecodeError> {
        Reply::parse(bytes)
    }

    /// Some replies of document 002 start like an info of document 003, but no info is also a complete reply.
    fn is_unmistakable(reply: &Reply<'_>) -> bool {
        reply.is_complete()
    }

    fn echo(reply: &Reply<'_>) -> Option<Echo> {
        Some(reply.echo())
    }

    fn emit(_request: Request, echo: impl FnOnce() -> Echo, out: &mut Vec<u8>) {
        bloodmasters::Query { echo: echo() }.emit(out);
    }

    /// Always false: a quote of such a query either has its echo value, or is of something else.
    fn is_query(_quoted: &[u8]) -> bool {
        false
    }

    fn accept(progress: &mut Progress, _reply: &Reply<'_>, _key: TableKey) -> bool {
        !std::mem::replace(&mut progress.has_reply, true)
    }

    fn changes_requests(_reply: &Reply<'_>) -> bool {
        false
    }

    fn outstanding(progress: &Progress, _detail: Detail) -> Requests {
        Requests { info: !progress.has_reply, players: false }
    }

    fn finish(_progress: &Progress, _detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        match raw.bloodmasters() {
            Some(reply) => {
                let truncated = reply.warning().map(MissingPart::Truncated);
                (ServerInfo::from_bloodmasters(&reply), truncated.into_iter().collect())
            }
            // Cannot happen: the datagram was parsed before it was stored.
            None => (ServerInfo::default(), Vec::new()),
        }
    }
}

impl RawReply {
    /// The reply of document 002, if this is one.
    #[must_use]
    pub fn bloodmasters(&self) -> Option<Reply<'_>> {
        self.datagrams().next().and_then(|datagram| Reply::parse(datagram).ok())
    }
}

/// Fields of a server that exist in document 002 only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BloodmastersInfo {
    /// Protocol version of the server.
    pub protocol: u8,
    /// Number of connected clients, spectators included.
    pub clients: u8,
    /// Maximum number of connected clients.
    pub max_clients: u8,
    /// Game type, as the document numbers it.
    pub game_type: GameType,
    /// Score and time limits; not sent before protocol version 27.
    pub rules: Option<Rules>,
}

impl Default for BloodmastersInfo {
    fn default() -> Self {
        Self {
            protocol: Info::PROTOCOL,
            clients: 0,
            max_clients: 0,
            game_type: GameType::DEATHMATCH,
            rules: Some(Rules::default()),
        }
    }
}

impl ServerInfo {
    /// The common view of a reply of a Bloodmasters server.
    #[must_use]
    pub fn from_bloodmasters(reply: &Reply<'_>) -> Self {
        let info = reply.info();
        let clients = reply.clients();
        let show = |bytes| Some(text::display(bytes).into_owned());
        let list: Vec<Player> = clients
            .iter()
            .map(|client| Player {
                name: text::display(client.name).into_owned(),
                team: Some(client.team.0),
                ping_ms: Some(client.ping.into()),
                spectator: client.spectator,
                ..Player::default()
            })
            .collect();
        Self {
            name: show(info.title),
            game: Some("bloodmasters".into()),
            game_name: Some("Bloodmasters".into()),
            mode: Some(info.game_type.to_string()),
            map: show(info.map_name),
            version: reply.build().and_then(show),
            website: show(info.website),
            password: Some(info.locked),
            players: Some(info.players.into()),
            max_players: Some(info.max_players.into()),
            spectators: Some(clients.count().saturating_sub(info.players).into()),
            teams: teams_of(&list),
            // Before protocol version 27 the player records are not sent at all (B6).
            player_list: reply.rules().is_some().then_some(list),
            bloodmasters: Some(BloodmastersInfo {
                protocol: info.protocol,
                clients: clients.count(),
                max_clients: info.max_clients,
                game_type: info.game_type,
                rules: reply.rules(),
            }),
            ..Self::default()
        }
    }
}

/// The game has two teams, which no server describes (B11): those of them that have players.
fn teams_of(players: &[Player]) -> Vec<Team> {
    [(bloodmasters::Team::RED, [255, 0, 0]), (bloodmasters::Team::BLUE, [0, 0, 255])]
        .into_iter()
        .filter(|(team, _)| players.iter().any(|player| player.team == Some(team.0)))
        .map(|(team, color)| Team { id: team.0, name: team.to_string(), ranked: false, color })
        .collect()
}
