//! Samples of a subject, and sums of samples.

/// The state of a subject at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Number of human players.
    pub players: u32,
    /// Number of bots.
    pub bots: u32,
    /// Number of slots for players.
    pub slots: u32,
    /// Number of servers: 1 for a server.
    pub servers: u32,
}

/// The sum of several samples. Merging is exact and commutative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// Number of minutes in which the subject was listed. If it is 0, all other fields are 0.
    pub up: u32,
    pub min: u32,
    pub max: u32,
    pub players: u64,
    pub bots: u64,
    pub slots: u64,
    pub servers: u64,
}

impl Sample {
    /// The sum of two samples.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            players: self.players.saturating_add(other.players),
            bots: self.bots.saturating_add(other.bots),
            slots: self.slots.saturating_add(other.slots),
            servers: self.servers.saturating_add(other.servers),
        }
    }
}

impl Sum {
    pub fn merge(&mut self, other: &Self) {
        if self.up == 0 {
            *self = *other;
        } else if other.up > 0 {
            self.up = self.up.saturating_add(other.up);
            self.min = self.min.min(other.min);
            self.max = self.max.max(other.max);
            self.players = self.players.saturating_add(other.players);
            self.bots = self.bots.saturating_add(other.bots);
            self.slots = self.slots.saturating_add(other.slots);
            self.servers = self.servers.saturating_add(other.servers);
        }
    }
}

impl From<Sample> for Sum {
    fn from(sample: Sample) -> Self {
        Self {
            up: 1,
            min: sample.players,
            max: sample.players,
            players: sample.players.into(),
            bots: sample.bots.into(),
            slots: sample.slots.into(),
            servers: sample.servers.into(),
        }
    }
}
