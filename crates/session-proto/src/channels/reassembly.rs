//! Puts the fragments of a message together.

/// A message of which parts have arrived.
#[derive(Debug)]
pub(super) struct PartialMessage {
    bytes: Vec<u8>,
    /// One bit for each fragment that has arrived.
    arrived: Vec<u64>,
    count: u16,
    missing: u16,
}

/// Why a fragment does not belong to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FragmentMismatch;

impl PartialMessage {
    pub fn new(count: u16) -> Self {
        Self { bytes: Vec::new(), arrived: vec![0; usize::from(count).div_ceil(64)], count, missing: count }
    }

    /// Bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.arrived.len() * 8
    }

    pub fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Adds a fragment; all but the last have `size` bytes.
    pub fn insert(&mut self, index: u16, count: u16, body: &[u8], size: usize) -> Result<(), FragmentMismatch> {
        let is_last = index + 1 == count;
        let has_right_size = if is_last { body.len() <= size } else { body.len() == size };
        let bit = 1 << (index % 64);
        let arrived = self.arrived.get_mut(usize::from(index / 64)).ok_or(FragmentMismatch)?;
        if count != self.count || !has_right_size || *arrived & bit != 0 {
            return Err(FragmentMismatch);
        }
        *arrived |= bit;
        self.missing -= 1;
        let start = usize::from(index) * size;
        let end = start + body.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        // In range: the bytes were just made long enough.
        self.bytes[start..end].copy_from_slice(body);
        Ok(())
    }

    /// The bytes of a complete message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
