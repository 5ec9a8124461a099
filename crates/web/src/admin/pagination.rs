//! Lists that are returned in parts.

use crate::filter::InvalidParameter;
use serde::Serialize;
use utoipa::IntoParams;

/// Maximum number of items in a response.
const MAX_ITEMS: usize = 1_000;

/// Maximum size in bytes of the items in a response.
const MAX_BYTES: usize = 1 << 20;

/// The requested part of a list.
#[derive(Debug, PartialEq, Eq, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Pagination {
    /// Number of items to skip.
    #[param(required = false, minimum = 0, default = 0, example = 0)]
    offset: usize,
    /// Maximum number of items; the response has fewer if they are longer than 1 MB.
    #[param(required = false, minimum = 1, maximum = 1000, default = 1000, example = 10)]
    limit: usize,
}

/// A part of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part<'a, T> {
    /// Number of items of the whole list.
    pub total: usize,
    /// Number of items before this part.
    pub offset: usize,
    pub items: &'a [T],
}

impl Pagination {
    /// Parses `offset` and `limit`, and the value of one more parameter, if the list has one.
    pub fn parse(query: Option<&str>, extra: Option<&str>) -> Result<(Self, Option<String>), InvalidParameter> {
        let mut pagination = Self { offset: 0, limit: MAX_ITEMS };
        let mut extra_value = None;
        let mut names = Vec::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if names.contains(&name) {
                return Err(InvalidParameter::repeated(&name));
            }
            let number = |min, max| match value.parse() {
                Ok(number) if (min..=max).contains(&number) => Ok(number),
                _ => Err(InvalidParameter::new(&name, &format!("expected a number from {min} to {max}"))),
            };
            match &*name {
                "offset" => pagination.offset = number(0, i64::MAX as usize)?,
                "limit" => pagination.limit = number(1, MAX_ITEMS)?,
                name if Some(name) == extra => extra_value = Some(value.into_owned()),
                _ => {
                    let known: Vec<_> = extra.into_iter().chain(["offset", "limit"]).collect();
                    return Err(InvalidParameter::unknown(&name, &known));
                }
            }
            names.push(name);
        }
        Ok((pagination, extra_value))
    }

    /// The requested part of all items. It contains at least one item if any is left, so that a client that requests part after
    /// part reaches the end.
    pub fn part<'a, T: Serialize>(&self, all: &'a [T]) -> Part<'a, T> {
        let rest = all.get(self.offset..).unwrap_or_default();
        let mut size = 0;
        let fits = |item: &&T| {
            size += serde_json::to_string(item).map_or(0, |json| json.len());
            size <= MAX_BYTES
        };
        let count = rest.iter().take(self.limit).take_while(fits).count().max(1).min(rest.len());
        Part { total: all.len(), offset: self.offset, items: &rest[..count] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_bounded_and_reach_the_end() {
        let all: Vec<_> = (0..2_500).map(|number| format!("{number}{}", "x".repeat(1_000))).collect();
        let (mut seen, mut parts) = (Vec::new(), 0);
        while seen.len() < all.len() {
            let Part { total, offset, items } = Pagination { offset: seen.len(), limit: MAX_ITEMS }.part(&all);
            assert_eq!((total, offset), (2_500, seen.len()));
            assert!(items.iter().map(String::len).sum::<usize>() <= MAX_BYTES);
            seen.extend_from_slice(items);
            parts += 1;
        }
        assert_eq!((seen == all, parts), (true, 3));
        assert_eq!(Pagination { offset: 2_501, limit: 1 }.part(&all).items.len(), 0);
        let giant = ["x".repeat(2 * MAX_BYTES)];
        assert_eq!(Pagination { offset: 0, limit: 1 }.part(&giant).items.len(), 1);
    }

    #[test]
    fn unknown_and_invalid_parameters_are_errors() {
        assert_eq!(Pagination::parse(None, None), Ok((Pagination { offset: 0, limit: MAX_ITEMS }, None)));
        let parsed = Pagination::parse(Some("limit=5&about=x&offset=7"), Some("about"));
        assert_eq!(parsed, Ok((Pagination { offset: 7, limit: 5 }, Some("x".into()))));
        for invalid in ["limit=1&limit=2", "limit=0", "limit=1001", "limit=", "offset=-1", "about=x", "page=1"] {
            assert!(Pagination::parse(Some(invalid), None).is_err(), "{invalid}");
        }
    }
}
