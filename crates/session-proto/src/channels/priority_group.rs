//! Channels by priority: those with a lower number go first, and those of the same priority take turns.

use super::send_channel::SendChannel;

/// Some channels of a table, one bit for each.
pub(super) type ChannelSet = u32;

/// Channels of the same priority, by their positions in the table.
#[derive(Debug)]
pub(super) struct PriorityGroup {
    channels: Vec<usize>,
    /// The channels as a set.
    pub set: ChannelSet,
    /// The position in `channels` of the one that is served first.
    next: usize,
}

impl PriorityGroup {
    /// The groups of all channels, in the order in which they are served.
    pub fn of_all(channels: &[SendChannel]) -> Vec<Self> {
        let mut groups = Vec::<Self>::new();
        let mut positions: Vec<usize> = (0..channels.len()).collect();
        positions.sort_by_key(|&position| channels.get(position).map(|channel| channel.priority));
        for position in positions {
            let priority = |&other: &usize| channels.get(other).map(|channel| channel.priority);
            match groups.last_mut() {
                Some(group) if group.channels.first().and_then(priority) == priority(&position) => {
                    group.channels.push(position);
                    group.set |= bit(position);
                }
                _ => groups.push(Self { channels: vec![position], set: bit(position), next: 0 }),
            }
        }
        groups
    }

    /// The channels, beginning with the one that is served first, each with its position in the group.
    pub fn turns(&self) -> impl Iterator<Item = (usize, usize)> {
        let from = |range: std::ops::Range<usize>| {
            let channels = self.channels.get(range.clone()).unwrap_or_default();
            range.zip(channels.iter().copied())
        };
        from(self.next..self.channels.len()).chain(from(0..self.next))
    }

    /// The channel at this position in the group was served first: next time it is the one after it. Others have only had what was
    /// left of the payload.
    pub fn on_served(&mut self, turn: usize) {
        self.next = if turn + 1 < self.channels.len() { turn + 1 } else { 0 };
    }
}

/// A set with one channel.
pub(super) const fn bit(position: usize) -> ChannelSet {
    1 << position
}
