//! The description of a server.

use super::WHOLE;
use crate::{DecodeError, Reader, Writer};
use alloc::vec::Vec;

/// The description of a server.
///
/// ```text
/// ff ff ff ff 49 PROTOCOL name 00 map 00 folder 00 game 00 APP(2) PLAYERS MAX BOTS TYPE SYSTEM PASSWORD VAC
///     [MODE WITNESSES DURATION]                      only The Ship
///     version 00
///     [FLAGS [PORT(2)] [STEAM_ID(8)] [TV_PORT(2) tv_name 00] [keywords 00] [GAME_ID(8)]]
///            80        10            40                       20           01
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info<'a> {
    /// Version of the network protocol of the game.
    pub protocol: u8,
    /// Name of the server.
    pub name: &'a [u8],
    /// Current map.
    pub map: &'a [u8],
    /// Folder of the game, its short name: "cstrike".
    pub folder: &'a [u8],
    /// Full name of the game, or what the server calls its mode.
    pub game: &'a [u8],
    /// Steam's number of the game; the low 16 bits of [`Extra::game_id`]. Old GoldSrc servers do not send it.
    pub app_id: Option<u16>,
    /// Number of clients. Most games include bots.
    pub players: u8,
    /// Maximum number of clients.
    pub max_players: u8,
    /// Number of bots. HLTV does not send it.
    pub bots: Option<u8>,
    /// What kind of server it is: `d` dedicated, `l` listen, `p` SourceTV or HLTV. GoldSrc may send capitals.
    pub server_type: u8,
    /// Operating system: `l` Linux, `w` Windows, `m` or `o` macOS.
    pub environment: u8,
    /// Whether a password is required.
    pub password: bool,
    /// Whether Valve Anti-Cheat is on.
    pub vac: bool,
    /// Fields of The Ship.
    pub ship: Option<Ship>,
    /// Version of the game. Old GoldSrc servers do not send it.
    pub version: Option<&'a [u8]>,
    /// Optional fields at the end.
    pub extra: Extra<'a>,
    /// Fields that only old GoldSrc servers send.
    pub obsolete: Option<Obsolete<'a>>,
    /// Where the optional fields are cut off.
    pub cut: Option<DecodeError>,
}

/// Optional fields at the end of an [`Info`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extra<'a> {
    /// Port of the game.
    pub port: Option<u16>,
    /// Steam ID of the server.
    pub steam_id: Option<u64>,
    /// Port and name of SourceTV, for spectators.
    pub source_tv: Option<(u16, &'a [u8])>,
    /// Tags, usually separated by commas.
    pub keywords: Option<&'a [u8]>,
    /// Steam's number of the game in the low 24 bits.
    pub game_id: Option<u64>,
}

/// Fields of The Ship in an [`Info`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ship {
    /// Game mode.
    pub mode: u8,
    /// Number of witnesses that it takes to be arrested.
    pub witnesses: u8,
    /// Seconds before an arrest while being witnessed.
    pub duration: u8,
}

/// Fields of an [`Info`] that only old GoldSrc servers send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obsolete<'a> {
    /// Address of the server as it knows it, with its port.
    pub address: &'a [u8],
    /// The mod that the server runs, if the game is one.
    pub mod_info: Option<Mod<'a>>,
}

/// A mod of an old GoldSrc server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mod<'a> {
    /// Website.
    pub link: &'a [u8],
    /// Website to download from.
    pub download_link: &'a [u8],
    /// Version of the mod.
    pub version: u32,
    /// Size in bytes.
    pub size: u32,
    /// Whether it is for several players only.
    pub multiplayer_only: bool,
    /// Whether it has a program library of its own.
    pub own_library: bool,
}

/// Steam's numbers of The Ship: the game, and its other releases.
const SHIP: [u16; 4] = [2400, 2401, 2402, 2412];

const PORT: u8 = 0x80;
const STEAM_ID: u8 = 0x10;
const SOURCE_TV: u8 = 0x40;
const KEYWORDS: u8 = 0x20;
const GAME_ID: u8 = 0x01;

impl<'a> Info<'a> {
    /// Steam's number of the game, complete if the server sends it.
    #[must_use]
    pub fn full_app_id(&self) -> Option<u32> {
        let full = self.extra.game_id.map(|id| (id & 0xff_ffff) as u32).filter(|id| *id != 0);
        full.or(self.app_id.filter(|id| *id != 0).map(u32::from))
    }

    pub(super) fn parse(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let mut info = Self {
            protocol: reader.u8("protocol")?,
            name: reader.until(0, "name")?,
            map: reader.until(0, "map")?,
            folder: reader.until(0, "folder")?,
            game: reader.until(0, "game")?,
            ..Self::default()
        };
        let app_id = reader.u16_le("app ID")?;
        info.app_id = Some(app_id);
        info.players = reader.u8("number of players")?;
        info.max_players = reader.u8("maximum number of players")?;
        info.bots = Some(reader.u8("number of bots")?);
        info.server_type = reader.u8("server type")?;
        info.environment = reader.u8("environment")?;
        info.password = reader.u8("password")? != 0;
        info.vac = reader.u8("VAC")? != 0;
        if SHIP.contains(&app_id) {
            let [mode, witnesses, duration] = *reader.array("mode of The Ship")?;
            info.ship = Some(Ship { mode, witnesses, duration });
        }
        info.version = Some(reader.until(0, "version")?);
        if !reader.is_empty() {
            info.cut = info.extra.parse(&mut reader).err();
        }
        Ok(info)
    }

    /// ```text
    /// ff ff ff ff 6d address 00 name 00 map 00 folder 00 game 00 PLAYERS MAX PROTOCOL TYPE SYSTEM PASSWORD
    ///     IS_MOD [link 00 download_link 00 00 VERSION(4) SIZE(4) MULTIPLAYER_ONLY OWN_LIBRARY] VAC [BOTS]
    /// ```
    pub(super) fn parse_obsolete(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let address = reader.until(0, "address")?;
        let mut info = Self {
            name: reader.until(0, "name")?,
            map: reader.until(0, "map")?,
            folder: reader.until(0, "folder")?,
            game: reader.until(0, "game")?,
            players: reader.u8("number of players")?,
            max_players: reader.u8("maximum number of players")?,
            protocol: reader.u8("protocol")?,
            server_type: reader.u8("server type")?.to_ascii_lowercase(),
            environment: reader.u8("environment")?.to_ascii_lowercase(),
            password: reader.u8("password")? != 0,
            ..Self::default()
        };
        let mod_info = if reader.u8("mod")? == 1 { Some(Mod::parse(&mut reader)?) } else { None };
        info.obsolete = Some(Obsolete { address, mod_info });
        info.vac = reader.u8("VAC")? != 0;
        info.bots = reader.u8("number of bots").ok();
        Ok(info)
    }

    /// Appends the message, without the fields of old GoldSrc servers.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let Extra { port, steam_id, source_tv, keywords, game_id } = self.extra;
        let text = |bytes: &[u8], writer: &mut Writer<'_>| {
            writer.bytes(bytes.split(|byte| *byte == 0).next().unwrap_or_default());
            writer.u8(0);
        };
        let mut writer = Writer::new(out);
        writer.bytes(&WHOLE);
        writer.u8(b'I');
        writer.u8(self.protocol);
        for field in [self.name, self.map, self.folder, self.game] {
            text(field, &mut writer);
        }
        writer.u16_le(self.app_id.unwrap_or(0));
        writer.bytes(&[self.players, self.max_players, self.bots.unwrap_or(0), self.server_type, self.environment]);
        writer.bytes(&[self.password.into(), self.vac.into()]);
        if let Some(Ship { mode, witnesses, duration }) = self.ship {
            writer.bytes(&[mode, witnesses, duration]);
        }
        text(self.version.unwrap_or_default(), &mut writer);
        let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
        let flags = flag(PORT, port.is_some())
            | flag(STEAM_ID, steam_id.is_some())
            | flag(SOURCE_TV, source_tv.is_some())
            | flag(KEYWORDS, keywords.is_some())
            | flag(GAME_ID, game_id.is_some());
        if flags == 0 {
            return;
        }
        writer.u8(flags);
        if let Some(port) = port {
            writer.u16_le(port);
        }
        if let Some(id) = steam_id {
            writer.u64_le(id);
        }
        if let Some((port, name)) = source_tv {
            writer.u16_le(port);
            text(name, &mut writer);
        }
        if let Some(keywords) = keywords {
            text(keywords, &mut writer);
        }
        if let Some(id) = game_id {
            writer.u64_le(id);
        }
    }
}

impl<'a> Extra<'a> {
    fn parse(&mut self, reader: &mut Reader<'a>) -> Result<(), DecodeError> {
        let flags = reader.u8("flags")?;
        if flags & PORT != 0 {
            self.port = Some(reader.u16_le("port")?);
        }
        if flags & STEAM_ID != 0 {
            self.steam_id = Some(reader.u64_le("Steam ID")?);
        }
        if flags & SOURCE_TV != 0 {
            self.source_tv = Some((reader.u16_le("port of SourceTV")?, reader.until(0, "name of SourceTV")?));
        }
        if flags & KEYWORDS != 0 {
            self.keywords = Some(reader.until(0, "keywords")?);
        }
        if flags & GAME_ID != 0 {
            self.game_id = Some(reader.u64_le("game ID")?);
        }
        Ok(())
    }
}

impl<'a> Mod<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let link = reader.until(0, "website of the mod")?;
        let download_link = reader.until(0, "download of the mod")?;
        reader.u8("unused byte")?;
        Ok(Self {
            link,
            download_link,
            version: reader.u32_le("version of the mod")?,
            size: reader.u32_le("size of the mod")?,
            multiplayer_only: reader.u8("type of the mod")? != 0,
            own_library: reader.u8("library of the mod")? != 0,
        })
    }
}

#[cfg(test)]
mod tests;
