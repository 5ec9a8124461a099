//! S21: message numbers wrap, and are compared according to RFC 1982.

use proptest::prelude::*;
use rallypoint_wire::session::MessageNumber;

/// "s1 is less than s2" with SERIAL_BITS 32, in the notation of RFC 1982, section 3.2.
fn is_less(s1: u32, s2: u32) -> bool {
    let s1 = u64::from(s1);
    let s2 = u64::from(s2);
    let half = 1u64 << 31;
    s1 != s2 && ((s1 < s2 && s2 - s1 < half) || (s1 > s2 && s1 - s2 > half))
}

/// Numbers close to each other, about 2³¹ apart, or arbitrary.
fn pair() -> impl Strategy<Value = (u32, u32)> {
    let apart = prop_oneof![0..10u32, (1 << 31) - 5..(1 << 31) + 5u32, u32::MAX - 10.., any::<u32>()];
    (any::<u32>(), apart).prop_map(|(one, apart)| (one, one.wrapping_add(apart)))
}

proptest! {
    #[test]
    fn s21_before_is_the_less_of_rfc_1982((one, other) in pair()) {
        let a = MessageNumber::new(one);
        let b = MessageNumber::new(other);
        prop_assert_eq!(a.is_before(b), is_less(one, other));
        prop_assert!(!(a.is_before(b) && b.is_before(a)));
        // Neither is before the other only for equal numbers and for numbers 2³¹ apart.
        prop_assert_eq!(!a.is_before(b) && !b.is_before(a), one == other || one.wrapping_sub(other) == 1 << 31);
    }

    #[test]
    fn s21_distances_wrap_around(start: u32, steps: u32) {
        let start = MessageNumber::new(start);
        prop_assert_eq!(start.plus(steps).distance_from(start), steps);
        prop_assert_eq!(start.plus(steps).next(), start.next().plus(steps));
    }
}
