//! The query of OpenTTD over TCP, at the port of the game: since version 12 the only one that describes a game.
//!
//! Numbers are little-endian, texts end with a zero byte. The length of a packet includes itself:
//!
//! ```text
//! client   03 00 07
//! server   length(2) 06 version(1)
//!          ticks(8)                                       from version 7 on
//!          kind of extensions(1)                          from version 6 on
//!          script version(4) script name                  from version 5 on
//!          count(1) EXTENSION...                          from version 4 on
//!          date(4) start(4)                               from version 3 on: days since the year 0
//!          company limit(1) companies(1) (1)              from version 2 on
//!          name revision language(1) password(1)          language: before version 6
//!          client limit(1) clients(1) spectators(1)
//!          date(2) start(2)                               before version 3: days since 1920
//!          map name                                       before version 6
//!          map width(2) height(2) landscape(1) dedicated(1)
//! EXTENSION, by kind:   00 id(4) MD5(16)    01 id(4) MD5(16) name    02 index(4)
//! ```
//!
//! ```
//! use rallypoint_wire::query::openttd::{Game, QUERY, frame};
//!
//! assert_eq!(QUERY, [3, 0, 7]);
//! assert_eq!(frame(&[3, 0, 6, 9])?, Some(3));
//! assert!(Game::parse(&[3, 0, 6]).is_err());
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader};

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "openttd";

/// Title of the query protocol for people.
pub const TITLE: &str = "OpenTTD (TCP)";

/// Default TCP port of a server.
pub const PORT: u16 = 3_979;

/// The query.
pub const QUERY: &[u8] = &[3, 0, 7];

/// Maximum length of a packet, in bytes (`TCP_MTU` of the game).
pub const MAX_PACKET: usize = 32_767;

/// Type of the packet that describes a game.
const GAME_INFO: u8 = 6;

/// The latest version of the description that is known.
const MAX_VERSION: u8 = 7;

/// Days from the year 0 to 1920.
const DAYS_BEFORE_1920: u32 = 701_265;

/// Names of the landscapes, by number.
pub const LANDSCAPES: [&str; 4] = ["temperate", "arctic", "tropic", "toyland"];

/// The description of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Game<'a> {
    /// Name of the server.
    pub name: &'a [u8],
    /// Version of the game.
    pub revision: &'a [u8],
    /// Name of the game script, which may be empty.
    pub script: &'a [u8],
    /// Whether a password is required.
    pub password: bool,
    /// Maximum number of clients.
    pub max_clients: u8,
    /// Number of clients, with those who only watch.
    pub clients: u8,
    /// Number of clients that only watch.
    pub spectators: u8,
    /// Maximum number of companies.
    pub max_companies: Option<u8>,
    /// Number of companies.
    pub companies: Option<u8>,
    /// The date in the game.
    pub date: Date,
    /// The date at which the game began.
    pub start: Date,
    /// Width of the map.
    pub width: u16,
    /// Height of the map.
    pub height: u16,
    /// Index into [`LANDSCAPES`].
    pub landscape: u8,
    /// Whether the server is a program without a player of its own.
    pub is_dedicated: bool,
    /// The extensions.
    pub extensions: Extensions<'a>,
}

/// A date, in days since the first one of the year 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date(pub u32);

/// The extensions of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extensions<'a> {
    kind: u8,
    count: u8,
    bytes: &'a [u8],
}

/// An extension: what identifies it, and its name if the server sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewGrf<'a> {
    /// What identifies the extension.
    pub id: [u8; 4],
    /// Its name.
    pub name: Option<&'a [u8]>,
}

/// The length of the first packet; `None` if it is not complete.
///
/// # Errors
/// If its length cannot be one.
pub fn frame(received: &[u8]) -> Result<Option<usize>, DecodeError> {
    let Some((length, _)) = received.split_first_chunk() else { return Ok(None) };
    let length = usize::from(u16::from_le_bytes(*length));
    if !(3..=MAX_PACKET).contains(&length) {
        return Err(DecodeError::new("length of the packet", DecodeErrorKind::Invalid));
    }
    Ok((received.len() >= length).then_some(length))
}

impl<'a> Game<'a> {
    /// Parses a packet.
    ///
    /// # Errors
    /// If it is another one, or of a version that is not known, or cut off.
    pub fn parse(packet: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        reader.u16_le("length of the packet")?;
        if reader.u8("type of the packet")? != GAME_INFO {
            return Err(DecodeError::new("type of the packet", DecodeErrorKind::Unknown));
        }
        let version = reader.u8("version")?;
        if !(1..=MAX_VERSION).contains(&version) {
            return Err(DecodeError::new("version", DecodeErrorKind::Unknown));
        }
        if version >= 7 {
            reader.u64_le("ticks")?;
        }
        let kind = if version >= 6 { reader.u8("kind of the extensions")? } else { 0 };
        let mut script: &[u8] = &[];
        if version >= 5 {
            reader.u32_le("version of the script")?;
            script = reader.until(0, "name of the script")?;
        }
        let count = if version >= 4 { reader.u8("number of extensions")? } else { 0 };
        let extensions = Extensions { kind, count, bytes: reader.rest() };
        for _ in 0..count {
            NewGrf::parse(kind, &mut reader)?;
        }
        let mut dates = None;
        if version >= 3 {
            dates = Some([Date(reader.u32_le("date")?), Date(reader.u32_le("date of the beginning")?)]);
        }
        let mut companies = None;
        if version >= 2 {
            companies = Some([reader.u8("limit of companies")?, reader.u8("number of companies")?]);
            reader.u8("limit of spectators")?;
        }
        let name = reader.until(0, "name")?;
        let revision = reader.until(0, "revision")?;
        if version < 6 {
            reader.u8("language")?;
        }
        let password = reader.u8("password")? != 0;
        let max_clients = reader.u8("limit of clients")?;
        let clients = reader.u8("number of clients")?;
        let spectators = reader.u8("number of spectators")?;
        let [date, start] = match dates {
            Some(dates) => dates,
            None => {
                let mut next = || Ok(Date(DAYS_BEFORE_1920 + u32::from(reader.u16_le("date")?)));
                [next()?, next()?]
            }
        };
        if version < 6 {
            reader.until(0, "name of the map")?;
        }
        Ok(Self {
            name,
            revision,
            script,
            password,
            max_clients,
            clients,
            spectators,
            max_companies: companies.map(|[limit, _]| limit),
            companies: companies.map(|[_, companies]| companies),
            date,
            start,
            width: reader.u16_le("width of the map")?,
            height: reader.u16_le("height of the map")?,
            landscape: reader.u8("landscape")?,
            // A later version may add fields at the end.
            is_dedicated: reader.u8("dedicated")? != 0,
            extensions,
        })
    }
}

impl<'a> Extensions<'a> {
    /// The extensions, in order.
    pub fn iter(&self) -> impl Iterator<Item = NewGrf<'a>> + use<'a> {
        let kind = self.kind;
        let mut reader = Reader::new(self.bytes);
        (0..self.count).map_while(move |_| NewGrf::parse(kind, &mut reader).ok())
    }
}

impl<'a> NewGrf<'a> {
    fn parse(kind: u8, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let id = *reader.array("extension")?;
        let name = match kind {
            0 => reader.bytes(16, "extension").map(|_| None)?,
            1 => {
                reader.bytes(16, "extension")?;
                Some(reader.until(0, "extension")?)
            }
            2 => None,
            _ => return Err(DecodeError::new("kind of the extensions", DecodeErrorKind::Unknown)),
        };
        Ok(Self { id, name })
    }
}

impl Date {
    /// Year, month and day, in the calendar of today.
    ///
    /// ```
    /// use rallypoint_wire::query::openttd::Date;
    ///
    /// assert_eq!(Date(0).year_month_day(), [0, 1, 1]);
    /// assert_eq!(Date(712_226).year_month_day(), [1950, 1, 4]);
    /// ```
    #[must_use]
    pub fn year_month_day(self) -> [i64; 3] {
        // Years that begin in March have their leap day at the end; 400 of them have 146,097 days.
        let days = i64::from(self.0) - 60;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        [year + era * 400 + carry, month, day]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn packet(body: &[u8]) -> Vec<u8> {
        [&(body.len() as u16 + 3).to_le_bytes()[..], &[6], body].concat()
    }

    const END: &[u8] = b"\x01\x0a\x03\x01";

    #[test]
    fn every_version_has_its_fields() {
        let map = b"\0\x01\0\x02\x03\x01";
        let grf = [&b"\x01GRF\x01"[..], &[9; 16]].concat();
        let dates = b"\x22\xde\x0a\0\x1f\xde\x0a\0";
        let names = b"My Server\0v\0";
        for (version, body) in [
            (1, [&names[..], b"\0", END, b"\x01\0\x02\0map\0", map].concat()),
            (2, [b"\x0f\x02\x09", &names[..], b"\0", END, b"\x01\0\x02\0map\0", map].concat()),
            (3, [&dates[..], b"\x0f\x02\x09", names, b"\0", END, b"map\0", map].concat()),
            (4, [&grf[..], dates, b"\x0f\x02\x09", names, b"\0", END, b"map\0", map].concat()),
            (5, [b"\x07\0\0\0script\0", &grf[..], dates, b"\x0f\x02\x09", names, b"\0", END, b"map\0", map].concat()),
            (6, [b"\0\x07\0\0\0script\0", &grf[..], dates, b"\x0f\x02\x09", names, END, map].concat()),
            (7, [b"12345678\0\x07\0\0\0script\0", &grf[..], dates, b"\x0f\x02\x09", names, END, map].concat()),
        ] {
            let bytes = packet(&[&[version], &body[..]].concat());
            let game = Game::parse(&bytes).unwrap();
            assert_eq!((game.name, game.revision), (&b"My Server"[..], &b"v"[..]), "{version}");
            assert_eq!((game.password, game.max_clients, game.clients, game.spectators), (true, 10, 3, 1));
            assert_eq!((game.width, game.height, game.landscape, game.is_dedicated), (256, 512, 3, true));
            assert_eq!(game.extensions.iter().count(), usize::from(version >= 4));
            assert_eq!(game.companies, (version >= 2).then_some(2));
            assert_eq!(game.date, Date(if version < 3 { 701_266 } else { 712_226 }));
            assert_eq!(game.script, if version < 5 { &b""[..] } else { b"script" });
            for end in 0..bytes.len() {
                assert!(Game::parse(&bytes[..end]).is_err(), "{version}: {end}");
            }
        }
    }

    #[test]
    fn extensions_have_three_forms() {
        let list = |kind, bytes: &'static [u8]| {
            let all: Vec<_> = Extensions { kind, count: 2, bytes }.iter().map(|grf| (grf.id, grf.name)).collect();
            all
        };
        assert_eq!(list(2, b"abcdefgh"), [(*b"abcd", None), (*b"efgh", None)]);
        let named = list(1, b"abcd0123456789abcdefOne\0efgh0123456789abcdefTwo\0");
        assert_eq!(named, [(*b"abcd", Some(&b"One"[..])), (*b"efgh", Some(b"Two"))]);
        assert!(list(3, b"abcdefgh").is_empty());
    }

    #[test]
    fn other_packets_are_errors() {
        assert_eq!(frame(&[2, 0]).unwrap_err().kind, DecodeErrorKind::Invalid);
        assert_eq!(frame(&[0, 0x80]).unwrap_err().kind, DecodeErrorKind::Invalid);
        assert_eq!(frame(&[9]), Ok(None));
        assert_eq!(frame(&[4, 0, 6]), Ok(None));
        let field = |body: &[u8]| Game::parse(body).unwrap_err().field;
        assert_eq!(field(&[4, 0, 3, 9]), "type of the packet");
        assert_eq!(field(&packet(&[0])), "version");
        assert_eq!(field(&packet(&[8])), "version");
        assert_eq!(field(&packet(b"\x06\x09\0\0\0\0\0\x01abcd")), "kind of the extensions");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, expected) in [
            (59, [0, 2, 29]),
            (60, [0, 3, 1]),
            (365, [0, 12, 31]),
            (366, [1, 1, 1]),
            (701_265, [1920, 1, 1]),
            (730_544, [2000, 2, 29]),
        ] {
            assert_eq!(Date(days).year_month_day(), expected, "{days}");
        }
        assert!(Date(u32::MAX).year_month_day()[0] > 11_000_000);
    }
}
