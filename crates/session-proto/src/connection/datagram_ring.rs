//! Ring buffer for the bytes of sent datagrams: they are freed in the order in which they were stored.

/// Datagrams stored back to back. Each lies in one piece; a datagram that would cross the end starts at the beginning.
#[derive(Debug, Default)]
pub(crate) struct DatagramRing {
    bytes: Box<[u8]>,
    /// Offset at which the next datagram is stored.
    end: usize,
    /// Bytes in use, skipped ends included.
    used: usize,
}

/// Location of a datagram in the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    offset: u32,
    pub len: u16,
    /// Bytes at the end of the ring that were skipped before this datagram.
    skipped: u16,
}

/// Initial size of the ring in bytes: eight datagrams.
const MIN_SIZE: usize = 4_096;

impl DatagramRing {
    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Stores a datagram of at most 508 bytes. `spans` yields the spans of all stored datagrams, oldest first; they are
    /// updated if the ring has to grow.
    pub fn push<'a>(&mut self, datagram: &[u8], spans: impl Iterator<Item = &'a mut Span>) -> Span {
        let len = datagram.len();
        let mut skipped = self.skip_for(len);
        if self.used + skipped + len > self.bytes.len() {
            self.grow(len, spans);
            skipped = self.skip_for(len);
        }
        let offset = if skipped > 0 { 0 } else { self.end };
        // In range: the check above makes sure that the free part of the ring holds `skipped + len` bytes.
        self.bytes[offset..offset + len].copy_from_slice(datagram);
        self.end = (offset + len) % self.bytes.len();
        self.used += skipped + len;
        Span { offset: offset as u32, len: len as u16, skipped: skipped as u16 }
    }

    /// Frees the oldest datagram, which lies at `span`.
    pub fn pop(&mut self, span: Span) {
        self.used = self.used.saturating_sub(usize::from(span.skipped) + usize::from(span.len));
        if self.used == 0 {
            self.end = 0;
        }
    }

    /// Replaces a stored datagram by one that is no longer; otherwise nothing changes. The bytes that become free are freed
    /// with it.
    pub fn replace(&mut self, span: &mut Span, datagram: &[u8]) {
        let from = span.offset as usize;
        let len = datagram.len() as u16;
        if len <= span.len
            && let Some(stored) = self.bytes.get_mut(from..from + datagram.len())
        {
            stored.copy_from_slice(datagram);
            span.skipped += span.len - len;
            span.len = len;
        }
    }

    /// The bytes of a stored datagram.
    pub fn get(&self, span: Span) -> &[u8] {
        self.bytes.get(span.offset as usize..span.offset as usize + usize::from(span.len)).unwrap_or_default()
    }

    /// Bytes left at the end of the ring that a datagram of this length has to skip.
    fn skip_for(&self, len: usize) -> usize {
        if self.end + len > self.bytes.len() { self.bytes.len() - self.end } else { 0 }
    }

    fn grow<'a>(&mut self, len: usize, spans: impl Iterator<Item = &'a mut Span>) {
        let mut bytes = vec![0; (self.bytes.len() * 2).max(MIN_SIZE).max((self.used + len).next_power_of_two())];
        let mut end = 0;
        for span in spans {
            let from = span.offset as usize;
            let len = usize::from(span.len);
            // In range: spans lie inside the old ring, and together they are no longer than `used`.
            bytes[end..end + len].copy_from_slice(&self.bytes[from..from + len]);
            *span = Span { offset: end as u32, len: span.len, skipped: 0 };
            end += len;
        }
        *self = Self { bytes: bytes.into(), end, used: end };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Compares the ring with a queue of vectors.
        #[test]
        fn stored_datagrams_are_returned_unchanged(steps in prop::collection::vec((0..4u8, 1..=508usize), 1..400)) {
            let mut ring = DatagramRing::default();
            let mut spans = VecDeque::<Span>::new();
            let mut model = VecDeque::new();
            for (round, (step, len)) in steps.into_iter().enumerate() {
                if step == 3 {
                    let position = len % spans.len().max(1);
                    if let Some(span) = spans.get_mut(position) {
                        let shorter = vec![0xff; usize::from(span.len) / 2];
                        ring.replace(span, &shorter);
                        model[position] = shorter;
                    }
                } else if step == 0 {
                    if let Some(span) = spans.pop_front() {
                        ring.pop(span);
                        model.pop_front();
                    }
                } else {
                    let datagram = vec![round as u8; len];
                    let span = ring.push(&datagram, spans.iter_mut());
                    spans.push_back(span);
                    model.push_back(datagram);
                }
                for (span, datagram) in spans.iter().zip(&model) {
                    prop_assert_eq!(ring.get(*span), &datagram[..]);
                }
            }
        }
    }
}
