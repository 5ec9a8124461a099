//! `rallypoint join` in a real terminal (tmux): the prompt shows how many guests there are, and which of them are typing.

use crate::tmux::Tmux;
use rallypoint_harness::Room;

#[test]
fn the_prompt_shows_the_number_of_guests_and_who_is_typing() {
    let homes = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [host, alice, bob] = homes.each_ref().map(tempfile::TempDir::path);
    let room = Room::start(host, &[]);
    let addr = room.addr.to_string();
    let Some(alice) = Tmux::start(alice, (80, 24), &["join", &addr, "--name", "alice"]) else { return };
    alice.wait_for(&["-- you are alice", "(1) >"]);
    let Some(bob) = Tmux::start(bob, (80, 24), &["join", &addr, "--name", "bob"]) else { return };
    bob.wait_for(&["-- you are bob", "(2) >"]);
    alice.wait_for(&["-- bob joined", "(2) >"]);

    alice.press(&["hel"]);
    bob.wait_for(&["(2; alice is typing) >"]);
    alice.wait_for(&["(2) > hel"]);
    bob.press(&["me too"]);
    alice.wait_for(&["(2; bob is typing) > hel"]);
    alice.press(&["lo", "Enter"]);
    bob.wait_for(&["alice: hello", "(2) > me too"]);

    bob.press(&["Enter", "/quit", "Enter"]);
    bob.wait_for(&["ended with 0"]);
    alice.wait_for(&["bob: me too", "-- bob left", "(1) >"]);
    alice.press(&["/quit", "Enter"]);
    alice.wait_for(&["ended with 0"]);
}
