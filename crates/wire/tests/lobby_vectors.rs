//! All cases of vectors/lobby.json and vectors/real-registrations.json, one test each.

mod vector_file;

use libtest_mimic::{Arguments, Failed};
use rallypoint_wire::{
    DecodeError,
    lobby::{
        Datagram, Layout, ListBlock, ListReader, ListRequest, Occupancy, Registration, ServerId, Table, Transport,
        Unregister, blocks, emit_list,
    },
};
use serde_json::{Value, json};
use std::process::ExitCode;
use vector_file::{equal, hex, text_of, to_hex, trials};

const LOBBY: &str = include_str!("vectors/lobby.json");
const REAL: &str = include_str!("vectors/real-registrations.json");

/// Cases that are not emitted unchanged, according to the file's `about`: duplicates, bytes after the table, reserved flags.
const EMITTED_OTHERWISE: [&str; 3] = [
    "a duplicate key: the last value, the first place (L4)",
    "bytes after the table are ignored (L3)",
    "reserved flag bits are dropped (L2)",
];

fn main() -> ExitCode {
    let mut tests = trials("lobby", LOBBY, lobby);
    tests.extend(trials("real-registrations", REAL, real));
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

fn lobby(case: &Value) -> Result<(), Failed> {
    let bytes = hex(&case["bytes"]);
    let result = match text_of(&case["kind"]) {
        "register" => datagram(&bytes).map(|(value, again)| (value["register"].clone(), again)),
        "unregister" => datagram(&bytes).map(|(value, again)| (value["unregister"].clone(), again)),
        "list_request" => list_request(&bytes),
        "list_reply" => list_reply(&bytes),
        kind => return Err(format!("no test for {kind}").into()),
    };
    match (result, &case["error"]) {
        (Ok((value, again)), Value::Null) => {
            equal(&value, &case["value"])?;
            let as_it_was = again == bytes;
            equal(&as_it_was, &!EMITTED_OTHERWISE.contains(&text_of(&case["name"])))
        }
        (Err(error), Value::String(expected)) if error.to_string().starts_with(expected) => Ok(()),
        (result, expected) => Err(format!("got {result:?}, expected error {expected}").into()),
    }
}

fn real(case: &Value) -> Result<(), Failed> {
    let result = datagram(&hex(&case["bytes"]));
    match case["listed"].as_bool() {
        Some(listed) => equal(&result.is_ok(), &listed),
        None => Ok(()), // Either result is acceptable.
    }
}

/// The value of a datagram in the form of the vectors, and the bytes that it emits.
fn datagram(bytes: &[u8]) -> Result<(Value, Vec<u8>), DecodeError> {
    let mut again = Vec::new();
    let value = match Datagram::parse(bytes)? {
        Datagram::Register(registration) => {
            registration.emit(&mut again);
            json!({ "register": registration_value(&registration) })
        }
        Datagram::Unregister(unregister @ Unregister { server_id }) => {
            unregister.emit(&mut again);
            json!({ "unregister": { "server_id": uuid(server_id) } })
        }
    };
    Ok((value, again))
}

fn list_request(bytes: &[u8]) -> Result<(Value, Vec<u8>), DecodeError> {
    let request = ListRequest::parse(bytes)?;
    let mut again = Vec::new();
    request.emit(&mut again);
    Ok((json!({ "lobby_id": request.list_id.to_string() }), again))
}

/// Parses the reply as a whole and in pieces, with the same result.
fn list_reply(bytes: &[u8]) -> Result<(Value, Vec<u8>), DecodeError> {
    let whole: Result<Vec<ListBlock<'_>>, DecodeError> = blocks(bytes).collect();
    let values = whole.as_ref().map(|blocks| blocks.iter().map(block_value).collect::<Value>());
    for size in (1..=7).chain([bytes.len()]) {
        match (&values, list_in_pieces(bytes, size)) {
            (Ok(values), Ok(streamed)) => assert_eq!(streamed, *values, "in pieces of {size}"),
            // The streaming parser does not know the field in which a block was truncated.
            (Err(error), Err(streamed)) => assert_eq!(streamed.kind, error.kind, "in pieces of {size}"),
            (whole, streamed) => panic!("as a whole {whole:?}, in pieces of {size} {streamed:?}"),
        }
    }
    let mut again = Vec::new();
    let value = values.map_err(|error| *error)?;
    emit_list(whole?, &mut again);
    Ok((value, again))
}

fn list_in_pieces(bytes: &[u8], size: usize) -> Result<Value, DecodeError> {
    let mut reader = ListReader::new();
    let mut values = Vec::new();
    for piece in bytes.chunks(size) {
        reader.push(piece);
        while let Some(block) = reader.next_block() {
            values.push(block_value(&block?));
        }
    }
    reader.finish()?;
    Ok(values.into())
}

fn registration_value(registration: &Registration<'_>) -> Value {
    let layout = match registration.layout() {
        Layout::Draft => "000",
        Layout::Current => "001",
    };
    let occupancy = registration.occupancy();
    let mut value = common_value(registration.transport(), occupancy, registration.table());
    value["server_id"] = uuid(registration.server_id());
    value["lobby_id"] = registration.list_id().to_string().into();
    value["port"] = registration.port().get().into();
    value["layout"] = layout.into();
    value
}

fn block_value(block: &ListBlock<'_>) -> Value {
    let mut value = common_value(block.transport, block.occupancy, block.table);
    value["ipv4"] = block.v4.map(|v4| v4.to_string()).into();
    value["ipv6"] = block.v6.map(|v6| v6.to_string()).into();
    value
}

fn common_value(transport: Transport, occupancy: Occupancy, table: Table<'_>) -> Value {
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": to_hex(bytes) }),
    };
    let value = |key: &[u8], bytes: &[u8]| match key {
        b"protocol_id" => json!({ "hex": to_hex(bytes) }),
        _ => text(bytes),
    };
    json!({
        "transport": transport.as_str(),
        "slots": occupancy.slots,
        "players": occupancy.players,
        "bots": occupancy.bots,
        "password": occupancy.password,
        "entries": table.iter().map(|entry| json!([text(entry.key), value(entry.key, entry.value)])).collect::<Value>(),
    })
}

fn uuid(server_id: ServerId) -> Value {
    let hex = to_hex(server_id.expose());
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]).into()
}
