//! A closed pipe ends the command without an error; colours and a progress bar appear in terminals only.

use rallypoint_harness::{MockServer, QueryProtocol, rallypoint, run, run_in_terminal, stdout};
use std::{
    io::{BufRead, BufReader, Read},
    process::Stdio,
};

#[test]
fn a_closed_pipe_is_not_an_error() {
    let home = tempfile::tempdir().unwrap();
    let server = MockServer::new(QueryProtocol::Session);
    let targets = vec![server.text(); 300];
    for format in ["--jsonl", "--csv", "--json"] {
        let mut command = rallypoint(home.path());
        command.arg("query").args(&targets).arg(format).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        let status = child.wait().unwrap();
        assert_eq!((status.code(), &*errors), (Some(0), ""), "{format}");
    }
}

#[test]
fn colours_appear_in_a_terminal_only() {
    let home = tempfile::tempdir().unwrap();
    let server = MockServer::new(QueryProtocol::Session);
    assert!(!stdout(&run(home.path(), ["query", &server.text()])).contains('\x1b'));
    let shown = run_in_terminal(home.path(), 80, &format!("query {}", server.addr), &[]);
    assert!(shown.contains("\x1b[1mBacon Town\x1b[0m"), "{shown:?}");
    let plain = run_in_terminal(home.path(), 80, &format!("query {}", server.addr), &[("NO_COLOR", "1")]);
    assert!(plain.contains("Bacon Town") && !plain.contains('\x1b'), "{plain:?}");
    let plain = run_in_terminal(home.path(), 80, &format!("query {}", server.addr), &[("TERM", "dumb")]);
    assert!(!plain.contains('\x1b'), "{plain:?}");
}

#[test]
fn the_table_fits_into_forty_columns() {
    let home = tempfile::tempdir().unwrap();
    let server = MockServer::new(QueryProtocol::Session);
    let command = format!("query {0} {0}", server.addr);
    let shown = run_in_terminal(home.path(), 40, &command, &[("NO_COLOR", "1")]);
    let line = format!("Bacon Town     2/24  {}", server.addr);
    assert!(shown.lines().all(|line| line.len() <= 40), "{shown}");
    assert!(shown.contains(&line), "{shown}");
    assert!(run_in_terminal(home.path(), 120, &command, &[]).contains("ctf_truefort"));
}

#[test]
fn a_progress_bar_appears_in_a_terminal_only_and_for_long_scans_only() {
    let home = tempfile::tempdir().unwrap();
    let (silent, server) = (MockServer::silent(), MockServer::new(QueryProtocol::Session));
    let command = format!("query -t 2s {} {}", silent.addr, server.addr);
    let shown = run_in_terminal(home.path(), 80, &command, &[]);
    assert!(shown.contains("[##########..........] 1/2, 1 answered"), "{shown:?}");
    let shown = run_in_terminal(home.path(), 80, &format!("query {}", server.addr), &[]);
    assert!(!shown.contains("1/1"), "{shown:?}");
}
