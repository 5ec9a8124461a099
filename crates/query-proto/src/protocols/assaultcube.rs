//! AssaultCube: the same exchange as with servers of Cube 2.

#[cfg(test)]
mod tests;

use super::cube2::{Game, Progress};
use crate::{
    MissingPart, RawReply, ServerInfo,
    exchange::{Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        cube2::{self, Flavour},
    },
};

/// The query protocol of AssaultCube.
pub(crate) struct AssaultCube;

/// The game.
const GAME: Game = Game {
    flavour: Flavour::AssaultCube,
    protocol: Protocol::AssaultCube,
    id: "assaultcube",
    name: "AssaultCube",
    modes: &[
        "team deathmatch",
        "coopedit",
        "deathmatch",
        "survivor",
        "team survivor",
        "capture the flag",
        "pistol frenzy",
        "bot team deathmatch",
        "bot deathmatch",
        "last swiss standing",
        "one shot, one kill",
        "team one shot, one kill",
        "bot one shot, one kill",
        "hunt the flag",
        "team keep the flag",
        "keep the flag",
        "team pistol frenzy",
        "team last swiss standing",
        "bot pistol frenzy",
        "bot last swiss standing",
        "bot team survivor",
        "bot team one shot, one kill",
    ],
    modes_without_teams: &[-1, 1, 2, 3, 6, 8, 9, 10, 12, 15, 18, 19],
    master_modes: &["open", "private", "match"],
    first_master_mode: 0,
    teams: &[("CLA", [255, 0, 0]), ("RVSF", [0, 0, 255])],
};

impl QueryProtocol for AssaultCube {
    const MAX_DATAGRAM: usize = cube2::MAX_DATAGRAM;
    const HAS_TOKEN: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        progress.outstanding(detail)
    }

    fn emit(_progress: Option<&mut Progress>, request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        GAME.emit(request, token(), out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        GAME.handle(progress, datagram, context)
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        GAME.finish(progress, detail, raw)
    }
}
