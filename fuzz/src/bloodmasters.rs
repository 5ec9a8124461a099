//! Bloodmasters queries and replies.

use rallypoint_wire::bloodmasters::{Reply, messages, queries, strip_colours};

/// Parses the bytes as a datagram to a server and as one from a server.
pub fn run(data: &[u8]) {
    assert!(messages(data).count() <= data.len());
    for query in queries(data) {
        let mut emitted = Vec::new();
        query.emit(&mut emitted);
        assert!(queries(&emitted).eq([query]));
    }
    assert!(strip_colours(data).len() <= data.len());

    let Ok(reply) = Reply::parse(data) else { return };
    assert!(reply.clients().iter().count() <= data.len());
    assert_eq!(reply.is_complete(), reply.warning().is_none());
    let mut emitted = Vec::new();
    reply.emit(&mut emitted);
    if reply.is_complete() {
        let again = Reply::parse(&emitted).expect("emitted bytes can be parsed");
        assert_eq!((again.info(), again.rules(), again.build()), (reply.info(), reply.rules(), reply.build()));
        assert!(again.clients().iter().eq(reply.clients().iter()));
    }
}
