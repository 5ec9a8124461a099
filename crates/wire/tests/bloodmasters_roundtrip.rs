//! Bloodmasters messages round-trip, and match a naive encoder that follows the document literally.

use proptest::{collection::vec, prelude::*, sample::Index};
use rallypoint_wire::{
    DecodeErrorKind,
    bloodmasters::{Client, ClientsBuf, Echo, GameType, Info, MAX_REPLY, Query, Reply, Rules, Team, messages, queries},
};

#[derive(Clone, Debug)]
struct Server {
    echo: [u8; 4],
    title: Vec<u8>,
    locked: bool,
    website: Vec<u8>,
    numbers: [u8; 4],
    map_name: Vec<u8>,
    protocol: u8,
    rules: (i16, i16, bool),
    clients: Vec<(Vec<u8>, u8, bool, i16)>,
    build: Vec<u8>,
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..10), vec(any::<u8>(), 120..140), vec(any::<u8>(), 300)]
}

prop_compose! {
    fn server()(
        echo in any::<[u8; 4]>(),
        (title, website, map_name, build) in (text(), text(), text(), text()),
        (locked, numbers) in any::<(bool, [u8; 4])>(),
        protocol in prop_oneof![25..31u8, any::<u8>()],
        rules in any::<(i16, i16, bool)>(),
        clients in vec((vec(any::<u8>(), 0..20), any::<u8>(), any::<bool>(), any::<i16>()), 0..12),
    ) -> Server {
        Server { echo, title, locked, website, numbers, map_name, protocol, rules, clients, build }
    }
}

/// B2, for lengths that need no more than two groups.
fn put_string(text: &[u8], bytes: &mut Vec<u8>) {
    match text.len() {
        length @ 0..128 => bytes.push(length as u8),
        length => bytes.extend([0x80 | (length % 128) as u8, (length / 128) as u8]),
    }
    bytes.extend(text);
}

impl Server {
    /// The reply as in the document, and its length up to the protocol version.
    fn bytes(&self) -> (Vec<u8>, usize) {
        let [max_clients, max_players, game_type, players] = self.numbers;
        let mut bytes = vec![0, 0, 13];
        bytes.extend(self.echo);
        put_string(&self.title, &mut bytes);
        bytes.push(self.locked.into());
        put_string(&self.website, &mut bytes);
        bytes.extend([max_clients, max_players, game_type]);
        put_string(&self.map_name, &mut bytes);
        bytes.extend([self.clients.len() as u8, players, self.protocol]);
        let head = bytes.len();
        if self.protocol >= 27 {
            bytes.extend(self.rules.0.to_be_bytes());
            bytes.extend(self.rules.1.to_be_bytes());
            bytes.push(self.rules.2.into());
            for (name, team, spectator, ping) in &self.clients {
                put_string(name, &mut bytes);
                bytes.extend([*team, (*spectator).into()]);
                bytes.extend(ping.to_be_bytes());
            }
        }
        if self.protocol >= 28 {
            put_string(&self.build, &mut bytes);
        }
        set_length(&mut bytes);
        (bytes, head)
    }

    fn with_reply<T>(&self, check: impl FnOnce(Reply<'_>) -> T) -> T {
        let [max_clients, max_players, game_type, players] = self.numbers;
        let info = Info {
            title: &self.title,
            locked: self.locked,
            website: &self.website,
            max_clients,
            max_players,
            game_type: GameType(game_type),
            map_name: &self.map_name,
            players,
            protocol: self.protocol,
        };
        let (score_limit, time_limit, join_smallest) = self.rules;
        let mut clients = ClientsBuf::new();
        for (name, team, spectator, ping) in &self.clients {
            clients.push(Client { name, team: Team(*team), spectator: *spectator, ping: *ping }).unwrap();
        }
        let rules = Rules { score_limit, time_limit, join_smallest };
        check(Reply::new(Echo(self.echo), info, rules, clients.as_clients(), &self.build).unwrap())
    }
}

fn set_length(bytes: &mut [u8]) {
    let length = bytes.len() as u16;
    bytes[..2].copy_from_slice(&length.to_le_bytes());
}

fn emitted(reply: &Reply<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    reply.emit(&mut bytes);
    bytes
}

/// All fields of a reply, except for the point of truncation.
fn fields<'a>(reply: &Reply<'a>) -> impl PartialEq + std::fmt::Debug + use<'a> {
    (reply.echo(), reply.info(), reply.rules(), reply.clients(), reply.build(), reply.is_complete())
}

/// Checks that whatever parses can be emitted and parses to the same value.
fn assert_round_trip(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(reply) = Reply::parse(bytes) {
        let again = emitted(&reply);
        prop_assert!(again.len() <= bytes.len());
        let read = Reply::parse(&again).unwrap();
        if reply.is_complete() {
            prop_assert_eq!(read, reply);
        } else if reply.warning().is_some_and(|warning| warning.field != "message") {
            prop_assert_eq!(fields(&read), fields(&reply));
        }
    }
    let found: Vec<Query> = queries(bytes).collect();
    prop_assert!(found.len() <= bytes.len() / Query::SIZE);
    prop_assert!(messages(bytes).count() <= bytes.len().div_ceil(3));
    Ok(())
}

proptest! {
    #[test]
    fn a_reply_of_any_version(server in server()) {
        let (bytes, head) = server.bytes();
        server.with_reply(|reply| {
            prop_assert_eq!(&emitted(&reply), &bytes);
            prop_assert_eq!(Reply::parse(&bytes), Ok(reply));
            prop_assert!(reply.is_complete());

            // Truncated by the network (the length is unchanged), or by a server that adapts the length.
            for length in 0..bytes.len() {
                let cut = &bytes[..length];
                let mut shorter = cut.to_vec();
                if length >= 3 {
                    set_length(&mut shorter);
                }
                for cut in [cut, &shorter] {
                    match Reply::parse(cut) {
                        Err(error) => {
                            prop_assert!(length < head, "cut to {}", length);
                            prop_assert_eq!(error.kind, DecodeErrorKind::Truncated);
                        }
                        Ok(partial) => {
                            prop_assert!(length >= head, "cut to {}", length);
                            prop_assert_eq!(partial.warning().map(|warning| warning.kind), Some(DecodeErrorKind::Truncated));
                            prop_assert_eq!(partial.info(), reply.info());
                            prop_assert_eq!(partial.clients().count(), reply.clients().count());
                            let told = partial.clients().iter();
                            prop_assert!(told.zip(reply.clients().iter()).all(|(part, whole)| part == whole));
                        }
                    }
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn queries_among_other_messages(parts in vec((any::<bool>(), 0..=255u8, vec(any::<u8>(), 0..12)), 0..10), rest in any::<bool>()) {
        let mut datagram = Vec::new();
        let mut expected = Vec::new();
        for (query, code, body) in parts {
            let code = if query { 13 | code & 0x80 } else { code };
            datagram.extend((body.len() as u16 + 3).to_le_bytes());
            datagram.push(code);
            datagram.extend(&body);
            let body = if code & 0x80 == 0 { &body[..] } else { body.get(4..).unwrap_or_default() };
            if let (13, Some(echo)) = (code & 0x7f, body.first_chunk()) {
                expected.push(Query { echo: Echo(*echo) });
            }
        }
        if rest {
            // The length announces more than is present.
            datagram.extend([7, 0, 13, 1, 2, 3]);
        }
        prop_assert_eq!(queries(&datagram).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_query(echo in any::<[u8; 4]>()) {
        let mut bytes = Vec::new();
        Query { echo: Echo(echo) }.emit(&mut bytes);
        prop_assert_eq!(bytes.len(), Query::SIZE);
        prop_assert_eq!(&bytes[Echo::RANGE], &echo);
        prop_assert_eq!(queries(&bytes).collect::<Vec<_>>(), [Query { echo: Echo(echo) }]);
        for length in 0..bytes.len() {
            prop_assert_eq!(queries(&bytes[..length]).count(), 0);
        }
    }

    #[test]
    fn arbitrary_bytes(bytes in vec(any::<u8>(), 0..200)) {
        assert_round_trip(&bytes)?;
    }

    #[test]
    fn a_reply_with_a_few_bytes_changed(server in server(), changes in vec((any::<Index>(), any::<u8>()), 1..4)) {
        let (mut bytes, _) = server.bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        assert_round_trip(&bytes)?;
    }
}

#[test]
fn the_largest_reply_that_parses_can_be_emitted() {
    // Larger than replies that are created (`MAX_REPLY`), but within the length field.
    let mut bytes = vec![0, 0, 13, 1, 2, 3, 4];
    bytes.extend([0; 9]);
    bytes.push(29);
    bytes.extend([0; 5]);
    // The build description fills the rest: 65,510 bytes.
    bytes.extend([0xe6, 0xff, 0x03]);
    bytes.resize(usize::from(u16::MAX), b'x');
    set_length(&mut bytes);
    let reply = Reply::parse(&bytes).unwrap();
    assert_eq!(reply.warning(), None);
    assert!(bytes.len() > MAX_REPLY);
    assert!(emitted(&reply) == bytes);
}
