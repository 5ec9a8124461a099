//! The golden datagrams of document 003, one test for each.

use libtest_mimic::{Arguments, Failed, Trial};
use rallypoint_wire::session::{
    ClientDatagram, ClientSealed, Control, Grant, Info, KeyOffer, MessageNumber, NumberList, Payload, Rand, SealInput,
    ServerDatagram, ServerSealed, SlotIndex, TAG, Text, TextList, Uid, hpke_info,
};
use serde_json::{Value, json};

fn main() {
    let arguments = Arguments::from_args();
    let plain = cases(include_str!("vectors/session.json")).into_iter().map(|case| {
        let name = format!("{}: {}", text(&case, "from"), text(&case, "name"));
        Trial::test(name, move || check(&case))
    });
    let encrypted = cases(include_str!("vectors/session-encryption.json")).into_iter().map(|case| {
        let name = format!("s30 {}", text(&case, "mode"));
        Trial::test(name, move || check_encrypted(&case))
    });
    libtest_mimic::run(&arguments, plain.chain(encrypted).collect()).exit();
}

fn check(case: &Value) -> Result<(), Failed> {
    let bytes = hex(text(case, "bytes"));
    let parsed = match text(case, "from") {
        "client" => ClientDatagram::parse(&bytes).map(|datagram| (client(&datagram), emit(|out| datagram.emit(out)))),
        _ => ServerDatagram::parse(&bytes).map(|datagram| (server(&datagram), emit(|out| datagram.emit(out)))),
    };
    match (parsed, case.get("error")) {
        (Ok(((kind, value), emitted)), None) => {
            same(kind, text(case, "kind"))?;
            same(&value, &case["value"])?;
            same(&emitted, &bytes)
        }
        (Err(error), Some(expected)) => {
            let expected = expected.as_str().ok_or("an error is not a string")?;
            if error.to_string().starts_with(expected) { Ok(()) } else { same(&*error.to_string(), expected) }
        }
        (Ok(((kind, value), _)), Some(error)) => Err(format!("{kind} {value} instead of {error}").into()),
        (Err(error), None) => Err(error.into()),
    }
}

/// The layouts of S30: key offer, HPKE info, associated data. The cipher itself is not part of this crate.
fn check_encrypted(case: &Value) -> Result<(), Failed> {
    let index = number(case, "index").try_into().ok().and_then(SlotIndex::new).ok_or("no index")?;
    let uid = Uid::new(number(case, "uid").try_into()?);

    let bytes = hex(text(case, "login"));
    let ClientDatagram::Login(login) = ClientDatagram::parse(&bytes)? else { return Err("not a login".into()) };
    same(&emit(|out| login.emit(out)), &bytes)?;
    same(&login.check()?, &("alice", "tag-arena"))?;
    let offer = KeyOffer::parse(login.key.ok_or("a login without a key")?)?;
    same(&matches!(offer, KeyOffer::Auth { .. }), &(text(case, "mode") == "auth"))?;
    same(&Some(&offer.to_field()), &login.key)?;

    let info = hex(text(case, "info"));
    let login_sha256 = info[5..37].try_into()?;
    same(&hpke_info(login_sha256, index, uid)[..], &info[..])?;

    let bytes = hex(text(case, "login_success"));
    let ServerDatagram::LoginSuccess(success) = ServerDatagram::parse(&bytes)? else {
        return Err("not a login success".into());
    };
    same(&(success.index, success.uid), &(index, uid))?;
    same(&matches!(success.grant, Grant::Encrypted(_)), &true)?;
    same(&emit(|out| success.emit(out)), &bytes)?;

    for data in case["data"].as_array().ok_or("no data")? {
        let message = hex(text(data, "payload"));
        let bytes = hex(text(data, "bytes"));
        let (number, seen, again) = match text(data, "from") {
            "client" => {
                let ClientDatagram::EncryptedData(seen) = ClientDatagram::parse(&bytes)? else {
                    return Err("not encrypted data".into());
                };
                same(&(seen.index, seen.uid), &(index, uid))?;
                same(&emit(|out| seen.emit(out)), &bytes)?;
                let seal = replay(seen.seal_input(), seen.sealed.as_bytes());
                let mut out = Vec::new();
                ClientSealed::emit_with(seen.number, index, uid, Payload::new(&message)?, &mut out, seal)?;
                (seen.number, seen.sealed.as_bytes(), out)
            }
            _ => {
                let ServerDatagram::EncryptedData(seen) = ServerDatagram::parse(&bytes)? else {
                    return Err("not encrypted data".into());
                };
                same(&emit(|out| seen.emit(out)), &bytes)?;
                let seal = replay(seen.seal_input(index, uid), seen.sealed.as_bytes());
                let mut out = Vec::new();
                ServerSealed::emit_with(seen.number, index, uid, Payload::new(&message)?, &mut out, seal)?;
                (seen.number, seen.sealed.as_bytes(), out)
            }
        };
        same(&u64::from(number.get()), &self::number(data, "number"))?;
        same(&seen.len(), &(message.len() + TAG))?;
        same(&again, &bytes)?;
    }
    Ok(())
}

/// Inserts the known ciphertext and tag in place of the cipher.
fn replay(
    expected: SealInput,
    sealed: &[u8],
) -> impl FnOnce(&SealInput, &mut [u8], &mut [u8; TAG]) -> Result<(), Failed> {
    move |input, message, tag| {
        same(input, &expected)?;
        let (ciphertext, known) = sealed.split_last_chunk().ok_or("no tag")?;
        message.copy_from_slice(ciphertext);
        *tag = *known;
        Ok(())
    }
}

/// A client's message in the form of the vectors.
fn client(datagram: &ClientDatagram<'_>) -> (&'static str, Value) {
    match datagram {
        ClientDatagram::Query => ("query", json!({})),
        ClientDatagram::QueryPlayers => ("query_players", json!({})),
        ClientDatagram::Login(login) => {
            let revision = login.revision;
            let username = string(*login.username);
            let game = string(login.game);
            match login.key {
                None => ("login", json!({ "revision": revision, "username": username, "game": game })),
                Some(key) => (
                    "login_encrypted",
                    json!({ "revision": revision, "public_key": digits(key), "username": username, "game": game }),
                ),
            }
        }
        ClientDatagram::Data(data) => (
            "data",
            json!({
                "number": data.number.get(),
                "index": data.index.get(),
                "uid": data.uid.get(),
                "rand": rand(data.rand),
                "payload": digits(data.payload.as_bytes()),
            }),
        ),
        ClientDatagram::EncryptedData(data) => (
            "data_encrypted",
            json!({
                "number": data.number.get(),
                "index": data.index.get(),
                "uid": data.uid.get(),
                "payload": digits(data.sealed.as_bytes()),
            }),
        ),
        ClientDatagram::Disconnect => ("disconnect", json!({})),
        ClientDatagram::Control(both) => control(both),
    }
}

/// A server's message in the form of the vectors.
fn server(datagram: &ServerDatagram<'_>) -> (&'static str, Value) {
    match datagram {
        ServerDatagram::Info(part) => info(part),
        ServerDatagram::Team(team) => (
            "team",
            json!({ "team": team.team, "ranked": team.ranked, "color": team.color, "name": string(team.name) }),
        ),
        ServerDatagram::Player(player) => (
            "player",
            json!({
                "team": player.team,
                "rank": player.rank,
                "ping": player.ping.0,
                "platform": player.platform,
                "username": string(*player.username),
            }),
        ),
        ServerDatagram::LoginSuccess(success) => {
            let index = success.index.get();
            let uid = success.uid.get();
            match success.grant {
                Grant::Plain(secret) => ("login_success", json!({ "index": index, "uid": uid, "rand": rand(secret) })),
                Grant::Encrypted(key) => {
                    ("login_encrypted_success", json!({ "index": index, "uid": uid, "key": digits(key) }))
                }
            }
        }
        ServerDatagram::BadLogin(reason) => ("bad_login", json!({ "reason": string(*reason) })),
        ServerDatagram::Data(data) => {
            ("data", json!({ "number": data.number.get(), "payload": digits(data.payload.as_bytes()) }))
        }
        ServerDatagram::EncryptedData(data) => {
            ("data_encrypted", json!({ "number": data.number.get(), "payload": digits(data.sealed.as_bytes()) }))
        }
        ServerDatagram::Disconnect(reason) => ("disconnect", json!({ "reason": string(*reason) })),
        ServerDatagram::Control(both) => control(both),
    }
}

fn info(part: &Info<'_>) -> (&'static str, Value) {
    let strings = |list: &TextList<'_>| list.iter().map(string).collect::<Vec<_>>();
    match part {
        Info::Summary(summary) => (
            "info1",
            json!({
                "revision": summary.revision,
                "engine_revision": summary.engine_revision,
                "version_type": summary.version_type,
                "version": summary.version,
                "players": summary.players,
                "max_players": summary.max_players,
                "game": string(summary.game),
            }),
        ),
        Info::Title(title) => {
            ("info2", json!({ "name": string(*title.name()), "description": string(title.description()) }))
        }
        Info::GameName(name) => ("info3", json!({ "game_name": string(*name) })),
        Info::Map(map) => ("info4", json!({ "map": string(*map) })),
        Info::ModIds(list) => ("info5", json!({ "mod_ids": strings(list) })),
        Info::ModNames(list) => ("info6", json!({ "mod_names": strings(list) })),
        Info::Tags(list) => ("info7", json!({ "tags": strings(list) })),
    }
}

fn control(both: &Control<'_>) -> (&'static str, Value) {
    let numbers = |list: &NumberList<'_>| json!({ "numbers": list.iter().map(MessageNumber::get).collect::<Vec<_>>() });
    match both {
        Control::Ack(list) => ("ack", numbers(list)),
        Control::Resend(list) => ("resend", numbers(list)),
        Control::Keepalive => ("keepalive", json!({})),
        Control::KeepaliveAck => ("keepalive_ack", json!({})),
    }
}

fn string<const MAX: usize>(text: Text<'_, MAX>) -> String {
    text.to_str_lossy().into_owned()
}

fn rand(rand: Rand) -> String {
    format!("{:016x}", rand.expose())
}

fn emit(emit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    emit(&mut out);
    out
}

fn cases(json: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(json).expect("vectors are JSON");
    file["cases"].as_array().expect("vectors have cases").clone()
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_else(|| panic!("no text {key:?} in {case}"))
}

fn number(case: &Value, key: &str) -> u64 {
    case[key].as_u64().unwrap_or_else(|| panic!("no number {key:?} in {case}"))
}

fn hex(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn same<T: PartialEq + std::fmt::Debug + ?Sized>(actual: &T, expected: &T) -> Result<(), Failed> {
    if actual == expected { Ok(()) } else { Err(format!("got {actual:?}, expected {expected:?}").into()) }
}
