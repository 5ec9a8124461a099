//! The part of the registry that has the entries: their slots, leases and endpoints, and what is remembered of those that left.

use super::{
    gap::GapDetector,
    reserved_endpoints::ReservedEndpoints,
    slots::Slots,
    tombstones::{REORDERING_TIME, Tombstones},
};
use crate::{
    PublicId,
    hash::{Fingerprinter, KeyedHash, KeyedMap},
    index::SlotIndex,
    wheel::TimerWheel,
};
use rallypoint_wire::lobby::ServerId;
use std::time::Instant;

/// All entries with their leases.
#[derive(Debug)]
pub(super) struct Entries {
    pub slots: Slots,
    pub wheel: TimerWheel,
    pub fingerprinter: Fingerprinter,
    pub gaps: GapDetector,
    pub reserved: ReservedEndpoints,
    /// The entries that keep a displaced server, by the ID of that server.
    pub displaced_by_id: KeyedMap<PublicId, SlotIndex>,
    pub tombstones: Tombstones<ServerId>,
    /// Entries whose deadline is due: a buffer that is reused between calls.
    pub due: Vec<SlotIndex>,
}

impl Entries {
    pub fn new(keyed: KeyedHash, now: Instant) -> Self {
        Self {
            slots: Slots::new(keyed),
            wheel: TimerWheel::new(now),
            fingerprinter: Fingerprinter::new(keyed),
            gaps: GapDetector::new(now),
            reserved: ReservedEndpoints::new(keyed),
            displaced_by_id: keyed.map(),
            tombstones: Tombstones::new(keyed, REORDERING_TIME),
            due: Vec::new(),
        }
    }
}
