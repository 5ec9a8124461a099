//! Changes that wait for the store, or are being written.

use crate::{StoreClock, record::EntryBody, request::Write};
use rallypoint_lobby_proto::{PublicId, ReplicatedEndpoint, ReplicatedServer, UnlistReason};
use rallypoint_wire::lobby::{ListBlock, Transport};
use std::time::Instant;

/// A change with times of the node's clock: they become the store's when it is sent, because that clock can be set in between.
#[derive(Clone, Debug)]
pub(super) enum QueuedWrite {
    Put { server: Box<ReplicatedServer>, transport: Transport },
    Remove { id: PublicId, reason: UnlistReason, deadline: Instant },
    Ban(QueuedDecision),
}

/// As [`Write::Ban`].
#[derive(Clone, Debug)]
pub(super) struct QueuedDecision {
    pub subject: Vec<u8>,
    pub value: Vec<u8>,
    pub since: u64,
    pub end: u64,
    pub is_current: bool,
}

impl QueuedWrite {
    /// A server that is listed; `None` if it has no valid block.
    pub fn put(server: Box<ReplicatedServer>) -> Option<Self> {
        let transport = ListBlock::parse(&server.block).ok()?.transport;
        Some(Self::Put { server, transport })
    }

    /// The server that the change concerns.
    pub fn server(&self) -> Option<PublicId> {
        match self {
            Self::Put { server, .. } => Some(server.public_id),
            Self::Remove { id, .. } => Some(*id),
            Self::Ban(_) => None,
        }
    }

    /// Approximate size of its command in bytes.
    pub fn size(&self) -> usize {
        /// Name of the script, keys, and numbers.
        const COMMAND: usize = 500;
        COMMAND
            + match self {
                Self::Put { server, .. } => server.block.len(),
                Self::Remove { .. } => 0,
                Self::Ban(ban) => ban.subject.len() + ban.value.len(),
            }
    }

    /// The change as it is sent now.
    pub fn write(&self, clock: &StoreClock) -> Write {
        match self {
            Self::Put { server, transport } => {
                let endpoint = |endpoint: ReplicatedEndpoint| {
                    ((endpoint.internal, endpoint.external), clock.store_time(endpoint.deadline))
                };
                Write::Put {
                    id: server.public_id,
                    origin: server.origin,
                    transport: *transport,
                    v4: server.v4.map(endpoint),
                    v6: server.v6.map(endpoint),
                    body: EntryBody {
                        list_id: server.list_id,
                        since: clock.store_time(server.since),
                        is_proven: server.is_proven,
                        door: server.door,
                        block: server.block.clone(),
                    },
                }
            }
            Self::Remove { id, reason, deadline } => {
                Write::Remove { id: *id, reason: *reason, deadline: clock.store_time(*deadline) }
            }
            Self::Ban(QueuedDecision { subject, value, since, end, is_current }) => Write::Ban {
                subject: subject.clone(),
                value: value.clone(),
                since: *since,
                end: *end,
                is_current: *is_current,
            },
        }
    }
}
