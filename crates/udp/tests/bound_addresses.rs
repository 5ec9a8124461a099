//! A bound address belongs to one socket. On Windows another program could otherwise bind the same one and take what arrives.

use crate::common::any_v4;
use rallypoint_udp::{UdpSocket, prepare_listener};
use socket2::{Domain, Socket, Type};
use std::net::SocketAddr;

/// Whether a socket of another program could be bound to that address, too.
fn can_be_shared(addr: SocketAddr, kind: Type) -> bool {
    let socket = Socket::new(Domain::for_address(addr), kind, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&addr.into()).is_ok()
}

#[test]
fn nobody_else_can_bind_the_address_of_a_socket() {
    let socket = UdpSocket::bind(any_v4(), 1 << 16).unwrap();
    assert!(!can_be_shared(socket.local_addr(), Type::DGRAM));
}

#[test]
fn nobody_else_can_bind_the_address_of_a_listener() {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    prepare_listener(&listener).unwrap();
    listener.bind(&any_v4().into()).unwrap();
    listener.listen(1).unwrap();
    assert!(!can_be_shared(listener.local_addr().unwrap().as_socket().unwrap(), Type::STREAM));
}
