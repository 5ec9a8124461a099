//! How many datagrams had which fate.

use crate::Fate;
use std::ops::AddAssign;

/// A number of datagrams and of their bytes (without headers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What became of the datagrams of one direction, or of the whole network.
///
/// `sent + forged + duplicated` is what was `delivered`, what was lost (the other fields but `corrupted`) and what is
/// still on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// What the machines sent.
    pub sent: Tally,
    /// What the test injected. Only in the totals.
    pub forged: Tally,
    /// Second copies that a link made.
    pub duplicated: Tally,
    /// What machines were given, damaged copies included.
    pub delivered: Tally,
    /// Copies that a link damaged; they are delivered.
    pub corrupted: Tally,
    /// Lost one by one.
    pub lost_random: Tally,
    /// Lost in bursts.
    pub lost_burst: Tally,
    /// Found the queue full.
    pub lost_queue: Tally,
    /// Sent into a partition.
    pub partitioned: Tally,
    /// Dropped by the test's filter.
    pub filtered: Tally,
    /// Arrived where nobody was.
    pub no_receiver: Tally,
}

impl Tally {
    /// Counts one datagram.
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
    /// All that was lost, for whatever reason.
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

    pub(crate) fn count(&mut self, fate: Fate, bytes: usize) {
        match fate {
            Fate::InFlight { .. } => return,
            Fate::Delivered { .. } => &mut self.delivered,
            Fate::LostRandom => &mut self.lost_random,
            Fate::LostBurst => &mut self.lost_burst,
            Fate::LostQueue => &mut self.lost_queue,
            Fate::Partitioned => &mut self.partitioned,
            Fate::Filtered => &mut self.filtered,
            Fate::NoReceiver => &mut self.no_receiver,
        }
        .add(bytes);
    }
}
