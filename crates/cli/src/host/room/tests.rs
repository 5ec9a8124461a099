use super::*;
use proptest::prelude::*;

fn no_ping(_: u8) -> Option<Duration> {
    None
}

fn room() -> Room<u8> {
    Room::new(vec!["red".into(), "blue".into()], None)
}

/// A room with these guests, who have heard everything about each other's coming.
fn with(names: &[&str]) -> Room<u8> {
    let mut room = room();
    for (id, name) in names.iter().enumerate() {
        room.handle_join(Instant::now(), id as u8, name);
    }
    room.take_acts();
    room
}

impl Room<u8> {
    fn says(&mut self, id: u8, line: &str) -> Vec<(u8, String)> {
        self.handle_line(Instant::now(), id, line.as_bytes(), no_ping);
        self.heard()
    }

    fn heard(&mut self) -> Vec<(u8, String)> {
        let told = |act| if let Act::Tell(id, line) = act { Some((id, line)) } else { None };
        self.take_acts().into_iter().filter_map(told).collect()
    }
}

#[test]
fn everybody_hears_what_is_said() {
    let mut room = with(&["alice", "bob"]);
    assert_eq!(room.says(0, "hello"), [(0, "alice: hello".into()), (1, "alice: hello".into())]);
    assert_eq!(room.says(1, "/me waves")[0], (0, "* bob waves".into()));
    assert_eq!(room.says(1, "  "), []);
}

#[test]
fn a_team_talks_among_itself() {
    let mut room = with(&["alice", "bob", "carol"]);
    assert_eq!(room.says(0, "/t hi"), [(0, "-- you are in no team yet: /team red, blue".into())]);
    assert_eq!(room.says(0, "/team RED").len(), 3);
    room.says(2, "/team red");
    assert_eq!(room.says(0, "/team red"), [], "nothing has changed");
    let line = "[red] carol: left!".to_owned();
    assert_eq!(room.says(2, "/t left!"), [(0, line.clone()), (2, line)]);
    assert_eq!(room.says(1, "/team green"), [(1, "-- the teams are: red, blue".into())]);
}

#[test]
fn names_are_different_and_can_be_typed() {
    let mut room = with(&["Ann Lee", "ann-lee", "\u{202e}evil", ""]);
    let line = room.says(0, "/who").remove(0).1;
    assert_eq!(line, "-- 4 here: Ann-Lee, ann-lee-2, \u{fffd}evil, guest");
}

#[test]
fn only_the_console_kicks() {
    let mut room = with(&["alice", "bob"]);
    assert_eq!(room.says(1, "/kick alice").len(), 1);
    room.handle_console("/kick BOB too loud", no_ping);
    let acts = room.take_acts();
    assert_eq!(acts[0], Act::Kick(1, "kicked: too loud".into()));
    assert_eq!(acts[1], Act::Tell(0, "-- bob has left (kicked: too loud)".into()));
    assert_eq!(room.len(), 1);
    room.handle_console("/kick nobody", no_ping);
    assert_eq!(room.take_acts(), [Act::Log("-- nobody is called \"nobody\"; /who is here".into())]);
    room.handle_console("hello", no_ping);
    assert_eq!(room.heard(), [(0, "-- server: hello".into())]);
}

#[test]
fn who_talks_too_fast_is_not_heard() {
    let mut room = with(&["alice", "bob"]);
    let now = Instant::now();
    for _ in 0..20 {
        room.handle_line(now, 0, b"spam", no_ping);
    }
    let heard = room.heard().into_iter().filter(|(id, _)| *id == 1).count();
    assert_eq!(heard, 8);
    room.handle_line(now + 4 * EVERY, 0, b"calm", no_ping);
    assert_eq!(room.heard().last(), Some(&(1, "alice: calm".into())));
}

#[test]
fn browsers_are_told_teams_and_players() {
    let mut room = with(&["alice", "bob"]);
    room.says(1, "/team blue");
    let info = room.info(&ServerInfo::default(), |id| Some(Duration::from_millis(id.into())));
    assert_eq!((info.players, info.teams.len()), (Some(2), 2));
    let players = info.player_list.unwrap();
    assert_eq!((players[0].team, players[1].team, players[1].ping_ms), (Some(0), Some(2), Some(1)));
}

proptest! {
    #[test]
    fn whatever_is_said_is_shown_harmlessly(line: Vec<u8>, name: String) {
        let mut room = room();
        room.handle_join(Instant::now(), 0, &name);
        room.handle_line(Instant::now(), 0, &line, no_ping);
        room.handle_leave(0, &name);
        for act in room.take_acts() {
            if let Act::Tell(_, line) | Act::Log(line) = act {
                prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
                prop_assert!(line.len() < 4_000);
            }
        }
    }
}
