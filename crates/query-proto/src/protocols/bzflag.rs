//! BZFlag: a greeting, then the game, the scores of the teams and the players. The name of a server is only in the list of servers.

#[cfg(test)]
mod tests;

use super::json;
use crate::{
    Extension, MissingPart, Player, RawReply, ServerInfo, Team,
    exchange::{Accepted, Context, QueryProtocol, Received, Request, Requests, Token, Transport},
};
use rallypoint_wire::{
    DecodeError, DecodeErrorKind,
    query::{
        Detail, Protocol,
        bzflag::{self, Game, Greeting, Message, OBSERVERS, PlayerEntry, TeamEntry},
    },
    text,
};
use std::collections::BTreeMap;

/// The queries of BZFlag.
pub(crate) struct BzFlag;

const GREETING: Request = Request(0);
const GAME: Request = Request(1);
const PLAYERS: Request = Request(2);

/// What has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    version: Option<[u8; 4]>,
    game: Option<Box<Game>>,
    teams: Vec<TeamEntry>,
    /// Number of players that were announced.
    expected: Option<u16>,
    players: Vec<Player>,
    /// Number of players that are programs.
    bots: u16,
}

impl Progress {
    fn has_players(&self) -> bool {
        self.expected.is_some_and(|expected| self.players.len() >= usize::from(expected))
    }
}

impl QueryProtocol for BzFlag {
    const TRANSPORT: Transport = Transport::Tcp;
    const MAX_DATAGRAM: usize = bzflag::MAX_MESSAGE;
    const HAS_TOKEN: bool = false;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        Requests::only_if(GREETING, progress.version.is_none())
            .with(Requests::only_if(GAME, progress.game.is_none() && detail != Detail::Presence))
            .with(Requests::only_if(PLAYERS, !progress.has_players() && detail == Detail::Players))
    }

    fn emit(_progress: Option<&mut Progress>, request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        out.extend_from_slice(match request {
            GREETING => bzflag::GREETING,
            GAME => bzflag::QUERY_GAME,
            _ => bzflag::QUERY_PLAYERS,
        });
    }

    fn frame(progress: &Progress, received: &[u8]) -> Result<Option<usize>, DecodeError> {
        if progress.version.is_some() {
            return bzflag::frame(received);
        }
        Ok((received.len() >= bzflag::GREETING_LENGTH).then_some(bzflag::GREETING_LENGTH))
    }

    fn handle(
        progress: &mut Progress,
        message: &[u8],
        detail: Detail,
        _context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        if progress.version.is_none() {
            let greeting = Greeting::parse(message)?;
            if !greeting.is_welcome && detail != Detail::Presence {
                return Err(DecodeError { field: "room for a query", kind: DecodeErrorKind::Missing });
            }
            progress.version = Some(greeting.version);
            let is_transient = detail != Detail::Presence;
            return Ok(Received::Accepted(Accepted { is_transient, ..Accepted::default() }));
        }
        match Message::parse(message)? {
            Message::Game(game) => progress.game = Some(Box::new(game)),
            Message::Count { players } => progress.expected = Some(players),
            Message::Teams(teams) => progress.teams = teams.iter().take(bzflag::TEAMS.len()).collect(),
            Message::Player(entry) if progress.expected.is_some() && !progress.has_players() => {
                progress.bots += u16::from(is_bot(&entry));
                progress.players.push(player(&entry));
            }
            Message::Player(_) | Message::Other => return Ok(Received::Redundant),
        }
        Ok(Received::accepted(Requests::NONE))
    }

    fn finish(progress: &Progress, detail: Detail, _raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut missing = Vec::new();
        if progress.game.is_none() && detail != Detail::Presence {
            missing.push(MissingPart::Part("game"));
        }
        if !progress.has_players() && detail == Detail::Players {
            let received = progress.players.len() as u16;
            missing.push(MissingPart::Players { received, expected: progress.expected });
        }
        (server_info(progress), missing)
    }
}

fn is_bot(entry: &PlayerEntry<'_>) -> bool {
    entry.kind != 0 && entry.team != OBSERVERS
}

fn player(entry: &PlayerEntry<'_>) -> Player {
    Player {
        name: json::show(&text::display(entry.name)).unwrap_or_default(),
        team: u8::try_from(entry.team).ok(),
        score: Some(i32::from(entry.wins) - i32::from(entry.losses)),
        spectator: entry.team == OBSERVERS,
        ..Player::default()
    }
}

/// Colours of the teams, by number.
const COLORS: [[u8; 3]; 8] = [
    [255, 255, 0],
    [255, 0, 0],
    [0, 255, 0],
    [0, 0, 255],
    [255, 0, 255],
    [0, 255, 255],
    [204, 204, 204],
    [255, 128, 0],
];

fn team(entry: &TeamEntry) -> Option<Team> {
    let index = usize::from(entry.team);
    let (name, color) = (*bzflag::TEAMS.get(index)?, *COLORS.get(index)?);
    Some(Team { id: index as u8, name: name.into(), ranked: entry.team != OBSERVERS, color })
}

fn server_info(progress: &Progress) -> ServerInfo {
    let mut info = ServerInfo {
        game: Some("bzflag".into()),
        game_name: Some("BZFlag".into()),
        teams: progress.teams.iter().filter_map(team).collect(),
        player_list: progress.expected.map(|_| progress.players.clone()),
        bots: progress.has_players().then_some(progress.bots),
        ..ServerInfo::default()
    };
    if let Some(version) = progress.version {
        let version = String::from_utf8_lossy(&version).into_owned();
        info.extensions = [(Protocol::BzFlag, Extension::from([("protocol", version.into())]))].into();
    }
    if let Some(game) = progress.game.as_deref() {
        let [players @ .., observers] = game.sizes;
        let players = players.into_iter().fold(0, u16::saturating_add);
        info.players = Some(players.saturating_sub(progress.bots));
        info.spectators = Some(observers);
        info.max_players = Some(game.max_players);
        info.mode = bzflag::STYLES.get(usize::from(game.style)).map(|style| (*style).into());
        info.rules = rules(game);
    }
    for entry in &progress.teams {
        if let Some(name) = bzflag::TEAMS.get(usize::from(entry.team)) {
            let score = i32::from(entry.wins) - i32::from(entry.losses);
            info.rules.insert(format!("score_{}", name.to_ascii_lowercase()), score.to_string());
        }
    }
    info
}

fn rules(game: &Game) -> BTreeMap<String, String> {
    let seconds = |tenths: u16| format!("{}.{}", tenths / 10, tenths % 10);
    let options = bzflag::OPTIONS.iter().map(|(name, bit)| (*name, (game.options & bit != 0).to_string()));
    let numbers = [
        ("max_shots", game.max_shots.to_string()),
        ("shake_wins", game.shake_wins.to_string()),
        ("shake_timeout_s", seconds(game.shake_timeout)),
        ("max_player_score", game.max_player_score.to_string()),
        ("max_team_score", game.max_team_score.to_string()),
        ("max_time_s", seconds(game.max_time)),
        ("elapsed_s", seconds(game.elapsed)),
    ];
    options.chain(numbers).map(|(name, value)| (name.to_owned(), value)).collect()
}
