//! JSON with the keys of gamedig, for programs that were written for it.

use super::{FailedTarget, json};
use rallypoint_query::{ProbeError, ScannedServer, proto::Player};
use serde_json::{Value, json as object};

/// A server with gamedig's keys; the whole record is under `raw`.
pub fn server(record: &ScannedServer) -> Value {
    if let Some(error) = &record.error {
        return failure(&record.target, error);
    }
    let info = &record.info;
    let players: Vec<_> = info.player_list.iter().flatten().map(|player| player_of(record, player)).collect();
    object!({
        "name": info.name.clone().unwrap_or_default(),
        "map": info.map.clone().unwrap_or_default(),
        "password": info.password.unwrap_or(false),
        "numplayers": info.players.unwrap_or(0),
        "maxplayers": info.max_players.unwrap_or(0),
        "players": players,
        "bots": (0..info.bots.unwrap_or(0)).map(|_| object!({ "name": "", "raw": {} })).collect::<Vec<_>>(),
        "version": info.version.clone().unwrap_or_default(),
        "queryPort": record.address.map(|address| address.port()),
        "connect": record.address.map(|address| address.to_string()).unwrap_or_default(),
        "ping": record.ping_ms().map(|ping| ping.round() as u64),
        "raw": serde_json::to_value(json::server(record)).unwrap_or_default(),
    })
}

/// A target without a result.
pub fn failed_target(failed: &FailedTarget) -> Value {
    object!({ "error": format!("{}: {}", failed.target, failed.message), "raw": failed })
}

fn failure(target: &str, error: &ProbeError) -> Value {
    object!({ "error": format!("{target}: {error}"), "raw": { "target": target, "error": error.code() } })
}

fn player_of(record: &ScannedServer, player: &Player) -> Value {
    object!({ "name": player.name, "raw": json::PlayerJson::new(&record.info, player) })
}
