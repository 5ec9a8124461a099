//! Lines piped into `join` are delivered; if any is dropped, it is reported and the exit code is 1.

use rallypoint_harness::{Room, Router, join, stderr, wait_for};
use rallypoint_session::{Layer, NewPlayer, ONLY_CHANNEL, ServerEvent, ServerOptions};

#[test]
fn piped_lines_are_sent_before_leaving() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    let alice = room.join(home.path(), "alice", &[]);
    let bot = join(home.path(), room.addr, "bot", &[]);
    bot.write_line("the build is green\nred\x1b[31m alert");
    bot.close_stdin();
    assert_eq!(bot.wait().status.code(), Some(0));
    alice.wait_for_line("bot: the build is green");
    alice.wait_for_line("bot: red\u{fffd}[31m alert");
    alice.wait_for_line("-- bot left");
}

#[test]
fn a_line_over_the_maximum_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    let alice = room.join(home.path(), "alice", &[]);
    let bot = join(home.path(), room.addr, "bot", &[]);
    bot.write_line(&format!("{}\nshort", "ä".repeat(32_768)));
    bot.close_stdin();
    let exit = bot.wait();
    let (code, complaint) = (exit.status.code(), stderr(&exit));
    assert_eq!(code, Some(1));
    assert!(complaint.starts_with("a line of 32768 characters was not sent: the maximum is 500\n"), "{complaint}");
    alice.wait_for_line("bot: short");
}

#[test]
fn an_undelivered_piped_line_exits_with_1() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    let router = Router::new(room.addr);
    let bot = join(home.path(), router.addr, "bot", &[]);
    bot.wait_for_line("-- you are bot");
    router.cut();
    bot.write_line("the build is red");
    bot.close_stdin();
    let exit = bot.wait();
    let (code, complaint) = (exit.status.code(), stderr(&exit));
    assert_eq!(code, Some(1));
    let sentence = "rallypoint: the server did not acknowledge everything: the last messages may not have arrived\n";
    assert_eq!(complaint, sentence);
}

#[test]
fn more_piped_lines_than_a_burst_are_all_accepted() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    let alice = room.join(home.path(), "alice", &[]);
    let bot = join(home.path(), room.addr, "bot", &[]);
    let lines: Vec<_> = (1..=12).map(|n| format!("line {n}")).collect();
    bot.write_line(&lines.join("\n"));
    bot.close_stdin();
    alice.wait_for_line("-- bot joined");
    for line in lines {
        assert_eq!(alice.next_line(), format!("bot: {line}"));
    }
    let exit = bot.wait();
    assert_eq!((exit.status.code(), stderr(&exit)), (Some(0), String::new()));
}

#[test]
fn a_line_dropped_by_the_room_is_reported() {
    let (code, complaint) = pipe_hello_to("-- you are bot", |message| match message {
        b"/heard" => Some("-- heard"),
        _ => Some("-- too many lines at once; not delivered: hello"),
    });
    assert_eq!(complaint, "too many lines at once; not delivered: hello\nrallypoint: one line was not sent\n");
    assert_eq!(code, Some(1));
}

#[test]
fn a_room_without_receipts_is_left_with_0_if_all_lines_were_acknowledged() {
    let (code, complaint) = pipe_hello_to("welcome", |_| None);
    assert_eq!(complaint, "note: all lines arrived, but the room did not confirm that it has processed them\n");
    assert_eq!(code, Some(0));
}

#[test]
fn the_answer_to_the_last_command_is_shown() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &[]);
    let bot = join(home.path(), room.addr, "bot", &["--team", "nope"]);
    bot.write_line("/who");
    bot.close_stdin();
    bot.wait_for_line("-- unknown team nope; the teams are: red, blue");
    bot.wait_for_line("-- 1 in the room: bot");
    let exit = bot.wait();
    assert_eq!((exit.status.code(), stderr(&exit)), (Some(0), String::new()));
}

/// Pipes one line to a room with its own welcome and answers. Returns the exit code of `join` and its standard error.
fn pipe_hello_to(welcome: &str, answer: impl Fn(&[u8]) -> Option<&'static str>) -> (Option<i32>, String) {
    let home = tempfile::tempdir().unwrap();
    let mut options = ServerOptions::new("rallypoint-room").listen("127.0.0.1:0".parse().unwrap());
    options.endpoint.layer = Layer::Stream { max_message: 8_192, is_named: false };
    let mut server = options.bind_polled().unwrap();
    let bot = join(home.path(), server.local_addrs()[0], "bot", &[]);
    bot.write_line("hello");
    bot.close_stdin();
    wait_for("the bot has left", || {
        server.poll();
        while let Some(event) = server.next_event() {
            match event {
                ServerEvent::Connected(NewPlayer { player, .. }) => {
                    server.send(player, ONLY_CHANNEL, welcome.as_bytes()).unwrap();
                }
                ServerEvent::Message { player, bytes, .. } => {
                    if let Some(answer) = answer(bytes) {
                        server.send(player, ONLY_CHANNEL, answer.as_bytes()).unwrap();
                    }
                }
                ServerEvent::Disconnected(..) => return Some(()),
                _ => {}
            }
        }
        server.flush();
        None
    });
    let exit = bot.wait();
    (exit.status.code(), stderr(&exit))
}
