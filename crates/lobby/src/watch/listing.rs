//! The list entry of a server that does not register: it is made from the server's reply.

use super::WatchTarget;
use rallypoint_lobby_proto::{ListingOrigin, ProbedServer};
use rallypoint_query_proto::{QueryReply, ServerInfo};
use rallypoint_wire::lobby::{EntryError, Occupancy, TableBuf};
use std::{net::IpAddr, time::Duration};

/// The list entry of a server that replied.
pub(crate) fn probed_server(
    reply: &QueryReply,
    origin: ListingOrigin,
    target: &WatchTarget,
    ips: Vec<IpAddr>,
    lease: Duration,
) -> ProbedServer {
    let info = &reply.info;
    let occupancy = Occupancy {
        players: info.players.unwrap_or(0),
        bots: info.bots.unwrap_or(0),
        slots: info.max_players.unwrap_or(0),
        password: info.password.unwrap_or(false),
    };
    ProbedServer {
        label: target.to_string(),
        origin,
        door: None,
        list: target.list,
        ips,
        port: target.port,
        occupancy,
        // The texts of a reply were cut by the probe pool to lengths that always fit.
        table: table(info, target).unwrap_or_default(),
        latency: reply.round_trip.time,
        lease,
    }
}

fn table(info: &ServerInfo, target: &WatchTarget) -> Result<TableBuf, EntryError> {
    let mut table = TableBuf::new();
    let name = info.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| target.to_string());
    let texts = [
        ("name", Some(&name)),
        ("map", info.map.as_ref()),
        ("game", info.game_name.as_ref()),
        ("game_short", info.game.as_ref()),
        ("game_ver", info.version.as_ref()),
        ("game_url", info.website.as_ref()),
        ("x-mode", info.mode.as_ref()),
    ];
    for (key, text) in texts {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            table.push(key.as_bytes(), text.as_bytes())?;
        }
    }
    table.push(b"x-query", target.protocol.as_str().as_bytes())?;
    Ok(table)
}
