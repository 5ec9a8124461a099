//! The server query of TeamSpeak 3, over TCP: commands and replies in lines of text.
//!
//! ```text
//! server   TS3                                    and a line of welcome
//! client   use port=9987
//! server   error id=0 msg=ok                      ends every reply
//! client   serverinfo
//! server   virtualserver_name=My\sServer virtualserver_clientsonline=3 ...
//!          error id=0 msg=ok
//! client   clientlist
//! server   clid=1 client_nickname=Ada client_type=0|clid=2 client_nickname=... client_type=1
//!          error id=0 msg=ok
//! ```
//!
//! A line ends with a line feed, which servers follow by a carriage return. Within a value, a backslash and a letter stand for a
//! character that would end it.
//!
//! ```
//! use rallypoint_wire::query::teamspeak3::{Line, unescape};
//!
//! let Line::Entries(entries) = Line::parse(b"client_nickname=A\\sda client_type=0|client_nickname=B\n\r") else { panic!() };
//! let names: Vec<_> = entries.iter().filter_map(|entry| entry.get("client_nickname")).collect();
//! assert_eq!(names, [&b"A\\sda"[..], b"B"]);
//! assert_eq!(unescape(names[0]), b"A da");
//! assert_eq!(Line::parse(b"\rerror id=0 msg=ok\n"), Line::End { id: 0 });
//! ```

use alloc::vec::Vec;

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "teamspeak3";

/// Title of the query protocol for people.
pub const TITLE: &str = "TeamSpeak 3 (server query)";

/// Default TCP port of the query.
pub const PORT: u16 = 10_011;

/// Default UDP port of a virtual server, by which it is selected.
pub const VOICE_PORT: u16 = 9_987;

/// Maximum length of a line, in bytes: the list of a thousand clients.
pub const MAX_LINE: usize = 128 << 10;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Selects the virtual server with this UDP port.
    UsePort(u16),
    /// Selects the virtual server with this number.
    UseId(u32),
    /// Lists the virtual servers.
    ServerList,
    /// Describes the virtual server.
    ServerInfo,
    /// Lists the clients of the virtual server.
    ClientList,
}

/// A line of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The first line: this is a server query.
    Banner,
    /// The end of a reply: 0 for success, or the number of an error.
    End {
        /// Number of the error.
        id: u32,
    },
    /// A reply.
    Entries(Entries<'a>),
    /// A line without values: the welcome, or an empty one.
    Other,
}

/// One or several entries: `key=value key=value|key=value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries<'a>(&'a [u8]);

/// Keys and values: `key=value key=value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a>(&'a [u8]);

impl Command {
    /// Appends the line.
    pub fn emit(self, out: &mut Vec<u8>) {
        let line = match self {
            Self::UsePort(port) => alloc::format!("use port={port}\n"),
            Self::UseId(id) => alloc::format!("use sid={id}\n"),
            Self::ServerList => "serverlist\n".into(),
            Self::ServerInfo => "serverinfo\n".into(),
            Self::ClientList => "clientlist\n".into(),
        };
        out.extend_from_slice(line.as_bytes());
    }
}

impl<'a> Line<'a> {
    /// Parses a line, with or without its end.
    #[must_use]
    pub fn parse(line: &'a [u8]) -> Self {
        let line = line.trim_ascii();
        if line == b"TS3" {
            return Self::Banner;
        }
        let (word, rest) = line.split_at(line.iter().position(|byte| *byte == b' ').unwrap_or(line.len()));
        if word == b"error" {
            let id = Entry(rest).get("id").and_then(number);
            // An error without a number is none of success.
            return Self::End { id: id.unwrap_or(u32::MAX) };
        }
        // The welcome begins with a word without a value; so do notifications.
        if word.contains(&b'=') { Self::Entries(Entries(line)) } else { Self::Other }
    }
}

impl<'a> Entries<'a> {
    /// The entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        self.0.split(|byte| *byte == b'|').map(Entry)
    }
}

impl<'a> Entry<'a> {
    /// Keys with their values, which are escaped, in order. A key without a value has an empty one.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.0.split(|byte| *byte == b' ').filter(|pair| !pair.is_empty()).map(|pair| {
            // A value may contain the character that separates it.
            match pair.iter().position(|byte| *byte == b'=') {
                Some(at) => (&pair[..at], &pair[at + 1..]),
                None => (pair, &[][..]),
            }
        })
    }

    /// The first value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.iter().find(|(known, _)| *known == key.as_bytes()).map(|(_, value)| value)
    }
}

/// A number that consists of digits.
#[must_use]
pub fn number(value: &[u8]) -> Option<u32> {
    core::str::from_utf8(value).ok()?.parse().ok()
}

/// Replaces what stands for other characters.
#[must_use]
pub fn unescape(value: &[u8]) -> Vec<u8> {
    let mut bytes = value.iter();
    let mut out = Vec::with_capacity(value.len());
    while let Some(&byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next() {
            Some(b's') => b' ',
            Some(b'p') => b'|',
            Some(b'a') => 7,
            Some(b'b') => 8,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'v') => 11,
            Some(b'f') => 12,
            Some(b'r') => b'\r',
            // A backslash and a slash stand for themselves.
            Some(other) => *other,
            None => b'\\',
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        assert_eq!(Line::parse(b"TS3\n"), Line::Banner);
        assert_eq!(Line::parse(b"\rWelcome to the TeamSpeak 3 ServerQuery interface, type \"help\"\n"), Line::Other);
        assert_eq!(Line::parse(b"\r\n"), Line::Other);
        assert_eq!(Line::parse(b"notifycliententerview cfid=0\n"), Line::Other);
        assert_eq!(Line::parse(b"\rerror id=1024 msg=invalid\\sserverID\n"), Line::End { id: 1_024 });
        assert_eq!(Line::parse(b"error id=x"), Line::End { id: u32::MAX });
        assert_eq!(Line::parse(b"error"), Line::End { id: u32::MAX });
        assert_eq!(Line::parse(b"errors=1"), Line::Entries(Entries(b"errors=1")));
    }

    #[test]
    fn entries_have_keys_and_values() {
        let Line::Entries(entries) = Line::parse(b"a=1 b=x=y flag  c=|a=2\n\r") else { panic!("no entries") };
        let all: Vec<_> = entries.iter().map(|entry| entry.iter().count()).collect();
        assert_eq!(all, [4, 1]);
        let first = entries.iter().next().unwrap();
        assert_eq!(first.get("b"), Some(&b"x=y"[..]));
        assert_eq!((first.get("flag"), first.get("c"), first.get("d")), (Some(&b""[..]), Some(&b""[..]), None));
    }

    #[test]
    fn all_escapes_of_the_manual_are_replaced() {
        assert_eq!(unescape(br"a\\b\/c\sd\pe\a\b\f\n\r\t\v"), b"a\\b/c d|e\x07\x08\x0c\n\r\t\x0b");
        assert_eq!(unescape(br"TeamSpeak\s]\p[\sServer"), b"TeamSpeak ]|[ Server");
        assert_eq!(unescape(b"cut\\"), b"cut\\");
        assert_eq!(unescape(b"\\\\s"), b"\\s");
    }

    #[test]
    fn commands_are_lines() {
        let mut out = Vec::new();
        for command in [
            Command::UsePort(VOICE_PORT),
            Command::UseId(3),
            Command::ServerList,
            Command::ServerInfo,
            Command::ClientList,
        ] {
            command.emit(&mut out);
        }
        assert_eq!(out, b"use port=9987\nuse sid=3\nserverlist\nserverinfo\nclientlist\n");
    }
}
