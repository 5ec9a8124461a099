//! `servers.json`: all servers as the API shows them, and what they are a copy of.

use super::ExportSettings;
use crate::json;
use rallypoint_history::{UnixSeconds, export::rfc3339};
use rallypoint_lobby::{TableSnapshot, Totals};
use rallypoint_mirror::{FORMAT, ListFile};
use rallypoint_wire::lobby::ListId;
use serde::Serialize;

/// Everything but the servers.
#[derive(Serialize)]
struct Head<'a> {
    format: u32,
    hosts: &'a [String],
    title: &'a str,
    page: Option<&'a str>,
    generated_at: String,
    valid_until: String,
    max_age: u64,
    lists: Vec<ListView<'a>>,
    total: usize,
    offset: u64,
    count: usize,
}

#[derive(Serialize)]
struct ListView<'a> {
    #[serde(serialize_with = "json::text")]
    id: ListId,
    name: Option<&'a str>,
    servers: usize,
    players: u64,
    /// The reply of document 001 as a file.
    file: String,
}

/// The document. It has the fields of the API's list of servers, and some more.
pub(super) fn write(table: &TableSnapshot, lists: &[ListFile], settings: &ExportSettings, made_at: u64) -> Vec<u8> {
    let time = |seconds: u64| rfc3339(seconds as UnixSeconds);
    let max_age = settings.max_age.as_secs();
    let totals = |list: &'_ ListFile| table.lists().get(&list.id).copied().unwrap_or_default();
    let head = Head {
        format: FORMAT,
        hosts: &settings.hosts,
        title: &settings.title,
        page: settings.page_url.as_deref(),
        generated_at: time(made_at),
        valid_until: time(made_at.saturating_add(max_age)),
        max_age,
        lists: lists
            .iter()
            .map(|list| {
                let Totals { servers, players, .. } = totals(list);
                ListView { id: list.id, name: settings.names.name(&list.id), servers, players, file: list.path() }
            })
            .collect(),
        total: table.len(),
        offset: 0,
        count: table.len(),
    };
    // Only maps with keys that are not strings would fail.
    let mut out = serde_json::to_vec(&head).unwrap_or_default();
    out.pop();
    out.extend_from_slice(b",\"servers\":[");
    for (index, record) in table.records().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&json::server(record));
    }
    out.extend_from_slice(b"]}\n");
    out
}
