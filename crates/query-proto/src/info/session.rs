//! From document 003.

use super::{Mod, Player, ServerInfo, Team};
use rallypoint_wire::{
    session::{Info, ServerDatagram, Summary, Text, TextList},
    text,
};

/// What only a server of the session protocol tells: the game's own numbers (S6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// The revision of the protocol that it speaks.
    pub revision: u8,
    /// The game's engine.
    pub engine_revision: u32,
    /// What kind of version the next one is.
    pub version_type: u8,
    /// The game's version; none if both are 0 (W43).
    pub version: u32,
}

impl ServerInfo {
    /// What a server said in these datagrams; others than infos, teams and players say nothing here. Of a part that is
    /// there twice, the last counts; players are all taken (S10).
    #[must_use]
    pub fn from_session<'a>(datagrams: impl IntoIterator<Item = ServerDatagram<'a>>) -> Self {
        let mut server = Self::default();
        let (mut ids, mut names) = (Vec::new(), Vec::new());
        for datagram in datagrams {
            match datagram {
                ServerDatagram::Info(Info::ModIds(list)) => ids = items(list),
                ServerDatagram::Info(Info::ModNames(list)) => names = items(list),
                ServerDatagram::Info(info) => server.take_info(&info),
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
        let (mut ids, mut names) = (ids.into_iter(), names.into_iter());
        server.mods = (0..length).map(|_| Mod { id: ids.next(), name: names.next() }).collect();
        server
    }

    fn take_info(&mut self, info: &Info<'_>) {
        match *info {
            Info::Summary(summary) => self.take_summary(&summary),
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

    fn take_summary(&mut self, summary: &Summary<'_>) {
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

/// Decoded with replacement (S3), and harmless.
fn show<const MAX: usize>(field: Text<'_, MAX>) -> String {
    text::harmless(&field.to_str_lossy()).into_owned()
}
