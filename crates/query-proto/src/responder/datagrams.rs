//! Datagrams that are encoded once and sent many times.

/// The datagrams of one reply.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Datagrams {
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Total size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    pub fn push(&mut self, emit: impl FnOnce(&mut Vec<u8>)) {
        emit(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Appends a datagram, unless the total size would exceed the limit.
    pub fn push_within(&mut self, limit: usize, emit: impl FnOnce(&mut Vec<u8>)) -> bool {
        let before = self.bytes.len();
        emit(&mut self.bytes);
        let fits = self.bytes.len() <= limit;
        if fits {
            self.ends.push(self.bytes.len());
        } else {
            self.bytes.truncate(before);
        }
        fits
    }
}
