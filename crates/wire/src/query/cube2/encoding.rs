//! Integers and texts of the engine.

use super::Flavour;
use crate::{DecodeError, Reader};
use alloc::{string::String, vec::Vec};
use core::fmt;

/// A text as the engine encodes it, with colour codes. It is displayed without them, in Unicode; control characters are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    encoded: &'a [u8],
    charset: Charset,
}

/// How characters are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// A selection of Latin and Cyrillic letters, in place of control characters, too.
    Cube2,
    /// ASCII, and whatever the player's system has beyond it.
    System,
}

/// Letters in place of the control characters before and after line breaks and tabs.
const AFTER_NUL: &str = "ÀÁÂÃÄÅÆÇ";
const AFTER_RETURN: &str = "ÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛ";

/// Letters from 127 to 255.
const BEYOND_ASCII: &str = "ÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿĄąĆćČčĎďĘęĚěĞğİıŁłŃńŇňŐőŒœŘřŚśŞşŠšŤťŮůŰűŸŹźŻżŽžЄБГДЖЗИЙЛПУФЦЧШЩЪЫЬЭЮЯ\
                            бвгджзийклмнптфцчшщъыьэюяєҐґ";

/// Begins a colour code; its colour is one character.
const COLOUR: u8 = 0x0c;

impl Text<'_> {
    /// The characters as the engine numbers them, without colour codes.
    #[must_use]
    pub fn characters(&self) -> Vec<u8> {
        let mut reader = Reader::new(self.encoded);
        let mut characters = Vec::with_capacity(self.encoded.len());
        let mut is_colour = false;
        while let Ok(number) = integer(&mut reader, "character") {
            let character = number as u8;
            if is_colour {
                is_colour = false;
            } else if character == COLOUR {
                is_colour = true;
            } else {
                characters.push(character);
            }
        }
        characters
    }

    /// How the characters are numbered.
    #[must_use]
    pub const fn charset(&self) -> Charset {
        self.charset
    }
}

/// The text without colour codes.
impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let characters = self.characters();
        match self.charset {
            Charset::Cube2 => f.pad(&characters.into_iter().map(letter).collect::<String>()),
            Charset::System => f.pad(&String::from_utf8_lossy(&characters)),
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.characters().escape_ascii().fmt(f)
    }
}

fn letter(character: u8) -> char {
    let nth = |letters: &str, first: u8| letters.chars().nth(usize::from(character - first));
    let letter = match character {
        1..=8 => nth(AFTER_NUL, 1),
        14..=31 => nth(AFTER_RETURN, 14),
        127.. => nth(BEYOND_ASCII, 127),
        _ => None,
    };
    letter.unwrap_or(char::from(character))
}

/// An integer of one, three or five bytes.
pub(super) fn integer(reader: &mut Reader<'_>, field: &'static str) -> Result<i32, DecodeError> {
    match reader.u8(field)? {
        0x80 => Ok(reader.u16_le(field)?.cast_signed().into()),
        0x81 => Ok(reader.u32_le(field)?.cast_signed()),
        byte => Ok(byte.cast_signed().into()),
    }
}

/// A text: an integer for each character, of which the lowest byte counts.
pub(super) fn text<'a>(
    reader: &mut Reader<'a>,
    flavour: Flavour,
    field: &'static str,
) -> Result<Text<'a>, DecodeError> {
    let all = reader.rest();
    let mut length = 0;
    while integer(reader, field)? as u8 != 0 {
        length = all.len() - reader.rest().len();
    }
    let charset = match flavour {
        Flavour::Sauerbraten => Charset::Cube2,
        Flavour::AssaultCube => Charset::System,
    };
    Ok(Text { encoded: &all[..length], charset })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn integers_have_one_three_or_five_bytes() {
        for (bytes, expected) in [
            (&b"\x05"[..], 5),
            (b"\xff", -1),
            (b"\x82", -126),
            (b"\x80\x04\x01", 260),
            (b"\x80\xff\xff", -1),
            (b"\x81\x40\x19\x01\0", 72_000),
            (b"\x81\0\0\0\x80", i32::MIN),
        ] {
            let mut reader = Reader::new(bytes);
            assert_eq!(integer(&mut reader, "number"), Ok(expected));
            assert!(reader.is_empty());
        }
        for bytes in [&b""[..], b"\x80\x01", b"\x81\x01\x02\x03"] {
            assert!(integer(&mut Reader::new(bytes), "number").is_err());
        }
    }

    #[test]
    fn every_character_has_a_letter() {
        assert_eq!(BEYOND_ASCII.chars().count(), 129);
        assert_eq!([AFTER_NUL.chars().count(), AFTER_RETURN.chars().count()], [8, 18]);
        assert_eq!([2, 14, b'a', 126, 127, 0xe4, 255].map(letter), ['Á', 'È', 'a', '~', 'Ü', 'б', 'ґ']);
        assert_eq!([0, 9, 13].map(letter), ['\0', '\t', '\r']);
    }

    #[test]
    fn texts_are_shown_without_colours() {
        let show = |bytes, flavour| text(&mut Reader::new(bytes), flavour, "text").map(|text| text.to_string());
        assert_eq!(show(b"cap\x0c2x\x0cs\x0c3y\0z", Flavour::Sauerbraten).unwrap(), "capxy");
        assert_eq!(show(b"a\x80\xe4\x00b\0", Flavour::Sauerbraten).unwrap(), "aбb", "a character in three bytes");
        assert_eq!(show(b"\0", Flavour::Sauerbraten).unwrap(), "");
        assert_eq!(show(b"a\x0c", Flavour::Sauerbraten).unwrap_err().field, "text");
        assert_eq!(show(b"\xc3\xa4\0", Flavour::AssaultCube).unwrap(), "ä");
    }
}
