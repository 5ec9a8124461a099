//! Every message of document 003 against a naive encoder: emitted bytes match the document, parsed values match the emitted
//! ones, and nothing else parses.

mod session_model;

use proptest::{collection::vec, prelude::*, sample::select};
use rallypoint_wire::session::{ClientDatagram, ServerDatagram};
use session_model::{Client, Server, crc32};

/// Every first byte that is valid in one of the directions, and two invalid ones.
const KINDS: [u8; 21] = [
    0x00, 0x03, 0x05, 0x0f, 0x33, 0x55, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x88, 0x89, 0x8d, 0xaa, 0xc0, 0xcc,
    0xff, 0x42,
];

fn emit_client(datagram: &ClientDatagram<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    datagram.emit(&mut out);
    out
}

fn emit_server(datagram: &ServerDatagram<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    datagram.emit(&mut out);
    out
}

/// The canonical form: the bits besides `ranked` are sent as 0 (S5).
fn canonical(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let [0x88, _, ranked, ..] = &mut bytes[..] {
        *ranked &= 1;
    }
    bytes
}

/// Checks that whatever parses is emitted unchanged.
fn check_any(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(datagram) = ClientDatagram::parse(bytes) {
        prop_assert_eq!(emit_client(&datagram), bytes);
        prop_assert!(bytes.len() <= 508);
    }
    if let Ok(datagram) = ServerDatagram::parse(bytes) {
        prop_assert_eq!(emit_server(&datagram), canonical(bytes));
        prop_assert!(bytes.len() <= 508);
    }
    Ok(())
}

/// Corrects the CRC of data, so that changes after it are parsed.
fn fix_crc(bytes: &mut [u8]) {
    if let [0x05 | 0x55, crc @ .., _] = bytes
        && crc.len() >= 4
    {
        let right = crc32(&bytes[5..]);
        bytes[1..5].copy_from_slice(&right.to_le_bytes());
    }
}

/// A change to a valid datagram: a byte replaced, inserted or removed, or the end truncated.
#[derive(Clone, Debug)]
enum Change {
    Replace(usize, u8),
    Insert(usize, u8),
    Remove(usize),
    Cut(usize),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        match *self {
            Self::Insert(at, byte) => bytes.insert(at % (length + 1), byte),
            Self::Replace(at, byte) if length > 0 => bytes[at % length] = byte,
            Self::Remove(at) if length > 0 => drop(bytes.remove(at % length)),
            Self::Cut(at) => bytes.truncate(at % (length + 1)),
            Self::Replace(..) | Self::Remove(_) => {}
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    // Most fields are at the front.
    let at = || prop_oneof![0..24usize, 0..600usize];
    let byte = || prop_oneof![any::<u8>(), select(&KINDS[..]), Just(0)];
    prop_oneof![
        (at(), byte()).prop_map(|(at, byte)| Change::Replace(at, byte)),
        (at(), byte()).prop_map(|(at, byte)| Change::Insert(at, byte)),
        at().prop_map(Change::Remove),
        at().prop_map(Change::Cut),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn client_messages_match_the_document(message: Client) {
        let bytes = message.naive();
        message.with_datagram(|datagram| {
            prop_assert_eq!(emit_client(&datagram), &bytes[..]);
            prop_assert_eq!(ClientDatagram::parse(&bytes), Ok(datagram));
            Ok(())
        })?;
    }

    #[test]
    fn server_messages_match_the_document(message: Server) {
        let bytes = message.naive();
        message.with_datagram(|datagram| {
            prop_assert_eq!(emit_server(&datagram), &bytes[..]);
            prop_assert_eq!(ServerDatagram::parse(&bytes), Ok(datagram));
            Ok(())
        })?;
    }

    #[test]
    fn s1_client_messages_have_an_exact_length(message: Client, extra: u8) {
        let mut bytes = message.naive();
        for length in 0..message.text_at().unwrap_or(bytes.len()) {
            prop_assert!(ClientDatagram::parse(&bytes[..length]).is_err(), "{} bytes", length);
        }
        if message.text_at().is_none() {
            bytes.push(extra);
            prop_assert!(ClientDatagram::parse(&bytes).is_err());
        }
    }

    #[test]
    fn s1_server_messages_have_an_exact_length(message: Server, extra: u8) {
        let mut bytes = message.naive();
        for length in 0..message.text_at().unwrap_or(bytes.len()) {
            prop_assert!(ServerDatagram::parse(&bytes[..length]).is_err(), "{} bytes", length);
        }
        if message.text_at().is_none() {
            bytes.push(extra);
            prop_assert!(ServerDatagram::parse(&bytes).is_err());
        }
    }

    #[test]
    fn s1_text_at_the_end_of_a_datagram_is_shortened_by_truncation(message: Server, cut in 0..600usize) {
        if let Some(at) = message.text_at() {
            let bytes = message.naive();
            let cut = &bytes[..at + cut % (bytes.len() - at + 1)];
            prop_assert_eq!(ServerDatagram::parse(cut).map(|datagram| emit_server(&datagram)), Ok(cut.to_vec()));
        }
    }

    #[test]
    fn s7_one_wrong_bit_invalidates_data(client: Client, server: Server, bit in 0..4_064usize) {
        for (from_client, mut bytes) in [(true, client.naive()), (false, server.naive())] {
            if let [0x05 | 0x55, ..] = bytes[..] {
                let bit = 8 + bit % (bytes.len() * 8 - 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
                let refused = match from_client {
                    true => ClientDatagram::parse(&bytes).is_err(),
                    false => ServerDatagram::parse(&bytes).is_err(),
                };
                prop_assert!(refused);
            }
        }
    }

    #[test]
    fn changed_messages_are_rejected_or_emitted_unchanged(
        client: Client,
        server: Server,
        changes in vec(change(), 1..5),
        mended: bool,
    ) {
        for mut bytes in [client.naive(), server.naive()] {
            changes.iter().for_each(|change| change.apply(&mut bytes));
            if mended {
                fix_crc(&mut bytes);
            }
            check_any(&bytes)?;
        }
    }

    #[test]
    fn arbitrary_bytes_are_rejected_or_emitted_unchanged(
        kind in prop_oneof![select(&KINDS[..]), any::<u8>()],
        mut rest in prop_oneof![vec(any::<u8>(), 0..30), vec(any::<u8>(), 0..520)],
        sparse: bool,
    ) {
        if sparse {
            // Small numbers and many zeros, for valid lengths and terminated texts.
            rest.iter_mut().for_each(|byte| *byte = byte.saturating_sub(230));
        }
        let mut bytes = [&[kind][..], &rest].concat();
        check_any(&bytes)?;
        fix_crc(&mut bytes);
        check_any(&bytes)?;
    }
}
