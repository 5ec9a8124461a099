//! Every protocol with a responder works in every place that takes a server: the commands, lists, and a lobby.

use rallypoint_harness::{GameServer, Lobby, MockServer, QueryProtocol, run, stderr, stdout};
use rallypoint_query_proto::Responder;
use serde_json::Value;

fn servers() -> Vec<(QueryProtocol, MockServer)> {
    Responder::protocols().map(|protocol| (protocol, MockServer::new(protocol))).collect()
}

#[test]
fn commands_query_servers_of_every_protocol() {
    let home = tempfile::tempdir().unwrap();
    for (protocol, server) in servers() {
        let target = format!("{protocol}://{}", server.addr);
        let output = run(home.path(), ["query", &target, "--json"]);
        let json: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let found = &json["servers"][0];
        let shown = (&found["name"], &found["protocol"], &found["players"], &found["map"], &found["complete"]);
        let expected = ("Bacon Town".into(), protocol.as_str().into(), 2.into(), "ctf_truefort".into(), true.into());
        assert_eq!(shown, (&expected.0, &expected.1, &expected.2, &expected.3, &expected.4), "{found}");
        // Bedrock tells the number of players only.
        if protocol == QueryProtocol::Bedrock {
            assert_eq!(found["player_list"], Value::Null);
        } else {
            let names: Vec<_> = found["player_list"].as_array().unwrap().iter().map(|player| &player["name"]).collect();
            assert_eq!(names, ["Ada", "Grace"], "{protocol}");
            assert!(stdout(&run(home.path(), ["query", &target, "--details"])).contains("Ada"), "{protocol}");
        }

        let output = run(home.path(), ["check", &target]);
        assert!(stdout(&output).starts_with("RALLYPOINT OK - Bacon Town, 2/24 players"), "{}", stdout(&output));
        let output = run(home.path(), ["ping", "-c", "1", &target]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

#[test]
fn a_lobby_checks_servers_by_every_protocol() {
    let lobby = Lobby::start();
    let servers = servers();
    for (protocol, server) in &servers {
        let name = protocol.as_str();
        lobby.register(&GameServer::named(name).port(server.port()).key("x-query", name));
    }
    let mut names: Vec<_> = servers.iter().map(|(protocol, _)| protocol.as_str()).collect();
    names.sort_unstable();
    lobby.wait_until_listed(&names);
}

#[test]
fn a_lobby_lists_watched_servers_of_every_protocol() {
    let servers = servers();
    let watch = |(protocol, server): &(QueryProtocol, MockServer)| {
        format!("[[watch]]\nserver = \"{protocol}://{}\"\nlist = \"gg2\"\n", server.addr)
    };
    let lobby = Lobby::builder().config(&servers.iter().map(watch).collect::<String>()).start();
    let listed = lobby.wait_for_list("all are listed", |listed| listed.len() == servers.len());
    assert!(listed.iter().all(|server| server.name == "Bacon Town" && server.occupancy.players == 2), "{listed:?}");
}
