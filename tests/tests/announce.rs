//! Datagrams of `rallypoint announce`, and rejected arguments.

use rallypoint_harness::{Process, Signal, TIMEOUT, rallypoint, stderr, stdout};
use rallypoint_wire::lobby::Datagram;
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
