//! Counts of datagrams by what became of them.

use crate::DeliveryStatus;
use std::ops::AddAssign;

/// Number of datagrams, and number of their payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Counters of one direction, or of the whole network.
///
/// `sent + forged + duplicated` equals `delivered`, plus what was lost (the other fields except `corrupted`), plus what is
/// still in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sent by machines.
    pub sent: Tally,
    /// Injected by the test. Counted only in the totals.
    pub forged: Tally,
    /// Second copies made by a link.
    pub duplicated: Tally,
    /// Delivered to machines, including corrupted copies.
    pub delivered: Tally,
    /// Copies corrupted by a link; they are delivered.
    pub corrupted: Tally,
    /// Lost independently of each other.
    pub lost_random: Tally,
    /// Lost in bursts.
    pub lost_burst: Tally,
    /// Dropped because the queue was full.
    pub lost_queue: Tally,
    /// Sent into a partition.
    pub partitioned: Tally,
    /// Dropped by the test's filter.
    pub filtered: Tally,
    /// Sent to an address that no node had when they arrived.
    pub no_receiver: Tally,
}

impl Tally {
    /// Adds one datagram.
    pub fn add(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.datagrams += other.datagrams;
        self.bytes += other.bytes;
    }
}

impl Counters {
    /// Everything that was lost, for any reason.
    #[must_use]
    pub fn lost(&self) -> Tally {
        let mut lost = Tally::default();
        let parts =
            [self.lost_random, self.lost_burst, self.lost_queue, self.partitioned, self.filtered, self.no_receiver];
        for part in parts {
            lost += part;
        }
        lost
    }

    pub(crate) fn count(&mut self, status: DeliveryStatus, bytes: usize) {
        match status {
            DeliveryStatus::InFlight { .. } => return,
            DeliveryStatus::Delivered { .. } => &mut self.delivered,
            DeliveryStatus::LostRandom => &mut self.lost_random,
            DeliveryStatus::LostBurst => &mut self.lost_burst,
            DeliveryStatus::LostQueue => &mut self.lost_queue,
            DeliveryStatus::Partitioned => &mut self.partitioned,
            DeliveryStatus::Filtered => &mut self.filtered,
            DeliveryStatus::NoReceiver => &mut self.no_receiver,
        }
        .add(bytes);
    }
}
