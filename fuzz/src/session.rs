//! Session datagrams of both sides: a parsed datagram is emitted byte for byte (S1).

use rallypoint_wire::session::{ClientDatagram, CookieReply, KeyOffer, LoginCookie, ServerDatagram};

/// Parses the bytes as a datagram of a client, as one of a server, and as a key field of either.
pub fn run(data: &[u8]) {
    let mut emitted = Vec::new();
    if let Ok(message) = ClientDatagram::parse(data) {
        message.emit(&mut emitted);
        assert_eq!(emitted, data);
    }
    emitted.clear();
    if let Ok(message) = ServerDatagram::parse(data) {
        message.emit(&mut emitted);
        // The spare bits beside "ranked" are ignored and sent as 0 (S5).
        if !matches!(message, ServerDatagram::Team(_)) {
            assert_eq!(emitted, data);
        }
        assert_eq!(ServerDatagram::parse(&emitted), Ok(message));
    }
    if let Some((field, _)) = data.split_first_chunk() {
        let _ = KeyOffer::parse(field);
        let _ = LoginCookie::of_login(field);
        if let Some(reply) = CookieReply::parse(field) {
            assert_eq!(reply.to_field(), *field);
        }
    }
}
