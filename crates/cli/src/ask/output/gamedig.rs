//! The keys of gamedig, for programs that were written for it.

use super::record::{Missed, Record};
use crate::ask::Trouble;
use serde_json::{Value, json};

/// A server as gamedig tells it; the whole record is under `raw`.
pub fn server(record: &Record) -> Value {
    if let Some(trouble) = &record.trouble {
        return error(&record.target, trouble);
    }
    let info = &record.info;
    let players: Vec<_> = info.player_list.iter().flatten().map(|player| player_of(record, player)).collect();
    json!({
        "name": info.name.clone().unwrap_or_default(),
        "map": info.map.clone().unwrap_or_default(),
        "password": info.password.unwrap_or(false),
        "numplayers": info.players.unwrap_or(0),
        "maxplayers": info.max_players.unwrap_or(0),
        "players": players,
        "bots": (0..info.bots.unwrap_or(0)).map(|_| json!({ "name": "", "raw": {} })).collect::<Vec<_>>(),
        "version": info.version.clone().unwrap_or_default(),
        "queryPort": record.address.map(|address| address.port()),
        "connect": record.address.map(|address| address.to_string()).unwrap_or_default(),
        "ping": record.answer.as_ref().map(|answer| answer.ping_ms.round() as u64),
        "raw": serde_json::to_value(record.view()).unwrap_or_default(),
    })
}

/// A target without an answer.
pub fn missed(missed: &Missed) -> Value {
    json!({ "error": format!("{}: {}", missed.target, missed.message), "raw": missed })
}

fn error(target: &str, trouble: &Trouble) -> Value {
    json!({ "error": format!("{target}: {trouble}"), "raw": { "target": target, "error": trouble.code() } })
}

fn player_of(record: &Record, player: &rallypoint_query_proto::Player) -> Value {
    json!({ "name": player.name, "raw": super::record::PlayerView::new(&record.info, player) })
}
