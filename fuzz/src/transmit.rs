//! Splitting the transmit buffer of a state machine into datagrams loses, adds and reorders nothing.

use rallypoint_machine::Transmit;
use std::net::SocketAddr;

/// The first byte is the segment size (0: a single datagram); the rest is the buffer.
pub fn run(data: &[u8]) {
    let Some((&size, bytes)) = data.split_first() else { return };
    let segment = (size > 0).then_some(usize::from(size));
    let transmit = Transmit { to: SocketAddr::from(([127, 0, 0, 1], 9)), len: bytes.len(), segment, from: None };

    let pieces: Vec<&[u8]> = transmit.datagrams(bytes).collect();

    assert_eq!(pieces.concat(), bytes);
    let full = segment.unwrap_or(bytes.len());
    if let Some((last, before)) = pieces.split_last() {
        assert!(before.iter().all(|piece| piece.len() == full));
        assert!((1..=full).contains(&last.len()));
    }
}
