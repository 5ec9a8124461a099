//! Datagrams and requests to a lobby: a parsed message is emitted unchanged, except for what the rulings drop.

use rallypoint_wire::lobby::{Datagram, ListRequest};

/// Parses the bytes as a datagram and as the start of a TCP request.
pub fn run(data: &[u8]) {
    if let Ok(request) = ListRequest::parse(data) {
        let mut emitted = Vec::new();
        request.emit(&mut emitted);
        assert_eq!(emitted, data[..ListRequest::SIZE]);
    }
    let mut emitted = Vec::new();
    match Datagram::parse(data) {
        Err(_) => return,
        Ok(Datagram::Unregister(message)) => {
            message.emit(&mut emitted);
            assert_eq!(emitted, data);
        }
        Ok(Datagram::Register(message)) => {
            message.emit(&mut emitted);
            // Bytes after the table are dropped and repeated keys merged (L3, L4), so it never grows.
            assert!(emitted.len() <= data.len());
            for entry in &message.table() {
                assert_eq!(message.table().get(entry.key), Some(entry.value));
            }
            assert!(message.table().get(b"name").is_some());
        }
    }
    assert_eq!(Datagram::parse(&emitted), Datagram::parse(data), "what was emitted means the same");
    let id = Datagram::peek_registration(data);
    assert_eq!(id.is_some(), matches!(Datagram::parse(data), Ok(Datagram::Register(_))));
}
