//! Replies of the store as values. Whatever the store sends, nothing here panics; `None` is a reply that is not one of ours.

use super::MessageId;
use crate::{Conflict, EntryValue, LogRecord, NodeRow, OpenedStore, Reply, Ticked, WriteResult, record::parse_id};
use rallypoint_lobby_proto::PublicId;
use redis::Value;

/// Names and values.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Maximum number of nodes that are taken from a reply.
const MAX_ROWS: usize = 20_000;

pub(super) fn opened(value: Value) -> Option<Reply> {
    let parts = array(value)?;
    let [format, secret, epoch, seq, token, time] = <[Value; 6]>::try_from(parts).ok()?;
    Some(Reply::Opened(OpenedStore {
        format: number(&format)?.try_into().unwrap_or(u32::MAX),
        secret_check: bytes(secret)?,
        epoch: bytes(epoch)?.try_into().ok()?,
        seq: number(&seq)?,
        token: bytes(token)?,
        time: number(&time)?,
    }))
}

pub(super) fn ticked(value: Value) -> Option<Reply> {
    let mut parts = array(value)?.into_iter();
    match &*bytes(parts.next()?)? {
        b"epoch" => Some(Reply::Ticked(None)),
        b"done" => {
            let seq = number(&parts.next()?)?;
            let token = bytes(parts.next()?)?;
            let time = number(&parts.next()?)?;
            let nodes = Some(parts.next()?).filter(|rows| matches!(rows, Value::Array(_))).map(node_rows);
            let has_more = parts.next().and_then(bytes).is_some_and(|more| more == b"1");
            let servers = number(&parts.next()?)?;
            let bans = parts.next().as_ref().and_then(number);
            let is_log_complete = parts.next().and_then(bytes).is_some_and(|complete| complete == b"1");
            Some(Reply::Ticked(Some(Ticked { seq, token, time, nodes, has_more, servers, bans, is_log_complete })))
        }
        _ => None,
    }
}

/// The nodes in the reply to HGETALL; rows that are not ours are skipped.
pub(super) fn node_rows(value: Value) -> Vec<NodeRow> {
    let rows = pairs(value).unwrap_or_default();
    rows.iter().filter_map(|(node, row)| node_row(node, row)).take(MAX_ROWS).collect()
}

fn node_row(node: &[u8], row: &[u8]) -> Option<NodeRow> {
    let split = row.iter().position(|byte| *byte == b' ')?;
    let time = std::str::from_utf8(&row[..split]).ok()?.parse().ok()?;
    let node = std::str::from_utf8(node).ok()?.parse().ok()?;
    Some(NodeRow { node, time, report: row[split + 1..].to_vec() })
}

pub(super) fn written(values: Vec<Value>) -> Option<Reply> {
    let mut results = Vec::with_capacity(values.len());
    for value in values {
        let mut parts = array(value)?.into_iter();
        let status = bytes(parts.next()?)?;
        let conflict = match &*status {
            b"epoch" => return Some(Reply::Written(None)),
            b"done" => {
                results.push(WriteResult::Done(number(&parts.next()?)?));
                continue;
            }
            b"stale" => Conflict::Stale,
            b"taken" => Conflict::Taken,
            b"tomb" => Conflict::Tombstone,
            _ => return None,
        };
        let current = EntryValue::parse(&bytes(parts.next()?)?).ok();
        results.push(WriteResult::Refused(conflict, current.map(Box::new)));
    }
    Some(Reply::Written(Some(results)))
}

pub(super) fn fetched(value: Value) -> Option<Reply> {
    let entry = |value| bytes(value).and_then(|value| EntryValue::parse(&value).ok());
    Some(Reply::Fetched(array(value)?.into_iter().map(entry).collect()))
}

/// A part of all entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ScannedPart {
    pub cursor: u64,
    pub entries: Vec<(PublicId, EntryValue)>,
    /// IDs and values that cannot be parsed.
    pub unreadable: Vec<(Vec<u8>, Vec<u8>)>,
    /// Number of further ones, which the script has deleted.
    pub deleted: u64,
}

pub(super) fn scanned(value: Value) -> Option<ScannedPart> {
    let mut parts = array(value)?.into_iter();
    let mut part = ScannedPart { cursor: number(&parts.next()?)?, ..ScannedPart::default() };
    let pairs = pairs(parts.next()?)?;
    part.deleted = number(&parts.next()?)?;
    for (id, value) in pairs {
        match (parse_id(&id), EntryValue::parse(&value)) {
            (Ok(id), Ok(value)) => part.entries.push((id, value)),
            _ => part.unreadable.push((id, value)),
        }
    }
    Some(part)
}

pub(super) fn bans(value: Value) -> Option<Reply> {
    let mut parts = array(value)?.into_iter();
    let bans = pairs(parts.next()?)?;
    let left_out = usize::try_from(number(&parts.next()?)?).ok()?;
    let malformed = number(&parts.next()?)?;
    Some(Reply::Bans { bans, left_out, malformed })
}

/// The reply to XREAD: nothing, or one stream with its records.
pub(super) fn log(value: Value) -> Option<Reply> {
    let stream = match value {
        Value::Nil => return Some(Reply::Log { records: Vec::new(), is_malformed: false }),
        Value::Map(streams) => streams.into_iter().next()?.1,
        value => array(array(value)?.into_iter().next()?)?.into_iter().nth(1)?,
    };
    let mut records = Vec::new();
    for record in array(stream)? {
        let record = id_and_fields(record).and_then(|(id, fields)| LogRecord::parse(&id, &fields).ok());
        match record {
            Some(record) => records.push(record),
            None => return Some(Reply::Log { records, is_malformed: true }),
        }
    }
    Some(Reply::Log { records, is_malformed: false })
}

/// The messages in the reply to XREAD.
pub(super) fn messages_of_stream(value: Value) -> Vec<(MessageId, Vec<u8>)> {
    let stream = match value {
        Value::Map(streams) => streams.into_iter().next().map(|(_, records)| records),
        value => array(value)
            .and_then(|streams| array(streams.into_iter().next()?))
            .and_then(|stream| stream.into_iter().nth(1)),
    };
    stream.map(messages).unwrap_or_default()
}

/// The messages in a list of records. One that is not ours is empty.
pub(super) fn messages(value: Value) -> Vec<(MessageId, Vec<u8>)> {
    let message = |record: Value| {
        let mut parts = array(record)?.into_iter();
        let id = MessageId::parse(std::str::from_utf8(&bytes(parts.next()?)?).ok()?)?;
        let fields = parts.next().and_then(pairs).unwrap_or_default();
        let message = fields.into_iter().find(|(name, _)| name == b"m").map(|(_, value)| value);
        Some((id, message.unwrap_or_default()))
    };
    array(value).unwrap_or_default().into_iter().filter_map(message).collect()
}

/// The ID of a record in a stream, and its fields with their names.
fn id_and_fields(record: Value) -> Option<(Vec<u8>, Pairs)> {
    let mut parts = array(record)?.into_iter();
    Some((bytes(parts.next()?)?, pairs(parts.next()?)?))
}

fn array(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

/// A list of names and values, flat or as a map.
fn pairs(value: Value) -> Option<Pairs> {
    match value {
        Value::Map(pairs) => pairs.into_iter().map(|(name, value)| Some((bytes(name)?, bytes(value)?))).collect(),
        value => {
            let mut values = array(value)?.into_iter();
            let mut pairs = Vec::with_capacity(values.len() / 2);
            while let (Some(name), Some(value)) = (values.next(), values.next()) {
                pairs.push((bytes(name)?, bytes(value)?));
            }
            Some(pairs)
        }
    }
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        Value::Int(number) => Some(number.to_string().into_bytes()),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        Value::SimpleString(text) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_other_programs_are_not_understood() {
        let odd = [
            Value::Nil,
            Value::Int(-1),
            Value::BulkString(b"PONG".to_vec()),
            Value::Array(vec![]),
            Value::Array(vec![Value::Int(-1), Value::Nil]),
            Value::Array(vec![Value::Array(vec![Value::Nil])]),
        ];
        for value in odd {
            assert_eq!(opened(value.clone()), None);
            assert_eq!(ticked(value.clone()), None);
            assert_eq!(scanned(value.clone()), None);
            assert_eq!(written(vec![value.clone()]), None);
            let _ = (bans(value.clone()), log(value.clone()), fetched(value));
        }
    }

    #[test]
    fn a_malformed_entry_is_counted_and_a_malformed_record_ends_the_log() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let scan = Value::Array(vec![text("0"), Value::Array(vec![text("field"), text("value")]), Value::Int(2)]);
        let unreadable = vec![(b"field".to_vec(), b"value".to_vec())];
        assert_eq!(scanned(scan), Some(ScannedPart { unreadable, deleted: 2, ..ScannedPart::default() }));
        let record = Value::Array(vec![text("5-0"), Value::Array(vec![text("a"), text("b")])]);
        let stream = Value::Array(vec![Value::Array(vec![text("log"), Value::Array(vec![record])])]);
        assert_eq!(log(stream), Some(Reply::Log { records: Vec::new(), is_malformed: true }));
    }
}
