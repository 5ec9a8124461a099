//! Any number of connections that ask nothing does not keep a player from the list.

use rallypoint_e2e::{GameServer, Listed, Lobby, connect_from, read_to_end, request};
use rallypoint_wire::lobby::LobbyId;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::{
    io::{self, Write},
    net::{Ipv4Addr, TcpStream},
};

/// Connections that were made and stay silent, 50 from each address.
fn idle(lobby: &Lobby, count: u32) -> io::Result<Vec<TcpStream>> {
    let from = |number: u32| Ipv4Addr::from_bits(Ipv4Addr::new(127, 77, 0, 1).to_bits() + number / 50);
    (0..count).map(|number| connect_from(from(number).into(), lobby.v4())).collect()
}

/// Raises this process's limit of open files as far as it goes; the lobby inherits it. Says how far that is.
fn raise_open_files() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("the soft limit can be raised to the hard one");
    limit.maximum.unwrap_or(u64::MAX)
}

#[test]
fn ten_thousand_idle_connections_do_not_stop_a_list_query() {
    let files = raise_open_files();
    if files < 10_600 {
        return eprintln!("skipped: the system's hard limit of open files is {files}, and this needs 10600");
    }
    let lobby = Lobby::with(&["list.request_timeout=10m", "list.loopback_exempt=false"]);
    lobby.register(&GameServer::named("Bacon Town"));
    let mut idle = idle(&lobby, 10_000).unwrap();
    lobby.until_listed(&["Bacon Town"]);
    // They are all still there: whoever asks after all is answered.
    for client in idle.iter_mut().step_by(500) {
        client.write_all(&request(LobbyId::GANG_GARRISON_2)).unwrap();
        assert_eq!(Listed::all(&read_to_end(client)).len(), 1);
    }
}

#[test]
fn when_all_places_are_taken_somebody_who_asks_nothing_has_to_go() {
    let lobby = Lobby::with(&["list.request_timeout=10m", "list.connections=100"]);
    lobby.register(&GameServer::named("Bacon Town"));
    let _idle = idle(&lobby, 400).unwrap();
    lobby.until_listed(&["Bacon Town"]);
}

#[test]
fn one_address_cannot_take_all_places() {
    let lobby = Lobby::with(&["list.request_timeout=10m", "list.loopback_exempt=false", "list.per_address=50"]);
    lobby.register(&GameServer::named("Bacon Town"));
    let crowd: Vec<_> = idle(&lobby, 50).unwrap();
    // The 51st from there gets no answer; the player next door does.
    let from = crowd[0].local_addr().unwrap().ip();
    let mut one_too_many = connect_from(from, lobby.v4()).unwrap();
    let mut reply = Vec::new();
    let _ = one_too_many.write_all(&request(LobbyId::GANG_GARRISON_2));
    let _ = io::Read::read_to_end(&mut one_too_many, &mut reply);
    assert_eq!(reply, [0; 0]);
    lobby.until_listed(&["Bacon Town"]);
}
