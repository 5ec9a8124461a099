//! Texts of A2S for display.

use alloc::{borrow::Cow, string::String, vec::Vec};

/// Decodes a text for display, as [`text::display`](crate::text::display) does, without the colours of chat: control characters,
/// two of which have a colour in hexadecimal digits after them. A UTF-8 text that a server has cut within a character ends before
/// it.
///
/// ```
/// use rallypoint_wire::query::a2s::display;
///
/// assert_eq!(display(b"\x07ff8000Orange\x01 \x04Box"), "Orange Box");
/// assert_eq!(display("Приве́т".as_bytes().split_last().unwrap().1), "Приве́");
/// assert_eq!(display(b"Caf\xe9"), "Café");
/// ```
#[must_use]
pub fn display(bytes: &[u8]) -> Cow<'_, str> {
    let bytes = without_cut_character(bytes);
    if !bytes.iter().any(is_colour) {
        return crate::text::display(bytes);
    }
    let mut stripped = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        let digits = match byte {
            0x07 => 6,
            0x08 => 8,
            _ => 0,
        };
        if !is_colour(byte) {
            stripped.push(*byte);
        } else if let Some((colour, behind)) = behind.split_at_checked(digits)
            && colour.iter().all(u8::is_ascii_hexdigit)
        {
            rest = behind;
        }
    }
    Cow::Owned(String::from(crate::text::display(&stripped)))
}

/// Whether a byte sets the colour of the text after it. Tabs and line breaks are spaces for display.
fn is_colour(byte: &u8) -> bool {
    matches!(byte, 0x01..=0x08 | 0x0b | 0x0c | 0x0e..=0x10)
}

/// A text without the beginning of a character at its end, if there are whole characters beyond ASCII before it: otherwise it could
/// be one of another encoding.
fn without_cut_character(bytes: &[u8]) -> &[u8] {
    match core::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() && !bytes[..error.valid_up_to()].is_ascii() => {
            &bytes[..error.valid_up_to()]
        }
        _ => bytes,
    }
}
