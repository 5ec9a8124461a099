//! What an ack says about how often a message has arrived (W82).
//!
//! An ack lists new numbers first, then repeats those that were acked last. A number that is listed n times has arrived at least
//! n times. Among the repeated numbers, the order carries information: a number before a newer one has arrived once more than it is
//! listed there; a number after a newer one has arrived exactly once.

use rallypoint_wire::session::{MessageNumber, NumberList};

/// What an ack says about one of its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArrivalEvidence {
    /// The message has arrived at least this often.
    pub arrivals: u8,
    /// It had not arrived more often when the ack was sent.
    pub is_exact: bool,
}

impl ArrivalEvidence {
    /// Evidence from the first ack of a message, which lists its number as a new one.
    pub fn of_new(number: MessageNumber, numbers: NumberList<'_>) -> Self {
        let occurrences = numbers.iter().filter(|named| *named == number).count();
        // There are at most 63 numbers.
        Self { arrivals: occurrences as u8, is_exact: false }
    }

    /// Evidence from a later ack. `newest`: the newest number that it lists.
    pub fn of_repeated(number: MessageNumber, numbers: NumberList<'_>, newest: MessageNumber) -> Self {
        let mut occurrences = 0_u8;
        let mut repetitions = 0_u8;
        // Everything after the newest number is a repetition.
        let mut is_repetition = false;
        let mut is_after_newer = false;
        let mut is_before_newer = false;
        for named in numbers.iter() {
            if named == number {
                occurrences = occurrences.saturating_add(1);
                repetitions = repetitions.saturating_add(u8::from(is_repetition));
            } else if is_repetition && number.is_before(named) {
                is_before_newer |= repetitions > 0;
                is_after_newer |= repetitions == 0;
            }
            is_repetition |= named == newest;
        }
        if is_before_newer {
            return Self { arrivals: repetitions.saturating_add(1), is_exact: true };
        }
        Self { arrivals: occurrences, is_exact: is_after_newer && repetitions == 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_wire::session::NumberListBuf;

    fn evidence(number: u32, numbers: &[u32], was_acked: bool) -> (u8, bool) {
        let mut list = NumberListBuf::new();
        numbers.iter().for_each(|number| {
            list.push(MessageNumber::new(*number));
        });
        let number = MessageNumber::new(number);
        let newest = list.as_list().iter().reduce(MessageNumber::newer).unwrap();
        let evidence = match was_acked {
            true => ArrivalEvidence::of_repeated(number, list.as_list(), newest),
            false => ArrivalEvidence::of_new(number, list.as_list()),
        };
        (evidence.arrivals, evidence.is_exact)
    }

    #[test]
    fn w82_repeated_numbers_before_a_newer_one_have_arrived_twice() {
        let ack = [7, 8, 3, 5, 6, 4];
        assert_eq!([3, 5].map(|number| evidence(number, &ack, true)), [(2, true); 2]);
        assert_eq!(evidence(4, &ack, true), (1, true));
        // The newest of them may be one or the other.
        assert_eq!(evidence(6, &ack, true), (1, false));
        // The new ones say nothing, in this or in another order.
        assert_eq!([7, 8].map(|number| evidence(number, &ack, false)), [(1, false); 2]);
        assert_eq!(evidence(7, &ack, true), (1, false), "an ack that was overtaken by the next");
        assert_eq!(evidence(2, &[8, 2, 7, 6], false), (1, false), "a late one that is new");
    }

    #[test]
    fn w82_a_number_that_is_named_several_times_has_arrived_as_often() {
        assert_eq!(evidence(5, &[5, 5, 8, 7, 6], false), (2, false));
        assert_eq!(evidence(5, &[5, 5], true), (2, false));
        assert_eq!(evidence(5, &[9, 5, 5, 8, 7], true), (3, true));
        assert_eq!(evidence(8, &[9, 8, 8, 7], true), (2, false));
    }

    #[test]
    fn numbers_wrap() {
        assert_eq!(evidence(u32::MAX, &[1, u32::MAX, 0], true), (2, true));
        assert_eq!(evidence(u32::MAX, &[1, 0, u32::MAX], true), (1, true));
    }
}
