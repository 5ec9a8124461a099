//! Without the web server, the lobby still verifies servers, watches servers and applies bans.

use rallypoint_harness::{GameServer, Lobby, MockServer, QueryProtocol, eventually, sample_info};
use std::fs;

#[test]
fn a_lobby_without_http_verifies_watches_and_bans() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    let admin =
        r#"{"version":1,"next":2,"bans":[{"id":1,"name":"casino","reason":"test","until":null,"since":0}],"notes":[]}"#;
    fs::write(data.join("admin.json"), admin).unwrap();
    let watched = MockServer::with_info("127.0.0.1:0", QueryProtocol::Bloodmasters, &sample_info());
    let config = format!("[[watch]]\nserver = \"bloodmasters://{}\"\nlist = \"gang garrison 2\"\n", watched.text());
    fs::write(home.path().join("rallypoint.toml"), config).unwrap();
    // Without checks, only verification queries a server that registers.
    let args = ["--data-dir", "data", "--config", "rallypoint.toml", "--set", "checks.enabled=false"];
    let lobby = Lobby::start_in(home.path(), &args);
    assert!(!lobby.process().stdout().contains("http"), "there is no web server");

    let verified = MockServer::with_info("127.0.0.1:0", QueryProtocol::Session, &sample_info());
    lobby.register(&GameServer::named("Bacon Town").key("x-query", format!("session:{}", verified.port())));
    lobby.register(&GameServer::named("casino"));
    lobby.settle();
    eventually("the registered server is queried", || !verified.received().is_empty());
    let watched_name = sample_info().name.unwrap();
    eventually("the watched server and no banned server is listed", || {
        let mut names = lobby.names();
        names.sort();
        let mut expected = ["Bacon Town".to_owned(), watched_name.clone()];
        expected.sort();
        names == expected
    });
}
