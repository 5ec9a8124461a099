//! An announcer on real sockets is listed, its changes are listed, and it is gone when it stops.

mod common;

use common::{Lobby, any_v4, any_v6, options};
use rallypoint_lobby_proto::Announcer;
use rallypoint_udp::{Driver, Solo, UdpSocket};
use rallypoint_wire::lobby::{Occupancy, ServerId, Transport};
use std::{sync::Arc, time::Instant};

fn sockets() -> Vec<Arc<UdpSocket>> {
    [any_v4(), any_v6()].map(|addr| Arc::new(UdpSocket::bind(addr, 1 << 20).unwrap())).into()
}

#[test]
fn an_announcer_announces_itself_to_a_lobby() {
    let lobby = Lobby::start(options());
    let (id, port, to) = (ServerId::from_bytes([7; 16]), 8_190.try_into().unwrap(), vec![lobby.addr()]);
    let announcer = Announcer::new(id, common::LOBBY, Transport::Udp, port, b"announced", to, Instant::now()).unwrap();
    let make = |_| Solo { machine: announcer, on_event: |()| {}, max_datagram: 1 };
    let driver = Driver::start("announcer", sockets(), make).unwrap();
    lobby.until_listed(&["announced"]);
    driver.commands().run(|solo, _| solo.machine.set_occupancy(Occupancy { slots: 99, ..Occupancy::default() }));
    common::eventually("the change is there", || {
        let list = lobby.lists().lobby(&common::LOBBY);
        list.listings().next().unwrap().block().occupancy.slots == 99
    });
    driver.commands().run(|solo, _| solo.machine.stop());
    lobby.until_listed(&[]);
    lobby.shutdown();
}
