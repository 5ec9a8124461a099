use super::*;
use proptest::prelude::*;

fn no_ping(_: u8) -> Option<Duration> {
    None
}

fn room() -> Room<u8> {
    Room::new(vec!["red".into(), "blue".into()], None)
}

/// A room with these guests, after all join messages.
fn with(names: &[&str]) -> Room<u8> {
    let mut room = room();
    for (id, name) in names.iter().enumerate() {
        room.handle_join(Instant::now(), id as u8, name);
    }
    room.take_actions();
    room
}

impl Room<u8> {
    fn sent_by(&mut self, id: u8, line: &str) -> Vec<(u8, String)> {
        self.handle_line(Instant::now(), id, line.as_bytes(), no_ping);
        self.sends()
    }

    fn sends(&mut self) -> Vec<(u8, String)> {
        let sends = |act| if let RoomAction::Send(id, line) = act { Some((id, line)) } else { None };
        self.take_actions().into_iter().filter_map(sends).collect()
    }
}

#[test]
fn a_line_is_sent_to_all_guests() {
    let mut room = with(&["alice", "bob"]);
    assert_eq!(room.sent_by(0, "hello"), [(0, "alice: hello".into()), (1, "alice: hello".into())]);
    assert_eq!(room.sent_by(1, "/me waves")[0], (0, "* bob waves".into()));
    assert_eq!(room.sent_by(1, "  "), []);
}

#[test]
fn team_chat_is_sent_to_the_team_only() {
    let mut room = with(&["alice", "bob", "carol"]);
    assert_eq!(
        room.sent_by(0, "/t hi"),
        [(0, "-- join a team first, with /team NAME; the teams are: red, blue".into())]
    );
    assert_eq!(room.sent_by(0, "/team RED").len(), 3);
    room.sent_by(2, "/team red");
    assert_eq!(room.sent_by(0, "/team red"), [], "nothing has changed");
    let line = "[red] carol: left!".to_owned();
    assert_eq!(room.sent_by(2, "/t left!"), [(0, line.clone()), (2, line)]);
    assert_eq!(room.sent_by(1, "/team green"), [(1, "-- unknown team green; the teams are: red, blue".into())]);
}

#[test]
fn names_are_unique_and_can_be_typed() {
    let mut room = with(&["Ann Lee", "ann-lee", "\u{202e}evil", ""]);
    let line = room.sent_by(0, "/who").remove(0).1;
    assert_eq!(line, "-- 4 in the room: Ann-Lee, ann-lee-2, evil, guest");
}

#[test]
fn a_guest_with_a_taken_name_is_informed() {
    let mut room = with(&["alice"]);
    room.handle_join(Instant::now(), 1, "alice");
    let sent = room.sends();
    assert_eq!(sent[0], (1, "-- another guest has the name \"alice\"".into()));
    assert_eq!(sent[1], (1, "-- you are alice-2; /help lists the commands".into()));
    assert_eq!(sent[2], (0, "-- alice-2 joined".into()));
    room.handle_join(Instant::now(), 2, "Ann Lee");
    let sent = room.sends();
    assert!(sent[0].1.starts_with("-- \"Ann Lee\" cannot be used: a name has letters"), "{}", sent[0].1);
    assert_eq!(sent[1], (2, "-- you are Ann-Lee; /help lists the commands".into()));
}

#[test]
fn a_guest_that_leaves_and_rejoins_keeps_its_name() {
    let mut room = with(&["alice", "bob"]);
    room.handle_closing(0);
    room.handle_join(Instant::now(), 2, "alice");
    let sent: Vec<_> = room.sends().into_iter().filter(|(id, _)| *id == 1).map(|(_, line)| line).collect();
    assert_eq!(sent, ["-- alice left", "-- alice joined"]);
    assert_eq!(room.sent_by(2, "/who")[0].1, "-- 2 in the room: bob, alice");
    room.handle_leave(0, "");
    assert_eq!(room.sends(), [], "that was sent already");
}

#[test]
fn s28_a_forged_disconnect_does_not_remove_a_guest() {
    let mut room = with(&["alice", "bob"]);
    room.handle_closing(0);
    assert_eq!(room.sent_by(0, "I am here")[1], (1, "alice: I am here".into()));
    room.handle_join(Instant::now(), 2, "alice");
    assert!(room.sends().contains(&(2, "-- you are alice-2; /help lists the commands".into())));
    room.handle_closing(0);
    room.handle_join(Instant::now(), 3, "alice");
    room.sends();
    assert!(room.sent_by(1, "hello").contains(&(0, "bob: hello".into())), "still receives everything");
    let sent = room.sent_by(0, "I am here");
    assert!(sent.contains(&(0, "-- you are alice-3; /help lists the commands".into())), "{sent:?}");
    assert!(sent.contains(&(1, "alice-3: I am here".into())), "{sent:?}");
}

#[test]
fn the_list_of_a_full_room_is_split_into_lines_that_can_be_sent() {
    let names: Vec<_> = (0..255).map(|n| format!("{}{n:03}", "\u{10330}".repeat(29))).collect();
    let mut room = with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let lines: Vec<_> = room.sent_by(0, "/who").into_iter().map(|(_, line)| line).collect();
    assert!(lines[0].starts_with("-- 255 in the room: ") && lines[1].starts_with("-- and "), "{lines:?}");
    assert!(lines.iter().all(|line| line.len() < 1_000));
    assert!(names.iter().all(|name| lines.iter().any(|line| line.contains(name))));
}

#[test]
fn help_lists_every_command_and_nothing_else() {
    let mut room = with(&["alice"]);
    let help = room.sent_by(0, "/help").remove(0).1;
    let named: Vec<_> = help.split_whitespace().filter_map(|word| word.strip_prefix('/')).collect();
    let own = [crate::STATS, crate::QUIT].map(|word| &word[1..]);
    let all: Vec<_> = Command::ALL.into_iter().map(Command::word).chain(own).collect();
    assert_eq!(named, all);
    for word in named.into_iter().filter(|word| !own.contains(word)) {
        let answer = room.sent_by(0, &format!("/{word}")).remove(0).1;
        assert!(!answer.contains("unknown command"), "{answer}");
    }
    assert!(room.sent_by(0, "/dance")[0].1.starts_with("-- unknown command /dance; commands: /me "));
}

#[test]
fn a_line_over_the_maximum_is_refused_with_a_message() {
    let mut room = with(&["alice", "bob"]);
    let line = "ä".repeat(MAX_LINE + 1);
    assert_eq!(room.sent_by(0, &line), [(0, "-- a line of 501 characters was not sent: the maximum is 500".into())]);
    assert_eq!(room.sent_by(0, &line[2..]).len(), 2);
}

#[test]
fn only_the_operator_can_kick() {
    let mut room = with(&["alice", "bob"]);
    assert_eq!(room.sent_by(1, "/kick alice").len(), 1);
    room.handle_console("/kick BOB too loud", no_ping);
    let acts = room.take_actions();
    assert_eq!(acts[0], RoomAction::Kick(1, "kicked: too loud".into()));
    assert_eq!(acts[1], RoomAction::Send(0, "-- bob left (kicked: too loud)".into()));
    assert_eq!(room.len(), 1);
    room.handle_console("/kick nobody", no_ping);
    assert_eq!(room.take_actions(), [RoomAction::Log("-- no guest is called \"nobody\"; /who lists them".into())]);
    room.handle_console("/kick", no_ping);
    assert_eq!(room.take_actions(), [RoomAction::Log("-- usage: /kick NAME REASON".into())]);
    room.handle_console("hello", no_ping);
    assert_eq!(room.sends(), [(0, "-- server: hello".into())]);
}

#[test]
fn lines_over_the_rate_limit_are_dropped() {
    let mut room = with(&["alice", "bob"]);
    let now = Instant::now();
    for _ in 0..20 {
        room.handle_line(now, 0, b"spam", no_ping);
    }
    let sent = room.sends().into_iter().filter(|(id, _)| *id == 1).count();
    assert_eq!(sent, 8);
    assert_eq!(room.sent_by(0, "more"), [(0, "-- too many lines at once; not delivered: more".into())]);
    assert_eq!(room.sent_by(0, RECEIPT_REQUEST), [(0, RECEIPT.into())], "always answered");
    room.handle_line(now + Duration::from_secs(2), 0, b"calm", no_ping);
    assert_eq!(room.sends().last(), Some(&(1, "alice: calm".into())));
}

#[test]
fn queries_are_answered_with_teams_and_players() {
    let mut room = with(&["alice", "bob"]);
    room.sent_by(1, "/team blue");
    let info = room.info(&ServerInfo::default(), |id| Some(Duration::from_millis(id.into())));
    assert_eq!((info.players, info.teams.len()), (Some(2), 2));
    let players = info.player_list.unwrap();
    assert_eq!((players[0].team, players[1].team, players[1].ping_ms), (Some(0), Some(2), Some(1)));
}

proptest! {
    #[test]
    fn any_input_is_shown_without_control_characters(line: Vec<u8>, name: String) {
        let mut room = room();
        room.handle_join(Instant::now(), 0, &name);
        room.handle_line(Instant::now(), 0, &line, no_ping);
        room.handle_leave(0, &name);
        for act in room.take_actions() {
            if let RoomAction::Send(_, line) | RoomAction::Log(line) = act {
                prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
                prop_assert!(line.len() < 4_000);
            }
        }
    }
}

#[test]
fn the_presence_lists_guests_with_team_ping_and_what_they_do() {
    let mut room = with(&["alice", "bob"]);
    room.sent_by(1, "/team red");
    assert!(room.handle_presence(0, b"typing") && !room.handle_presence(0, b"typing"));
    assert!(!room.handle_presence(9, b"typing"));
    let ping = |id| (id == 1).then_some(Duration::from_millis(20));
    assert_eq!(room.presence(ping), "2\nalice - - typing\nbob red 20 idle\n");
    assert!(room.handle_presence(0, b"anything else"));
    assert_eq!(room.presence(ping), "2\nalice - - idle\nbob red 20 idle\n");
}

#[test]
fn the_presence_of_a_full_room_is_bounded() {
    let names: Vec<String> = (0..255).map(|n| format!("{}{n}", "x".repeat(120))).collect();
    let room = with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let report = room.presence(no_ping);
    assert!(report.len() <= MAX_PRESENCE && report.starts_with("255\n"));
}
