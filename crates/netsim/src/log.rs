//! Every datagram with its fate, as far back as the test wants.

use crate::{Loss, Pcap};
use std::{collections::VecDeque, fmt, io, net::SocketAddr, time::Duration};

/// What became of a datagram (or of one copy of it). Times count from the start of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is on the way.
    InFlight {
        /// When it will arrive.
        arrives: Duration,
    },
    /// A machine was given it.
    Delivered {
        /// When.
        at: Duration,
    },
    /// Lost by itself.
    LostRandom,
    /// Lost in a burst.
    LostBurst,
    /// The queue was full.
    LostQueue,
    /// Sent into a partition.
    Partitioned,
    /// Dropped by the test's filter.
    Filtered,
    /// Nobody had that address when it arrived.
    NoReceiver,
}

/// One datagram, or the second copy of one, and its fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was sent, from the start of the network.
    pub sent: Duration,
    /// The source address that the receiver sees.
    pub from: SocketAddr,
    /// Where it was sent to.
    pub to: SocketAddr,
    /// The bytes as they were sent (after the filter, before damage).
    pub bytes: Vec<u8>,
    /// The test injected it.
    pub forged: bool,
    /// It is the second copy that a link made.
    pub duplicate: bool,
    /// The bit that was flipped on the way.
    pub flipped: Option<usize>,
    /// What became of it.
    pub fate: Fate,
}

/// The last datagrams of a network, oldest first. Printing it gives one line for each.
#[derive(Clone, Debug, Default)]
pub struct Log {
    records: VecDeque<Record>,
    limit: usize,
    /// How many records were dropped to keep the limit: the number of the first that is there.
    dropped: u64,
}

impl Record {
    pub(crate) fn new(sent: Duration, from: SocketAddr, to: SocketAddr, bytes: &[u8], fate: Fate) -> Self {
        Self { sent, from, to, bytes: bytes.to_vec(), forged: false, duplicate: false, flipped: None, fate }
    }
}

impl Log {
    /// The records, oldest first.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &Record> + DoubleEndedIterator {
        self.records.iter()
    }

    /// How many older records were dropped to keep the limit.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Writes what was sent as a packet capture, as if taken at the senders: with the losses, without second copies.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write_pcap<W: io::Write>(&self, writer: W) -> io::Result<()> {
        let mut pcap = Pcap::new(writer)?;
        for record in self.records().filter(|record| !record.duplicate) {
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

    /// Keeps a record and gives its number.
    pub(crate) fn push(&mut self, record: Record) -> u64 {
        while self.records.len() >= self.limit.max(1) {
            self.drop_oldest();
        }
        self.records.push_back(record);
        self.dropped + self.records.len() as u64 - 1
    }

    /// Completes a record, if it is still there.
    pub(crate) fn finish(&mut self, number: u64, fate: Fate) {
        let index = number.checked_sub(self.dropped).and_then(|index| usize::try_from(index).ok());
        if let Some(record) = index.and_then(|index| self.records.get_mut(index)) {
            record.fate = fate;
        }
    }

    fn drop_oldest(&mut self) {
        if self.records.pop_front().is_some() {
            self.dropped += 1;
        }
    }
}

impl From<Loss> for Fate {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Random => Self::LostRandom,
            Loss::Burst => Self::LostBurst,
            Loss::Queue => Self::LostQueue,
        }
    }
}

impl fmt::Display for Fate {
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

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Enough to see the header of anything.
        const SHOWN: usize = 16;
        let (sent, len) = (self.sent.as_secs_f64(), self.bytes.len());
        write!(f, "{sent:>12.6} {} > {} len {len}: {}", self.from, self.to, self.fate)?;
        if self.forged {
            f.write_str(", forged")?;
        }
        if self.duplicate {
            f.write_str(", second copy")?;
        }
        if let Some(bit) = self.flipped {
            write!(f, ", bit {bit} flipped")?;
        }
        f.write_str(" |")?;
        for byte in self.bytes.iter().take(SHOWN) {
            write!(f, " {byte:02x}")?;
        }
        f.write_str(if len > SHOWN { " .." } else { "" })
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dropped > 0 {
            writeln!(f, "({} older datagrams not kept)", self.dropped)?;
        }
        self.records().try_for_each(|record| writeln!(f, "{record}"))
    }
}
