//! The encoding of samples in the file.
//!
//! Numbers are varints: seven bits per byte, the low ones first. There are three encodings:
//!
//! ```text
//! part     one minute of up to 256 subjects: for each, the low byte of its key, then players, bots, slots, servers
//! minutes  one hour of one subject: which minutes (u64, little-endian), then the four columns; a column is 0 and its one
//!          value, or 1 and a value per minute
//! sums     24 hours or 32 days of one subject: which of them (u32, little-endian), then for each its minutes up, its
//!          least players, how many more there were at most, and the sums of players, bots, slots, servers
//! ```
//!
//! Most servers do not change for hours: the columns of one value make an hour of a typical server 15 to 80 bytes.

use crate::sample::{Sample, Sum};

/// The samples of an hour.
pub(crate) type Minutes = [Option<Sample>; 60];

/// Appends a sample to a part.
pub(crate) fn push_sample(part: &mut Vec<u8>, low_byte: u8, sample: &Sample) {
    part.push(low_byte);
    for number in columns(sample) {
        push(part, number.into());
    }
}

/// The samples of a part, with the low bytes of their keys. Ends early if the bytes are damaged.
pub(crate) fn samples(part: &[u8]) -> impl Iterator<Item = (u8, Sample)> {
    let mut bytes = Bytes(part);
    std::iter::from_fn(move || {
        let low_byte = bytes.byte()?;
        Some((low_byte, sample([bytes.small()?, bytes.small()?, bytes.small()?, bytes.small()?])))
    })
}

pub(crate) fn pack_minutes(minutes: &Minutes) -> Vec<u8> {
    let bits = (0..60).filter(|minute| minutes[*minute].is_some()).fold(0_u64, |bits, minute| bits | 1 << minute);
    let mut packed = bits.to_le_bytes().to_vec();
    let samples: Vec<_> = minutes.iter().flatten().map(columns).collect();
    for column in 0..4 {
        let mut values = samples.iter().map(|sample| sample[column]);
        let first = values.next().unwrap_or(0);
        if values.all(|value| value == first) {
            packed.push(0);
            push(&mut packed, first.into());
        } else {
            packed.push(1);
            samples.iter().for_each(|sample| push(&mut packed, sample[column].into()));
        }
    }
    packed
}

/// The samples of an hour; `None` if the bytes are damaged.
pub(crate) fn unpack_minutes(packed: &[u8]) -> Option<Minutes> {
    let (bits, rest) = packed.split_first_chunk()?;
    let bits = u64::from_le_bytes(*bits);
    let mut bytes = Bytes(rest);
    let mut table = [[0; 4]; 60];
    for column in 0..4 {
        let one = if bytes.byte()? == 0 { Some(bytes.small()?) } else { None };
        for (_, row) in table.iter_mut().enumerate().filter(|(minute, _)| bits >> minute & 1 == 1) {
            row[column] = match one {
                Some(value) => value,
                None => bytes.small()?,
            };
        }
    }
    Some(std::array::from_fn(|minute| (bits >> minute & 1 == 1).then(|| sample(table[minute]))))
}

pub(crate) fn pack_sums(sums: &[Sum; 32]) -> Vec<u8> {
    let bits = (0..32).filter(|place| sums[*place].up > 0).fold(0_u32, |bits, place| bits | 1 << place);
    let mut packed = bits.to_le_bytes().to_vec();
    for sum in sums.iter().filter(|sum| sum.up > 0) {
        let Sum { up, min, max, players, bots, slots, servers } = *sum;
        for number in [up.into(), min.into(), (max - min).into(), players, bots, slots, servers] {
            push(&mut packed, number);
        }
    }
    packed
}

/// The sums of 24 hours or 32 days, zero where there are none; `None` if the bytes are damaged.
pub(crate) fn unpack_sums(packed: &[u8]) -> Option<[Sum; 32]> {
    let (bits, rest) = packed.split_first_chunk()?;
    let bits = u32::from_le_bytes(*bits);
    let mut bytes = Bytes(rest);
    let mut sums = [Sum::default(); 32];
    for (_, sum) in sums.iter_mut().enumerate().filter(|(place, _)| bits >> place & 1 == 1) {
        let up = bytes.small()?;
        let min = bytes.small()?;
        let max = min.checked_add(bytes.small()?)?;
        let [players, bots, slots, servers] = [bytes.number()?, bytes.number()?, bytes.number()?, bytes.number()?];
        *sum = Sum { up, min, max, players, bots, slots, servers };
    }
    Some(sums)
}

fn columns(sample: &Sample) -> [u32; 4] {
    [sample.players, sample.bots, sample.slots, sample.servers]
}

fn sample([players, bots, slots, servers]: [u32; 4]) -> Sample {
    Sample { players, bots, slots, servers }
}

fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_sample() -> impl Strategy<Value = Sample> {
        let number = || prop_oneof![0..3_u32, any::<u32>()];
        [number(), number(), number(), number()].prop_map(sample)
    }

    proptest! {
        #[test]
        fn an_hour_survives_a_round_trip(minutes in prop::collection::vec(prop::option::of(any_sample()), 60)) {
            let minutes: Minutes = minutes.try_into().unwrap();
            prop_assert_eq!(unpack_minutes(&pack_minutes(&minutes)), Some(minutes));
        }

        #[test]
        fn a_part_survives_a_round_trip(samples in prop::collection::vec((any::<u8>(), any_sample()), 0..50)) {
            let mut part = Vec::new();
            samples.iter().for_each(|(low_byte, sample)| push_sample(&mut part, *low_byte, sample));
            prop_assert_eq!(super::samples(&part).collect::<Vec<_>>(), samples);
        }

        #[test]
        fn sums_survive_a_round_trip(samples in prop::collection::vec((0..32_usize, any_sample()), 0..90)) {
            let mut sums = [Sum::default(); 32];
            samples.iter().for_each(|(place, sample)| sums[*place].merge(&(*sample).into()));
            prop_assert_eq!(unpack_sums(&pack_sums(&sums)), Some(sums));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            unpack_minutes(&bytes);
            unpack_sums(&bytes);
            prop_assert!(samples(&bytes).count() <= bytes.len());
        }
    }

    #[test]
    fn an_hour_of_a_quiet_server_is_small() {
        let minutes: Minutes = [Some(Sample { players: 0, bots: 4, slots: 24, servers: 1 }); 60];
        assert_eq!(pack_minutes(&minutes).len(), 16);
    }
}
