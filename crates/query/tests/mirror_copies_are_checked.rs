//! A copy of a list is accepted if its key, its lobby and its age are right, and refused in one sentence otherwise (W121, W122).

use rallypoint_mirror::minisign::{SigningKey, TrustedComment};
use rallypoint_query::mirror::{CopiedList, CopyError, CopyRules, FILE, MirrorError};
use std::time::Duration;

const NOW: u64 = 1_800_000_000;
const DAY: u64 = 86_400;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed([seed; 32]).unwrap()
}

fn document(hosts: &str) -> String {
    let server = r#"{"list":"1ccf16b1-436d-856f-504d-cc1af306aaa7","name":"Bacon Town","numplayers":3,"maxplayers":8,
        "addresses":{"ipv4":"192.0.2.1:8190","ipv6":null},"transport":"tcp","raw":{}}"#;
    format!(r#"{{"format":1,"hosts":[{hosts}],"max_age":{DAY},"total":1,"servers":[{server}]}}"#)
}

fn signed_by(key: &SigningKey, document: &str, made_at: u64, file: &str) -> Vec<u8> {
    let comment = TrustedComment { timestamp: made_at, file: file.into() };
    [key.sign(document.as_bytes(), &comment).to_string().as_bytes(), document.as_bytes()].concat()
}

fn signed(document: &str, made_at: u64) -> Vec<u8> {
    signed_by(&key(1), document, made_at, FILE)
}

fn open_within(bytes: &[u8], max_age: Option<Duration>) -> Result<CopiedList, MirrorError> {
    let rules = CopyRules { key: &key(1).public(), lobby: "lobby.example.org", max_age, now: NOW };
    CopiedList::open(bytes, &rules)
}

fn open(bytes: &[u8]) -> Result<CopiedList, MirrorError> {
    open_within(bytes, None)
}

fn sentence(bytes: &[u8]) -> String {
    open(bytes).unwrap_err().to_string()
}

#[test]
fn w121_a_copy_with_a_valid_signature_is_read() {
    for hosts in ["", r#""lobby.example.org""#, r#""other.example","Lobby.Example.org""#] {
        let copy = open(&signed(&document(hosts), NOW - 180)).unwrap();
        assert_eq!((copy.made_at, copy.servers.len(), copy.malformed), (NOW - 180, 1, 0));
        let server = &copy.servers[0];
        assert_eq!((server.info.name.as_deref(), server.info.players), (Some("Bacon Town"), Some(3)));
        assert_eq!(server.endpoints, ["192.0.2.1:8190".parse().unwrap()]);
    }
}

#[test]
fn w121_a_list_has_the_name_that_its_operator_has_given_it() {
    let list = "00000000-0000-0000-0000-000000000001";
    let lists = format!(r#""lists":[{{"id":"{list}","name":"Club","servers":1}}],"total""#);
    let own = document("").replace("1ccf16b1-436d-856f-504d-cc1af306aaa7", list).replace(r#""total""#, &lists);
    let copy = open(&signed(&own, NOW)).unwrap();
    assert_eq!(copy.servers[0].list_name.as_deref(), Some("Club"));
}

#[test]
fn w121_a_changed_copy_is_refused() {
    let good = signed(&document(""), NOW);
    assert!(open(&good).is_ok());
    let text = String::from_utf8(good.clone()).unwrap();
    let renamed = text.replace("Bacon Town", "Pirate Bay").into_bytes();
    assert!(sentence(&renamed).contains("its signature is not valid"), "{}", sentence(&renamed));
    let younger = text.replace("timestamp:18000", "timestamp:18001").into_bytes();
    assert!(sentence(&younger).contains("its signature is not valid"));
    for length in (0..good.len()).step_by(7) {
        assert!(open(&good[..length]).is_err(), "cut off after {length} bytes");
    }
    let other = signed_by(&key(2), &document(""), NOW, FILE);
    assert!(sentence(&other).contains("signed with the key"), "{}", sentence(&other));
}

#[test]
fn w121_another_file_with_the_same_key_is_no_list() {
    let page = signed_by(&key(1), &document(""), NOW, "index.html");
    assert_eq!(open(&page), Err(MirrorError::Copy(CopyError::NotAList)));
    for text in ["", "{}", "[]", "<html>", r#"{"format":1}"#, &document("").replace("servers", "x")] {
        assert_eq!(open(&signed(text, NOW)), Err(MirrorError::Copy(CopyError::NotAList)), "{text}");
    }
    assert_eq!(open(&signed(r#"{"format":2,"other":1}"#, NOW)), Err(MirrorError::Copy(CopyError::NewerFormat(2))));
    assert_eq!(
        open(&signed(&document("").replace("\"format\":1", "\"format\":7"), NOW)),
        Err(MirrorError::Copy(CopyError::NewerFormat(7)))
    );
}

#[test]
fn w121_the_copy_of_another_lobby_is_refused() {
    let other = signed(&document(r#""\u001b[2Jother.example""#), NOW);
    let sentence = sentence(&other);
    assert!(sentence.starts_with("it is a copy of ") && sentence.contains("other.example"), "{sentence}");
    assert!(!sentence.contains('\u{1b}'), "safe to display");
}

#[test]
fn w122_an_old_copy_is_refused() {
    assert!(open(&signed(&document(""), NOW - DAY)).is_ok());
    let old = signed(&document(""), NOW - 3 * DAY);
    assert_eq!(sentence(&old), "it is 3 days old, and copies are used for at most 24 hours");
    assert!(open_within(&old, Some(Duration::from_secs(4 * DAY))).is_ok(), "the client decides");
    let recent = signed(&document(""), NOW - 61);
    let error = open_within(&recent, Some(Duration::from_secs(60))).unwrap_err();
    assert_eq!(error.to_string(), "it is 61 seconds old, and copies are used for at most 60 seconds");
}

#[test]
fn w122_a_copy_from_the_future_is_refused() {
    assert!(open(&signed(&document(""), NOW + 600)).is_ok(), "clocks differ");
    let error = sentence(&signed(&document(""), NOW + 7_200));
    assert_eq!(error, "it was made 2 hours in the future: is this machine's clock right?");
    assert!(open(&signed(&document(""), u64::MAX)).is_err());
}
