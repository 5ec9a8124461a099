//! A lobby that cannot start reports the reason in one sentence and with an exit code.

use rallypoint_harness::{Lobby, rallypoint, run, stderr};
use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

/// Runs a lobby that must not start; returns its exit code and its messages.
fn refused(home: &Path, args: &[&str]) -> (i32, String) {
    let args = [&["serve", "--legacy", "off", "--http", "off", "--lobby", "127.0.0.1:0"], args].concat();
    let output = run(home, &args);
    (output.status.code().unwrap(), stderr(&output))
}

#[test]
fn a_port_in_use_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let addr = lobby.v4().to_string();
    let other = tempfile::tempdir().unwrap();
    let (code, text) = refused(other.path(), &["--lobby", &addr]);
    assert_eq!(code, 1);
    let expected = format!("{addr} is used by another program: stop that program, or choose another port with --lobby");
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn a_data_directory_in_use_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let _lobby = Lobby::start_in(home.path(), &[]);
    let (code, text) = refused(home.path(), &[]);
    assert_eq!(code, 1);
    assert!(
        text.contains("is used by another lobby: stop that lobby, or choose another data directory with --data-dir"),
        "{text}"
    );
}

#[test]
fn a_data_directory_that_cannot_be_written_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (code, text) = refused(home.path(), &["--data-dir", file.join("data").to_str().unwrap()]);
    assert_eq!(code, 1);
    let expected =
        "a directory is expected there: move that file away, or choose another data directory with --data-dir";
    assert!(text.contains(expected), "{text}");
    for (name, advice) in [("servers.save", "move that directory away"), ("admin.json", "move it away")] {
        let data = home.path().join(format!("data-{name}"));
        std::fs::create_dir_all(data.join(name)).unwrap();
        let (code, text) = refused(home.path(), &["--data-dir", data.to_str().unwrap()]);
        assert_eq!(code, 1);
        assert!(text.contains(&format!("{name}: Is a directory")), "{text}");
        assert!(text.contains(&format!("{advice}, or choose another data directory with --data-dir")), "{text}");
    }
}

/// The bans would be lost without anyone noticing.
#[test]
fn a_damaged_file_of_bans_is_reported() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("admin.json"), "{\"version\":1,").unwrap();
    let (code, text) = refused(home.path(), &["--data-dir", home.path().to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(
        text.contains("admin.json is damaged") && text.contains("move it away to start without the bans"),
        "{text}"
    );
    assert!(home.path().join("admin.json").exists());
}

#[test]
fn contradictory_flags_are_refused() {
    let home = tempfile::tempdir().unwrap();
    for args in [&["--legacy", "127.0.0.1:0"][..], &["--legacy", "127.0.0.1:0", "--legacy", "off"]] {
        let (code, text) = refused(home.path(), args);
        assert_eq!((code, &*text), (2, "rallypoint: --legacy takes off or addresses, not both\n"));
    }
}

#[test]
fn one_port_for_two_listeners_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let check = |args: &[&str]| {
        let output = run(home.path(), [&["serve", "--check-config"], args].concat());
        (output.status.code().unwrap(), stderr(&output))
    };
    for (args, expected) in [
        (
            &["--legacy", "0.0.0.0:29944"][..],
            "lobby.listen and legacy.listen: 0.0.0.0:29944 is used twice; choose different ports",
        ),
        (&["--http", "0.0.0.0:29944"], "--http: lobby.listen and web.listen: 0.0.0.0:29944 is used twice"),
        (&["--lobby", "127.0.0.1:29942"], "127.0.0.1:29942 and 0.0.0.0:29942 overlap"),
        (&["--lobby", "127.0.0.1:7", "--lobby", "127.0.0.1:7"], "lobby.listen: 127.0.0.1:7 is used twice"),
    ] {
        let (code, text) = check(args);
        assert_eq!(code, 2);
        assert!(text.contains(expected), "{text}");
    }
    for args in [["--lobby", "127.0.0.1:0", "--legacy", "127.0.0.1:0"], ["--lobby", "[::]:7", "--legacy", "0.0.0.0:7"]]
    {
        assert_eq!(check(&args).0, 0, "{args:?}");
    }
}

#[test]
fn an_address_of_another_machine_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let (code, text) = refused(home.path(), &["--lobby", "203.0.113.1:0"]);
    assert_eq!(code, 1);
    assert!(text.contains("this machine does not have the address 203.0.113.1"), "{text}");
}

#[test]
fn an_error_in_the_file_is_reported_with_its_line() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("rallypoint.toml");
    std::fs::write(&file, "[lobby]\n\nleese = \"70s\"\n").unwrap();
    let file = file.to_str().unwrap();
    for check in [&["--config", file][..], &["--config", file, "--check-config"]] {
        let (code, text) = refused(home.path(), check);
        assert_eq!(code, 2);
        let expected = format!("{file}:3: unknown key \"leese\" in [lobby]; did you mean \"lease\"?");
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn a_variable_that_is_not_utf8_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let value = OsStr::from_bytes(b"70s\xff");
    let output = rallypoint(home.path())
        .args(["serve", "--check-config"])
        .env("RALLYPOINT_LOBBY_LEASE", value)
        .env("OF_SOMEBODY_ELSE", value)
        .output()
        .unwrap();
    let expected = "rallypoint: the configuration is not valid\nRALLYPOINT_LOBBY_LEASE: not UTF-8 text\n";
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(2), expected));
}

#[test]
fn a_missing_file_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let (code, text) = refused(home.path(), &["--config", "nowhere.toml"]);
    assert_eq!((code, text.contains("nowhere.toml: there is no such file")), (2, true), "{text}");
}

#[test]
fn unknown_flags_and_commands_are_refused_with_a_hint() {
    let home = tempfile::tempdir().unwrap();
    for (args, hint) in [
        (&["serve", "--loby", "127.0.0.1:0"][..], "--lobby"),
        (&["serv"], "serve"),
        (&["serve", "--lobby", "somewhere"], "0.0.0.0:29944"),
        (&["serve", "--set", "lobby.leese=1"], "did you mean \"lease\"?"),
        (&["announce", "--name", "x"], "--port"),
        (&["announce", "--name", "x", "--port", "0"], "from 1 to 65535"),
        (&["announce", "--name", "x", "--port", "1", "--list", "quake"], "gg2 (Gang Garrison 2)"),
        (&["announce", "--name", "x", "--port", "1", "--key", "protocol_id=1"], "16 bytes"),
    ] {
        let output = run(home.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(hint), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "errors are not on standard output");
    }
}
