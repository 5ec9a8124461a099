//! `--debug` prints every datagram, `--capture` writes it to a file.

use rallypoint_harness::{MockServer, QueryProtocol, run, stderr, stdout};
use std::fs;

#[test]
fn debug_prints_every_datagram() {
    let home = tempfile::tempdir().unwrap();
    let server = MockServer::new(QueryProtocol::Bloodmasters);
    let output = run(home.path(), ["query", "--debug", &format!("bloodmasters://{}", server.addr)]);
    let errors = stderr(&output);
    assert!(stdout(&output).starts_with("Bacon Town\n"));
    assert!(errors.contains(&format!(" to {}, 7 bytes\n  0000  07 00 0d ", server.addr)), "{errors}");
    assert!(errors.contains(&format!(" from {}, ", server.addr)), "{errors}");
    assert!(errors.contains("Bacon"), "{errors}");
}

#[test]
fn a_capture_is_a_valid_pcap_file() {
    let home = tempfile::tempdir().unwrap();
    let (server, file) = (MockServer::new(QueryProtocol::Session), home.path().join("x.pcap"));
    let target = format!("session://{}", server.addr);
    let output = run(home.path(), ["query", "--capture", file.to_str().unwrap(), &target]);
    assert!(output.status.success(), "{output:?}");
    let bytes = fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    // Nanoseconds, version 2.4, raw IP.
    assert_eq!([word(0), word(4), word(20)], [0xa1b2_3c4d, 0x0004_0002, 101]);
    let (mut at, mut ports, mut kinds) = (24, Vec::new(), Vec::new());
    while at < bytes.len() {
        let packet = &bytes[at + 16..][..word(at + 8) as usize];
        assert_eq!(
            (packet[0], packet[9], &packet[12..16], &packet[16..20]),
            (0x45, 17, &[127, 0, 0, 1][..], &[127, 0, 0, 1][..])
        );
        ports.push(u16::from_be_bytes([packet[22], packet[23]]));
        kinds.push(packet[28]);
        at += 16 + packet.len();
    }
    assert_eq!(ports.iter().filter(|port| **port == server.addr.port()).count(), 2, "two queries");
    let answers = [0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x88, 0x88, 0x89, 0x89];
    assert!(answers.iter().all(|kind| kinds.contains(kind)), "{kinds:x?}");
}
