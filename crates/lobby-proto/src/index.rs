//! Typed indices into the registry's tables: an index of one table cannot be used with another.

/// Declares an index type of 32 bits, which is enough for every table: the number of servers is at most 16 million.
macro_rules! index_type {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u32);

        impl $name {
            /// The index of the element at this position of a table.
            #[inline]
            pub const fn new(position: usize) -> Self {
                Self(position as u32)
            }

            /// The position in the table.
            #[inline]
            pub const fn get(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(crate) use index_type;

index_type! {
    /// The slot of an entry in [`Entries`](crate::registry::Entries). Slots are reused: see [`EntryKey`].
    SlotIndex
}

impl SlotIndex {
    /// The first slot.
    pub const FIRST: Self = Self(0);

    /// All slots from this one up to but not including `end`.
    pub fn until(self, end: Self) -> impl Iterator<Item = Self> {
        (self.0..end.0).map(Self)
    }

    /// The slot that is `count` slots later.
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.saturating_add(count))
    }
}

/// A reference to an entry that becomes invalid when the entry is removed, even if its slot is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryKey {
    pub slot: SlotIndex,
    /// The serial number of the entry; no two entries of a registry have the same.
    pub serial: u64,
}
