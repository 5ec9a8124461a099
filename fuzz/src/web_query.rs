//! The query parameters of the list.

use rallypoint_web::{
    ListNames,
    filter::{Column, ListQuery, QueryDefaults, Sort},
};

/// Parsed parameters survive a round trip, and errors have a short text.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let names = ListNames::default();
    let sort = Sort::ascending(Column::Id);
    for (by_page, is_strict) in [(false, true), (true, false)] {
        let defaults = QueryDefaults { sort, limit: 200, max_limit: 1_000, by_page, is_strict };
        match ListQuery::parse(text, &defaults, &names) {
            Ok(query) => {
                assert!((1..=defaults.max_limit).contains(&query.limit), "a bound on what one request can cost");
                let again = ListQuery::parse(&format!("{}&sort={}", query.filter, query.sort), &defaults, &names);
                let again = again.expect("written parameters can be parsed");
                assert_eq!((again.filter, again.sort), (query.filter, query.sort));
            }
            Err(bad) => assert!(bad.name.chars().count() <= 40 && !bad.expected.is_empty()),
        }
    }
}
