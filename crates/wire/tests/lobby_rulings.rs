//! The rulings about the bytes of the lobby protocol, one test each.

use rallypoint_wire::{
    DecodeError, DecodeErrorKind,
    lobby::{
        DEFAULT_MAX_REGISTRATION, Datagram, Layout, ListBlock, ListId, ListReader, ListRequest, MAX_BLOCK,
        MAX_REGISTRATION, Occupancy, PORT, Registration, ServerId, TableBuf, Transport, blocks, emit_list,
    },
};

/// Offsets of the fields of a registration.
const TRANSPORT: usize = 48;
const PORT_NUMBER: usize = 49;
const FLAGS: usize = 57;
const COUNT: usize = 59;

fn registration(entries: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut table = TableBuf::new();
    entries.iter().for_each(|(key, value)| table.push(key, value).unwrap());
    let id = ServerId::from_bytes([7; 16]);
    let port = 8190.try_into().unwrap();
    let lobby = ListId::GANG_GARRISON_2;
    let occupancy = Occupancy { slots: 24, ..Occupancy::default() };
    table.push(b"name", b"n").unwrap();
    let new = Registration::new(id, lobby, Transport::Tcp, port, occupancy, table.as_table()).unwrap();
    let mut bytes = Vec::new();
    new.emit(&mut bytes);
    bytes
}

fn parse(bytes: &[u8]) -> Result<Registration<'_>, DecodeError> {
    match Datagram::parse(bytes)? {
        Datagram::Register(registration) => Ok(registration),
        Datagram::Unregister(_) => panic!("not a registration"),
    }
}

fn error(bytes: &[u8]) -> String {
    Datagram::parse(bytes).unwrap_err().to_string()
}

/// Removes the entry count of a registration: the layout of document 000.
fn without_count(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.drain(COUNT..COUNT + 2);
    bytes
}

#[test]
fn l1_document_001_is_tried_first_then_000() {
    let current = registration(&[(b"map", b"m")]);
    assert_eq!(parse(&current).unwrap().layout(), Layout::Current);
    let draft = without_count(current.clone());
    let read = parse(&draft).unwrap();
    assert_eq!(read.layout(), Layout::Draft);
    assert_eq!(read.table(), parse(&current).unwrap().table());
}

#[test]
fn l1_document_000_ends_with_its_last_entry_and_has_no_empty_keys() {
    let draft = without_count(registration(&[(b"map", b"m")]));
    assert!(parse(&[&draft[..], b"\x00"].concat()).is_err());
    assert!(parse(&[&draft[..], b"\x00\x00\x00"].concat()).is_err(), "an empty key");
    assert!(parse(&[&draft[..], b"\x01k\x00\x00"].concat()).is_ok());
}

#[test]
fn l1_a_table_of_001_without_a_name_is_tried_as_000() {
    // As 001: one entry, an empty key and a value of 0 bytes, and no name. As 000 it has an empty key.
    let mut bytes = registration(&[]);
    bytes.truncate(COUNT);
    bytes.extend(b"\x00\x01\x00\x00\x00");
    assert_eq!(error(&bytes), "no name");
}

#[test]
fn l2_reserved_flags_are_not_forwarded() {
    let mut bytes = registration(&[]);
    for (flags, password) in [(0u16, false), (1, true), (0xfffe, false), (0xffff, true), (0x8000, false)] {
        bytes[FLAGS..FLAGS + 2].copy_from_slice(&flags.to_be_bytes());
        let read = parse(&bytes).unwrap();
        assert_eq!(read.occupancy().password, password, "{flags:#x}");
        let mut again = Vec::new();
        read.emit(&mut again);
        assert_eq!(again[FLAGS..FLAGS + 2], u16::from(password).to_be_bytes());
    }
}

#[test]
fn l3_bytes_after_the_table_are_ignored() {
    let bytes = registration(&[(b"map", b"m")]);
    let more = [&bytes[..], b"\x03map\x00\x01x"].concat();
    assert_eq!(parse(&more), parse(&bytes));
}

#[test]
fn l3_a_table_that_overruns_is_rejected() {
    let mut bytes = registration(&[(b"map", b"m")]);
    bytes[COUNT + 1] += 1;
    assert!(error(&bytes).starts_with("truncated"));
    let short = &registration(&[(b"map", b"m")]);
    assert!(error(&short[..short.len() - 1]).starts_with("truncated"));
}

#[test]
fn l5_keys_and_values_are_unchanged_and_a_protocol_id_is_16_bytes() {
    let odd = b"\xff\x00\x80 caf\xe9";
    let bytes = registration(&[(odd, odd), (b"protocol_id", &[0x80; 16])]);
    let read = parse(&bytes).unwrap();
    assert_eq!(read.table().get(odd), Some(&odd[..]));
    assert_eq!(read.protocol_id().unwrap().to_string(), "80808080-8080-8080-8080-808080808080");
    for size in [0, 15, 17] {
        let mut bytes = registration(&[]);
        bytes[COUNT + 1] += 1;
        bytes.extend([b"\x0bprotocol_id\x00", &[size as u8][..], &vec![1; size]].concat());
        assert_eq!(error(&bytes), "protocol_id is not 16 bytes", "{size}");
    }
}

#[test]
fn l6_a_name_may_be_empty_but_not_absent() {
    let bytes = registration(&[]);
    let name = COUNT + 2;
    let mut empty = bytes[..name].to_vec();
    empty.extend(b"\x04name\x00\x00");
    assert_eq!(parse(&empty).unwrap().name(), b"");
    let mut other = bytes;
    other[name + 1] = b'N';
    assert_eq!(error(&other), "no name");
}

#[test]
fn l7_two_transports_and_no_port_0() {
    let mut bytes = registration(&[]);
    for (number, transport) in [(0, Transport::Tcp), (1, Transport::Udp)] {
        bytes[TRANSPORT] = number;
        assert_eq!(parse(&bytes).unwrap().transport(), transport);
    }
    for number in 2..=255 {
        bytes[TRANSPORT] = number;
        assert_eq!(error(&bytes), "unknown transport");
    }
    bytes[TRANSPORT] = 0;
    bytes[PORT_NUMBER..PORT_NUMBER + 2].fill(0);
    assert_eq!(error(&bytes), "port is 0");
}

#[test]
fn l14_a_request_is_32_bytes_and_more_are_ignored() {
    let mut bytes = Vec::new();
    let request = ListRequest { list_id: ListId::GANG_GARRISON_2 };
    request.emit(&mut bytes);
    assert_eq!(bytes.len(), ListRequest::SIZE);
    assert_eq!(ListRequest::parse(&bytes[..31]).unwrap_err().kind, DecodeErrorKind::Truncated);
    bytes.push(0);
    assert_eq!(ListRequest::parse(&bytes), Ok(request));
    bytes[0] ^= 1;
    assert_eq!(ListRequest::parse(&bytes).unwrap_err().to_string(), "unknown list protocol");
}

#[test]
fn l15_size_limits() {
    assert_eq!((DEFAULT_MAX_REGISTRATION, MAX_REGISTRATION, MAX_BLOCK, PORT), (4_096, 65_507, 100_000, 29_944));
    let mut fullest = TableBuf::new();
    for key in 0u32.. {
        if fullest.push(&key.to_be_bytes(), &[b'v'; 50]).is_err() {
            break;
        }
    }
    let block = ListBlock {
        transport: Transport::Udp,
        v4: None,
        v6: None,
        occupancy: Occupancy::default(),
        table: fullest.as_table(),
    };
    let mut bytes = Vec::new();
    emit_list([block], &mut bytes);
    assert!((65_000..MAX_BLOCK).contains(&bytes.len()));
}

#[test]
fn l15_a_block_over_100000_bytes_ends_the_list() {
    for (length, kind) in [
        (100_000u32, DecodeErrorKind::Truncated),
        (100_001, DecodeErrorKind::TooLong),
        (u32::MAX, DecodeErrorKind::TooLong),
    ] {
        let bytes = [&2u32.to_be_bytes()[..], &length.to_be_bytes(), &[0; 50]].concat();
        let read: Vec<_> = blocks(&bytes).collect();
        assert_eq!(read, [Err(DecodeError { field: "block", kind })], "{length}");

        let mut reader = ListReader::new();
        reader.push(&bytes);
        let streamed = reader.next_block().map(|block| block.unwrap_err().kind);
        assert_eq!(streamed, (kind == DecodeErrorKind::TooLong).then_some(kind), "{length}");
        assert_eq!(reader.next_block(), None);
        assert_eq!(reader.finish().unwrap_err().kind, kind);
    }
}
