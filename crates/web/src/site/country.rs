//! Countries of addresses, from a database in the format of MaxMind.

use maxminddb::{Reader, geoip2};
use std::{error::Error, fs, net::IpAddr, path::Path};

/// A database of countries, in memory.
pub(crate) struct Countries(Reader<Vec<u8>>);

/// A country.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Country<'a> {
    /// Two letters (ISO 3166-1).
    pub code: &'a str,
    /// The English name; the code if the database has no names.
    pub name: &'a str,
}

impl Countries {
    pub fn open(path: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self(Reader::from_source(fs::read(path)?)?))
    }

    /// The country of an address; `None` for addresses that the database does not know.
    pub fn find(&self, ip: IpAddr) -> Option<Country<'_>> {
        let found: geoip2::Country<'_> = self.0.lookup(ip).ok()?.decode().ok()??;
        let code =
            found.country.iso_code.filter(|code| code.len() == 2 && code.bytes().all(|b| b.is_ascii_uppercase()))?;
        Some(Country { code, name: found.country.names.english.unwrap_or(code) })
    }
}

impl std::fmt::Debug for Countries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Countries").field("type", &self.0.metadata().database_type).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A database in which addresses from 128.0.0.0 on are in Germany, and the others nowhere.
    pub(crate) fn database() -> Vec<u8> {
        let text = |text: &str| [&[0x40 | text.len() as u8], text.as_bytes()].concat();
        let map = |entries: &[(&str, Vec<u8>)]| {
            let mut out = vec![0xe0 | entries.len() as u8];
            entries.iter().for_each(|(key, value)| out.extend([text(key), value.clone()].concat()));
            out
        };
        let number = |value: u8| vec![0xa1, value];
        let names = map(&[("en", text("Germany"))]);
        let data = map(&[("country", map(&[("iso_code", text("DE")), ("names", names)]))]);
        // One node of two records of 24 bits: 1 (the number of nodes) is "not found", 17 is the start of the data.
        let mut bytes = vec![0, 0, 1, 0, 0, 17];
        bytes.extend([0; 16]);
        bytes.extend(data);
        bytes.extend(b"\xab\xcd\xefMaxMind.com");
        bytes.extend(map(&[
            ("binary_format_major_version", number(2)),
            ("binary_format_minor_version", number(0)),
            ("build_epoch", vec![0x01, 0x02, 1]),
            ("database_type", text("test")),
            ("description", map(&[])),
            ("ip_version", number(4)),
            ("languages", vec![0x00, 0x04]),
            ("node_count", vec![0xc1, 1]),
            ("record_size", number(24)),
        ]));
        bytes
    }

    #[test]
    fn addresses_have_countries() {
        let countries = Countries(Reader::from_source(database()).unwrap());
        let find = |ip: &str| countries.find(ip.parse().unwrap()).map(|country| (country.code, country.name));
        assert_eq!(find("198.51.100.1"), Some(("DE", "Germany")));
        assert_eq!((find("10.0.0.1"), find("2001:db8::1")), (None, None));
    }
}
