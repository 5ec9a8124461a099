//! `rallypoint serve` records a history that can be exported while it runs and afterwards.

use rallypoint_harness::{Lobby, Signal, run, stderr, stdout, wait_for};

#[test]
fn the_history_of_a_running_lobby_can_be_exported() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let csv = wait_for("there is a history", || {
        let output = run(home.path(), ["history", "export", "--resolution", "day"]);
        Some(stdout(&output)).filter(|text| output.status.success() && text.lines().count() == 2)
    });
    assert!(csv.starts_with("kind,id,time,") && csv.contains("\ntotal,,20"), "{csv}");
    let output = run(home.path(), ["history", "export", "--server", &"0".repeat(32)]);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(1), ""), "nothing is printed about an unknown server");
    assert!(stderr(&output).contains("no history of that server or list"), "{}", stderr(&output));
    // A lobby can also be selected by name.
    let output = run(home.path(), ["history", "export", "--list", "vanguard"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("no history of that server or list"), "{}", stderr(&output));
    lobby.process().signal(Signal::TERM);
    assert_eq!(lobby.process().wait().status.code(), Some(0));
    let output = run(home.path(), ["history", "export", "--all", "--resolution", "day", "--format", "json"]);
    assert!(
        stdout(&output).starts_with("{\"kind\":\"total\",\"id\":null,\"name\":null,\"first_seen\":\"20"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn the_history_can_be_disabled() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &["--set", "history.enabled=false"]);
    lobby.process().signal(Signal::TERM);
    assert_eq!(lobby.process().wait().status.code(), Some(0));
    let output = run(home.path(), ["history", "export"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no history at"), "{}", stderr(&output));
}

#[test]
fn wrong_usage_names_the_expected_value() {
    let home = tempfile::tempdir().unwrap();
    for (args, expected) in [
        (&["history", "export", "--server", "1"][..], "32 hexadecimal digits"),
        (&["history", "export", "--from", "yesterday"], "'--from <TIME>': expected a time such as 2026-11-16"),
        (&["history", "export", "--resolution", "week"], "minute"),
        (&["history", "export", "--list", "quake"], "vanguard (Vanguard)"),
        (&["history", "export", "--from", "2026-11-16", "--to", "2026-11-15"], "--from is later than --to"),
    ] {
        let output = run(home.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
}
