//! Lists of the entries that are not proven, newest first: those of one source, of one network, and of one lobby.
//!
//! When a cap is reached, the newest of these give way (W45). The links are part of the entries, so that adding and removing one
//! takes the same time however many there are.

use super::Slots;
use crate::{entry::Family, index::SlotIndex};

/// A kind of chain. An entry can be in one chain of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Chain {
    /// Endpoints of one source (IPv4 address or IPv6 /64).
    Source(Family),
    /// Endpoints of one network (/24 or /48).
    Network(Family),
    /// Servers of one lobby.
    Lobby,
}

impl Chain {
    const COUNT: usize = 5;

    const fn index(self) -> usize {
        match self {
            Self::Source(family) => family as usize,
            Self::Network(family) => 2 + family as usize,
            Self::Lobby => 4,
        }
    }
}

/// The links of an entry in its chains, and its position in the [`SampleSet`](super::sample_set::SampleSet).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainLinks {
    chains: [Link; Chain::COUNT],
    pub(super) sample: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
}

/// Stands for no entry. It takes half the space of an `Option`.
const NONE: u32 = u32::MAX;

impl Default for ChainLinks {
    fn default() -> Self {
        Self { chains: [Link { newer: NONE, older: NONE }; Chain::COUNT], sample: NONE }
    }
}

fn to_slot(link: u32) -> Option<SlotIndex> {
    (link != NONE).then(|| SlotIndex::new(link as usize))
}

fn to_link(slot: Option<SlotIndex>) -> u32 {
    slot.map_or(NONE, |slot| slot.get() as u32)
}

impl Slots {
    /// Adds an entry as the newest of a chain, whose newest entry is `newest`.
    pub fn link(&mut self, chain: Chain, newest: &mut Option<SlotIndex>, slot: SlotIndex) {
        *self.chain_link(chain, slot) = Link { newer: NONE, older: to_link(*newest) };
        if let Some(next) = *newest {
            self.chain_link(chain, next).newer = to_link(Some(slot));
        }
        *newest = Some(slot);
    }

    /// Removes an entry from a chain that it is in.
    pub fn unlink(&mut self, chain: Chain, newest: &mut Option<SlotIndex>, slot: SlotIndex) {
        let Link { newer, older } = *self.chain_link(chain, slot);
        match to_slot(newer) {
            Some(newer) => self.chain_link(chain, newer).older = older,
            None => *newest = to_slot(older),
        }
        if let Some(older) = to_slot(older) {
            self.chain_link(chain, older).newer = newer;
        }
    }

    /// The entries of a chain, newest first.
    pub fn chain(&self, chain: Chain, newest: Option<SlotIndex>) -> impl Iterator<Item = SlotIndex> {
        let older = move |slot: &SlotIndex| to_slot(self.cold(*slot).links.chains[chain.index()].older);
        std::iter::successors(newest, older)
    }

    fn chain_link(&mut self, chain: Chain, slot: SlotIndex) -> &mut Link {
        &mut self.cold_mut(slot).links.chains[chain.index()]
    }
}
