//! SIGTERM and Ctrl-C end a lobby in good order, and the list survives.

mod common;

use common::{Lobby, list};

#[test]
fn the_list_is_there_again_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    for (round, signal) in ["TERM", "INT"].into_iter().enumerate() {
        let lobby = Lobby::start(home.path(), &[]);
        assert_eq!(list(lobby.v4()).len(), round, "what was there before is there at once");
        lobby.register("Bacon Town", 8190 + round as u16);
        lobby.wait_for_list("the server is listed", |list| list.len() == round + 1);
        lobby.program.signal(signal);
        assert_eq!(lobby.program.wait().code(), Some(0), "{signal}");
    }
    assert_eq!(list(Lobby::start(home.path(), &[]).v4()).len(), 2);
}

#[test]
fn a_signal_that_arrives_twice_is_one() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start(home.path(), &[]);
    lobby.program.signal_twice("TERM");
    assert_eq!(lobby.program.wait().code(), Some(0));
}
