//! SIGTERM and Ctrl-C shut a lobby down cleanly, and the list survives.

use rallypoint_harness::{Lobby, Signal};

#[test]
fn the_list_is_restored_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    for (round, signal) in [Signal::TERM, Signal::INT].into_iter().enumerate() {
        let lobby = Lobby::start_in(home.path(), &[]);
        assert_eq!(lobby.servers().len(), round, "the servers of the previous run are listed at once");
        lobby.register_port("Bacon Town", 8190 + round as u16);
        lobby.wait_for_list("the server is listed", |list| list.len() == round + 1);
        lobby.process().signal(signal);
        assert_eq!(lobby.process().wait().status.code(), Some(0), "{signal:?}");
    }
    assert_eq!(Lobby::start_in(home.path(), &[]).servers().len(), 2);
}

#[test]
fn a_repeated_signal_has_no_further_effect() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    lobby.process().signal_twice(Signal::TERM);
    assert_eq!(lobby.process().wait().status.code(), Some(0));
}
