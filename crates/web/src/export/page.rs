//! `index.html`: the list for people, without scripts, styles and pictures of other files.

use super::ExportSettings;
use crate::page::format;
use askama::Template;
use rallypoint_history::{UnixSeconds, export::rfc3339};
use rallypoint_lobby::{ServerRecord, TableSnapshot, Totals};
use rallypoint_mirror::minisign::PublicKey;
use std::{cmp::Reverse, sync::Arc};

/// Maximum number of servers on the page: those with the most players. A page of all servers of a very large lobby would be of
/// no use to anyone.
const MAX_ROWS: usize = 1_000;

#[derive(Template)]
#[template(path = "export.html")]
struct Page<'a> {
    settings: &'a ExportSettings,
    made_at: String,
    key: PublicKey,
    totals: Totals,
    rows: Vec<Row<'a>>,
    /// Number of servers that are not on the page.
    more: usize,
}

struct Row<'a> {
    server: &'a ServerRecord,
    list: String,
}

impl Row<'_> {
    fn address(&self) -> String {
        self.server.addresses().next().map(|addr| addr.to_string()).unwrap_or_default()
    }

    fn game(&self) -> &str {
        if self.server.game_name.is_empty() { &self.server.game } else { &self.server.game_name }
    }
}

/// The page.
pub(super) fn write(table: &TableSnapshot, settings: &ExportSettings, key: PublicKey, made_at: u64) -> Vec<u8> {
    let mut servers: Vec<&Arc<ServerRecord>> = table.records().collect();
    let order = |server: &&Arc<ServerRecord>| (Reverse(server.players), server.id);
    if servers.len() > MAX_ROWS {
        servers.select_nth_unstable_by_key(MAX_ROWS, order);
        servers.truncate(MAX_ROWS);
    }
    servers.sort_by_cached_key(|server| (Reverse(server.players), server.name.to_lowercase(), server.id));
    let more = table.len() - servers.len();
    let row = |server: &'_ Arc<ServerRecord>| settings.names.short(&server.list);
    let rows = servers.iter().map(|server| Row { server, list: row(server) }).collect();
    let made_at = rfc3339(made_at as UnixSeconds);
    let page = Page { settings, made_at, key, totals: table.totals(), rows, more };
    // Templates write to memory, and no expression in them fails.
    page.render().unwrap_or_default().into_bytes()
}
