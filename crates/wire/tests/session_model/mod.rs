//! Messages that own their fields, and a naive encoder that writes them field by field, as in the document.

use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use rallypoint_wire::session::{
    ClientData, ClientDatagram, ClientSealed, Control, Grant, Info, KEY_FIELD, Login, LoginSuccess, MessageNumber,
    Name, NumberListBuf, Payload, Ping, Player, Rand, ServerData, ServerDatagram, ServerSealed, SlotIndex, Summary,
    Team, Text, TextListBuf, Title, Uid,
};

/// A message of a client.
#[derive(Clone, Debug)]
pub enum Client {
    Query,
    QueryPlayers,
    Login { revision: u8, key: Option<[u8; KEY_FIELD]>, username: Vec<u8>, game: Vec<u8> },
    Data { number: u32, index: u8, uid: u32, rand: u64, payload: Vec<u8> },
    Sealed { number: u32, index: u8, uid: u32, sealed: Vec<u8> },
    Disconnect,
    Control(Both),
}

/// A message of a server.
#[derive(Clone, Debug)]
pub enum Server {
    Summary {
        revision: u8,
        engine: u32,
        kind: u8,
        version: u32,
        players: u8,
        max: u8,
        game: Vec<u8>,
    },
    Title {
        name: Vec<u8>,
        description: Vec<u8>,
    },
    /// Info 3 or 4.
    Text {
        part: u8,
        text: Vec<u8>,
    },
    /// Info 5, 6 or 7.
    List {
        part: u8,
        items: Vec<String>,
    },
    Team {
        team: u8,
        ranked: bool,
        color: [u8; 3],
        name: Vec<u8>,
    },
    Player {
        team: u8,
        rank: u8,
        ping: u16,
        platform: i8,
        username: Vec<u8>,
    },
    Success {
        index: u8,
        uid: u32,
        rand: u64,
    },
    SealedSuccess {
        index: u8,
        uid: u32,
        key: [u8; KEY_FIELD],
    },
    BadLogin(Vec<u8>),
    Data {
        number: u32,
        payload: Vec<u8>,
    },
    Sealed {
        number: u32,
        sealed: Vec<u8>,
    },
    Disconnect(Vec<u8>),
    Control(Both),
}

/// A message of either side.
#[derive(Clone, Debug)]
pub enum Both {
    Ack(Vec<u32>),
    Resend(Vec<u32>),
    Keepalive,
    KeepaliveAck,
}

impl Client {
    /// The datagram, as in the document.
    pub fn naive(&self) -> Vec<u8> {
        match self {
            Self::Query => vec![0b10000000],
            Self::QueryPlayers => vec![0b10001000],
            Self::Login { revision, key: None, username, game } => {
                [&[0b00000011, *revision][..], username, &[0], game].concat()
            }
            Self::Login { revision, key: Some(key), username, game } => {
                [&[0b00001111, *revision][..], key, username, &[0], game].concat()
            }
            Self::Data { number, index, uid, rand, payload } => protect(
                0b00000101,
                &[
                    &number.to_le_bytes()[..],
                    &[*index],
                    &uid.to_le_bytes(),
                    &rand.to_le_bytes(),
                    &(payload.len() as u16).to_le_bytes(),
                    payload,
                ],
            ),
            Self::Sealed { number, index, uid, sealed } => protect(
                0b01010101,
                &[
                    &number.to_le_bytes()[..],
                    &[*index],
                    &uid.to_le_bytes(),
                    &(sealed.len() as u16).to_le_bytes(),
                    sealed,
                ],
            ),
            Self::Disconnect => [&crc32(&[0]).to_le_bytes()[..], &[0]].concat(),
            Self::Control(both) => both.naive(),
        }
    }

    /// Offset of a text that extends to the end of the datagram.
    pub fn text_at(&self) -> Option<usize> {
        match self {
            Self::Login { game, .. } => Some(self.naive().len() - game.len()),
            _ => None,
        }
    }

    /// The message as a type of this crate.
    pub fn with_datagram(
        &self,
        check: impl FnOnce(ClientDatagram<'_>) -> Result<(), TestCaseError>,
    ) -> Result<(), TestCaseError> {
        let mut numbers = NumberListBuf::new();
        check(match self {
            Self::Query => ClientDatagram::Query,
            Self::QueryPlayers => ClientDatagram::QueryPlayers,
            Self::Login { revision, key, username, game } => ClientDatagram::Login(Login {
                revision: *revision,
                key: key.as_ref(),
                username: Name::new(username).unwrap(),
                game: Text::new(game).unwrap(),
            }),
            Self::Data { number, index, uid, rand, payload } => ClientDatagram::Data(ClientData {
                number: MessageNumber::new(*number),
                index: SlotIndex::new(*index).unwrap(),
                uid: Uid::new(*uid),
                rand: Rand::new(*rand),
                payload: Payload::new(payload).unwrap(),
            }),
            Self::Sealed { number, index, uid, sealed } => ClientDatagram::EncryptedData(ClientSealed {
                number: MessageNumber::new(*number),
                index: SlotIndex::new(*index).unwrap(),
                uid: Uid::new(*uid),
                sealed: Payload::new(sealed).unwrap(),
            }),
            Self::Disconnect => ClientDatagram::Disconnect,
            Self::Control(both) => ClientDatagram::Control(both.control(&mut numbers)),
        })
    }
}

impl Server {
    /// The datagram, as in the document.
    pub fn naive(&self) -> Vec<u8> {
        match self {
            Self::Summary { revision, engine, kind, version, players, max, game } => [
                &[0b10000000, *revision][..],
                &engine.to_le_bytes(),
                &[*kind],
                &version.to_le_bytes(),
                &[*players, *max],
                game,
            ]
            .concat(),
            Self::Title { name, description } => [&[0b10000001][..], name, &[0], description].concat(),
            Self::Text { part, text } => [&[0b10000000 + part - 1][..], text].concat(),
            Self::List { part, items } => [&[0b10000000 + part - 1][..], items.join("\0").as_bytes()].concat(),
            Self::Team { team, ranked, color, name } => {
                [&[0b10001000, *team, u8::from(*ranked)][..], color, name].concat()
            }
            Self::Player { team, rank, ping, platform, username } => {
                [&[0b10001001, *team, *rank][..], &ping.to_le_bytes(), &platform.to_le_bytes(), username].concat()
            }
            Self::Success { index, uid, rand } => {
                [&[0b00000011, *index][..], &uid.to_le_bytes(), &rand.to_le_bytes()].concat()
            }
            Self::SealedSuccess { index, uid, key } => [&[0b00001111, *index][..], &uid.to_le_bytes(), key].concat(),
            Self::BadLogin(reason) => [&[0b11000000][..], reason].concat(),
            Self::Data { number, payload } => {
                protect(0b00000101, &[&number.to_le_bytes()[..], &(payload.len() as u16).to_le_bytes(), payload])
            }
            Self::Sealed { number, sealed } => {
                protect(0b01010101, &[&number.to_le_bytes()[..], &(sealed.len() as u16).to_le_bytes(), sealed])
            }
            Self::Disconnect(reason) => [&[0b00000000][..], reason].concat(),
            Self::Control(both) => both.naive(),
        }
    }

    /// Offset of a text that extends to the end of the datagram.
    pub fn text_at(&self) -> Option<usize> {
        match self {
            Self::Summary { .. } => Some(13),
            Self::Title { name, .. } => Some(1 + name.len() + 1),
            Self::Text { .. } | Self::List { .. } | Self::BadLogin(_) | Self::Disconnect(_) => Some(1),
            Self::Team { .. } | Self::Player { .. } => Some(6),
            _ => None,
        }
    }

    /// The message as a type of this crate.
    pub fn with_datagram(
        &self,
        check: impl FnOnce(ServerDatagram<'_>) -> Result<(), TestCaseError>,
    ) -> Result<(), TestCaseError> {
        let mut list = TextListBuf::new();
        let mut numbers = NumberListBuf::new();
        check(match self {
            Self::Summary { revision, engine, kind, version, players, max, game } => {
                ServerDatagram::Info(Info::Summary(Summary {
                    revision: *revision,
                    engine_revision: *engine,
                    version_type: *kind,
                    version: *version,
                    players: *players,
                    max_players: *max,
                    game: Text::new(game).unwrap(),
                }))
            }
            Self::Title { name, description } => {
                ServerDatagram::Info(Info::Title(Title::new(name, description).unwrap()))
            }
            Self::Text { part, text } => ServerDatagram::Info(match part {
                3 => Info::GameName(Text::new(text).unwrap()),
                _ => Info::Map(Text::new(text).unwrap()),
            }),
            Self::List { part, items } => {
                items.iter().for_each(|item| list.push(item).unwrap());
                ServerDatagram::Info(match part {
                    5 => Info::ModIds(list.as_list()),
                    6 => Info::ModNames(list.as_list()),
                    _ => Info::Tags(list.as_list()),
                })
            }
            Self::Team { team, ranked, color, name } => ServerDatagram::Team(Team {
                team: *team,
                ranked: *ranked,
                color: *color,
                name: Text::new(name).unwrap(),
            }),
            Self::Player { team, rank, ping, platform, username } => ServerDatagram::Player(Player {
                team: *team,
                rank: *rank,
                ping: Ping(*ping),
                platform: *platform,
                username: Name::new(username).unwrap(),
            }),
            Self::Success { index, uid, rand } => success(*index, *uid, Grant::Plain(Rand::new(*rand))),
            Self::SealedSuccess { index, uid, key } => success(*index, *uid, Grant::Encrypted(key)),
            Self::BadLogin(reason) => ServerDatagram::BadLogin(Text::new(reason).unwrap()),
            Self::Data { number, payload } => ServerDatagram::Data(ServerData {
                number: MessageNumber::new(*number),
                payload: Payload::new(payload).unwrap(),
            }),
            Self::Sealed { number, sealed } => ServerDatagram::EncryptedData(ServerSealed {
                number: MessageNumber::new(*number),
                sealed: Payload::new(sealed).unwrap(),
            }),
            Self::Disconnect(reason) => ServerDatagram::Disconnect(Text::new(reason).unwrap()),
            Self::Control(both) => ServerDatagram::Control(both.control(&mut numbers)),
        })
    }
}

fn success(index: u8, uid: u32, grant: Grant<'_>) -> ServerDatagram<'_> {
    ServerDatagram::LoginSuccess(LoginSuccess { index: SlotIndex::new(index).unwrap(), uid: Uid::new(uid), grant })
}

impl Both {
    fn naive(&self) -> Vec<u8> {
        let list = |kind, numbers: &[u32]| {
            let mut bytes = vec![kind, numbers.len() as u8];
            for number in numbers {
                bytes.extend_from_slice(&number.to_le_bytes());
                bytes.extend_from_slice(&(!number).to_le_bytes());
            }
            bytes
        };
        match self {
            Self::Ack(numbers) => list(0b11111111, numbers),
            Self::Resend(numbers) => list(0b10101010, numbers),
            Self::Keepalive => vec![0b00110011],
            Self::KeepaliveAck => vec![0b11001100],
        }
    }

    fn control<'a>(&self, list: &'a mut NumberListBuf) -> Control<'a> {
        if let Self::Ack(numbers) | Self::Resend(numbers) = self {
            assert!(numbers.iter().all(|number| list.push(MessageNumber::new(*number))));
        }
        match self {
            Self::Ack(_) => Control::Ack(list.as_list()),
            Self::Resend(_) => Control::Resend(list.as_list()),
            Self::Keepalive => Control::Keepalive,
            Self::KeepaliveAck => Control::KeepaliveAck,
        }
    }
}

/// Type, CRC, fields.
fn protect(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    let fields = fields.concat();
    [&[kind][..], &crc32(&fields).to_le_bytes(), &fields].concat()
}

/// CRC-32/ISO-HDLC, bit by bit.
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// Mostly short, sometimes of maximum length.
fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => vec(any::<u8>(), 0..=20), 1 => vec(any::<u8>(), 0..=most), 1 => vec(any::<u8>(), most)]
}

fn bytes_without_nul(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => vec(1..=255u8, 0..=20), 1 => vec(1..=255u8, 0..=most), 1 => vec(1..=255u8, most)]
}

fn key() -> impl Strategy<Value = [u8; KEY_FIELD]> {
    vec(any::<u8>(), KEY_FIELD).prop_map(|key| key.try_into().unwrap())
}

/// A name and a description of at most 506 bytes together.
fn title() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    (bytes_without_nul(506), bytes(506)).prop_map(|(name, mut description)| {
        description.truncate(506 - name.len());
        (name, description)
    })
}

/// At most 19 items of 24 bytes, which always fit. A single empty item would be an empty list.
fn items() -> impl Strategy<Value = Vec<String>> {
    vec("[a-zäö七]{0,8}", 0..20).prop_filter("has no bytes of its own", |items| items[..] != [""])
}

impl Arbitrary for Client {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        prop_oneof![
            1 => Just(Self::Query),
            1 => Just(Self::QueryPlayers),
            1 => Just(Self::Disconnect),
            3 => (any::<u8>(), proptest::option::of(key()), bytes_without_nul(127), bytes(127))
                .prop_map(|(revision, key, username, game)| Self::Login { revision, key, username, game }),
            3 => (any::<u32>(), 0..=254u8, any::<u32>(), any::<u64>(), bytes(484))
                .prop_map(|(number, index, uid, rand, payload)| Self::Data { number, index, uid, rand, payload }),
            3 => (any::<u32>(), 0..=254u8, any::<u32>(), bytes(480))
                .prop_map(|(number, index, uid, sealed)| Self::Sealed { number, index, uid, sealed }),
            3 => any::<Both>().prop_map(Self::Control),
        ]
        .boxed()
    }
}

impl Arbitrary for Server {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        let numbers = (any::<u8>(), any::<u32>(), any::<u8>(), any::<u32>(), any::<u8>(), any::<u8>());
        prop_oneof![
            (numbers, bytes(127)).prop_map(|((revision, engine, kind, version, players, max), game)| {
                Self::Summary { revision, engine, kind, version, players, max, game }
            }),
            title().prop_map(|(name, description)| Self::Title { name, description }),
            (3..=4u8, bytes(507)).prop_map(|(part, text)| Self::Text { part, text }),
            (5..=7u8, items()).prop_map(|(part, items)| Self::List { part, items }),
            (any::<u8>(), any::<bool>(), any::<[u8; 3]>(), bytes(502))
                .prop_map(|(team, ranked, color, name)| Self::Team { team, ranked, color, name }),
            (any::<u8>(), any::<u8>(), any::<u16>(), any::<i8>(), bytes_without_nul(255)).prop_map(
                |(team, rank, ping, platform, username)| Self::Player { team, rank, ping, platform, username }
            ),
            (0..=254u8, any::<u32>(), any::<u64>()).prop_map(|(index, uid, rand)| Self::Success { index, uid, rand }),
            (0..=254u8, any::<u32>(), key()).prop_map(|(index, uid, key)| Self::SealedSuccess { index, uid, key }),
            bytes(507).prop_map(Self::BadLogin),
            bytes(507).prop_map(Self::Disconnect),
            (any::<u32>(), bytes(497)).prop_map(|(number, payload)| Self::Data { number, payload }),
            (any::<u32>(), bytes(496)).prop_map(|(number, sealed)| Self::Sealed { number, sealed }),
            any::<Both>().prop_map(Self::Control),
        ]
        .boxed()
    }
}

impl Arbitrary for Both {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        let numbers = || prop_oneof![vec(any::<u32>(), 0..=4), vec(any::<u32>(), 0..=63)];
        prop_oneof![
            numbers().prop_map(Self::Ack),
            numbers().prop_map(Self::Resend),
            Just(Self::Keepalive),
            Just(Self::KeepaliveAck),
        ]
        .boxed()
    }
}
