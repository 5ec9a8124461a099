//! Session datagrams of both sides: exact, so what can be read is written back byte for byte (S1).

use rallypoint_wire::session::{ClientDatagram, KeyOffer, ServerDatagram};

/// The bytes are a datagram of a client, one of a server, and an offered key.
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
    }
}
