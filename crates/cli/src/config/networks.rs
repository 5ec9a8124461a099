//! Networks, and the address map between them: `192.168.1.0/24=203.0.113.5` or `192.168.1.10:8190=203.0.113.5:9000`.

use crate::toml_file::quoted;
use ipnet::IpNet;
use rallypoint_limit::is_possible_source;
use rallypoint_lobby_proto::Mapping;
use std::net::{IpAddr, SocketAddr};

/// Parses a network, or an address as a network of one.
pub fn read_network(text: &str) -> Result<IpNet, String> {
    let one = text.parse::<IpAddr>().map(|ip| IpNet::from(ip.to_canonical()));
    one.or_else(|_| text.parse::<IpNet>().map(|net| net.trunc()))
        .map_err(|_| format!("expected a network such as \"203.0.113.0/24\" or an address, not {}", quoted(text)))
}

/// A network as it is written: a plain address if it contains only one.
pub fn show_network(net: &IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
}

pub fn read_mapping(text: &str) -> Result<Mapping, String> {
    let unexpected = |expected: &str| format!("expected {expected}, not {}", quoted(text));
    let pair = "a pair such as \"192.168.1.0/24=203.0.113.5\" or \"10.0.0.9:8190=203.0.113.5:9000\"";
    let (inside, outside) = text.split_once('=').ok_or_else(|| unexpected(pair))?;
    let inside = inside.trim();
    let outside = outside.trim();
    let (from, port) = match inside.parse::<SocketAddr>() {
        Ok(one) => (IpNet::from(one.ip().to_canonical()), Some(one.port())),
        Err(_) => (read_network(inside).map_err(|_| unexpected(pair))?, None),
    };
    let (to, to_port) = match outside.parse::<SocketAddr>() {
        Ok(one) => (one.ip(), Some(one.port())),
        Err(_) => (outside.parse::<IpAddr>().map_err(|_| unexpected(pair))?, None),
    };
    if from.addr().is_ipv4() != to.is_ipv4() {
        return Err(unexpected("two addresses of the same family"));
    }
    if !is_possible_source(to) {
        return Err(unexpected("a public address that a server can have"));
    }
    if port == Some(0) || to_port == Some(0) {
        return Err(unexpected("ports from 1 to 65535"));
    }
    if to_port.is_some() && port.is_none() {
        return Err(unexpected("a port on the left side too, because a port on the right side belongs to one server"));
    }
    Ok(Mapping { from, port, to, to_port })
}

pub fn show_mapping(map: &Mapping) -> String {
    let with_port = |ip: IpAddr, port| SocketAddr::new(ip, port).to_string();
    let from = map.port.map_or_else(|| show_network(&map.from), |port| with_port(map.from.addr(), port));
    let to = map.to_port.map_or_else(|| map.to.to_string(), |port| with_port(map.to, port));
    format!("{from}={to}")
}
