//! One server as a scan knows it.

use crate::{FetchedServer, ProbeError, ServerAddress, engine::ProbeReply, list_names};
use rallypoint_query_proto::{MissingPart, Protocol, RoundTrip, ServerInfo};
use rallypoint_wire::lobby::{ListId, Transport};
use std::{net::SocketAddr, sync::Arc};

/// One server as a scan knows it: from the server itself, from a list, or from both.
#[derive(Clone, Debug, PartialEq)]
pub struct ScannedServer {
    /// Identifies the server from one pass to the next. For a listed server: its lowest address (IPv4 before IPv6, regardless
    /// of the order in the list) and its transport.
    pub id: String,
    /// Index of the target that the server was found by.
    pub target_index: usize,
    /// The server as the user named it, or the first address in the list.
    pub target: String,
    /// Address that answered, or the first address in the list.
    pub address: Option<SocketAddr>,
    /// Protocol that the server answered with, or that the target or the list implies.
    pub protocol: Option<Protocol>,
    /// The description: the server's own takes precedence over the list's.
    pub info: ServerInfo,
    /// How the server answered, if it did.
    pub reply: Option<ReplyStats>,
    /// Why the server did not answer, if it was probed.
    pub error: Option<ProbeError>,
    /// All addresses in the list.
    pub endpoints: Vec<SocketAddr>,
    /// The list of the lobby that contains the server, if it is known.
    pub list: Option<ListId>,
    /// The name that the lobby's operator has given to a list that is not well known, if the lobby's API reports it.
    pub list_name: Option<Arc<str>>,
}

/// How a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyStats {
    /// Round-trip time.
    pub round_trip: RoundTrip,
    /// Number of retries.
    pub retries: u8,
    /// Parts of the reply that did not arrive.
    pub missing: Vec<MissingPart>,
}

impl ScannedServer {
    /// A server that was named and of which nothing else is known.
    #[must_use]
    pub fn named(server: &ServerAddress, target_index: usize) -> Self {
        let target = server.to_string();
        Self {
            id: target.clone(),
            target_index,
            target,
            address: None,
            protocol: server.protocol,
            info: ServerInfo::default(),
            reply: None,
            error: None,
            endpoints: Vec::new(),
            list: None,
            list_name: None,
        }
    }

    /// A server in a list.
    #[must_use]
    pub fn listed(listed: FetchedServer, target_index: usize) -> Self {
        let address = listed.endpoints.first().copied();
        Self {
            id: listed_id(&listed),
            target_index,
            target: address.map_or_else(String::new, |address| address.to_string()),
            address,
            protocol: listed.protocol,
            info: listed.info,
            reply: None,
            error: None,
            endpoints: listed.endpoints,
            list: listed.list,
            list_name: listed.list_name,
        }
    }

    /// The name of the server, or the target if it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.info.name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(&self.target)
    }

    /// The shortest name of the game that is known.
    #[must_use]
    pub fn game(&self) -> Option<&str> {
        let names = [&self.info.game, &self.info.game_name].into_iter().filter_map(Option::as_deref);
        names.into_iter().find(|text| !text.is_empty())
    }

    /// The list that contains the server, as people call it: its well-known short name, the name that the operator has given
    /// it, or its UUID.
    #[must_use]
    pub fn list_label(&self) -> Option<String> {
        let list = self.list?;
        let name = self.list_name.as_deref().filter(|_| !list_names::is_known(list));
        Some(name.map_or_else(|| list_names::short_name(list), str::to_owned))
    }

    /// Number of milliseconds of the round trip, to three decimals, if the server answered.
    #[must_use]
    pub fn ping_ms(&self) -> Option<f64> {
        self.reply.as_ref().map(|reply| milliseconds(reply.round_trip.time))
    }

    /// The server as it is in the list, to probe it again.
    pub(crate) fn to_listed(&self) -> FetchedServer {
        FetchedServer {
            info: self.info.clone(),
            endpoints: self.endpoints.clone(),
            protocol: self.protocol,
            list: self.list,
            list_name: self.list_name.clone(),
        }
    }

    /// Merges the server's own reply into the list's description.
    pub fn apply_reply(&mut self, ProbeReply { probe, reply, retries }: ProbeReply) {
        let listed = std::mem::replace(&mut self.info, reply.info);
        self.info.fill_from(&listed);
        self.address = Some(probe.address);
        self.protocol = Some(probe.query.protocol);
        self.error = None;
        self.reply = Some(ReplyStats { round_trip: reply.round_trip, retries, missing: reply.missing });
    }
}

/// A duration in milliseconds, to three decimals: as accurate as the clock.
#[must_use]
pub fn milliseconds(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn listed_id(listed: &FetchedServer) -> String {
    let address = listed.endpoints.iter().min().map(ToString::to_string).unwrap_or_default();
    match listed.info.lobby.as_ref().map(|lobby| lobby.transport) {
        Some(Transport::Tcp) => format!("tcp://{address}"),
        Some(Transport::Udp) | None => format!("udp://{address}"),
    }
}
