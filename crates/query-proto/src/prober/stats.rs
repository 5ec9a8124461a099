//! Counters for metrics and summaries.

/// Counters of a [`Prober`](crate::Prober) since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProberStats {
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes in these datagrams.
    pub sent_bytes: u64,
    /// Datagrams sent in retries.
    pub retries: u64,
    /// Datagrams received, of any kind.
    pub received: u64,
    /// Datagrams from an address that is not being probed: late, misdirected or forged.
    pub unsolicited: u64,
    /// Datagrams from the right address with a token that was not sent (B7).
    pub wrong_echo: u64,
    /// Datagrams from the right address that could not be parsed.
    pub malformed: u64,
    /// Datagrams from the right address that add nothing: repeated parts, or messages that are not replies.
    pub redundant: u64,
    /// Datagrams dropped because partial replies used too much memory.
    pub over_memory: u64,
    /// Servers that answered completely.
    pub complete: u64,
    /// Servers that answered in part.
    pub partial: u64,
    /// Servers that sent only datagrams that could not be parsed.
    pub unreadable: u64,
    /// Servers that did not answer.
    pub timed_out: u64,
    /// Servers at whose address nothing listens, according to the network.
    pub refused: u64,
}

/// Sums of the counters of two probers.
impl std::ops::AddAssign for ProberStats {
    fn add_assign(&mut self, other: Self) {
        let Self {
            sent,
            sent_bytes,
            retries,
            received,
            unsolicited,
            wrong_echo,
            malformed,
            redundant,
            over_memory,
            complete,
            partial,
            unreadable,
            timed_out,
            refused,
        } = other;
        self.sent += sent;
        self.sent_bytes += sent_bytes;
        self.retries += retries;
        self.received += received;
        self.unsolicited += unsolicited;
        self.wrong_echo += wrong_echo;
        self.malformed += malformed;
        self.redundant += redundant;
        self.over_memory += over_memory;
        self.complete += complete;
        self.partial += partial;
        self.unreadable += unreadable;
        self.timed_out += timed_out;
        self.refused += refused;
    }
}
