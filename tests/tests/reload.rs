//! SIGHUP reloads bans, limits and names without dropping anything. An invalid file changes nothing.

use rallypoint_harness::{GameServer, Lobby, TcpPort, connect, eventually, list_request, read_to_end, send_request};
use rallypoint_wire::lobby::ListId;
use std::io::Write;

#[test]
fn bans_are_added_and_expire() {
    let lobby = Lobby::builder().config("").start();
    let [guest, spammer] = ["guest", "spammer"].map(GameServer::named);
    let spammer = spammer.from_ip("127.9.9.9");
    lobby.register(&guest);
    lobby.register(&spammer);
    lobby.wait_until_listed(&["guest", "spammer"]);

    lobby.reload("[[ban]]\nnetwork = \"127.9.9.0/24\"\nreason = \"spam\"\n");
    lobby.wait_until_listed(&["guest"]);
    lobby.register(&spammer);
    lobby.settle();
    assert_eq!(lobby.names(), ["guest"]);

    lobby.reload("[[ban]]\nnetwork = \"127.9.9.0/24\"\nuntil = 2020-01-01\n");
    lobby.register(&spammer);
    lobby.wait_until_listed(&["guest", "spammer"]);
}

#[test]
fn a_ban_expires() {
    let end = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(4);
    let ban = format!("[[ban]]\naddress = \"127.9.9.9\"\nuntil = {end}\n");
    let lobby = Lobby::builder().config(&ban).start();
    let banned = GameServer::named("banned for a while").from_ip("127.9.9.9");
    lobby.register(&banned);
    lobby.register(&GameServer::named("guest"));
    lobby.wait_until_listed(&["guest"]);
    eventually("the ban has expired", || {
        lobby.register(&banned);
        lobby.names() == ["banned for a while", "guest"]
    });
}

#[test]
fn bans_can_be_in_a_separate_file() {
    let lobby = Lobby::builder().config("ban_file = \"bans.toml\"\n").file("bans.toml", "").start();
    let spammer = GameServer::named("spammer");
    lobby.register(&spammer);
    lobby.wait_until_listed(&["spammer"]);
    lobby.write_file("bans.toml", "[[ban]]\naddress = \"127.0.0.1\"\n");
    lobby.reload("ban_file = \"bans.toml\"\n");
    lobby.wait_until_listed(&[]);
}

#[test]
fn limits_change_and_listed_servers_stay() {
    let lobby = Lobby::builder().config("[caps]\nper_address = 2\n").start();
    let servers: Vec<_> = (0..4).map(|n| GameServer::named(&format!("server {n}")).port(9_000 + n)).collect();
    lobby.register_all(&servers);
    assert_eq!(lobby.names(), ["server 0", "server 1"]);
    lobby.reload("[caps]\nper_address = 3\n");
    lobby.register_all(&servers);
    assert_eq!(lobby.names(), ["server 0", "server 1", "server 2"]);
    // Listed servers stay listed under a lower limit.
    lobby.reload("[caps]\nper_address = 1\n");
    lobby.register_all(&servers);
    assert_eq!(lobby.names(), ["server 0", "server 1", "server 2"]);
}

#[test]
fn a_shorter_lease_applies_from_the_next_registration_on() {
    let lobby = Lobby::builder().config("[lobby]\nlease = \"1h\"\n").start();
    let server = GameServer::named("Bacon Town");
    lobby.register(&server);
    lobby.wait_until_listed(&["Bacon Town"]);
    lobby.reload("[lobby]\nlease = \"1s\"\n");
    lobby.register(&server);
    lobby.wait_until_listed(&[]);
}

#[test]
fn checks_and_the_address_map_apply_from_the_next_registration_on() {
    let lobby = Lobby::builder().config("").start();
    let port = TcpPort::closed("127.6.0.1");
    let server = GameServer::named("Bacon Town").tcp(port.number()).from_ip("127.6.0.1");
    lobby.register(&server);
    lobby.settle();
    assert_eq!(lobby.names(), [""; 0]);
    lobby.reload("[checks]\nenabled = false\n[lobby]\naddress_map = [\"127.6.0.1=203.0.113.9\"]\n");
    lobby.register(&server);
    lobby.wait_until_listed(&["Bacon Town"]);
    assert_eq!(lobby.server("Bacon Town").unwrap().v4, Some(([203, 0, 113, 9], port.number()).into()));
}

#[test]
fn names_of_lobbies() {
    let id = "99999999-9999-9999-9999-999999999999";
    let named = |name: &str| format!("[lists.names]\n{id} = \"{name}\"\n");
    let lobby = Lobby::builder().config(&named("First name")).start();
    lobby.register(&GameServer::named("somewhere").in_lobby(ListId::from_bytes([0x99; 16])));
    let request = b"GET /api/v1/lists HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let is_served = |name: &str| String::from_utf8_lossy(&send_request(lobby.http(), request)).contains(name);
    eventually("the first name is served", || is_served("First name"));
    lobby.reload(&named("Second name"));
    eventually("the second name is served", || is_served("Second name"));
}

#[test]
fn errors_are_logged_and_change_nothing() {
    let ban = "[[ban]]\naddress = \"127.9.9.9\"\n";
    let lobby = Lobby::builder().config(ban).start();
    let banned = GameServer::named("banned").from_ip("127.9.9.9");
    lobby.register(&GameServer::named("guest"));
    lobby.wait_until_listed(&["guest"]);
    for (invalid, message) in [
        ("[caps]\n\nper_address = \"many\"\n", "rallypoint.toml:3: caps.per_address: expected a number"),
        ("[caps]\nper_adress = 1\n", "rallypoint.toml:2: unknown key \"per_adress\" in [caps]; did you mean"),
        ("this is no TOML", "rallypoint.toml:1: "),
    ] {
        lobby.reload(invalid);
        assert!(lobby.log().contains(message), "no {message:?} in {}", lobby.log());
    }
    lobby.register(&banned);
    lobby.settle();
    assert_eq!(lobby.names(), ["guest"]);
    lobby.reload("");
    lobby.register(&banned);
    lobby.wait_until_listed(&["banned", "guest"]);
}

#[test]
fn connections_survive_a_reload() {
    let lobby = Lobby::builder().config("").start();
    lobby.register(&GameServer::named("Bacon Town"));
    lobby.wait_until_listed(&["Bacon Town"]);
    let mut client = connect(lobby.v4());
    let request = list_request(ListId::GANG_GARRISON_2);
    client.write_all(&request[..10]).unwrap();
    lobby.reload("[caps]\nper_address = 3\n");
    client.write_all(&request[10..]).unwrap();
    assert_eq!(read_to_end(&mut client), lobby.list_reply());
}
