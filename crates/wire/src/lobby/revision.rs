//! A registration that differs from the block of an earlier one only in its occupancy and in some values.
//!
//! That is what a running server sends: its player count or its map has changed. Both layouts end alike, so such a registration
//! is compared with the block byte by byte, and the new block is made of both, without parsing what is the same.
//!
//! ```text
//! block           +4 transport   endpoints   +29 slots, players, bots, flags   +37 count   +39 table
//! registration   +48 transport   +49 port    +51 slots, players, bots, flags   +59 count   +61 table
//! ```

use super::{ListId, registration::PASSWORD, table};
use alloc::{boxed::Box, vec::Vec};
use core::num::NonZeroU16;

const LOBBY_ID: core::ops::Range<usize> = 32..48;
const TRANSPORT: usize = 48;
const PORT: core::ops::Range<usize> = 49..51;
const OCCUPANCY: usize = 51;
const FLAGS: usize = 57;
const COUNT: usize = table::OFFSET - 2;

const BLOCK_TRANSPORT: usize = 4;
const BLOCK_OCCUPANCY: usize = 29;
const BLOCK_COUNT: usize = 37;

/// Keys whose values mean more than a text to show: with another value, the registration has to be parsed.
const SIGNIFICANT: [&[u8]; 3] = [b"name", b"protocol_id", b"x-query"];

/// A registration with the same keys in the same order as an earlier one, and the same values of `name`, `protocol_id` and
/// `x-query`. It is valid because the earlier one was.
#[derive(Clone, Copy, Debug)]
pub struct Revision<'a> {
    datagram: &'a [u8],
    /// The block of the earlier registration, including its length field.
    block: &'a [u8],
}

impl<'a> Revision<'a> {
    /// Compares a datagram, whose message type is known to be that of a registration, with the block of an earlier registration
    /// of the same server, which [`ListBlock::emit`](super::ListBlock::emit) has written. `None` if they differ in more than
    /// occupancy and values; such a datagram may be valid or not.
    #[must_use]
    pub fn compare(datagram: &'a [u8], lobby: &ListId, block: &'a [u8]) -> Option<Self> {
        let is_same = datagram.get(LOBBY_ID)? == lobby.as_bytes()
            && datagram.get(TRANSPORT)? == block.get(BLOCK_TRANSPORT)?
            && has_same_keys(block.get(BLOCK_COUNT..)?, datagram.get(COUNT..)?);
        is_same.then_some(Self { datagram, block })
    }

    /// The registered port.
    #[must_use]
    pub fn port(&self) -> Option<NonZeroU16> {
        let port = self.datagram.get(PORT)?.first_chunk()?;
        NonZeroU16::new(u16::from_be_bytes(*port))
    }

    /// Whether it is the same registration: the block stays as it is.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.block[BLOCK_OCCUPANCY..BLOCK_COUNT] == self.occupancy()
            && self.block[BLOCK_COUNT..] == self.datagram[COUNT..]
    }

    /// Size of the new block in bytes, including its length field.
    #[must_use]
    pub fn block_size(&self) -> usize {
        BLOCK_COUNT + self.datagram.len() - COUNT
    }

    /// The new block, including its length field: transport and endpoints of the earlier one, the rest of the registration.
    #[must_use]
    pub fn block(&self) -> Box<[u8]> {
        let mut block = Vec::with_capacity(self.block_size());
        // The length is less than that of the datagram.
        block.extend_from_slice(&(self.block_size() as u32 - 4).to_be_bytes());
        block.extend_from_slice(&self.block[BLOCK_TRANSPORT..BLOCK_OCCUPANCY]);
        block.extend_from_slice(&self.occupancy());
        block.extend_from_slice(&self.datagram[COUNT..]);
        block.into_boxed_slice()
    }

    /// Slots, players, bots and flags; reserved flags are not forwarded (L2).
    fn occupancy(&self) -> [u8; 8] {
        let mut occupancy = [0; 8];
        occupancy.copy_from_slice(&self.datagram[OCCUPANCY..COUNT]);
        let flags = u16::from_be_bytes([self.datagram[FLAGS], self.datagram[FLAGS + 1]]) & PASSWORD;
        occupancy[6..].copy_from_slice(&flags.to_be_bytes());
        occupancy
    }
}

/// Whether two tables with their counts have the same keys in the same order, and the same significant values. `old` is valid.
fn has_same_keys(old: &[u8], new: &[u8]) -> bool {
    compare_tables(old, new).unwrap_or(false)
}

/// `None` if the new table is shorter than its lengths say.
fn compare_tables(mut old: &[u8], mut new: &[u8]) -> Option<bool> {
    if old.get(..2)? != new.get(..2)? {
        return Some(false);
    }
    old = &old[2..];
    new = &new[2..];
    loop {
        let same = common_prefix(old, new);
        if same == old.len() && same == new.len() {
            return Some(true);
        }
        // Skips the entries that are the same; the next one differs.
        let mut at = 0;
        let (key_end, end) = loop {
            let key_end = at + 1 + usize::from(*old.get(at)?);
            let value_length = u16::from_be_bytes(*old.get(key_end..)?.first_chunk()?);
            let end = key_end + 2 + usize::from(value_length);
            if end > same {
                break (key_end, end);
            }
            at = end;
        };
        if same < key_end || SIGNIFICANT.contains(&&old[at + 1..key_end]) {
            return Some(false);
        }
        let value_length = u16::from_be_bytes(*new.get(key_end..)?.first_chunk()?);
        new = new.get(key_end + 2 + usize::from(value_length)..)?;
        old = old.get(end..)?;
    }
}

/// The number of bytes at the start that are the same.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let (one_words, _) = one.as_chunks::<8>();
    let (other_words, _) = other.as_chunks::<8>();
    let mut same = 0;
    for (a, b) in one_words.iter().zip(other_words) {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return same + difference.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    same + one[same..].iter().zip(&other[same..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lobby::{Datagram, ListBlock, Occupancy, Registration, ServerId, TableBuf};
    use alloc::vec;
    use proptest::prelude::*;

    type Entries = Vec<(Vec<u8>, Vec<u8>)>;

    /// The index of a key, its old value and its new value.
    type Values = (u8, Vec<u8>, Vec<u8>);

    fn registration(occupancy: Occupancy, entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
        let mut table = TableBuf::new();
        for (key, value) in entries {
            table.push(key, value).unwrap();
        }
        let id = ServerId::from_bytes([1; 16]);
        let lobby = ListId::GANG_GARRISON_2;
        let port = NonZeroU16::new(8_190).unwrap();
        let transport = crate::lobby::Transport::Udp;
        let mut datagram = Vec::new();
        Registration::new(id, lobby, transport, port, occupancy, table.as_table()).unwrap().emit(&mut datagram);
        datagram
    }

    /// The block of a valid registration.
    fn parsed_block(datagram: &[u8]) -> Option<Vec<u8>> {
        let Ok(Datagram::Register(new)) = Datagram::parse(datagram) else { return None };
        let v4 = crate::lobby::Endpoint { ip: [192, 0, 2, 1].into(), port: new.port() };
        let block = ListBlock {
            transport: new.transport(),
            v4: Some(v4),
            v6: None,
            occupancy: new.occupancy(),
            table: new.table(),
        };
        let mut bytes = Vec::new();
        block.emit(&mut bytes);
        Some(bytes)
    }

    fn entries(map: &str, mode: &str) -> Entries {
        let entries = [("name", "A"), ("map", map), ("mode", mode), ("game", "Gang Garrison 2"), ("x", "")];
        entries.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
    }

    fn with_players(players: u16) -> Occupancy {
        Occupancy { slots: 24, players, bots: 0, password: false }
    }

    #[test]
    fn occupancy_and_values_may_change() {
        let old = parsed_block(&registration(with_players(3), &entries("ctf_truefort", "ctf"))).unwrap();
        for (players, map, mode) in [
            (3, "ctf_truefort", "ctf"),
            (4, "ctf_truefort", "ctf"),
            (3, "a", "ctf"),
            (5, "", "koth"),
            (9, "longer than before", ""),
        ] {
            let datagram = registration(with_players(players), &entries(map, mode));
            let revision = Revision::compare(&datagram, &ListId::GANG_GARRISON_2, &old).unwrap();
            assert_eq!(revision.port().unwrap().get(), 8_190);
            assert_eq!(*revision.block(), *parsed_block(&datagram).unwrap());
            assert_eq!(revision.block_size(), revision.block().len());
            assert_eq!(revision.is_same(), *revision.block() == *old);
        }
    }

    #[test]
    fn l2_reserved_flags_are_not_forwarded() {
        let mut datagram = registration(with_players(3), &entries("a", "b"));
        let old = parsed_block(&datagram).unwrap();
        datagram[FLAGS..COUNT].copy_from_slice(&[0xff, 0xfe]);
        let revision = Revision::compare(&datagram, &ListId::GANG_GARRISON_2, &old).unwrap();
        assert!(revision.is_same());
        datagram[FLAGS + 1] = 0xff;
        let revision = Revision::compare(&datagram, &ListId::GANG_GARRISON_2, &old).unwrap();
        assert_eq!(*revision.block(), *parsed_block(&datagram).unwrap());
        assert!(!revision.is_same());
    }

    #[test]
    fn other_changes_are_parsed() {
        let datagram = registration(with_players(3), &entries("a", "b"));
        let old = parsed_block(&datagram).unwrap();
        let is_revision = |datagram: &[u8]| Revision::compare(datagram, &ListId::GANG_GARRISON_2, &old).is_some();
        let with = |change: &dyn Fn(&mut Entries)| {
            let mut entries = entries("a", "b");
            change(&mut entries);
            registration(with_players(3), &entries)
        };
        assert!(is_revision(&datagram));
        assert!(!is_revision(&with(&|entries| entries[0].1 = b"B".to_vec())), "another name");
        assert!(!is_revision(&with(&|entries| entries[1].0 = b"mop".to_vec())), "another key");
        assert!(!is_revision(&with(&|entries| entries.swap(1, 2))), "another order");
        assert!(!is_revision(&with(&|entries| entries.push((b"new".to_vec(), vec![])))), "a new key");
        assert!(!is_revision(&with(&|entries| drop(entries.pop()))), "one key less");
        for (at, what) in [(LOBBY_ID.start, "lobby"), (TRANSPORT, "transport")] {
            let mut other = datagram.clone();
            other[at] ^= 1;
            assert!(!is_revision(&other), "another {what}");
        }
        for length in 0..datagram.len() {
            assert!(!is_revision(&datagram[..length]), "only {length} bytes");
        }
        assert!(!is_revision(&[&datagram[..], b"x"].concat()), "trailing bytes");
        for key in SIGNIFICANT {
            let entries = |value: u8| [(b"name".to_vec(), vec![value]), (key.to_vec(), vec![value; 16])];
            let old = parsed_block(&registration(with_players(0), &entries(1))).unwrap();
            let new = registration(with_players(0), &entries(2));
            assert!(Revision::compare(&new, &ListId::GANG_GARRISON_2, &old).is_none(), "{key:?}");
        }
    }

    proptest! {
        /// Whatever is accepted without parsing gives the same block as parsing it.
        #[test]
        fn a_revision_is_what_parsing_yields(
            values in proptest::collection::vec((0u8..4, proptest::collection::vec(0u8..3, 0..12), proptest::collection::vec(0u8..3, 0..12)), 0..6),
            edit in proptest::option::of((0usize..200, any::<u8>())),
        ) {
            let keys: [&[u8]; 4] = [b"map", b"", b"mode", b"x"];
            let entries = |pick: fn(&Values) -> &Vec<u8>| {
                let named = [(b"name".to_vec(), b"A".to_vec())].into_iter();
                let rest = values.iter().map(|value| (keys[usize::from(value.0)].to_vec(), pick(value).clone()));
                named.chain(rest).collect::<Entries>()
            };
            let old = parsed_block(&registration(with_players(1), &entries(|value| &value.1))).unwrap();
            let mut datagram = registration(with_players(2), &entries(|value| &value.2));
            if let Some((at, byte)) = edit
                && let Some(edited) = datagram.get_mut(51 + at)
            {
                *edited = byte;
            }
            if let Some(revision) = Revision::compare(&datagram, &ListId::GANG_GARRISON_2, &old) {
                let parsed = parsed_block(&datagram);
                prop_assert!(parsed.is_some(), "accepted, but not valid");
                prop_assert_eq!(revision.block().into_vec(), parsed.unwrap());
            }
        }
    }
}
