//! The entries of a list of servers.

use crate::{DecodeError, DecodeErrorKind, Reader, Writer, lobby::Endpoint};
use alloc::vec::Vec;
use core::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::NonZeroU16,
};

/// The end of the last datagram of a list.
pub const END: &[u8; 7] = b"\\EOT\0\0\0";

/// Maximum length of a datagram of a list, in bytes: it is not fragmented on the way.
pub const MAX_LIST_DATAGRAM: usize = 1_400;

/// Appends the entry of a server.
pub fn emit_entry(endpoint: Endpoint<IpAddr>, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    match endpoint.ip {
        IpAddr::V4(ip) => {
            writer.u8(b'\\');
            writer.bytes(&ip.octets());
        }
        IpAddr::V6(ip) => {
            writer.u8(b'/');
            writer.bytes(&ip.octets());
        }
    }
    writer.u16_be(endpoint.port.get());
}

/// Parses a datagram of a list after its command: the servers, and whether it is the last one.
pub fn servers(entries: &[u8]) -> Result<(Vec<Endpoint<IpAddr>>, bool), DecodeError> {
    let mut servers = Vec::new();
    let mut reader = Reader::new(entries);
    while !reader.is_empty() {
        if reader.rest() == END {
            return Ok((servers, true));
        }
        let ip = match reader.u8("entry")? {
            b'\\' => IpAddr::V4(Ipv4Addr::from(*reader.array("IPv4 address")?)),
            b'/' => IpAddr::V6(Ipv6Addr::from(*reader.array("IPv6 address")?)),
            _ => return Err(DecodeError::new("entry", DecodeErrorKind::Unknown)),
        };
        let port = NonZeroU16::new(reader.u16_be("port")?).ok_or(DecodeError::new("port", DecodeErrorKind::Zero))?;
        servers.push(Endpoint { ip, port });
    }
    Ok((servers, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_captured_list_is_parsed_and_emitted_again() {
        // An ioquake3 client accepted it: one IPv4 and one IPv6 server.
        let list = b"\\\x7f\0\0\x01m8/\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01m8\\EOT\0\0\0";
        let (found, is_last) = servers(list).unwrap();
        assert!(is_last);
        let mut again = Vec::new();
        found.iter().for_each(|endpoint| emit_entry(*endpoint, &mut again));
        again.extend(END);
        assert_eq!(again, list);
        assert_eq!(servers(b"\\\x7f\0\0").unwrap_err().field, "IPv4 address");
        assert_eq!(servers(b"x").unwrap_err().field, "entry");
    }
}
