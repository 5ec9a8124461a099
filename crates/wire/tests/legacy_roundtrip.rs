//! Messages of the legacy lobby round-trip.

use proptest::{collection::vec, option, prelude::*, sample::Index};
use rallypoint_wire::{
    DecodeErrorKind,
    legacy::{
        Counts, Info, ListEntry, ListReader, ListRequest, PORT, Registration, emit_list, entries, protocol_of_version,
        version_of_protocol,
    },
    lobby::{Endpoint, ProtocolId},
};
use std::num::NonZeroU16;

#[test]
fn l16_the_port_is_29942() {
    assert_eq!(PORT, 29_942);
}

/// Description of a server, short enough not to be truncated.
#[derive(Clone, Debug)]
struct Text {
    private: bool,
    map: Option<String>,
    name: String,
    counts: Option<Counts>,
    modification: Option<String>,
}

impl Text {
    fn info(&self) -> Info<'_> {
        Info {
            private: self.private,
            map: self.map.as_deref().map(str::as_bytes),
            name: self.name.as_bytes(),
            counts: self.counts,
            modification: self.modification.as_deref().map(str::as_bytes),
        }
    }
}

fn counts() -> impl Strategy<Value = Counts> {
    (any::<u16>(), prop_oneof![Just(0), any::<u16>()], any::<u16>()).prop_map(|(players, bots, slots)| Counts {
        players,
        bots,
        slots,
    })
}

prop_compose! {
    /// Unambiguous texts: nothing in the name looks like another part.
    fn plain()(
        private in any::<bool>(),
        map in option::of("[a-zé_]{0,12}"),
        name in "[A-Za-z七é0-9!/+]{0,20}",
        counts in option::of(counts()),
        modification in option::of("[a-zé0-9]{0,12}"),
    ) -> Text {
        let name = name.replace("!private!", "");
        Text { private, map, name, counts, modification }
    }
}

prop_compose! {
    /// Texts as servers send them, with a map and counts: then the name may contain anything.
    fn tricky()(
        private in any::<bool>(),
        map in "[a-z_\\[]{0,12}",
        name in "([a-z ]|\\[|\\] | - | \\[[0-9]/[0-9]\\]|!private!){0,8}",
        counts in counts(),
        modification in option::of("([a-z]| - |-|\\[){0,8}"),
    ) -> Text {
        Text { private, map: Some(map), name, counts: Some(counts), modification }
    }
}

fn text() -> impl Strategy<Value = Text> {
    prop_oneof![plain(), tricky()]
}

fn protocol_id() -> impl Strategy<Value = ProtocolId> {
    prop_oneof![any::<u8>().prop_map(protocol_of_version), any::<[u8; 16]>().prop_map(ProtocolId::from_bytes)]
}

fn port() -> impl Strategy<Value = NonZeroU16> {
    (1..=u16::MAX).prop_map(|port| NonZeroU16::new(port).unwrap())
}

fn emitted(info: &Info<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    info.emit(&mut text);
    text
}

/// Bytes that are likely to look like parts of a text.
fn hostile_text() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        prop::sample::select(vec![
            "!private!",
            "[",
            "] ",
            "]",
            " [",
            "/",
            "+",
            " - ",
            " [1/2]",
            "03",
            "65536",
            " [1+0/2]",
            "-"
        ])
        .prop_map(|part| part.as_bytes().to_vec()),
    ];
    vec(part, 0..28).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn a_text(text in text()) {
        let info = text.info();
        let bytes = emitted(&info);
        prop_assert_eq!(Info::parse(&bytes), info);
    }

    #[test]
    fn arbitrary_texts_round_trip(bytes in hostile_text()) {
        let bytes = &bytes[..bytes.len().min(255)];
        let info = Info::parse(bytes);
        let again = emitted(&info);
        prop_assert!(again.len() <= bytes.len());
        prop_assert_eq!(Info::parse(&again), info);
        // Only the counts can have another form.
        let without_counts = |info: Info<'_>| emitted(&Info { counts: None, ..info }).len();
        prop_assert!(without_counts(info) <= bytes.len());
        if info.counts.is_none() {
            prop_assert_eq!(&again[..], bytes);
        }
    }

    #[test]
    fn a_text_of_any_length_is_truncated(
        private in any::<bool>(),
        (map, modification) in (option::of("[a-z七]{0,300}"), option::of("[a-z七]{0,300}")),
        name in "[a-z七🎮é]{0,300}",
        counts in option::of(counts()),
    ) {
        let text = Text { private, map, name, counts, modification };
        let info = text.info();
        let bytes = emitted(&info);
        prop_assert!(bytes.len() <= 255);
        prop_assert!(std::str::from_utf8(&bytes).is_ok());
        let read = Info::parse(&bytes);
        prop_assert_eq!((read.private, read.counts), (info.private, info.counts));
        let begins = |cut: Option<&[u8]>, whole: Option<&[u8]>| match (cut, whole) {
            (Some(cut), Some(whole)) => whole.starts_with(cut),
            (cut, whole) => cut == whole,
        };
        prop_assert!(begins(read.map, info.map));
        prop_assert!(begins(read.modification, info.modification));
        prop_assert!(info.name.starts_with(read.name));
        prop_assert!(read.name == info.name || read.name.len() > 255 - 64 - 64 - 40);
    }

    #[test]
    fn a_registration(protocol_id in protocol_id(), port in port(), text in text()) {
        let sent = Registration { protocol_id, port, info: text.info() };
        let mut bytes = Vec::new();
        sent.emit(&mut bytes);
        prop_assert_eq!(bytes[6] != 128, version_of_protocol(protocol_id).is_some());
        prop_assert_eq!(Registration::parse(&bytes), Ok(sent));
        for length in 0..bytes.len() {
            prop_assert_eq!(Registration::parse(&bytes[..length]).unwrap_err().kind, DecodeErrorKind::Truncated);
        }
        bytes.push(0);
        prop_assert_eq!(Registration::parse(&bytes).unwrap_err().kind, DecodeErrorKind::TrailingBytes);
    }

    #[test]
    fn a_list_request(protocol_id in protocol_id()) {
        let mut bytes = Vec::new();
        ListRequest { protocol_id }.emit(&mut bytes);
        prop_assert_eq!(bytes.len(), ListRequest::size(bytes[0]));
        prop_assert_eq!(ListRequest::parse(&bytes), Ok(ListRequest { protocol_id }));
    }

    #[test]
    fn a_list_as_a_whole_and_in_pieces(
        list in vec((text(), any::<[u8; 4]>(), port()), 0..6),
        sizes in vec(1..60usize, 1..20),
        cut in any::<Index>(),
    ) {
        let list: Vec<ListEntry<'_>> = list
            .iter()
            .map(|(text, ip, port)| ListEntry { info: text.info(), endpoint: Endpoint { ip: (*ip).into(), port: *port } })
            .collect();
        let mut bytes = Vec::new();
        emit_list(list.iter().copied(), &mut bytes);
        prop_assert_eq!(entries(&bytes).collect::<Result<Vec<_>, _>>(), Ok(list.clone()));
        for length in 0..bytes.len() {
            prop_assert_eq!(entries(&bytes[..length]).last().unwrap().unwrap_err().kind, DecodeErrorKind::Truncated);
        }

        let there = cut.index(bytes.len() + 1);
        let mut rest = &bytes[..there];
        let mut reader = ListReader::new();
        let mut seen = 0;
        for size in sizes.iter().cycle() {
            let (piece, behind) = rest.split_at(rest.len().min(*size));
            reader.push(piece);
            while let Some(entry) = reader.next_entry() {
                prop_assert_eq!(entry, Ok(list[seen]));
                seen += 1;
            }
            if behind.is_empty() {
                break;
            }
            rest = behind;
        }
        prop_assert_eq!(seen, entries(&bytes[..there]).filter(Result::is_ok).count());
        prop_assert_eq!(reader.finish().is_ok(), there == bytes.len());
    }

    #[test]
    fn arbitrary_bytes(bytes in vec(any::<u8>(), 0..300), pieces in 1..50usize) {
        let _ = ListRequest::parse(&bytes);
        let _ = Registration::parse(&bytes);
        let _ = Info::parse(&bytes);
        let whole = entries(&bytes).filter(Result::is_ok).count();
        let mut reader = ListReader::new();
        let mut streamed = 0;
        for piece in bytes.chunks(pieces) {
            reader.push(piece);
            while let Some(entry) = reader.next_entry() {
                streamed += usize::from(entry.is_ok());
            }
        }
        prop_assert_eq!(streamed, whole);
    }

    #[test]
    fn a_registration_with_a_few_bytes_changed(
        protocol_id in protocol_id(),
        port in port(),
        text in text(),
        changes in vec((any::<Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = Vec::new();
        Registration { protocol_id, port, info: text.info() }.emit(&mut bytes);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(understood) = Registration::parse(&bytes) {
            let mut again = Vec::new();
            understood.emit(&mut again);
            prop_assert_eq!(Registration::parse(&again), Ok(understood));
        }
    }
}
