//! The servers that an event stream is limited to.

use rallypoint_lobby_proto::PublicId;
use thiserror::Error;

/// Minimum length of a prefix, in hexadecimal digits. Of 100,000 servers two share eight digits about once in a lifetime of a
/// page, and a client ignores events of servers that it does not show.
const MIN_DIGITS: usize = 8;

/// Maximum number of servers: a page has at most 500 rows, and as many favourites.
pub(crate) const MAX_IDS: usize = 500;

/// A set of public IDs, each given completely or by its first digits: 200 complete IDs would make an address of 6.6 kB, and
/// proxies refuse addresses of 8 kB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdFilter {
    /// Sorted, and none contains another.
    prefixes: Vec<Prefix>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Prefix {
    /// The lowest ID with this prefix.
    first: u128,
    /// The highest ID with this prefix.
    last: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "expected at most {MAX_IDS} public IDs of servers, or their first digits (at least {MIN_DIGITS}), separated by commas"
)]
pub(crate) struct InvalidIdFilter;

impl IdFilter {
    pub fn parse(text: &str) -> Result<Self, InvalidIdFilter> {
        let prefixes: Option<Vec<_>> = text.split(',').take(MAX_IDS + 1).map(Prefix::parse).collect();
        let mut prefixes = prefixes.filter(|prefixes| prefixes.len() <= MAX_IDS).ok_or(InvalidIdFilter)?;
        // A shorter prefix sorts after the longer ones with the same first ID, and has to come before what it contains.
        prefixes.sort_unstable_by_key(|prefix| (prefix.first, std::cmp::Reverse(prefix.last)));
        prefixes.dedup_by(|next, kept| next.last <= kept.last);
        Ok(Self { prefixes })
    }

    /// Number of IDs or prefixes.
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    pub fn contains(&self, id: PublicId) -> bool {
        let id = number(id);
        let after = self.prefixes.partition_point(|prefix| prefix.first <= id);
        after.checked_sub(1).is_some_and(|index| id <= self.prefixes[index].last)
    }

    /// The lowest and the highest ID of each prefix.
    pub fn ranges(&self) -> impl Iterator<Item = (u128, u128)> {
        self.prefixes.iter().map(|prefix| (prefix.first, prefix.last))
    }
}

impl Prefix {
    fn parse(text: &str) -> Option<Self> {
        let is_valid = (MIN_DIGITS..=32).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let value = u128::from_str_radix(text, 16).ok().filter(|_| is_valid)?;
        let free_bits = 128 - 4 * text.len() as u32;
        let first = value.checked_shl(free_bits).unwrap_or(0);
        Some(Self { first, last: first | (1_u128.checked_shl(free_bits)?).wrapping_sub(1) })
    }
}

/// A public ID as a number, in the order of IDs.
pub(super) fn number(id: PublicId) -> u128 {
    u128::from_be_bytes(*id.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> PublicId {
        text.parse().unwrap()
    }

    #[test]
    fn ids_are_found_by_their_first_digits() {
        let first = "0123456789abcdef0123456789abcdef";
        let second = "0123456799abcdef0123456789abcdef";
        let filter = IdFilter::parse(&format!("ffffffff,{first},012345679")).unwrap();
        assert!(filter.contains(id(first)) && filter.contains(id(second)));
        assert!(filter.contains(id(&"f".repeat(32))));
        assert!(!filter.contains(id(&"0".repeat(32))) && !filter.contains(id("0123456789abcdef0123456789abcdee")));
        let covered = IdFilter::parse(&format!("{first},01234567,{second}")).unwrap();
        assert_eq!(covered, IdFilter::parse("01234567").unwrap());
        assert!(covered.contains(id(first)) && covered.contains(id(second)));
    }

    #[test]
    fn other_texts_are_invalid() {
        let many = vec!["01234567"; MAX_IDS + 1].join(",");
        for invalid in ["", "0123456", "+1234567", "0123456g", "01234567,", &"0".repeat(33), &many] {
            assert_eq!(IdFilter::parse(invalid), Err(InvalidIdFilter), "{invalid}");
        }
    }
}
