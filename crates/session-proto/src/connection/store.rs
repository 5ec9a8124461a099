//! The bytes of sent messages: one ring, because what comes first also goes first.

/// Datagrams one after the other. Each lies in one piece; a piece that would cross the end starts at the beginning.
#[derive(Debug, Default)]
pub(crate) struct Store {
    bytes: Box<[u8]>,
    /// Where the oldest datagram starts, and where the next one goes.
    start: usize,
    end: usize,
    /// Bytes in use, skipped ends included.
    used: usize,
}

/// Where a datagram lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    at: u32,
    pub len: u16,
    /// How many bytes before it were skipped.
    skipped: u16,
}

/// The smallest ring: eight datagrams.
const SMALLEST: usize = 4_096;

impl Store {
    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Stores a datagram, which has at most 508 bytes. `moved` is called with all places that follow the oldest, in order,
    /// if the ring has to grow.
    pub fn push<'a>(&mut self, datagram: &[u8], places: impl Iterator<Item = &'a mut Place>) -> Place {
        let len = datagram.len();
        let mut skipped = self.skip_for(len);
        if self.used + skipped + len > self.bytes.len() {
            self.grow(len, places);
            skipped = self.skip_for(len);
        }
        let at = if skipped > 0 { 0 } else { self.end };
        self.bytes[at..at + len].copy_from_slice(datagram);
        self.end = (at + len) % self.bytes.len();
        self.used += skipped + len;
        Place { at: at as u32, len: len as u16, skipped: skipped as u16 }
    }

    /// Drops the oldest datagram, which lies here.
    pub fn pop(&mut self, place: Place) {
        self.used = self.used.saturating_sub(usize::from(place.skipped) + usize::from(place.len));
        if self.used == 0 {
            (self.start, self.end) = (0, 0);
        } else {
            self.start = (place.at as usize + usize::from(place.len)) % self.bytes.len().max(1);
        }
    }

    pub fn get(&self, place: Place) -> &[u8] {
        self.bytes.get(place.at as usize..place.at as usize + usize::from(place.len)).unwrap_or_default()
    }

    /// How many bytes are left at the end, if so many do not fit there.
    fn skip_for(&self, len: usize) -> usize {
        if self.end + len > self.bytes.len() { self.bytes.len() - self.end } else { 0 }
    }

    fn grow<'a>(&mut self, len: usize, places: impl Iterator<Item = &'a mut Place>) {
        let mut bytes = vec![0; (self.bytes.len() * 2).max(SMALLEST).max((self.used + len).next_power_of_two())];
        let mut end = 0;
        for place in places {
            let from = place.at as usize;
            let len = usize::from(place.len);
            bytes[end..end + len].copy_from_slice(&self.bytes[from..from + len]);
            *place = Place { at: end as u32, len: place.len, skipped: 0 };
            end += len;
        }
        *self = Self { bytes: bytes.into(), start: 0, end, used: end };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Against a queue of vectors.
        #[test]
        fn what_goes_in_comes_out(steps in prop::collection::vec((0..3u8, 1..=508usize), 1..400)) {
            let (mut store, mut places, mut model) = (Store::default(), VecDeque::<Place>::new(), VecDeque::new());
            for (round, (step, len)) in steps.into_iter().enumerate() {
                if step == 0 {
                    if let Some(place) = places.pop_front() {
                        store.pop(place);
                        model.pop_front();
                    }
                } else {
                    let datagram = vec![round as u8; len];
                    let place = store.push(&datagram, places.iter_mut());
                    places.push_back(place);
                    model.push_back(datagram);
                }
                for (place, datagram) in places.iter().zip(&model) {
                    prop_assert_eq!(store.get(*place), &datagram[..]);
                }
            }
        }
    }
}
