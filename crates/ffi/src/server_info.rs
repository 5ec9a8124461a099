//! The description that a server answers queries with.

use crate::{
    arguments::{self, SizedConfig},
    failure::Failure,
};
use rallypoint_session::{Player, ServerInfo};
use std::ffi::c_char;

/// What a server answers queries with. Set `size` to the size of the structure. Texts may be null; a number that is negative is
/// unknown.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct rp_server_info {
    /// Size of this structure in bytes.
    pub size: u32,
    /// Number of players.
    pub players: i32,
    /// Maximum number of players.
    pub max_players: i32,
    /// Number of bots.
    pub bots: i32,
    /// Whether a password is required: 1, 0, or -1.
    pub password: i32,
    /// Not used.
    pub reserved: u32,
    /// Name of the server.
    pub name: *const c_char,
    /// Short name of the game.
    pub game: *const c_char,
    /// Game mode.
    pub mode: *const c_char,
    /// Current map.
    pub map: *const c_char,
    /// Names of the players, separated by line feeds. Without them, a query for players waits in vain for a list.
    pub player_names: *const c_char,
}

// SAFETY: `repr(C)`, begins with its size, and consists of integers and pointers that may be null.
unsafe impl SizedConfig for rp_server_info {
    const MIN_SIZE: usize = size_of::<Self>();
}

/// Reads the information.
///
/// # Safety
/// Texts are null or zero-terminated.
pub(crate) unsafe fn read(info: &rp_server_info) -> Result<ServerInfo, Failure> {
    let text = |text| {
        // SAFETY: as promised by the caller.
        unsafe { arguments::optional_text(text) }.map(|text| text.map(str::to_owned))
    };
    let number = |value: i32, name: &str| match value {
        ..0 => Ok(None),
        _ => {
            u16::try_from(value).map(Some).map_err(|_| Failure::argument(format!("{name} is {value}: use 0 to 65535")))
        }
    };
    Ok(ServerInfo {
        name: text(info.name)?,
        game: text(info.game)?,
        mode: text(info.mode)?,
        map: text(info.map)?,
        players: number(info.players, "players")?,
        max_players: number(info.max_players, "max_players")?,
        bots: number(info.bots, "bots")?,
        password: (info.password >= 0).then_some(info.password > 0),
        player_list: text(info.player_names)?.map(|names| names.lines().map(player).collect()),
        ..ServerInfo::default()
    })
}

fn player(name: &str) -> Player {
    Player { name: name.to_owned(), ..Player::default() }
}
