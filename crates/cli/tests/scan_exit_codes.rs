//! Exit codes report the result of a scan to scripts; errors are on standard error.

use rallypoint_harness::{MockServer, QueryProtocol, SHORT_TIMEOUT, closed_udp_port, run, stderr, stdout};

fn query(args: &[&str]) -> (i32, String, String) {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), [&["query", "-t", SHORT_TIMEOUT], args].concat());
    (output.status.code().unwrap(), stdout(&output), stderr(&output))
}

#[test]
fn zero_if_all_answered() {
    let server = MockServer::new(QueryProtocol::Session);
    let (code, _, errors) = query(&[&server.text(), &server.text()]);
    assert_eq!((code, &*errors), (0, ""));
}

#[test]
fn one_if_some_did_not_answer() {
    let (server, silent) = (MockServer::new(QueryProtocol::Session), MockServer::silent());
    let (code, out, errors) = query(&[&server.text(), &silent.text()]);
    assert_eq!(code, 1);
    assert!(out.contains("Bacon Town"), "servers that answered are shown: {out}");
    let expected =
        format!("{}: no answer within 1.5 s: is it running, and does a firewall let it through?\n", silent.addr);
    assert_eq!(errors, expected);
    // Queried repeatedly in both protocols, and never with an empty datagram (B10).
    silent.assert_received_no_empty_datagram();
    assert!(silent.received().len() > 4);
}

#[test]
fn one_if_a_name_cannot_be_resolved() {
    let (code, out, errors) = query(&["no-such-name.invalid"]);
    assert_eq!((code, &*out), (1, ""));
    assert!(errors.contains("the name cannot be resolved"), "{errors}");
}

#[test]
fn two_for_wrong_usage() {
    for args in [
        &[][..],
        &["two words"],
        &["--no-such-flag", "x"],
        &["-t", "soon", "x"],
        &["ftp://example.org"],
        &["--file", "/nonexistent"],
    ] {
        let (code, out, errors) = query(args);
        assert_eq!((code, &*out), (2, ""), "{args:?}");
        assert!(!errors.is_empty());
    }
    let (_, _, errors) = query(&["-r", "16", "x"]);
    assert!(
        errors.starts_with("error: invalid value '16' for '--retries <N>': expected a number from 0 to 15\n"),
        "{errors}"
    );
}

#[test]
fn three_if_a_reply_was_invalid() {
    let server = MockServer::malformed();
    let (code, _, errors) = query(&[&server.text()]);
    assert_eq!(code, 3, "{errors}");
    assert!(errors.contains("invalid reply: "), "{errors}");
}

#[test]
fn four_if_refused() {
    let (code, _, errors) = query(&[&closed_udp_port()]);
    assert_eq!(code, 4, "{errors}");
    assert!(errors.contains("nothing answers queries at that UDP port"), "{errors}");
}

#[test]
fn ports_of_a_lobby_are_recognised() {
    for (port, hint) in [(29_944, "29944 is the port of a lobby"), (29_950, "29950 is the port of a lobby's page")] {
        let (_, _, errors) = query(&[&format!("127.0.0.1:{port}")]);
        assert!(errors.contains(hint), "{errors}");
    }
}

#[test]
fn five_for_errors_of_this_machine() {
    let server = MockServer::new(QueryProtocol::Session);
    for args in [&["--source", "192.0.2.1"][..], &["--capture", "/nonexistent/x.pcap"]] {
        let (code, _, errors) = query(&[&[&*server.text()], args].concat());
        assert_eq!(code, 5, "{args:?}: {errors}");
    }
    let (code, _, errors) = query(&["224.0.0.1:7"]);
    assert_eq!(code, 5, "{errors}");
}

#[test]
fn one_if_the_reasons_differ() {
    let (code, ..) = query(&[&closed_udp_port(), &MockServer::malformed().text()]);
    assert_eq!(code, 1);
}

#[test]
fn the_help_lists_all_exit_codes() {
    let home = tempfile::tempdir().unwrap();
    for verb in ["query", "ping", "list", "check"] {
        let help = stdout(&run(home.path(), [verb, "--help"]));
        for part in ["Usage: rallypoint", "Examples:", "Exit codes:", "--timeout", "--capture"] {
            assert!(help.contains(part), "{verb} has no {part:?}");
        }
    }
}
