//! The query parameters of the list.

use rallypoint_web::filter::{Column, Defaults, Query, Sort};

/// Parsed parameters survive a round trip, and errors have a short text.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let sort = Sort::ascending(Column::Id);
    for (pages, strict) in [(false, true), (true, false)] {
        let defaults = Defaults { sort, limit: 200, most: 1_000, pages, strict };
        match Query::parse(text, &defaults) {
            Ok(query) => {
                assert!((1..=defaults.most).contains(&query.limit), "a bound on what one request can cost");
                let again = Query::parse(&format!("{}&sort={}", query.filter, query.sort), &defaults);
                let again = again.expect("written parameters can be parsed");
                assert_eq!((again.filter, again.sort), (query.filter, query.sort));
            }
            Err(bad) => assert!(bad.name.chars().count() <= 40 && !bad.expected.is_empty()),
        }
    }
}
