//! `rallypoint announce --players-from` lists the number of players that a command prints, or that the server answers.

use rallypoint_harness::{Lobby, MockServer, Process, QueryProtocol, Signal, rallypoint};
use rallypoint_wire::lobby::Occupancy;
use std::{fs, path::Path};

/// Announces a UDP server whose players are counted from `source`.
fn announce(home: &Path, lobby: &Lobby, source: &str) -> Process {
    let to = lobby.v4().to_string();
    let server = ["--name", "Bacon Town", "--port", "8190", "--transport", "udp", "--slots", "10"];
    let mut command = rallypoint(home);
    Process::spawn(command.args(["announce", "--lobby", &to, "--players-from", source]).args(server))
}

fn occupancy(lobby: &Lobby) -> Occupancy {
    lobby.wait_for_list("the server is listed", |list| list.len() == 1)[0].occupancy
}

#[test]
fn a_command_prints_the_number_of_players() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    fs::write(home.path().join("players"), "3/24/2\n").unwrap();
    let program = announce(home.path(), &lobby, "cat players");
    assert_eq!(occupancy(&lobby), Occupancy { players: 3, slots: 24, bots: 2, password: false });
    // It is run again every 15 seconds, and a change is registered at once.
    fs::write(home.path().join("players"), "7\n").unwrap();
    let is_updated = |count: Occupancy| (count.players, count.slots) == (7, 10);
    lobby.wait_for_list("the new number is listed", |list| list.first().is_some_and(|it| is_updated(it.occupancy)));
    program.signal(Signal::TERM);
    assert_eq!(program.wait().status.code(), Some(0));
}

#[test]
fn a_server_is_queried_for_its_number_of_players() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let game = MockServer::new(QueryProtocol::Session);
    let _program = announce(home.path(), &lobby, &format!("session://{}", game.addr));
    let count = occupancy(&lobby);
    assert_eq!((count.players, count.slots), (2, 24));
}

#[test]
fn a_source_that_fails_is_reported_and_the_server_is_listed_without_players() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let program = announce(home.path(), &lobby, "echo many");
    program.wait_for_log("the number of players is not updated: expected a number of players such as 3 or 3/24");
    let count = occupancy(&lobby);
    assert_eq!((count.players, count.slots), (0, 10));
}
