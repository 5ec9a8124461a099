//! What is piped into `rallypoint join` is heard and answered, or it says what was not, and exits with 1.

mod common;
mod room_support;

use common::until;
use rallypoint_session::{PolledServer, ServerEvent, ServerOptions};
use rallypoint_session_proto::EndpointConfig;
use room_support::{Room, join, router::Router};
use std::sync::atomic::Ordering::SeqCst;

#[test]
fn a_pipe_says_its_lines_and_leaves() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::open(home.path(), &[]);
    let alice = room.guest(home.path(), "alice", &[]);
    let mut bot = join(home.path(), room.addr, "bot", &[]);
    bot.types("the build is green\nred\x1b[31m alert");
    bot.closes_input();
    assert_eq!(bot.ends().0, Some(0));
    alice.hears("bot: the build is green");
    alice.hears("bot: red\u{fffd}[31m alert");
    alice.hears("-- bot has left");
}

#[test]
fn a_line_that_is_too_long_is_told() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::open(home.path(), &[]);
    let alice = room.guest(home.path(), "alice", &[]);
    let mut bot = join(home.path(), room.addr, "bot", &[]);
    bot.types(&format!("{}\nshort", "ä".repeat(32_768)));
    bot.closes_input();
    let (code, complaint) = bot.ends();
    assert_eq!(code, Some(1));
    assert!(complaint.starts_with("a line of 32768 characters was not said: 500 are the most\n"), "{complaint}");
    alice.hears("bot: short");
}

#[test]
fn a_pipe_whose_line_did_not_arrive_ends_with_a_sentence_and_1() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::open(home.path(), &[]);
    let router = Router::start(room.addr);
    let mut bot = join(home.path(), router.addr, "bot", &[]);
    bot.hears("-- you are bot");
    router.is_cut.store(true, SeqCst);
    bot.types("the build is red");
    bot.closes_input();
    let (code, complaint) = bot.ends();
    assert_eq!(code, Some(1));
    let sentence = "rallypoint: the server did not acknowledge everything: the last messages may not have arrived\n";
    assert_eq!(complaint, sentence);
}

#[test]
fn more_lines_than_a_room_hears_at_once_are_all_heard() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::open(home.path(), &[]);
    let alice = room.guest(home.path(), "alice", &[]);
    let mut bot = join(home.path(), room.addr, "bot", &[]);
    let lines: Vec<_> = (1..=12).map(|n| format!("line {n}")).collect();
    bot.types(&lines.join("\n"));
    bot.closes_input();
    alice.hears("-- bot has joined");
    for line in lines {
        assert_eq!(alice.line(), format!("bot: {line}"));
    }
    assert_eq!(bot.ends(), (Some(0), String::new()));
}

#[test]
fn what_was_not_heard_is_told() {
    let home = tempfile::tempdir().unwrap();
    let config = EndpointConfig::for_game("rallypoint-room");
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let mut server = PolledServer::bind(ServerOptions { listen, stream: Some(8_192), ..config.into() }).unwrap();
    let mut bot = join(home.path(), server.local_addrs().next().unwrap(), "bot", &[]);
    bot.types("hello");
    bot.closes_input();
    let mut message = Vec::new();
    // A room in which nobody may speak.
    until("the bot has left", || {
        server.poll();
        while let Some(event) = server.next(&mut message) {
            match event {
                ServerEvent::Joined { player, .. } => server.send(player, b"-- you are bot").unwrap(),
                ServerEvent::Message(player) => {
                    let answer = match &message[..] {
                        b"/heard" => "-- heard",
                        _ => "-- not so fast: this was not heard: hello",
                    };
                    server.send(player, answer.as_bytes()).unwrap();
                }
                ServerEvent::Left(..) => return Some(()),
                _ => {}
            }
        }
        server.flush();
        None
    });
    let complaint = "not so fast: this was not heard: hello\nrallypoint: one of the lines was not said\n";
    assert_eq!(bot.ends(), (Some(1), complaint.into()));
}

#[test]
fn the_answer_to_the_last_command_is_shown() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::open(home.path(), &[]);
    let mut bot = join(home.path(), room.addr, "bot", &["--team", "nope"]);
    bot.types("/who");
    bot.closes_input();
    bot.hears("-- there is no team nope; the teams are: red, blue");
    bot.hears("-- 1 here: bot");
    assert_eq!(bot.ends(), (Some(0), String::new()));
}
