//! The queries of OpenTTD over UDP: the game, and its companies. From version 12 on, servers only confirm that they exist this
//! way, and describe the game over TCP.
//!
//! Numbers are little-endian, texts end with a zero byte:
//!
//! ```text
//! client   03 00 00                      find a server
//!          03 00 02                      companies
//! server   LENGTH(2) 01 [GAME]           nothing else from version 12 on
//!          LENGTH(2) 03 version(1) count(1) COMPANY...
//! GAME     version(1)
//!          script version(4) script name                  from version 5 on
//!          count(1) [GRF id(4) MD5(16)]...                from version 4 on
//!          date(4) start(4)                               from version 3 on: days since the year 0
//!          company limit(1) companies(1) spectator limit(1)   from version 2 on
//!          name revision language(1) password(1) client limit(1) clients(1) spectators(1)
//!          date(2) start(2)                               before version 3: days since 1920
//!          map width(2) height(2) landscape(1) dedicated(1)
//! COMPANY  id(1) name founded(4) value(8) money(8) income(8) performance(2) password(1)
//!          trains(2) lorries(2) buses(2) aircraft(2) ships(2) stations of each(2)... AI(1)
//! ```
//!
//! ```
//! use rallypoint_wire::query::openttd_udp::{Query, Response};
//!
//! let mut query = Vec::new();
//! Query::Info.emit(&mut query);
//! assert_eq!(query, [3, 0, 0]);
//! assert_eq!(Response::parse(&[3, 0, 1])?, Response::Info(None));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "openttdudp";

/// Name of the query protocol for people.
pub const TITLE: &str = "OpenTTD before version 12 (UDP)";

/// Default UDP port of a server.
pub const PORT: u16 = 3_979;

/// Longest datagram in bytes (`SEND_MTU` of the game).
pub const MAX_DATAGRAM: usize = 1_460;

/// Version of the list of companies that this module reads: since 2008 the only one.
const COMPANIES_VERSION: u8 = 6;

/// Days from the year 0 to 1920, from which versions 1 and 2 count.
const DAYS_BEFORE_1920: u32 = 701_265;

/// Size of an extension in bytes: its identifier and its checksum.
const GRF_SIZE: usize = 20;

/// What a query requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// The description of the game.
    Info,
    /// The companies.
    Companies,
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// The description of the game; `None` from version 12 on.
    Info(Option<Game<'a>>),
    /// The companies.
    Companies(Companies<'a>),
}

/// The description of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Game<'a> {
    /// Name and version of the script that controls the game.
    pub script: Option<(&'a [u8], u32)>,
    /// The extensions (NewGRF).
    pub grfs: Grfs<'a>,
    /// Current date in the game.
    pub date: Date,
    /// Date at which the game started.
    pub start: Date,
    /// Maximum number of companies, number of companies, maximum number of spectators.
    pub companies: Option<[u8; 3]>,
    /// Name of the server.
    pub name: &'a [u8],
    /// Version of the game.
    pub revision: &'a [u8],
    /// Whether a password is required.
    pub has_password: bool,
    /// Maximum number of clients.
    pub max_clients: u8,
    /// Number of clients, including spectators.
    pub clients: u8,
    /// Number of clients that only watch.
    pub spectators: u8,
    /// Name of the map: that of its file, or "Random Map".
    pub map: &'a [u8],
    /// Width and height of the map in tiles.
    pub size: [u16; 2],
    /// Landscape: temperate, arctic, tropic, toyland.
    pub landscape: u8,
    /// Whether the server does not play itself.
    pub is_dedicated: bool,
}

/// A date in the game: days since the first of January of the year 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date(pub u32);

/// The extensions of a game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grfs<'a>(&'a [u8]);

/// The companies of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Companies<'a> {
    /// Number of companies in the reply.
    pub count: u8,
    companies: &'a [u8],
}

/// A company.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Company<'a> {
    /// Number of the company, from 0.
    pub id: u8,
    /// Name of the company.
    pub name: &'a [u8],
    /// Year in which it was founded.
    pub founded: u32,
    /// Value, in pounds.
    pub value: i64,
    /// Money, in pounds.
    pub money: i64,
    /// Income of the last year, in pounds.
    pub income: i64,
    /// Performance of the last quarter, up to 1000.
    pub performance: u16,
    /// Whether joining it requires a password.
    pub has_password: bool,
    /// Number of trains, lorries, buses, aircraft and ships.
    pub vehicles: [u16; 5],
    /// Number of stations for each of them.
    pub stations: [u16; 5],
    /// Whether no human plays it.
    pub is_ai: bool,
}

impl Query {
    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self {
            Self::Info => &[3, 0, 0],
            Self::Companies => &[3, 0, 2],
        });
    }

    /// Whether a datagram is a query.
    #[must_use]
    pub fn is_query(datagram: &[u8]) -> bool {
        matches!(datagram, [3, 0, 0 | 2])
    }
}

impl<'a> Response<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is none of these. A list of companies that is cut off is not an error: see [`Companies::iter`].
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        if datagram.is_empty() {
            return Err(DecodeError::new("datagram", DecodeErrorKind::Empty));
        }
        let mut reader = Reader::new(datagram);
        if usize::from(reader.u16_le("length")?) != datagram.len() {
            return Err(DecodeError::new("length", DecodeErrorKind::Mismatch));
        }
        match reader.u8("type")? {
            1 if reader.is_empty() => Ok(Self::Info(None)),
            1 => {
                let game = Game::parse(&mut reader)?;
                reader.finish("game")?;
                Ok(Self::Info(Some(game)))
            }
            3 if reader.u8("version")? != COMPANIES_VERSION => {
                Err(DecodeError::new("version", DecodeErrorKind::Unknown))
            }
            3 => Ok(Self::Companies(Companies { count: reader.u8("companies")?, companies: reader.take_rest() })),
            _ => Err(DecodeError::new("type", DecodeErrorKind::Unknown)),
        }
    }
}

impl<'a> Game<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let version = reader.u8("version")?;
        if !(1..=5).contains(&version) {
            return Err(DecodeError::new("version", DecodeErrorKind::Unknown));
        }
        let script = if version >= 5 {
            let number = reader.u32_le("script version")?;
            Some((reader.until(0, "script")?, number)).filter(|(_, number)| *number != u32::MAX)
        } else {
            None
        };
        let grfs = if version >= 4 {
            let count = usize::from(reader.u8("extensions")?);
            Grfs(reader.bytes(count * GRF_SIZE, "extensions")?)
        } else {
            Grfs::default()
        };
        let mut dates = [Date(0); 2];
        if version >= 3 {
            dates = [Date(reader.u32_le("date")?), Date(reader.u32_le("start")?)];
        }
        let companies = if version >= 2 { Some(*reader.array("companies")?) } else { None };
        let name = reader.until(0, "name")?;
        let revision = reader.until(0, "revision")?;
        let _language = reader.u8("language")?;
        let has_password = reader.u8("password")? != 0;
        let [max_clients, clients, spectators] = *reader.array("clients")?;
        if version < 3 {
            let days = |days: u16| Date(DAYS_BEFORE_1920 + u32::from(days));
            dates = [days(reader.u16_le("date")?), days(reader.u16_le("start")?)];
        }
        if spectators > clients {
            return Err(DecodeError::new("spectators", DecodeErrorKind::Invalid));
        }
        let [date, start] = dates;
        Ok(Self {
            script,
            grfs,
            date,
            start,
            companies,
            name,
            revision,
            has_password,
            max_clients,
            clients,
            spectators,
            map: reader.until(0, "map")?,
            size: [reader.u16_le("width")?, reader.u16_le("height")?],
            landscape: reader.u8("landscape")?,
            is_dedicated: reader.u8("dedicated")? != 0,
        })
    }
}

impl Date {
    /// Year, month and day in the calendar of the game, which is the Gregorian one.
    #[must_use]
    pub fn year_month_day(self) -> [u32; 3] {
        // Years that begin in March have the leap day at their end; 400 of them have 146,097 days. The first such era here
        // begins in March of the year -400.
        let days = u64::from(self.0) + 146_097 - 60;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let date = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year + u64::from(month <= 2) - 400;
        [year, month, date].map(|number| number as u32)
    }
}

impl<'a> Grfs<'a> {
    /// The identifiers.
    pub fn iter(&self) -> impl Iterator<Item = [u8; 4]> + use<'a> {
        self.0.as_chunks::<GRF_SIZE>().0.iter().map(|[a, b, c, d, ..]| [*a, *b, *c, *d])
    }
}

impl<'a> Companies<'a> {
    /// The companies. An error takes the place of one that is cut off, and is the last item.
    pub fn iter(&self) -> impl Iterator<Item = Result<Company<'a>, DecodeError>> + use<'a> {
        let mut reader = Reader::new(self.companies);
        let mut rest = self.count;
        core::iter::from_fn(move || {
            rest = rest.checked_sub(1)?;
            let company = Company::parse(&mut reader);
            if company.is_err() {
                rest = 0;
            }
            Some(company)
        })
    }
}

impl<'a> Company<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        fn five(reader: &mut Reader<'_>, field: &'static str) -> Result<[u16; 5], DecodeError> {
            let mut numbers = [0; 5];
            for number in &mut numbers {
                *number = reader.u16_le(field)?;
            }
            Ok(numbers)
        }
        Ok(Self {
            id: reader.u8("company")?,
            name: reader.until(0, "company")?,
            founded: reader.u32_le("founded")?,
            value: reader.u64_le("value")?.cast_signed(),
            money: reader.u64_le("money")?.cast_signed(),
            income: reader.u64_le("income")?.cast_signed(),
            performance: reader.u16_le("performance")?,
            has_password: reader.u8("password of a company")? != 0,
            vehicles: five(reader, "vehicles")?,
            stations: five(reader, "stations")?,
            is_ai: reader.u8("AI")? != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(body: &[u8]) -> Vec<u8> {
        [&(body.len() as u16 + 2).to_le_bytes(), body].concat()
    }

    fn field(body: &[u8]) -> &'static str {
        Response::parse(&datagram(body)).unwrap_err().field
    }

    #[test]
    fn dates_are_those_of_the_gregorian_calendar() {
        for (days, expected) in [
            (0, [0, 1, 1]),
            (31, [0, 2, 1]),
            (59, [0, 2, 29]),
            (60, [0, 3, 1]),
            (366, [1, 1, 1]),
            (DAYS_BEFORE_1920, [1920, 1, 1]),
            (712_223, [1950, 1, 1]),
            (730_485, [2000, 1, 1]),
            (730_544, [2000, 2, 29]),
            (146_097, [400, 1, 1]),
            (146_096, [399, 12, 31]),
        ] {
            assert_eq!(Date(days).year_month_day(), expected, "{days}");
        }
        assert!(Date(u32::MAX).year_month_day()[0] > 11_000_000);
    }

    #[test]
    fn versions_add_fields_at_the_front() {
        let tail = b"name\x001.0\0\x02\x01\x19\x03\x01";
        let end = b"map\0\x00\x01\x00\x02\x01\x01";
        let old = datagram(&[b"\x01\x01", &tail[..], b"\x01\x00\x00\x00", end].concat());
        let Ok(Response::Info(Some(game))) = Response::parse(&old) else { panic!("no game") };
        assert_eq!((game.date.year_month_day(), game.start.year_month_day()), ([1920, 1, 2], [1920, 1, 1]));
        assert_eq!((game.name, game.map, game.size, game.companies), (&b"name"[..], &b"map"[..], [256, 512], None));
        assert_eq!((game.max_clients, game.clients, game.spectators), (25, 3, 1));
        let script = b"\x05\x07\0\0\0Goals\0\x01abcd0123456789abcdef";
        let new = [b"\x01", &script[..], b"\x1f\xde\x0a\0\x1f\xde\x0a\0\x0f\x02\x19", tail, end].concat();
        let new = datagram(&new);
        let Ok(Response::Info(Some(game))) = Response::parse(&new) else { panic!("no game") };
        assert_eq!((game.script, game.companies), (Some((&b"Goals"[..], 7)), Some([15, 2, 25])));
        assert_eq!(game.date.year_month_day(), [1950, 1, 1]);
        assert!(game.grfs.iter().eq([*b"abcd"]));
    }

    #[test]
    fn replies_that_are_none_are_errors() {
        assert_eq!([field(b"\x02"), field(b"\x01\x06"), field(b"\x01\0")], ["type", "version", "version"]);
        assert_eq!([field(b"\x03"), field(b"\x03\x05\0"), field(b"\x03\x06")], ["version", "version", "companies"]);
        assert_eq!(field(b"\x01\x04\xffabc"), "extensions");
        let error = |bytes: &[u8]| Response::parse(bytes).unwrap_err().field;
        assert_eq!([error(b""), error(b"\x03"), error(b"\x04\0\x01")], ["datagram", "length", "length"]);
        let spectators = b"\x01\x01n\0r\0\x02\x01\x19\x03\x04\0\0\0\0m\0\0\0\0\0\0\0";
        assert_eq!(field(spectators), "spectators");
    }

    #[test]
    fn companies_are_read_up_to_the_one_that_is_cut_off() {
        let company = [b"\0First\0\x9e\x07\0\0", &[0xff; 24][..], b"\xf4\x01\x01", &[1; 20], b"\0"].concat();
        let bytes = datagram(&[b"\x03\x06\x02", &company[..], &company[..30]].concat());
        let Ok(Response::Companies(companies)) = Response::parse(&bytes) else { panic!("no companies") };
        let list: Vec<_> = companies.iter().collect();
        let first = list[0].unwrap();
        assert_eq!((first.name, first.founded, first.money, first.performance), (&b"First"[..], 1950, -1, 500));
        assert_eq!((first.has_password, first.vehicles, first.is_ai), (true, [0x101; 5], false));
        assert_eq!((list.len(), list[1].unwrap_err().field), (2, "income"));
    }
}
