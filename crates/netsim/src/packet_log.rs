//! A log of every datagram and what became of it, as far back as the test wants.

use crate::{Loss, Pcap};
use std::{collections::VecDeque, fmt, io, net::SocketAddr, time::Duration};

/// The fate of a datagram, or of one copy of it. Times count from the start of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// It is in flight.
    InFlight {
        /// Time of arrival.
        arrives: Duration,
    },
    /// It was delivered to a machine.
    Delivered {
        /// Time of delivery.
        at: Duration,
    },
    /// Lost independently of others.
    LostRandom,
    /// Lost in a burst.
    LostBurst,
    /// Dropped because the queue was full.
    LostQueue,
    /// Sent into a partition.
    Partitioned,
    /// Dropped by the test's filter.
    Filtered,
    /// No node had that address when it arrived.
    NoReceiver,
}

/// A datagram, or the second copy of one, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// Time of sending, from the start of the network.
    pub sent: Duration,
    /// Source address, as the receiver sees it.
    pub from: SocketAddr,
    /// Destination address.
    pub to: SocketAddr,
    /// Payload as it was sent: after the filter, before corruption.
    pub bytes: Vec<u8>,
    /// Whether the test injected it.
    pub is_forged: bool,
    /// Whether it is the second copy, made by a link.
    pub is_duplicate: bool,
    /// The bit that was flipped in transit, counted from the lowest of the first byte.
    pub flipped_bit: Option<usize>,
    /// Its fate.
    pub status: DeliveryStatus,
}

/// The most recent datagrams of a network, oldest first. It is displayed as one line per datagram.
#[derive(Clone, Debug, Default)]
pub struct PacketLog {
    records: VecDeque<PacketRecord>,
    limit: usize,
    /// Number of records that were dropped to keep the limit, which is also the number of the first one kept.
    dropped: u64,
}

impl PacketRecord {
    pub(crate) fn new(sent: Duration, from: SocketAddr, to: SocketAddr, bytes: &[u8], status: DeliveryStatus) -> Self {
        Self { sent, from, to, bytes: bytes.to_vec(), is_forged: false, is_duplicate: false, flipped_bit: None, status }
    }
}

impl PacketLog {
    /// The records, oldest first.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &PacketRecord> + DoubleEndedIterator {
        self.records.iter()
    }

    /// Number of older records that were dropped to keep the limit.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Writes the datagrams as a packet capture, as if taken at the senders: with the lost ones, without second copies.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn write_pcap<W: io::Write>(&self, writer: W) -> io::Result<()> {
        let mut pcap = Pcap::new(writer)?;
        for record in self.records().filter(|record| !record.is_duplicate) {
            pcap.write(record.sent, record.from, record.to, &record.bytes)?;
        }
        pcap.flush()
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        while self.records.len() > limit {
            self.drop_oldest();
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.limit > 0
    }

    /// Adds a record and returns its number.
    pub(crate) fn push(&mut self, record: PacketRecord) -> u64 {
        while self.records.len() >= self.limit.max(1) {
            self.drop_oldest();
        }
        self.records.push_back(record);
        self.dropped + self.records.len() as u64 - 1
    }

    /// Sets the final status of a record, if it is still kept.
    pub(crate) fn finish(&mut self, number: u64, status: DeliveryStatus) {
        let index = number.checked_sub(self.dropped).and_then(|index| usize::try_from(index).ok());
        if let Some(record) = index.and_then(|index| self.records.get_mut(index)) {
            record.status = status;
        }
    }

    fn drop_oldest(&mut self) {
        if self.records.pop_front().is_some() {
            self.dropped += 1;
        }
    }
}

impl From<Loss> for DeliveryStatus {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Random => Self::LostRandom,
            Loss::Burst => Self::LostBurst,
            Loss::Queue => Self::LostQueue,
        }
    }
}

impl fmt::Display for DeliveryStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InFlight { arrives } => write!(f, "arrives {:.6}", arrives.as_secs_f64()),
            Self::Delivered { at } => write!(f, "delivered {:.6}", at.as_secs_f64()),
            Self::LostRandom => f.write_str("lost"),
            Self::LostBurst => f.write_str("lost in a burst"),
            Self::LostQueue => f.write_str("queue full"),
            Self::Partitioned => f.write_str("partitioned"),
            Self::Filtered => f.write_str("filtered"),
            Self::NoReceiver => f.write_str("no receiver"),
        }
    }
}

impl fmt::Display for PacketRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Maximum number of payload bytes displayed: enough for the header of any protocol.
        const SHOWN: usize = 16;
        let sent = self.sent.as_secs_f64();
        let len = self.bytes.len();
        write!(f, "{sent:>12.6} {} > {} len {len}: {}", self.from, self.to, self.status)?;
        if self.is_forged {
            f.write_str(", forged")?;
        }
        if self.is_duplicate {
            f.write_str(", second copy")?;
        }
        if let Some(bit) = self.flipped_bit {
            write!(f, ", bit {bit} flipped")?;
        }
        f.write_str(" |")?;
        for byte in self.bytes.iter().take(SHOWN) {
            write!(f, " {byte:02x}")?;
        }
        f.write_str(if len > SHOWN { " .." } else { "" })
    }
}

impl fmt::Display for PacketLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dropped > 0 {
            writeln!(f, "({} older datagrams not kept)", self.dropped)?;
        }
        self.records().try_for_each(|record| writeln!(f, "{record}"))
    }
}
