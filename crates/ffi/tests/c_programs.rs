//! Programs in C that use the header and the shared library, without warnings, and under valgrind without errors.

use crate::support::{Program, here};
use rallypoint_harness::{Lobby, Process, stderr, stdout};
use std::{net::UdpSocket, process::Command};

/// Runs a server of the game and two players, until one has won.
fn race(command: impl Fn() -> Command) {
    let server = Process::spawn(&mut command());
    let address = server.wait_for_line("listening ").replace("listening ", "");
    let players = ["alice", "bob"].map(|name| Process::spawn(command().args([&address, name])));
    for player in &players {
        assert!(player.wait().status.success(), "{}", player.stderr());
        assert!(player.stdout().contains("is at line 21"), "{}", player.stdout());
    }
    assert!(server.wait().status.success(), "{}", server.stderr());
    let output = server.stdout();
    assert!(output.contains("alice joined\n") && output.contains("bob joined\n"), "{output}");
    assert!(output.ends_with(" won\n"), "{output}");
}

#[test]
fn the_example_game_runs() {
    let Some(program) = Program::compile("examples/game.c") else { return };
    race(|| program.command());
}

#[test]
fn the_example_game_makes_no_memory_error() {
    let Some(program) = Program::compile("examples/game.c") else { return };
    if program.under_valgrind().is_some() {
        race(|| program.under_valgrind().unwrap());
    }
}

#[test]
fn the_example_game_has_fewer_than_80_lines() {
    let source = std::fs::read_to_string(here("examples/game.c")).unwrap();
    assert!(source.lines().count() < 80);
}

/// Runs a program that checks itself: plain, under valgrind, and with the compiler's sanitizers.
fn check(source: &str, arguments: &[&str], expected: &str) {
    let Some(program) = Program::compile(source) else { return };
    let sanitized = Program::compile_with_sanitizers(source);
    let commands = [Some(program.command()), program.under_valgrind(), sanitized.as_ref().map(Program::command)];
    for mut command in commands.into_iter().flatten() {
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success() && stdout(&output) == expected, "{command:?}: {}", stderr(&output));
    }
}

#[test]
fn wrong_arguments_are_errors_and_no_memory_errors() {
    check("tests/c/errors.c", &[], "passed\n");
}

#[test]
fn channels_carry_messages_receipts_and_tokens() {
    check("tests/c/channels.c", &[], "passed\n");
}

#[test]
fn calls_from_many_and_from_ending_threads_make_no_memory_errors() {
    check("tests/c/threads.c", &[], "passed\n");
}

#[test]
fn the_gamemaker_layer_plays_announces_and_lists() {
    let lobby = Lobby::start();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    check("tests/c/gamemaker.c", &[&port, &lobby.v4().to_string()], "found\n");
    lobby.wait_until_listed(&[]);
}
