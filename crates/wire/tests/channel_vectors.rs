//! The golden payloads of the message layer (W110), one test for each.

use libtest_mimic::{Arguments, Failed, Trial};
use rallypoint_wire::session::channels::{
    ChannelIndex, ControlRecord, Hello, Record, RecordWriter, TableEntry, records,
};
use serde_json::{Value, json};

fn main() {
    let arguments = Arguments::from_args();
    let vectors: Value = serde_json::from_str(include_str!("vectors/channels.json")).expect("vectors in JSON");
    let cases = vectors["payloads"].as_array().cloned().unwrap_or_default();
    let tests = cases.into_iter().map(|case| {
        let name = format!("w110 {}", case["name"].as_str().unwrap_or_default());
        Trial::test(name, move || check(&case))
    });
    libtest_mimic::run(&arguments, tests.collect()).exit();
}

fn check(case: &Value) -> Result<(), Failed> {
    let bytes = unhex(case["bytes"].as_str().ok_or("no bytes")?);
    let parsed: Result<Vec<Record>, _> = records(&bytes).collect();
    let parsed = match (parsed, case["error"].as_str()) {
        (Ok(parsed), None) => parsed,
        (Err(error), Some(field)) if error.field == field => return Ok(()),
        (result, expected) => return Err(format!("{result:?} instead of {expected:?}").into()),
    };
    let values: Vec<Value> = parsed.iter().map(value).collect();
    if case["records"] != json!(values) {
        return Err(format!("{values:?}").into());
    }
    let mut writer = RecordWriter::new(484);
    parsed.iter().for_each(|record| emit(record, &mut writer));
    let emitted = writer.finish();
    if emitted == bytes { Ok(()) } else { Err(format!("emitted {}", hex(emitted)).into()) }
}

fn value(record: &Record<'_>) -> Value {
    match record {
        Record::Message { channel, sequence, body } => {
            json!({"kind": "message", "channel": channel.get(), "sequence": sequence, "body": hex(body)})
        }
        Record::Fragment { channel, sequence, index, count, body } => json!({
            "kind": "fragment", "channel": channel.get(), "sequence": sequence, "index": index, "count": count,
            "body": hex(body),
        }),
        Record::Control(ControlRecord::Hello(hello)) => json!({
            "kind": "hello", "version": hello.version, "token": hex(hello.token),
            "channels": hello.channels().map(|entry| json!({
                "mode": entry.mode, "max_to_server": entry.max_to_server, "max_to_client": entry.max_to_client,
            })).collect::<Vec<_>>(),
        }),
        Record::Control(ControlRecord::Receipt { channel, sequences }) => json!({
            "kind": "receipt", "channel": channel.get(), "sequences": sequences.iter().collect::<Vec<_>>(),
        }),
        Record::Control(ControlRecord::Credit { channel, sequence }) => {
            json!({"kind": "credit", "channel": channel.get(), "sequence": sequence})
        }
    }
}

fn emit(record: &Record<'_>, writer: &mut RecordWriter) {
    let is_added = match *record {
        Record::Message { channel, sequence, body } => writer.message(channel, sequence, body),
        Record::Fragment { channel, sequence, index, count, body } => {
            writer.fragment(channel, sequence, index, count, body)
        }
        Record::Control(ControlRecord::Hello(hello)) => emit_hello(&hello, writer),
        Record::Control(ControlRecord::Receipt { channel, sequences }) => {
            let sequences: Vec<u16> = sequences.iter().collect();
            writer.receipt(channel, sequences.iter().copied()) == sequences.len()
        }
        Record::Control(ControlRecord::Credit { channel, sequence }) => writer.credit(channel, sequence),
    };
    assert!(is_added, "{record:?}");
}

fn emit_hello(hello: &Hello<'_>, writer: &mut RecordWriter) -> bool {
    let table: Vec<TableEntry> = hello.channels().collect();
    assert!(table.len() <= 32 && ChannelIndex::new(32).is_none());
    writer.hello(&table, hello.token)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex digits")).collect()
}
