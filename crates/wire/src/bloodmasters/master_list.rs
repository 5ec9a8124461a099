//! The Bloodmasters master list (L17): the query strings and bodies that HTTP carries.
//!
//! ```text
//! GET /bloodmasterslist.php?action=update&port=P&time=T      a server announces itself, every 60 s: `Request`
//!   -> 192.0.2.*                                             one ban per line; may be empty: `bans`, `emit_bans`
//! GET /bloodmasterslist.php                                  a client requests the servers: `Request`
//!   -> 192.0.2.7:6969                                        one server per line: `servers`, `emit_servers`
//! ```

mod address_pattern;
mod request;

pub use address_pattern::AddressPattern;
pub use request::{Request, Update};

use crate::{Writer, lobby::Endpoint};
use alloc::vec::Vec;
use core::{
    fmt,
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
};

/// Path of the master list in its URL.
pub const PATH: &str = "/bloodmasterslist.php";

/// Maximum length of a line in bytes: an IPv6 address with brackets, scope and port is shorter.
const MAX_LINE: usize = 80;

/// Iterates over the servers of a list.
///
/// Blank lines, surrounding spaces and both kinds of line ends are accepted; a line that is not a server is skipped and
/// counted. IPv6 addresses are in brackets (W5).
///
/// ```
/// use rallypoint_wire::bloodmasters::master_list;
///
/// let mut servers = master_list::servers(b"192.0.2.7:6969\r\n\r\nnonsense\r\n");
/// assert_eq!(servers.next().map(|server| server.to_string()), Some("192.0.2.7:6969".into()));
/// assert_eq!(servers.next(), None);
/// assert_eq!(servers.skipped(), 1);
/// ```
#[must_use]
pub fn servers(list: &[u8]) -> Servers<'_> {
    Servers(Lines { rest: list, skipped: 0 })
}

/// Iterates over the bans in the reply to an announcement, as leniently as [`servers`].
#[must_use]
pub fn bans(answer: &[u8]) -> AddressPatterns<'_> {
    AddressPatterns(Lines { rest: answer, skipped: 0 })
}

/// Appends a list of servers, one per line.
///
/// Existing clients support IPv4 only: they skip IPv6 lines.
pub fn emit_servers<A: Into<IpAddr> + Copy>(servers: impl IntoIterator<Item = Endpoint<A>>, out: &mut Vec<u8>) {
    emit_lines(servers, out);
}

/// Appends a list of bans, one per line.
pub fn emit_bans(bans: impl IntoIterator<Item = AddressPattern>, out: &mut Vec<u8>) {
    emit_lines(bans, out);
}

fn emit_lines(lines: impl IntoIterator<Item: fmt::Display>, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    for line in lines {
        writer.display(format_args!("{line}\n"));
    }
}

/// Iterator over the servers of a list: see [`servers`].
#[derive(Clone, Debug)]
pub struct Servers<'a>(Lines<'a>);

/// Iterator over the bans in a reply: see [`bans`].
#[derive(Clone, Debug)]
pub struct AddressPatterns<'a>(Lines<'a>);

impl Servers<'_> {
    /// Number of lines so far that were not servers.
    #[must_use]
    pub const fn skipped(&self) -> usize {
        self.0.skipped
    }
}

impl AddressPatterns<'_> {
    /// Number of lines so far that were not bans.
    #[must_use]
    pub const fn skipped(&self) -> usize {
        self.0.skipped
    }
}

impl Iterator for Servers<'_> {
    type Item = Endpoint<IpAddr>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_parsed(|line| {
            let address: SocketAddr = line.parse().ok()?;
            Some(Endpoint { ip: address.ip(), port: NonZeroU16::new(address.port())? })
        })
    }
}

impl Iterator for AddressPatterns<'_> {
    type Item = AddressPattern;

    fn next(&mut self) -> Option<AddressPattern> {
        self.0.next_parsed(|line| line.parse().ok())
    }
}

#[derive(Clone, Debug)]
struct Lines<'a> {
    rest: &'a [u8],
    skipped: usize,
}

impl Lines<'_> {
    /// The next line that `parse` accepts.
    fn next_parsed<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        while !self.rest.is_empty() {
            let end = self.rest.iter().position(|&byte| byte == b'\n').unwrap_or(self.rest.len());
            let line = self.rest[..end].trim_ascii();
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if line.is_empty() {
                continue;
            }
            let line = Some(line).filter(|line| line.len() <= MAX_LINE);
            if let Some(value) = line.and_then(|line| core::str::from_utf8(line).ok()).and_then(&read) {
                return Some(value);
            }
            self.skipped += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    fn read(list: &[u8]) -> (Vec<String>, usize) {
        let mut servers = servers(list);
        let read = servers.by_ref().map(|server| server.to_string()).collect();
        (read, servers.skipped())
    }

    #[test]
    fn l17_one_server_per_line() {
        let list = b"192.0.2.7:6969\n198.51.100.1:7000\n";
        assert_eq!(read(list), (["192.0.2.7:6969".into(), "198.51.100.1:7000".into()].into(), 0));
        let mut again = Vec::new();
        emit_servers(servers(list), &mut again);
        assert_eq!(again, list);
    }

    #[test]
    fn l17_line_ends_blank_lines_and_spaces_are_ignored() {
        let list = b"\r\n  192.0.2.7:6969 \r\n\n\t\n198.51.100.1:7000";
        assert_eq!(read(list), (["192.0.2.7:6969".into(), "198.51.100.1:7000".into()].into(), 0));
        assert_eq!(read(b""), (Vec::new(), 0));
    }

    #[test]
    fn l17_lines_that_are_not_servers_are_skipped_and_counted() {
        let list =
            b"192.0.2.7\n192.0.2.7:0\n192.0.2.7:65536\n256.0.0.1:1\nhost:1\n<html>\n\xff\xfe\n192.0.2.7:6969\n:\n";
        assert_eq!(read(list), (["192.0.2.7:6969".into()].into(), 8));
        let endless = [b'1'; 100_000];
        assert_eq!(read(&endless), (Vec::new(), 1));
    }

    #[test]
    fn w5_ipv6_is_in_brackets() {
        assert_eq!(read(b"[2001:db8::42]:6969\n2001:db8::42:6969"), (["[2001:db8::42]:6969".into()].into(), 1));
    }

    #[test]
    fn l17_one_ban_per_line() {
        let answer = b"192.0.2.7\n198.51.*.*\n";
        let mut read = bans(b"192.0.2.7\r\n\r\nsorry\r\n198.51.*.* \r\n");
        let found: Vec<AddressPattern> = read.by_ref().collect();
        assert_eq!((found.len(), read.skipped()), (2, 1));
        let mut again = Vec::new();
        emit_bans(found, &mut again);
        assert_eq!(again, answer);
    }
}
