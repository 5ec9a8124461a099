//! The examples are short enough to read at a glance, and work together.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/");

#[test]
fn each_example_has_fewer_than_80_lines() {
    for name in ["echo_server", "echo_client", "game_loop"] {
        let text = std::fs::read_to_string(format!("{EXAMPLES}{name}.rs")).unwrap();
        assert!(text.lines().count() < 80, "{name}");
    }
}

/// The executable of an example, which Cargo has built beside this test.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples");
    Command::new(folder.join(name))
}

#[test]
fn the_echo_client_receives_its_lines_from_the_echo_server() {
    let mut server = example("echo_server").arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let key = lines.next().unwrap().strip_prefix("key: ").unwrap().to_owned();
    let addr = lines.next().unwrap().strip_prefix("listening: ").unwrap().to_owned();
    assert_eq!(key.len(), 64);
    for args in [&[&*addr][..], &[&addr, &key]] {
        let mut client =
            example("echo_client").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        client.stdin.take().unwrap().write_all(b"hello\nworld\n").unwrap();
        let output = client.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        assert!(text.starts_with("\"hello\" after ") && text.contains("\n\"world\" after "), "{text}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}
