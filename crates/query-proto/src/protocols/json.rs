//! Documents in JSON, as several protocols send them.

use rallypoint_wire::{DecodeError, DecodeErrorKind, text};
use serde_json::Value;

/// Maximum length of a text, in bytes.
const MAX_TEXT: usize = 1_024;

/// Parses a document whose size the protocol has limited. Its depth is limited by the parser, to 128.
pub(super) fn parse(document: &[u8], field: &'static str) -> Result<Value, DecodeError> {
    serde_json::from_slice(document).map_err(|error| {
        let kind = if error.is_eof() { DecodeErrorKind::Truncated } else { DecodeErrorKind::Invalid };
        DecodeError { field, kind }
    })
}

/// A text that is safe to display, without control characters and without spaces around it; `None` if nothing is left.
pub(super) fn show(text: &str) -> Option<String> {
    let text = text::sanitize(text);
    let text = text[..text.floor_char_boundary(MAX_TEXT)].trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A number of players or slots. One that does not fit is the largest that does; a negative one is none.
pub(super) fn count(value: &Value) -> Option<u16> {
    let number = number(value).filter(|number| *number >= 0)?;
    Some(u16::try_from(number).unwrap_or(u16::MAX))
}

/// A whole number. Some servers send numbers as texts, or with a fraction of zero.
pub(super) fn number(value: &Value) -> Option<i64> {
    let of_float = |number: f64| (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64);
    match value {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().and_then(of_float)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_read_however_they_are_written() {
        assert_eq!([json!(7), json!("7"), json!(7.0), json!(" 7 ")].map(|value| count(&value)), [Some(7); 4]);
        assert_eq!(
            [json!(-1), json!("x"), json!(7.5), json!(1e300), json!(null)].map(|value| count(&value)),
            [None; 5]
        );
        assert_eq!(count(&json!(70_000)), Some(u16::MAX));
        assert_eq!(number(&json!(i64::MIN)), Some(i64::MIN));
    }

    #[test]
    fn deep_and_cut_documents_are_errors() {
        assert_eq!(parse(&[b'['; 1_000], "x").unwrap_err().kind, DecodeErrorKind::Invalid);
        assert_eq!(parse(b"{\"a\":", "x").unwrap_err().kind, DecodeErrorKind::Truncated);
        assert_eq!(show(" \n\t "), None);
        assert_eq!(show(&"\u{20ac}".repeat(1_000)).unwrap().len(), 1_023);
    }
}
