//! The Bloodmasters master list: lines of servers and bans, and the request for them.

use rallypoint_wire::bloodmasters::master_list::{Request, bans, emit_bans, emit_servers, servers};
use std::net::Ipv4Addr;

/// Parses the bytes as a list, as a reply and as a query string.
pub fn run(data: &[u8]) {
    let mut emitted = Vec::new();
    let known: Vec<_> = servers(data).collect();
    emit_servers(known.iter().copied(), &mut emitted);
    assert!(servers(&emitted).eq(known), "what was emitted means the same");

    emitted.clear();
    let banned: Vec<_> = bans(data).collect();
    emit_bans(banned.iter().copied(), &mut emitted);
    assert!(bans(&emitted).eq(banned.iter().copied()), "what was emitted means the same");
    for ban in banned {
        let _ = ban.matches(Ipv4Addr::LOCALHOST);
    }

    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(request) = Request::parse(text)
    {
        emitted.clear();
        request.emit(&mut emitted);
        let again = std::str::from_utf8(&emitted).expect("a query string is text");
        assert_eq!(Request::parse(again), Ok(request));
    }
}
