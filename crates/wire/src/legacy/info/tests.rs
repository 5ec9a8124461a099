use super::*;
use alloc::{string::String, vec};

fn emitted(info: &Info<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    info.emit(&mut text);
    assert!(text.len() <= MAX_TEXT);
    text
}

/// Private, map, name, counts, mod.
type Parts<'a> = (bool, Option<&'a str>, &'a str, Option<(u16, u16, u16)>, Option<&'a str>);

/// Parses a text, and checks that emitting it gives the same text.
fn parse_and_emit(text: &str) -> Parts<'_> {
    let info = Info::parse(text.as_bytes());
    assert_eq!(emitted(&info), text.as_bytes());
    let str = |bytes| core::str::from_utf8(bytes).unwrap();
    let counts = info.counts.map(|counts| (counts.players, counts.bots, counts.slots));
    (info.private, info.map.map(str), str(info.name), counts, info.modification.map(str))
}

#[test]
fn l16_all_parts_of_the_text() {
    assert_eq!(
        parse_and_emit("!private![ctf_truefort] Bacon Town 24/7 [3/10] - Randomizer"),
        (true, Some("ctf_truefort"), "Bacon Town 24/7", Some((3, 0, 10)), Some("Randomizer")),
    );
    assert_eq!(parse_and_emit("[m] n [3+7/10]"), (false, Some("m"), "n", Some((3, 7, 10)), None));
}

#[test]
fn l16_every_part_but_the_name_is_optional() {
    assert_eq!(parse_and_emit(""), (false, None, "", None, None));
    assert_eq!(parse_and_emit("name"), (false, None, "name", None, None));
    assert_eq!(parse_and_emit("!private!name"), (true, None, "name", None, None));
    assert_eq!(parse_and_emit("[map] name"), (false, Some("map"), "name", None, None));
    assert_eq!(parse_and_emit("name [3/10]"), (false, None, "name", Some((3, 0, 10)), None));
    assert_eq!(parse_and_emit("name - mod"), (false, None, "name", None, Some("mod")));
    assert_eq!(parse_and_emit("[map]  [0/0] - "), (false, Some("map"), "", Some((0, 0, 0)), Some("")));
}

#[test]
fn w9_names_with_brackets() {
    assert_eq!(parse_and_emit("[map] [ABC] Clan [3/10]"), (false, Some("map"), "[ABC] Clan", Some((3, 0, 10)), None));
    assert_eq!(parse_and_emit("[map] Clan [ABC] [3/10]"), (false, Some("map"), "Clan [ABC]", Some((3, 0, 10)), None));
    assert_eq!(parse_and_emit("[ABC]Clan"), (false, None, "[ABC]Clan", None, None));
    assert_eq!(parse_and_emit("[unclosed [3/10]"), (false, None, "[unclosed", Some((3, 0, 10)), None));
    assert_eq!(parse_and_emit("[] name"), (false, Some(""), "name", None, None));
}

#[test]
fn w9_the_last_counts_are_the_servers_own() {
    assert_eq!(parse_and_emit("full [24/24] [3/10]"), (false, None, "full [24/24]", Some((3, 0, 10)), None));
    assert_eq!(parse_and_emit("a [1/2] - b [3/10] - m"), (false, None, "a [1/2] - b", Some((3, 0, 10)), Some("m")));
    assert_eq!(parse_and_emit("a [1/2] b"), (false, None, "a [1/2] b", None, None));
    assert_eq!(parse_and_emit("a [1/2] - b [3/4] c"), (false, None, "a", Some((1, 0, 2)), Some("b [3/4] c")));
}

#[test]
fn w9_dashes_in_names() {
    assert_eq!(parse_and_emit("a - b [3/10] - m - n"), (false, None, "a - b", Some((3, 0, 10)), Some("m - n")));
    assert_eq!(parse_and_emit("a - b - c"), (false, None, "a", None, Some("b - c")));
    assert_eq!(parse_and_emit("a-b"), (false, None, "a-b", None, None));
}

#[test]
fn w9_invalid_counts_belong_to_the_name() {
    for text in [
        "n [/]",
        "n [1/]",
        "n [/1]",
        "n [1/2",
        "n [-1/2]",
        "n [+1/2]",
        "n [1+/2]",
        "n [1+2+3/4]",
        "n [65536/1]",
        "n [1/65536]",
        "n [ 1/2]",
        "n[1/2]",
        "n [1/2]x",
        "n [1/2] ",
        "n [99999999999999999999/1]",
    ] {
        assert_eq!(parse_and_emit(text), (false, None, text, None, None));
    }
    assert_eq!(parse_and_emit("n [65535+65535/65535]"), (false, None, "n", Some((65_535, 65_535, 65_535)), None));
}

#[test]
fn w9_leading_zeros_are_not_emitted() {
    let info = Info::parse(b"n [007+0/010]");
    assert_eq!(info.counts, Some(Counts { players: 7, bots: 0, slots: 10 }));
    assert_eq!(emitted(&info), b"n [7/10]");
}

#[test]
fn l16_a_text_in_any_code_page_is_kept() {
    let text = b"[m\xe4p] Caf\xe9 \x80 [1/2] - m\xf6d";
    let info = Info::parse(text);
    assert_eq!(
        (info.map, info.name, info.modification),
        (Some(&b"m\xe4p"[..]), &b"Caf\xe9 \x80"[..], Some(&b"m\xf6d"[..]))
    );
    assert_eq!(emitted(&info), text);
}

#[test]
fn w10_the_name_is_truncated_and_the_rest_is_kept() {
    let name = String::from_utf8(vec![b'n'; 300]).unwrap();
    let counts = Some(Counts { players: 3, bots: 2, slots: 10 });
    let info = Info { private: true, map: Some(b"map"), name: name.as_bytes(), counts, modification: Some(b"mod") };
    let text = emitted(&info);
    assert_eq!(text.len(), 255);
    assert!(text.ends_with(b"n [3+2/10] - mod"));
    let read = Info::parse(&text);
    assert_eq!(Info { name: b"", ..read }, Info { name: b"", ..info });
    assert_eq!(read.name.len(), 255 - "!private![map]  [3+2/10] - mod".len());
}

#[test]
fn w10_utf8_is_truncated_between_characters() {
    let name = "七".repeat(100);
    let text = emitted(&Info { name: name.as_bytes(), counts: Some(Counts::default()), ..Info::default() });
    // 249 bytes are left, which is 83 characters; one byte less leaves 82.
    assert_eq!(text.len(), 255);
    let text = emitted(&Info {
        name: name.as_bytes(),
        counts: Some(Counts { slots: 10, ..Counts::default() }),
        ..Info::default()
    });
    assert_eq!(text.len(), 82 * 3 + " [0/10]".len());
    assert!(core::str::from_utf8(&text).is_ok());
    let not_utf8 = [0xe4; 300];
    assert_eq!(emitted(&Info { name: &not_utf8, ..Info::default() }), [0xe4; 255]);
}

#[test]
fn w10_a_long_map_and_mod_leave_space_for_the_name() {
    let long = [b'x'; 300];
    let counts = Some(Counts { players: 65_535, bots: 65_535, slots: 65_535 });
    let info = Info { private: true, map: Some(&long), name: &long, counts, modification: Some(&long) };
    let text = emitted(&info);
    let read = Info::parse(&text);
    assert_eq!(text.len(), 255);
    assert_eq!((read.map.unwrap().len(), read.name.len(), read.modification.unwrap().len()), (64, 92, 64));
    assert_eq!(read.counts, counts);
}
