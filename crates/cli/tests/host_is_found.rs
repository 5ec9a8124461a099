//! `rallypoint host` answers queries and is in the list of a lobby while it runs.

mod common;
mod room_support;

use common::{Lobby, run, stdout, until};
use room_support::Room;

#[test]
fn from_the_lobby_to_the_players() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start(home.path(), &[]);
    let at = lobby.v4().to_string();
    let room = Room::open(home.path(), &["--name", "Bacon Town", "--max-players", "9", "--lobby", &at]);
    let alice = room.guest(home.path(), "alice", &["--team", "red"]);
    alice.hears("team red");
    let target = format!("{at}/rooms");
    let list = |args: &[&str]| stdout(&run(home.path(), &[&["list", &target, "--json"][..], args].concat()));
    let listed = until("it is listed", || Some(list(&[])).filter(|text| text.contains("Bacon Town")));
    assert!(listed.contains(&room.key) && listed.contains("x-session-key"), "{listed}");
    let asked = stdout(&run(home.path(), &["query", &format!("session://{}", room.addr), "--json"]));
    for part in ["Bacon Town", "alice", "rallypoint-room", "\"red\""] {
        assert!(asked.contains(part), "{part} is not in {asked}");
    }
    assert_eq!(room.host.hears("listed"), format!("-- listed by {at} as 127.0.0.1:{}", room.addr.port()));
    room.host.signal("TERM");
    let (code, complaints) = room.host.ends();
    assert_eq!(code, Some(0));
    assert!(complaints.contains(&format!("to find it: rallypoint list {at}/rooms --query\n")), "{complaints}");
    until("it is off the list", || (!list(&[]).contains("Bacon Town")).then_some(()));
}
