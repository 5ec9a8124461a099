//! A lobby that cannot start returns an error with the reason and what to do, and leaves no thread behind.

use crate::common;

use common::{Lobby, options};
use rallypoint_lobby::{DoorAddrs, LobbyOptions, LobbyService};
use rallypoint_lobby_proto::doors::LEGACY;
use std::net::{SocketAddr, TcpListener, UdpSocket};

fn error(options: LobbyOptions) -> String {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let before = threads();
    let error = LobbyService::start(options, runtime.handle()).unwrap_err().to_string();
    common::eventually("no thread is left behind", || threads() <= before);
    error
}

/// The number of threads of this process, without those of runtimes: another lobby of the same test does some of its work on its
/// runtime's thread pool, which starts threads at any time.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| !name.starts_with("tokio")).count()
}

#[test]
fn a_tcp_port_in_use() {
    let taken = TcpListener::bind(common::any_v4()).unwrap();
    let addr = taken.local_addr().unwrap();
    let expected = format!("TCP {addr} is used by another program: stop that program, or choose another port");
    assert_eq!(error(LobbyOptions { doors: DoorAddrs::lobby(vec![addr]), ..options() }), expected);
}

#[test]
fn a_udp_port_in_use() {
    loop {
        let taken = UdpSocket::bind(common::any_v4()).unwrap();
        let addr = taken.local_addr().unwrap();
        if TcpListener::bind(addr).is_err() {
            // By chance, the TCP port with the same number is in use.
            continue;
        }
        let expected = format!("UDP {addr} is used by another program: stop that program, or choose another port");
        assert_eq!(error(LobbyOptions { doors: common::doors(vec![addr]), ..options() }), expected);
        return;
    }
}

#[test]
fn a_port_of_another_lobby() {
    let lobby = Lobby::start(options());
    assert!(
        error(LobbyOptions { doors: DoorAddrs::lobby(vec![lobby.addr()]), ..options() })
            .contains("is used by another program")
    );
    lobby.shutdown();
}

#[test]
fn an_address_of_another_machine() {
    let addr: SocketAddr = "192.0.2.1:0".parse().unwrap();
    let expected = "this machine does not have the address 192.0.2.1: choose one that it has";
    assert_eq!(error(LobbyOptions { doors: DoorAddrs::lobby(vec![addr]), ..options() }), expected);
}

#[test]
fn no_address() {
    let expected = "there is no address to listen on";
    assert_eq!(error(LobbyOptions { doors: DoorAddrs::lobby(vec![]), ..options() }), expected);
}

#[test]
fn a_data_directory_that_is_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = error(LobbyOptions { data_dir: Some(file.path().into()), ..options() });
    let expected = format!("cannot write to the data directory {}: ", file.path().display());
    assert!(error.starts_with(&expected), "{error}");
    let advice = "a directory is expected there: move that file away, or choose another data directory";
    assert!(error.ends_with(advice), "{error}");
}

#[test]
fn an_invalid_configuration() {
    let mut options = options();
    options.registry.caps.total = 0;
    assert_eq!(error(options), "caps.total must be between 1 and 16000000");
}

#[test]
fn udp_and_tcp_have_the_same_port() {
    let lobby = Lobby::start(LobbyOptions { doors: common::doors(vec![common::any_v6()]), ..options() });
    for addr in [lobby.addr(), lobby.local_addrs()[&LEGACY][0]] {
        assert_ne!(addr.port(), 0);
        assert!(TcpListener::bind(addr).is_err() && UdpSocket::bind(addr).is_err());
    }
    lobby.shutdown();
}
