//! A server that listens on all addresses of a machine replies from the address that was contacted, where the system reports it.
#![cfg(all(target_os = "linux", not(rallypoint_portable)))]

use crate::common;

use common::*;
use rallypoint_harness::skip;
use rallypoint_query_proto::ServerInfo;
use rallypoint_session::{ClientEvent, ONLY_CHANNEL, PolledClient, PolledServer, ServerEvent};
use std::{
    env,
    net::{SocketAddr, UdpSocket},
    process::Command,
};

/// The unspecified address of a family, and some addresses of the machine.
#[derive(Clone, Copy)]
struct Family {
    any: &'static str,
    some: [&'static str; 3],
}

const V4: Family = Family { any: "0.0.0.0", some: ["127.0.0.1", "127.0.0.2", "127.3.2.1"] };
/// The loopback interface has only the first one by default, so this needs a network namespace.
const V6: Family = Family { any: "::", some: ["::1", "2001:db8::1", "2001:db8::2"] };

impl Family {
    /// A server on all addresses, and the addresses to contact it at.
    fn server(&self) -> (PolledServer, Vec<SocketAddr>) {
        let any = SocketAddr::new(self.any.parse().unwrap(), 0);
        let mut options = server_options();
        options.listen = vec![any];
        let server = PolledServer::bind(options).unwrap();
        let port = server.local_addrs()[0].port();
        (server, self.some.map(|ip| SocketAddr::new(ip.parse().unwrap(), port)).to_vec())
    }
}

#[test]
fn players_are_answered_from_the_address_that_they_contacted() {
    exchange_messages(V4);
}

#[test]
fn s9_queries_are_answered_from_the_address_that_was_queried() {
    query(V4);
}

#[test]
fn players_and_queries_are_answered_from_the_contacted_ipv6_address() {
    const IN_NAMESPACE: &str = "RALLYPOINT_TEST_IN_NAMESPACE";
    if env::var_os(IN_NAMESPACE).is_some() {
        exchange_messages(V6);
        query(V6);
        return;
    }
    let mut script = String::from("ip link set lo up");
    for ip in &V6.some[1..] {
        script += &format!(" && ip -6 address add {ip}/128 dev lo nodad");
    }
    let unshared = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "sh", "-c", script]);
        command.arg(env::current_exe().unwrap()).env(IN_NAMESPACE, "1");
        command.output()
    };
    if !unshared(&script).is_ok_and(|output| output.status.success()) {
        return skip("this machine does not allow network namespaces (unshare, ip)");
    }
    let output = unshared(&format!(
        "{script} && exec \"$0\" --exact players_and_queries_are_answered_from_the_contacted_ipv6_address"
    ))
    .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn exchange_messages(family: Family) {
    let (mut server, addrs) = family.server();
    for encryption in all_encryptions() {
        for &addr in &addrs {
            let mut client = PolledClient::connect(addr, client_options(encryption.clone())).unwrap();
            client.send(ONLY_CHANNEL, b"early").unwrap_err();
            let mut is_answered = false;
            until("the client receives its own message", || {
                server.poll();
                client.poll();
                while let Some(event) = server.next_event() {
                    if let ServerEvent::Message { player, channel, bytes } = event {
                        let message = bytes.to_vec();
                        // Several at once, so that they are sent with one system call where that is supported.
                        for _ in 0..8 {
                            server.send(player, channel, &message).unwrap();
                        }
                    }
                }
                while let Some(event) = client.next_event() {
                    match event {
                        ClientEvent::Connected => {
                            client.send(ONLY_CHANNEL, b"hello").unwrap();
                        }
                        ClientEvent::Message { bytes, .. } => is_answered = bytes == b"hello",
                        _ => {}
                    }
                }
                is_answered
            });
        }
    }
}

fn query(family: Family) {
    let (mut server, addrs) = family.server();
    server.set_info(&ServerInfo { name: Some("Bacon Town".into()), ..ServerInfo::default() });
    for addr in addrs {
        let socket = UdpSocket::bind((family.some[0], 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket.send_to(&[0x80], addr).unwrap();
        let mut from = None;
        until("the server answers", || {
            server.poll();
            from = socket.recv_from(&mut [0; 600]).ok().map(|(_, from)| from);
            from.is_some()
        });
        assert_eq!(from, Some(addr));
    }
}
