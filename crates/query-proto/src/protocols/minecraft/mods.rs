//! Mods in a status, as the versions of Forge report them.

use super::json;
use crate::Mod;
use rallypoint_wire::{DecodeError, DecodeErrorKind, Reader, query::minecraft::var_int};
use serde_json::Value;

/// The mods of a status: in `modinfo` up to 1.12, in `forgeData` since 1.13, and there in binary since 1.18.
pub(super) fn mods(status: &Value) -> Vec<Mod> {
    let forge = &status["forgeData"];
    if let Some(packed) = forge["d"].as_str()
        && let Ok(mods) = unpack(packed).and_then(|bytes| parse(&bytes))
        && !mods.is_empty()
    {
        return mods;
    }
    let old = list(&status["modinfo"]["modList"], "modid", "version");
    if old.is_empty() { list(&forge["mods"], "modId", "modmarker") } else { old }
}

fn list(mods: &Value, id: &str, version: &str) -> Vec<Mod> {
    let list = mods.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|entry| new(entry[id].as_str()?, entry[version].as_str())).collect()
}

/// Whether this stands for no version: any is good, or only the server needs the mod.
fn is_no_version(version: &str) -> bool {
    version == "ANY" || version.starts_with("OHNOES")
}

fn new(id: &str, version: Option<&str>) -> Option<Mod> {
    let id = json::show(id)?;
    let version = version.filter(|version| !is_no_version(version)).and_then(json::show);
    let name = version.map(|version| format!("{id} {version}"));
    Some(Mod { id: Some(id), name })
}

/// Bytes in the lower 15 bits of each character, the lowest bits first; the first two characters are their number.
fn unpack(packed: &str) -> Result<Vec<u8>, DecodeError> {
    let error = |kind| DecodeError { field: "mods", kind };
    let mut units = packed.encode_utf16().map(|unit| usize::from(unit & 0x7fff));
    let (Some(low), Some(high)) = (units.next(), units.next()) else { return Err(error(DecodeErrorKind::Truncated)) };
    let size = low | high << 15;
    let mut bytes = Vec::new();
    let (mut buffer, mut bits) = (0_usize, 0);
    for unit in units {
        buffer |= unit << bits;
        bits += 15;
        while bits >= 8 && bytes.len() < size {
            bytes.push(buffer as u8);
            buffer >>= 8;
            bits -= 8;
        }
        if bytes.len() >= size {
            return Ok(bytes);
        }
    }
    if bytes.len() == size { Ok(bytes) } else { Err(error(DecodeErrorKind::Truncated)) }
}

/// Flag of a mod that only the server needs, and that has no version.
const SERVER_ONLY: i32 = 1;

/// Each mod has its number of channels and flags, its name, its version and its channels.
fn parse(bytes: &[u8]) -> Result<Vec<Mod>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let _is_truncated = reader.u8("mods")?;
    let count = reader.u16_be("number of mods")?;
    let mut mods = Vec::new();
    for _ in 0..count {
        let channels_and_flags = var_int(&mut reader, "number of channels")?;
        let id = string(&mut reader)?;
        let is_server_only = channels_and_flags & SERVER_ONLY != 0;
        let version = if is_server_only { None } else { Some(string(&mut reader)?) };
        // Each channel takes at least three bytes, so their number is bounded by what has arrived.
        for _ in 0..channels_and_flags.cast_unsigned() >> 1 {
            string(&mut reader)?;
            string(&mut reader)?;
            reader.u8("channel")?;
        }
        mods.extend(new(id, version));
    }
    Ok(mods)
}

fn string<'a>(reader: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    let invalid = DecodeError { field: "mods", kind: DecodeErrorKind::Invalid };
    let length = usize::try_from(var_int(reader, "mods")?).map_err(|_| invalid)?;
    str::from_utf8(reader.bytes(length, "mods")?).map_err(|_| invalid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pack(bytes: &[u8]) -> String {
        let mut units = vec![(bytes.len() & 0x7fff) as u16, (bytes.len() >> 15) as u16];
        let (mut buffer, mut bits) = (0_u32, 0);
        for byte in bytes {
            buffer |= u32::from(*byte) << bits;
            bits += 8;
            if bits >= 15 {
                units.push((buffer & 0x7fff) as u16);
                buffer >>= 15;
                bits -= 15;
            }
        }
        units.push((buffer & 0x7fff) as u16);
        String::from_utf16(&units).unwrap()
    }

    fn named(mods: &[Mod]) -> Vec<(&str, Option<&str>)> {
        mods.iter().map(|one| (one.id.as_deref().unwrap(), one.name.as_deref())).collect()
    }

    #[test]
    fn mods_are_read_from_all_three_forms() {
        let old = json!({"modinfo": {"type": "FML", "modList": [{"modid": "jei", "version": "4.15"}, {"modid": ""}]}});
        assert_eq!(named(&mods(&old)), [("jei", Some("jei 4.15"))]);
        let list = json!([{"modId": "create", "modmarker": "0.5"}, {"modId": "x", "modmarker": "ANY"}, 7]);
        let new = json!({"forgeData": {"mods": list, "channels": [], "fmlNetworkVersion": 2}});
        assert_eq!(named(&mods(&new)), [("create", Some("create 0.5")), ("x", None)]);
        let bytes = b"\0\0\x02\x02\x06create\x030.5\x04main\x011\x01\x01\x04tool\0";
        let packed = json!({"forgeData": {"mods": [], "channels": [], "d": pack(bytes)}});
        assert_eq!(named(&mods(&packed)), [("create", Some("create 0.5")), ("tool", None)]);
        assert!(mods(&json!({"description": "x"})).is_empty());
    }

    #[test]
    fn hostile_packs_are_bounded() {
        let bytes = b"\0\xff\xff\x02\x06create\x030.5\x04main\x011\x01";
        for end in 0..bytes.len() {
            assert!(parse(&bytes[..end]).is_err());
        }
        assert!(parse(bytes).is_err(), "65,535 mods that are not there");
        assert!(parse(b"\0\0\x01\xfe\xff\xff\xff\x0f\x01a\x01b").is_err(), "two billion channels");
        assert!(unpack("\u{7fff}\u{7fff}abc").is_err(), "a gigabyte that is not there");
        assert!(unpack("").is_err() && unpack("a").is_err());
        assert_eq!(unpack("\0\0abc"), Ok(Vec::new()));
    }
}
