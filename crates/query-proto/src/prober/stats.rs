//! Numbers for metrics and for the end of a sweep.

/// What a [`Prober`](crate::Prober) has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProberStats {
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes in them.
    pub sent_bytes: u64,
    /// How many of them were retries.
    pub retries: u64,
    /// Datagrams received, whatever they were.
    pub received: u64,
    /// Not from an address that is being asked: late, mistaken or forged.
    pub unasked: u64,
    /// From the right address, but not the answer to a question that was asked (B7).
    pub wrong_echo: u64,
    /// From the right address, but without sense.
    pub malformed: u64,
    /// From the right address, but of no use: a part that is there already, or a message that is no answer.
    pub useless: u64,
    /// Dropped, because answers that are not complete took too much memory.
    pub over_memory: u64,
    /// Servers that answered in full.
    pub complete: u64,
    /// Servers that answered in part.
    pub partial: u64,
    /// Servers of which nothing came that made sense.
    pub nonsense: u64,
    /// Servers of which nothing came.
    pub timed_out: u64,
    /// Servers of which the network said that nothing listens there.
    pub refused: u64,
}

/// What two have done.
impl std::ops::AddAssign for ProberStats {
    fn add_assign(&mut self, other: Self) {
        let Self {
            sent,
            sent_bytes,
            retries,
            received,
            unasked,
            wrong_echo,
            malformed,
            useless,
            over_memory,
            complete,
            partial,
            nonsense,
            timed_out,
            refused,
        } = other;
        self.sent += sent;
        self.sent_bytes += sent_bytes;
        self.retries += retries;
        self.received += received;
        self.unasked += unasked;
        self.wrong_echo += wrong_echo;
        self.malformed += malformed;
        self.useless += useless;
        self.over_memory += over_memory;
        self.complete += complete;
        self.partial += partial;
        self.nonsense += nonsense;
        self.timed_out += timed_out;
        self.refused += refused;
    }
}
