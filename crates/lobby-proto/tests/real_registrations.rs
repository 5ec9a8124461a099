//! Registrations of existing programs are understood.

use crate::support;
use support::*;

#[test]
fn l1_to_l7_registrations_of_real_servers_are_listed() {
    let file = include_str!("../../wire/tests/vectors/real-registrations.json");
    let file: serde_json::Value = serde_json::from_str(file).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() >= 12);
    for case in cases {
        let digits = case["bytes"].as_str().unwrap();
        let bytes: Vec<u8> =
            (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
        let mut lobby = Lobby::default();
        let outcome = lobby.send("203.0.113.9", &bytes);
        lobby.settle(REACHABLE);
        let is_listed = lobby.stats().listed == 1;
        if let Some(expected) = case["listed"].as_bool() {
            assert_eq!(is_listed, expected, "{}: {outcome}", case["name"]);
            assert_eq!(outcome.code() == "malformed", !expected, "{}: {outcome}", case["name"]);
        }
        assert_eq!(lobby.send("203.0.113.9", &bytes).is_listed(), is_listed, "{}", case["name"]);
    }
}
