//! Parsing of numbers on the command line.

use std::ops::RangeInclusive;

/// A value parser for numbers within a range.
pub fn number<T: TryFrom<u64>>(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match (range.start(), range.end()) {
            (first, &u64::MAX) => format!("expected a number of at least {first}"),
            (first, last) => format!("expected a number from {first} to {last}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_expected_range() {
        assert_eq!(number::<u8>(1..=255)("64"), Ok(64));
        assert_eq!(number::<u8>(1..=255)("0"), Err("expected a number from 1 to 255".into()));
        assert_eq!(number::<u64>(1..=u64::MAX)("-1"), Err("expected a number of at least 1".into()));
    }
}
