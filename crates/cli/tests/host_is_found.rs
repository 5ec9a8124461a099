//! `rallypoint host` answers queries and is in the list of a lobby while it runs.

mod common;
mod room_support;

use common::{Lobby, run, stdout, until};
use room_support::Room;

const ROOMS: &str = "6b7de0f4-5b2f-4c0e-9a57-0d1f6f3c8e21";

#[test]
fn from_the_lobby_to_the_players() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start(home.path(), &[]);
    let at = lobby.v4().to_string();
    let room = Room::open(home.path(), &["--name", "Bacon Town", "--max-players", "9", "--lobby", &at]);
    let alice = room.guest(home.path(), "alice", &["--team", "red"]);
    alice.hears("team red");
    let target = format!("lobby://{at}/{ROOMS}");
    let list = |args: &[&str]| stdout(&run(home.path(), &[&["list", &target, "--json"][..], args].concat()));
    let listed = until("it is listed", || Some(list(&[])).filter(|text| text.contains("Bacon Town")));
    assert!(listed.contains(&room.key) && listed.contains("x-session-key"), "{listed}");
    let asked = stdout(&run(home.path(), &["query", &format!("session://{}", room.addr), "--json"]));
    for part in ["Bacon Town", "alice", "rallypoint-room", "\"red\""] {
        assert!(asked.contains(part), "{part} is not in {asked}");
    }
    room.host.signal("TERM");
    assert_eq!(room.host.ends().0, Some(0));
    until("it is off the list", || (!list(&[]).contains("Bacon Town")).then_some(()));
}
