//! Lobby messages round-trip, and match a naive encoder that follows the document literally.

use proptest::{collection::vec, prelude::*, sample::Index};
use rallypoint_wire::{
    DecodeErrorKind,
    lobby::{
        Datagram, Endpoint, Layout, ListBlock, ListId, ListReader, ListRequest, Occupancy, Registration, ServerId,
        Table, TableBuf, Transport, Unregister, blocks, emit_list,
    },
};
use std::num::NonZeroU16;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Keys of a few letters, so that some appear twice; a `name` somewhere among them.
fn entries(key: &'static str, at_most: usize) -> impl Strategy<Value = Entries> {
    let entry = (key.prop_map(String::into_bytes), vec(any::<u8>(), 0..40));
    (vec(entry, 0..at_most), any::<Index>(), vec(any::<u8>(), 0..40)).prop_map(|(mut entries, place, name)| {
        entries.insert(place.index(entries.len() + 1), (b"name".to_vec(), name));
        entries
    })
}

fn occupancy() -> impl Strategy<Value = Occupancy> {
    (any::<u16>(), any::<u16>(), any::<u16>(), any::<bool>()).prop_map(|(slots, players, bots, password)| Occupancy {
        slots,
        players,
        bots,
        password,
    })
}

fn transport() -> impl Strategy<Value = Transport> {
    prop_oneof![Just(Transport::Tcp), Just(Transport::Udp)]
}

fn port() -> impl Strategy<Value = NonZeroU16> {
    (1..=u16::MAX).prop_map(|port| NonZeroU16::new(port).unwrap())
}

prop_compose! {
    fn head()(
        server_id in any::<[u8; 16]>(),
        list_id in any::<[u8; 16]>(),
        transport in transport(),
        port in port(),
        occupancy in occupancy(),
    ) -> Head {
        Head { server_id, list_id, transport, port, occupancy }
    }
}

#[derive(Clone, Copy, Debug)]
struct Head {
    server_id: [u8; 16],
    list_id: [u8; 16],
    transport: Transport,
    port: NonZeroU16,
    occupancy: Occupancy,
}

impl Head {
    /// The first 59 bytes, as in the document.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = 0xb5dae2e8_424f_9ed0_0fcb_8c21c7ca1352_u128.to_be_bytes().to_vec();
        bytes.extend(self.server_id);
        bytes.extend(self.list_id);
        bytes.push(u8::from(self.transport == Transport::Udp));
        bytes.extend(self.port.get().to_be_bytes());
        bytes.extend(occupancy_bytes(self.occupancy));
        bytes
    }
}

fn occupancy_bytes(occupancy: Occupancy) -> Vec<u8> {
    let Occupancy { slots, players, bots, password } = occupancy;
    [slots, players, bots, password.into()].into_iter().flat_map(u16::to_be_bytes).collect()
}

fn entry_bytes(entries: &Entries) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in entries {
        bytes.push(key.len() as u8);
        bytes.extend(key);
        bytes.extend((value.len() as u16).to_be_bytes());
        bytes.extend(value);
    }
    bytes
}

fn counted(entries: &Entries) -> Vec<u8> {
    [&(entries.len() as u16).to_be_bytes(), &entry_bytes(entries)[..]].concat()
}

/// L4, naively: the last value at the first position.
fn merged(entries: &Entries) -> Entries {
    let mut merged = Entries::new();
    for (key, value) in entries {
        match merged.iter_mut().find(|(there, _)| there == key) {
            Some((_, old)) => old.clone_from(value),
            None => merged.push((key.clone(), value.clone())),
        }
    }
    merged
}

fn table_buf(entries: &Entries) -> TableBuf {
    let mut table = TableBuf::new();
    entries.iter().for_each(|(key, value)| table.push(key, value).unwrap());
    table
}

fn owned(table: Table<'_>) -> Entries {
    table.iter().map(|entry| (entry.key.to_vec(), entry.value.to_vec())).collect()
}

fn registration(bytes: &[u8]) -> Result<Registration<'_>, TestCaseError> {
    match Datagram::parse(bytes) {
        Ok(Datagram::Register(registration)) => Ok(registration),
        other => Err(TestCaseError::fail(format!("{other:?}"))),
    }
}

fn emitted(registration: &Registration<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    registration.emit(&mut bytes);
    bytes
}

#[derive(Clone, Debug)]
struct Block {
    transport: Transport,
    v4: Option<([u8; 4], NonZeroU16)>,
    v6: Option<([u8; 16], NonZeroU16)>,
    occupancy: Occupancy,
    entries: Entries,
}

prop_compose! {
    fn block()(
        transport in transport(),
        v4 in proptest::option::of((any::<[u8; 4]>(), port())),
        v6 in proptest::option::of((any::<[u8; 16]>(), port())),
        occupancy in occupancy(),
        entries in entries("[a-c]{0,2}", 22),
    ) -> Block {
        Block { transport, v4, v6, occupancy, entries: merged(&entries) }
    }
}

impl Block {
    /// The block with its length, as in the document.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.transport == Transport::Udp)];
        let (address, port) = self.v4.map_or(([0; 4], 0), |(address, port)| (address, port.get()));
        bytes.extend(port.to_be_bytes());
        bytes.extend(address);
        let (address, port) = self.v6.map_or(([0; 16], 0), |(address, port)| (address, port.get()));
        bytes.extend(port.to_be_bytes());
        bytes.extend(address);
        bytes.extend(occupancy_bytes(self.occupancy));
        bytes.extend(counted(&self.entries));
        [&(bytes.len() as u32).to_be_bytes(), &bytes[..]].concat()
    }

    fn with_block<T>(&self, check: impl FnOnce(ListBlock<'_>) -> T) -> T {
        let Self { transport, occupancy, .. } = *self;
        let v4 = self.v4.map(|(ip, port)| Endpoint { ip: ip.into(), port });
        let v6 = self.v6.map(|(ip, port)| Endpoint { ip: ip.into(), port });
        let table = table_buf(&self.entries);
        check(ListBlock { transport, v4, v6, occupancy, table: table.as_table() })
    }
}

fn reply_bytes(list: &[Block]) -> Vec<u8> {
    let blocks: Vec<u8> = list.iter().flat_map(Block::bytes).collect();
    [&(list.len() as u32).to_be_bytes(), &blocks[..]].concat()
}

/// Checks that whatever parses can be emitted and parses to the same value.
fn assert_round_trip(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(datagram) = Datagram::parse(bytes) {
        let mut again = Vec::new();
        match datagram {
            Datagram::Register(registration) => registration.emit(&mut again),
            Datagram::Unregister(unregister) => unregister.emit(&mut again),
        }
        prop_assert!(again.len() <= bytes.len());
        prop_assert_eq!(Datagram::parse(&again), Ok(datagram));
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_registration_of_document_001(head in head(), entries in entries("[a-c]{0,2}", 22), trailing in vec(any::<u8>(), 0..5)) {
        let table = table_buf(&entries);
        let Head { transport, port, occupancy, .. } = head;
        let server_id = ServerId::from_bytes(head.server_id);
        let list_id = ListId::from_bytes(head.list_id);
        let sent = Registration::new(server_id, list_id, transport, port, occupancy, table.as_table()).unwrap();

        let bytes = emitted(&sent);
        prop_assert_eq!(&bytes, &[head.bytes(), counted(&merged(&entries))].concat());
        let received = registration(&bytes)?;
        prop_assert_eq!(received, sent);
        prop_assert_eq!(received.layout(), Layout::Current);
        prop_assert_eq!(owned(received.table()), merged(&entries));

        // As sent, including repeated keys and bytes after the table.
        let with_more = [head.bytes(), counted(&entries), trailing].concat();
        prop_assert_eq!(registration(&with_more)?, sent);
        prop_assert_eq!(Datagram::peek_registration(&with_more), Some(server_id));
        prop_assert_eq!(Datagram::peek_port(&with_more), Some(port));

        for length in 0..bytes.len() {
            prop_assert!(Datagram::parse(&bytes[..length]).is_err(), "cut to {}", length);
        }
    }

    #[test]
    fn a_registration_of_document_000(head in head(), entries in entries("[a-c]{1,2}", 8)) {
        let bytes = [head.bytes(), entry_bytes(&entries)].concat();
        let received = registration(&bytes)?;
        prop_assert_eq!(received.layout(), Layout::Draft);
        prop_assert_eq!(received.port(), head.port);
        prop_assert_eq!(received.occupancy(), head.occupancy);
        prop_assert_eq!(owned(received.table()), merged(&entries));

        let again = emitted(&received);
        prop_assert_eq!(&again, &[head.bytes(), entry_bytes(&merged(&entries))].concat());
        prop_assert_eq!(registration(&again)?, received);

        // This layout has no count: truncated between two entries after the name, it is a smaller registration.
        let boundaries: Vec<usize> = (1..=entries.len())
            .filter(|&count| entries[..count].iter().any(|(key, _)| key == b"name"))
            .map(|count| 59 + entry_bytes(&entries[..count].to_vec()).len())
            .collect();
        for length in 0..bytes.len() {
            prop_assert_eq!(Datagram::parse(&bytes[..length]).is_ok(), boundaries.contains(&length), "cut to {}", length);
        }
    }

    #[test]
    fn an_unregister(id in any::<[u8; 16]>()) {
        let sent = Unregister { server_id: ServerId::from_bytes(id) };
        let mut bytes = Vec::new();
        sent.emit(&mut bytes);
        prop_assert_eq!(Datagram::parse(&bytes), Ok(Datagram::Unregister(sent)));
        for length in 0..bytes.len() {
            prop_assert_eq!(Datagram::parse(&bytes[..length]).unwrap_err().kind, DecodeErrorKind::Truncated);
        }
    }

    #[test]
    fn a_list_request(id in any::<[u8; 16]>(), trailing in vec(any::<u8>(), 0..5)) {
        let sent = ListRequest { list_id: ListId::from_bytes(id) };
        let mut bytes = Vec::new();
        sent.emit(&mut bytes);
        prop_assert_eq!(bytes.len(), ListRequest::SIZE);
        for length in 0..bytes.len() {
            prop_assert_eq!(ListRequest::parse(&bytes[..length]).unwrap_err().kind, DecodeErrorKind::Truncated);
        }
        bytes.extend(trailing);
        prop_assert_eq!(ListRequest::parse(&bytes), Ok(sent));
    }

    #[test]
    fn a_list_as_a_whole(list in vec(block(), 0..6)) {
        let bytes = reply_bytes(&list);
        let read: Vec<ListBlock<'_>> = blocks(&bytes).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(read.len(), list.len());
        for (read, block) in read.iter().zip(&list) {
            prop_assert!(block.with_block(|block| block == *read));
        }
        let mut again = Vec::new();
        emit_list(read, &mut again);
        prop_assert_eq!(&again, &bytes);
        for length in 0..bytes.len() {
            let last = blocks(&bytes[..length]).last().unwrap();
            prop_assert_eq!(last.unwrap_err().kind, DecodeErrorKind::Truncated, "cut to {}", length);
        }
    }

    #[test]
    fn a_list_in_pieces(list in vec(block(), 0..6), sizes in vec(1..200usize, 1..20), cut in any::<Index>()) {
        let bytes = reply_bytes(&list);
        // Any length, mostly not the full one.
        let there = cut.index(bytes.len() + 1);
        let mut reader = ListReader::new();
        let mut rest = &bytes[..there];
        let mut seen = 0;
        for size in sizes.iter().cycle() {
            let (piece, behind) = rest.split_at(rest.len().min(*size));
            reader.push(piece);
            while let Some(block) = reader.next_block() {
                prop_assert!(list[seen].with_block(|expected| Ok(expected) == block));
                seen += 1;
            }
            if behind.is_empty() {
                break;
            }
            rest = behind;
        }
        let complete = there == bytes.len();
        // The number of complete blocks.
        let whole = (0..=list.len()).rev().find(|&count| reply_bytes(&list[..count]).len() <= there).unwrap_or(0);
        prop_assert_eq!(seen, whole);
        if there >= 4 {
            prop_assert_eq!(reader.remaining(), Some((list.len() - seen) as u32));
        }
        prop_assert_eq!(reader.finish().is_ok(), complete);
    }

    #[test]
    fn arbitrary_bytes(bytes in vec(any::<u8>(), 0..300), pieces in 1..50usize) {
        assert_round_trip(&bytes)?;
        let _ = ListRequest::parse(&bytes);
        let _ = ListBlock::parse(&bytes);
        let _ = Datagram::peek_registration(&bytes);
        let _ = Datagram::peek_port(&bytes);
        let whole = blocks(&bytes).filter(Result::is_ok).count();
        let mut reader = ListReader::new();
        let mut streamed = 0;
        for piece in bytes.chunks(pieces) {
            reader.push(piece);
            while let Some(block) = reader.next_block() {
                streamed += usize::from(block.is_ok());
            }
        }
        prop_assert_eq!(streamed, whole);
    }

    #[test]
    fn a_message_with_a_few_bytes_changed(
        head in head(),
        entries in entries("[a-c]{1,2}", 8),
        draft in any::<bool>(),
        changes in vec((any::<Index>(), any::<u8>()), 1..4),
    ) {
        let table = if draft { entry_bytes(&entries) } else { counted(&entries) };
        let mut bytes = [head.bytes(), table].concat();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        assert_round_trip(&bytes)?;
    }

    #[test]
    fn a_list_with_a_few_bytes_changed(list in vec(block(), 1..4), changes in vec((any::<Index>(), any::<u8>()), 1..4)) {
        let mut bytes = reply_bytes(&list);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let understood: Vec<ListBlock<'_>> = blocks(&bytes).take(100).flatten().collect();
        let mut again = Vec::new();
        emit_list(understood.iter().copied(), &mut again);
        prop_assert_eq!(blocks(&again).collect::<Result<Vec<_>, _>>(), Ok(understood));
    }
}
