//! `rallypoint browse` in a real terminal (tmux): shows servers, handles keys, and restores the terminal on every exit.

use crate::tmux::Tmux;
use rallypoint_harness::{Lobby, rallypoint, run, run_in_terminal, stderr, wait_for};
use std::{fs, path::Path, process::Command};

fn lobby(home: &Path) -> Lobby {
    let lobby = Lobby::start_in(home, &[]);
    lobby.register_port("Bacon Town 24/7", 8190);
    lobby.register_port("七人の侍", 8191);
    lobby.wait_for_list("both servers are listed", |list| list.len() == 2);
    lobby
}

#[test]
fn servers_can_be_browsed_filtered_and_joined() {
    let home = tempfile::tempdir().unwrap();
    let lobby = lobby(home.path());
    let joined = home.path().join("joined");
    let join = format!("cp /dev/null {}/{{port}}", joined.display());
    fs::create_dir(&joined).unwrap();
    let at = lobby.v4().to_string();
    let Some(tmux) = Tmux::start(home.path(), (100, 30), &["browse", &at, "--join", &join, "-t", "300ms"]) else {
        return;
    };
    tmux.wait_for(&["Rallypoint", "Bacon Town 24/7", "七人の侍", "2 servers", "? help"]);
    tmux.press(&["?"]);
    tmux.wait_for(&["filter as you type"]);
    tmux.press(&["x"]);
    tmux.press(&["/", "b", "a", "c", "o"]);
    tmux.wait_for(&["Filter: baco", "1 of 2 servers"]);
    tmux.wait_for_no("七人の侍");
    tmux.press(&["Enter"]);
    tmux.press(&["f"]);
    tmux.wait_for(&["★", "Bacon Town 24/7 was added to the favourites"]);
    tmux.press(&["Enter"]);
    tmux.wait_for(&["127.0.0.1:8190", "Enter runs it"]);
    tmux.press(&["Enter"]);
    wait_for("the join command has run", || joined.join("8190").exists().then_some(()));
    tmux.wait_for(&["Rallypoint", "Bacon Town 24/7"]);
    assert!(tmux.command(&["resize-window", "-x", "40", "-y", "10"]).unwrap().status.success());
    tmux.wait_for(&["Rallypoint", "1 of 2 servers"]);
    tmux.press(&["q"]);
    tmux.wait_for(&["ended with 0", "icanon"]);
    assert!(!tmux.screen().contains("-icanon") && !tmux.screen().contains("Rallypoint"), "{}", tmux.screen());
    let kept = fs::read_to_string(home.path().join(".local/share/rallypoint/favourites")).unwrap();
    assert!(kept.contains("udp://127.0.0.1:8190 Bacon Town 24/7"), "{kept}");
}

#[test]
fn a_signal_restores_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let lobby = lobby(home.path());
    let at = format!("lobby://{}", lobby.v4());
    for (verb, signal) in [("browse", "TERM"), ("browse", "INT"), ("watch", "HUP")] {
        let Some(tmux) = Tmux::start(home.path(), (80, 24), &[verb, &at, "-t", "300ms"]) else { return };
        tmux.wait_for(&["Bacon Town 24/7"]);
        assert!(Command::new("kill").args([&format!("-{signal}"), &tmux.program()]).status().unwrap().success());
        tmux.wait_for(&["ended with 0", "icanon"]);
        assert!(!tmux.screen().contains("-icanon"), "{}", tmux.screen());
    }
}

#[test]
fn it_exits_when_its_terminal_is_closed() {
    let home = tempfile::tempdir().unwrap();
    let lobby = lobby(home.path());
    let at = format!("lobby://{}", lobby.v4());
    for verb in ["browse", "watch"] {
        let Some(tmux) = Tmux::start(home.path(), (80, 24), &[verb, &at, "-t", "300ms"]) else { return };
        tmux.wait_for(&["Bacon Town 24/7"]);
        assert!(tmux.command(&["kill-session"]).unwrap().status.success());
        let code = home.path().join("code");
        let code =
            wait_for(&format!("{verb} has ended"), || fs::read_to_string(&code).ok().filter(|code| !code.is_empty()));
        assert_eq!(code, "0\n", "{verb}");
        fs::remove_file(home.path().join("code")).unwrap();
    }
}

#[test]
fn watch_mode_highlights_changes() {
    let home = tempfile::tempdir().unwrap();
    let lobby = lobby(home.path());
    let at = format!("lobby://{}", lobby.v4());
    let Some(tmux) = Tmux::start(home.path(), (80, 24), &["watch", &at, "-t", "200ms", "-i", "200ms"]) else { return };
    tmux.wait_for(&["Bacon Town 24/7", "Changes", "does not answer"]);
    lobby.register_port("Newcomer", 8192);
    tmux.wait_for(&["Newcomer: appeared", "3 servers"]);
    tmux.press(&["C-c"]);
    tmux.wait_for(&["ended with 0"]);
}

#[test]
fn a_missing_terminal_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), ["browse", "localhost"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let errors = stderr(&output);
    assert!(errors.lines().count() == 1 && errors.contains("browse needs a terminal"), "{errors}");
    for wrong in [&["browse", "--join", "game"][..], &["browse", "a b"]] {
        assert_eq!(rallypoint(home.path()).args(wrong).output().unwrap().status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_terminal_without_cursor_movement_is_refused() {
    let home = tempfile::tempdir().unwrap();
    for term in ["dumb", ""] {
        let shown = run_in_terminal(home.path(), 80, "browse; echo $?", &[("TERM", term)]);
        assert!(shown.contains("rallypoint: browse needs a terminal that can move its cursor"), "{shown}");
        assert!(shown.ends_with("2\n") && !shown.contains('\x1b'), "{shown}");
    }
}
