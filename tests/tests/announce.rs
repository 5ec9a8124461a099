//! `rallypoint announce` keeps a server in the list, and removes it when it ends.

use rallypoint_harness::{
    GameServer, Lobby, Process, Signal, TIMEOUT, TcpPort, eventually, has_ipv6, rallypoint, stderr, stdout,
};
use rallypoint_wire::lobby::{Datagram, Transport};
use std::net::{SocketAddr, UdpSocket};
use tempfile::{TempDir, tempdir};

struct Announced {
    process: Process,
    _home: TempDir,
}

fn announce(to: &[SocketAddr], args: &[&str]) -> Announced {
    let home = tempdir().unwrap();
    let mut all = vec!["announce".to_owned()];
    all.extend(to.iter().flat_map(|to| ["--lobby".to_owned(), to.to_string()]));
    all.extend(args.iter().map(ToString::to_string));
    Announced { process: Process::spawn(rallypoint(home.path()).args(all)), _home: home }
}

#[test]
fn over_both_families_until_ctrl_c() {
    let lobby = Lobby::start();
    let to = if has_ipv6() { vec![lobby.v4(), lobby.v6()] } else { vec![lobby.v4()] };
    let args =
        ["--name", "Bacon Town", "--port", "8190", "--transport", "udp", "--slots", "24", "--map", "ctf_truefort"];
    let server = announce(&to, &args);
    eventually("it is listed in all families", || {
        lobby.server("Bacon Town").is_some_and(|town| town.v4.is_some() && town.v6.is_some() == has_ipv6())
    });
    let town = lobby.server("Bacon Town").unwrap();
    assert_eq!((town.transport, town.occupancy.slots), (Transport::Udp, 24));
    assert_eq!(town.key("map"), Some(&b"ctf_truefort"[..]));
    eventually("the listing is printed", || server.process.stdout().contains("listed by"));
    server.process.signal(Signal::INT);
    assert_eq!(server.process.wait().status.code(), Some(0));
    lobby.wait_until_listed(&[]);
}

#[test]
fn a_tcp_server_is_listed_when_its_port_is_open() {
    let lobby = Lobby::start();
    let port = TcpPort::open("127.0.0.1");
    let number = port.number().to_string();
    let server = announce(&[lobby.v4()], &["--name", "Bacon Town", "--port", &number, "--once"]);
    assert_eq!(server.process.wait().status.code(), Some(0));
    assert_eq!(lobby.server("Bacon Town").unwrap().transport, Transport::Tcp);
}

#[test]
fn the_first_registration_is_repeated_soon() {
    // A lobby that only receives: the first datagram might be lost, so it is repeated soon.
    let lobby = UdpSocket::bind("127.0.0.1:0").unwrap();
    lobby.set_read_timeout(Some(TIMEOUT)).unwrap();
    let server = announce(&[lobby.local_addr().unwrap()], &["--name", "Bacon Town", "--port", "8190", "--no-check"]);
    let receive = || {
        let mut buffer = [0; 4_096];
        let length = lobby.recv(&mut buffer).expect("a datagram");
        buffer[..length].to_vec()
    };
    let first = receive();
    assert!(matches!(Datagram::parse(&first), Ok(Datagram::Register(town)) if town.name() == b"Bacon Town"));
    assert_eq!(receive(), first);
    // The unregistration is sent twice for the same reason, with the same secret.
    server.process.signal(Signal::TERM);
    let unregistration = receive();
    assert_eq!((unregistration.len(), &unregistration[16..]), (32, &first[16..32]));
    assert_eq!(receive(), unregistration);
    assert_eq!(server.process.wait().status.code(), Some(0));
}

#[test]
fn a_restart_with_the_same_id_file_is_the_same_server() {
    let lobby = Lobby::start();
    let folder = tempdir().unwrap();
    let file = folder.path().join("id");
    let args = |name| {
        ["--name", name, "--port", "8190", "--transport", "udp", "--id-file", file.to_str().unwrap()].map(str::to_owned)
    };
    let run = |name| {
        let args = args(name);
        announce(&[lobby.v4()], &args.each_ref().map(|arg| &**arg))
    };
    let first = run("before");
    lobby.wait_until_listed(&["before"]);
    drop(first);
    let _second = run("after");
    lobby.wait_until_listed(&["after"]);
    lobby.register(&GameServer::named("another").port(8_191));
    lobby.wait_until_listed(&["after", "another"]);
}

#[test]
fn invalid_announcements_are_rejected_before_anything_is_sent() {
    for (args, code) in [
        (&["--name", "x"][..], 2),
        (&["--name", "x", "--port", "0"], 2),
        (&["--name", "x", "--port", "8190", "--key", "map"], 2),
        (&["--name", "x", "--port", "8190", "--lobby", "not a host"], 2),
        (&["--name", "x", "--port", "8190", "--protocol-id", "short"], 2),
    ] {
        let output = announce(&[], args).process.wait();
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert!(!stderr(&output).is_empty() && stdout(&output).is_empty(), "{args:?}: {output:?}");
    }
}
