//! The log has rejected datagrams with their reason, at a limited rate.

use rallypoint_harness::{GameServer, Lobby, stderr};

#[test]
fn rejections_are_logged_once_and_then_counted() {
    let lobby = Lobby::with(&["log.level=debug"]);
    for _ in 0..100 {
        lobby.send([127, 45, 67, 89], b"invalid");
    }
    lobby.register(&GameServer::named("Bacon Town"));
    lobby.wait_until_listed(&["Bacon Town"]);
    lobby.wait_until_logged("malformed");
    let log = stderr(&lobby.stop());
    let lines: Vec<_> = log.lines().filter(|line| line.contains("refused")).collect();
    assert!((1..=2).contains(&lines.len()), "{log}");
    assert!(lines[0].contains("127.45.67.x") && lines[0].contains("not valid"), "{log}");
}
