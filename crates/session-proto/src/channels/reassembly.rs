//! Puts the fragments of a message together.

use std::collections::BTreeMap;

/// Memory that an entry of a map or queue takes beyond its bytes, about.
pub(super) const ENTRY: usize = 64;

/// A message of which parts have arrived. It takes memory only for bytes that have arrived: what a fragment says about the
/// length of its message costs nothing.
#[derive(Debug)]
pub(super) struct PartialMessage {
    /// The fragments before the first gap.
    bytes: Vec<u8>,
    /// Number of fragments in `bytes`.
    next: u16,
    /// Fragments after a gap.
    early: BTreeMap<u16, Box<[u8]>>,
    early_bytes: usize,
    count: u16,
}

/// Why a fragment does not belong to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FragmentMismatch;

impl PartialMessage {
    pub fn new(count: u16) -> Self {
        Self { bytes: Vec::new(), next: 0, early: BTreeMap::new(), early_bytes: 0, count }
    }

    /// Bytes of memory in use.
    pub fn memory(&self) -> usize {
        ENTRY + self.bytes.capacity() + self.early_bytes + self.early.len() * ENTRY
    }

    pub fn is_complete(&self) -> bool {
        self.next == self.count
    }

    /// Adds a fragment; all but the last have `size` bytes.
    pub fn insert(&mut self, index: u16, count: u16, body: &[u8], size: usize) -> Result<(), FragmentMismatch> {
        let is_last = index + 1 == count;
        let has_right_size = if is_last { body.len() <= size } else { body.len() == size };
        if count != self.count || !has_right_size || index < self.next || self.early.contains_key(&index) {
            return Err(FragmentMismatch);
        }
        if index != self.next {
            self.early_bytes += body.len();
            self.early.insert(index, body.into());
            return Ok(());
        }
        self.append(body, size);
        while let Some(first) = self.early.first_entry()
            && *first.key() == self.next
        {
            let body = first.remove();
            self.early_bytes -= body.len();
            self.append(&body, size);
        }
        Ok(())
    }

    /// The bytes of a complete message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn append(&mut self, body: &[u8], size: usize) {
        let missing = usize::from(self.count - self.next) * size;
        if self.bytes.capacity() - self.bytes.len() < body.len() {
            // By an eighth, so that little memory is unused, and at most to the end of the message.
            self.bytes.reserve_exact((self.bytes.len() / 8 + 8 * size).min(missing).max(body.len()));
        }
        self.bytes.extend_from_slice(body);
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_in_any_order_make_the_message() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let mut partial = PartialMessage::new(4);
            for index in order {
                assert!(!partial.is_complete());
                let body = vec![index as u8; if index == 3 { 5 } else { 10 }];
                assert_eq!(partial.insert(index, 4, &body, 10), Ok(()));
                assert_eq!(partial.insert(index, 4, &body, 10), Err(FragmentMismatch), "twice");
            }
            assert!(partial.is_complete());
            let expected = [[0; 10], [1; 10], [2; 10]].concat();
            assert_eq!(partial.into_bytes(), [&expected[..], &[3; 5]].concat());
        }
    }

    #[test]
    fn w112_the_last_fragment_of_a_huge_message_takes_no_more_memory_than_its_bytes() {
        let mut partial = PartialMessage::new(u16::MAX);
        partial.insert(u16::MAX - 1, u16::MAX, &[1; 477], 477).unwrap();
        assert!(partial.memory() < 477 + 3 * ENTRY);
        assert_eq!(partial.insert(5, 6, &[1; 477], 477), Err(FragmentMismatch), "another count");
        assert_eq!(partial.insert(5, u16::MAX, &[1; 400], 477), Err(FragmentMismatch), "another size");
    }
}
