//! Targets are read from the command line, files and standard input, as addresses and as names.

use rallypoint_harness::{
    MockServer, QueryProtocol, SHORT_TIMEOUT, has_ipv6, run, run_with_input, sample_info, skip, stderr, stdout,
};
use rallypoint_query_proto::ServerInfo;
use std::{fs, net::Ipv4Addr};

#[test]
fn targets_are_read_from_a_file_and_standard_input() {
    let home = tempfile::tempdir().unwrap();
    let (first, second) = (MockServer::new(QueryProtocol::Session), MockServer::new(QueryProtocol::Bloodmasters));
    let text = format!("# my servers\n\n  session://{}   # the first\r\nbloodmasters://{}\n", first.addr, second.addr);
    let file = home.path().join("servers.txt");
    fs::write(&file, &text).unwrap();
    let file = file.to_str().unwrap();
    let outputs = [
        run(home.path(), ["query", "--csv", "--file", file]),
        run_with_input(home.path(), &["query", "--csv", "-"], &text),
        run_with_input(home.path(), &["query", "--csv", "--file", "-"], &text),
    ];
    for output in outputs {
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(stdout(&output).lines().count(), 3, "{output:?}");
    }
}

#[test]
fn an_invalid_target_in_a_file_is_reported_with_its_line_and_the_others_are_queried() {
    let home = tempfile::tempdir().unwrap();
    let server = MockServer::new(QueryProtocol::Session);
    let input = format!("session://{}\nftp://example.org\n", server.text());
    let output = run_with_input(home.path(), &["query", "-", "--jsonl"], &input);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stdout(&output).contains("\"ping_ms\"") && stdout(&output).contains("invalid_target"),
        "{}",
        stdout(&output)
    );
    let errors = stderr(&output);
    assert!(
        errors.contains("standard input:2: \"ftp://example.org\" is not a target: unknown scheme ftp://"),
        "{errors}"
    );
    let output = run_with_input(home.path(), &["query", "-"], "# none\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there are no targets"));
}

#[test]
fn all_addresses_of_a_name_are_queried() {
    if !has_ipv6() {
        return skip("this machine has no IPv6");
    }
    let home = tempfile::tempdir().unwrap();
    // The server listens at the second address of its name only; the socket at the first never answers.
    let silent = MockServer::silent();
    let server =
        MockServer::with_info(&format!("[::1]:{}", silent.addr.port()), QueryProtocol::Session, &sample_info());
    let target = format!("session://localhost:{}", server.addr.port());
    let output = run(home.path(), ["query", "--csv", &target]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(stdout(&output).contains(&format!("{target},[::1]:{}", server.addr.port())), "{output:?}");
    let output = run(home.path(), ["query", "-4", "-t", SHORT_TIMEOUT, &target]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    silent.assert_received_no_empty_datagram();
}

#[test]
fn a_scan_can_be_restricted_to_one_family() {
    let home = tempfile::tempdir().unwrap();
    let server = MockServer::new(QueryProtocol::Session);
    let output = run(home.path(), ["query", "-6", &server.text()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("it has no IPv6 address"), "{output:?}");
    assert!(server.received().is_empty());
}

#[test]
fn a_thousand_servers_are_queried_at_once() {
    let home = tempfile::tempdir().unwrap();
    let servers: Vec<_> = (0..20)
        .map(|n| {
            MockServer::with_info(
                "127.0.0.1:0",
                QueryProtocol::Bloodmasters,
                &ServerInfo { name: Some(format!("n{n}")), ..sample_info() },
            )
        })
        .collect();
    // Every address of 127.0.0.0/8 is this machine; each server listens at one of them, and the others refuse.
    let text: String = (0..1_000)
        .map(|n| {
            format!("bloodmasters://127.0.{}.1:{}\n", if n < 20 { 0 } else { 1 + n / 20 }, servers[n % 20].addr.port())
        })
        .collect();
    let output = run_with_input(home.path(), &["query", "--csv", "-", "--rate", "20000", "-t", "2s"], &text);
    let text = stdout(&output);
    assert_eq!(text.lines().count(), 1_001);
    assert_eq!(text.lines().filter(|line| line.ends_with(",true,")).count(), 20, "{text}");
    // Elsewhere only some of so many refusals are noticed before the time is up.
    let reports_all_refusals = cfg!(all(target_os = "linux", not(rallypoint_portable)));
    assert!(text.contains(",refused"), "{text}");
    assert_eq!(output.status.code(), Some(if reports_all_refusals { 4 } else { 1 }));
}

#[test]
fn more_targets_than_can_be_queried_at_a_time() {
    let home = tempfile::tempdir().unwrap();
    let server = MockServer::new(QueryProtocol::Bloodmasters);
    // Only the last of 17,000 servers answers.
    let targets = (0..17_000u32).rev();
    let text: String = targets
        .map(|n| format!("bloodmasters://{}:{}\n", Ipv4Addr::from_bits(0x7f00_0001 + n), server.addr.port()))
        .collect();
    let output = run_with_input(home.path(), &["query", "--csv", "-", "--rate", "1000000", "-t", "1s"], &text);
    let text = stdout(&output);
    assert_eq!(text.lines().count(), 17_001);
    assert_eq!(text.lines().filter(|line| line.ends_with(",true,")).count(), 1);
}
