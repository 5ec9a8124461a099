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
    assert_eq!(room.says(1, "/team green"), [(1, "-- there is no team green; the teams are: red, blue".into())]);
}

#[test]
fn names_are_different_and_can_be_typed() {
    let mut room = with(&["Ann Lee", "ann-lee", "\u{202e}evil", ""]);
    let line = room.says(0, "/who").remove(0).1;
    assert_eq!(line, "-- 4 here: Ann-Lee, ann-lee-2, evil, guest");
}

#[test]
fn who_got_another_name_is_told() {
    let mut room = with(&["alice"]);
    room.handle_join(Instant::now(), 1, "alice");
    let heard = room.heard();
    assert_eq!(heard[0], (1, "-- the name \"alice\" is taken, or cannot be used here: you have another".into()));
    assert_eq!(heard[1], (1, "-- you are alice-2; /help says what can be done".into()));
    assert_eq!(heard[2], (0, "-- alice-2 has joined".into()));
}

#[test]
fn who_leaves_and_comes_back_at_once_keeps_the_name() {
    let mut room = with(&["alice", "bob"]);
    room.handle_closing(0);
    room.handle_join(Instant::now(), 2, "alice");
    let heard: Vec<_> = room.heard().into_iter().filter(|(id, _)| *id == 1).map(|(_, line)| line).collect();
    assert_eq!(heard, ["-- alice has left", "-- alice has joined"]);
    assert_eq!(room.says(2, "/who")[0].1, "-- 2 here: bob, alice");
    room.handle_leave(0, "");
    assert_eq!(room.heard(), [], "that was told already");
}

#[test]
fn s28_whose_goodbye_was_forged_is_still_here() {
    let mut room = with(&["alice", "bob"]);
    room.handle_closing(0);
    assert_eq!(room.says(0, "I am here")[1], (1, "alice: I am here".into()));
    room.handle_join(Instant::now(), 2, "alice");
    assert!(room.heard().contains(&(2, "-- you are alice-2; /help says what can be done".into())));
    room.handle_closing(0);
    room.handle_join(Instant::now(), 3, "alice");
    room.heard();
    assert!(room.says(1, "hello").contains(&(0, "bob: hello".into())), "still hears everything");
    let heard = room.says(0, "I am here");
    assert!(heard.contains(&(0, "-- you are alice-3; /help says what can be done".into())), "{heard:?}");
    assert!(heard.contains(&(1, "alice-3: I am here".into())), "{heard:?}");
}

#[test]
fn a_full_room_is_told_in_lines_that_can_be_sent() {
    let names: Vec<_> = (0..255).map(|n| format!("{}{n:03}", "\u{10330}".repeat(29))).collect();
    let mut room = with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let lines: Vec<_> = room.says(0, "/who").into_iter().map(|(_, line)| line).collect();
    assert!(lines[0].starts_with("-- 255 here: ") && lines[1].starts_with("-- and "), "{lines:?}");
    assert!(lines.iter().all(|line| line.len() < 1_000));
    assert!(names.iter().all(|name| lines.iter().any(|line| line.contains(name))));
}

#[test]
fn help_names_every_command_and_nothing_else() {
    let mut room = with(&["alice"]);
    let help = room.says(0, "/help").remove(0).1;
    let named: Vec<_> = help.split_whitespace().filter_map(|word| word.strip_prefix('/')).collect();
    let own = [crate::join::STATS, crate::join::QUIT].map(|word| &word[1..]);
    let all: Vec<_> = Command::ALL.into_iter().map(Command::word).chain(own).collect();
    assert_eq!(named, all);
    for word in named.into_iter().filter(|word| !own.contains(word)) {
        let answer = room.says(0, &format!("/{word}")).remove(0).1;
        assert!(!answer.contains("there is no"), "{answer}");
    }
    assert!(room.says(0, "/dance")[0].1.starts_with("-- there is no /dance; there is: /me "));
}

#[test]
fn a_line_that_is_too_long_is_not_cut_in_silence() {
    let mut room = with(&["alice", "bob"]);
    let line = "ä".repeat(LONGEST_LINE + 1);
    assert_eq!(room.says(0, &line), [(0, "-- a line of 501 characters was not said: 500 are the most".into())]);
    assert_eq!(room.says(0, &line[2..]).len(), 2);
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
    room.handle_console("/kick", no_ping);
    assert_eq!(room.take_acts(), [Act::Log("-- whom? /kick NAME REASON".into())]);
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
    assert_eq!(room.says(0, "more"), [(0, "-- not so fast: this was not heard: more".into())]);
    assert_eq!(room.says(0, ASK_IF_HEARD), [(0, ALL_HEARD.into())], "that is always answered");
    room.handle_line(now + Duration::from_secs(2), 0, b"calm", no_ping);
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
