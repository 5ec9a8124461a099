//! Lists for clients: entries of some bytes each, in datagrams.

use crate::PublishedList;
use rallypoint_wire::{
    lobby::Endpoint,
    quake3::{END, ListRequest, MAX_LIST_DATAGRAM, emit_entry},
};
use std::net::IpAddr;

/// What a client selects servers by, and their entries.
#[derive(Debug)]
pub(super) struct Row {
    game: Box<[u8]>,
    protocol: u32,
    is_empty: bool,
    is_full: bool,
    endpoint: Endpoint<IpAddr>,
    entry: Box<[u8]>,
}

/// The rows of a published list.
pub(super) fn rows(list: &PublishedList) -> Vec<Row> {
    let mut rows = Vec::new();
    for server in list.servers() {
        let block = server.block();
        let number = |value: &[u8]| std::str::from_utf8(value).ok()?.parse().ok();
        let Some(protocol) = block.table.get(b"x-protocol").and_then(number) else { continue };
        let v4 = block.v4.map(|Endpoint { ip, port }| Endpoint { ip: IpAddr::V4(ip), port });
        let v6 = block.v6.map(|Endpoint { ip, port }| Endpoint { ip: IpAddr::V6(ip), port });
        let clients = block.occupancy.players.saturating_add(block.occupancy.bots);
        for endpoint in [v4, v6].into_iter().flatten() {
            let mut entry = Vec::new();
            emit_entry(endpoint, &mut entry);
            rows.push(Row {
                game: block.table.get(b"game").unwrap_or_default().into(),
                protocol,
                is_empty: clients == 0,
                is_full: clients >= block.occupancy.slots,
                endpoint,
                entry: entry.into(),
            });
        }
    }
    rows
}

impl Row {
    fn is_requested(&self, request: &ListRequest<'_>) -> bool {
        self.protocol == request.protocol
            && request.game.is_none_or(|game| *game == *self.game)
            && (request.empty || !self.is_empty)
            && (request.full || !self.is_full)
            && if self.endpoint.ip.is_ipv4() { request.ipv4 } else { request.ipv6 }
    }
}

/// The datagrams of the reply, and whether it was cut to the budget, which counts `headers` bytes for each datagram. A list that
/// is cut continues where the one before it ended, so that repeated requests see all servers.
pub(super) fn datagrams(
    rows: &[Row],
    request: &ListRequest<'_>,
    headers: usize,
    budget: usize,
    rotation: &mut usize,
) -> (Vec<Vec<u8>>, bool) {
    let selected: Vec<_> = rows.iter().filter(|row| row.is_requested(request)).collect();
    let start = if selected.is_empty() { 0 } else { *rotation % selected.len() };
    let frame = headers + request.reply_header().len() + END.len();
    if frame > budget {
        return (Vec::new(), true);
    }
    let mut left = budget - frame;
    let mut datagrams = vec![request.reply_header().to_vec()];
    let mut count = 0;
    for row in selected[start..].iter().chain(&selected[..start]) {
        let last = &datagrams[datagrams.len() - 1];
        let is_full = last.len() + row.entry.len() + END.len() > MAX_LIST_DATAGRAM;
        let cost = row.entry.len() + if is_full { frame } else { 0 };
        let Some(rest) = left.checked_sub(cost) else { break };
        left = rest;
        if is_full {
            datagrams.push(request.reply_header().to_vec());
        }
        let index = datagrams.len() - 1;
        datagrams[index].extend_from_slice(&row.entry);
        count += 1;
    }
    let is_cut = count < selected.len();
    if is_cut {
        *rotation = start + count;
    }
    let index = datagrams.len() - 1;
    datagrams[index].extend_from_slice(END);
    (datagrams, is_cut)
}
