//! The driver runs any state machine on real sockets.

mod common;

use common::{any_v4, any_v6};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_udp::{Driver, RecvBatch, SendBatch, Solo, UdpSocket};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

/// Sends every datagram back twice, in one transmit of two segments; ticks.
#[derive(Default)]
struct Echo {
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    ticks: u32,
    next: Option<Instant>,
    events: VecDeque<u32>,
}

impl Machine for Echo {
    type Event = u32;

    fn handle_datagram(&mut self, _now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.waiting.push_back((from, bytes.to_vec()));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.ticks += 1;
        self.events.push_back(self.ticks);
        self.next = (self.ticks < 3).then(|| now + Duration::from_millis(1));
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, bytes) = self.waiting.pop_front()?;
        out.extend_from_slice(&bytes);
        out.extend_from_slice(&bytes);
        Some(Transmit { to, len: 2 * bytes.len(), segment: Some(bytes.len()) })
    }

    fn poll_event(&mut self) -> Option<u32> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
}

fn sockets() -> Vec<Arc<UdpSocket>> {
    [any_v4(), any_v6()].map(|addr| Arc::new(UdpSocket::bind(addr, 1 << 20).unwrap())).into()
}

#[test]
fn datagrams_come_back_over_both_families() {
    let sockets = sockets();
    let echo = |_| Solo { machine: Echo::default(), on_event: |_| {}, max_datagram: 100 };
    let driver = Driver::start("echo", sockets.clone(), echo).unwrap();
    for socket in &sockets {
        let addr = socket.local_addr();
        let any = if addr.is_ipv4() { any_v4() } else { any_v6() };
        let client = UdpSocket::bind(any, 1 << 20).unwrap();
        let mut outgoing = SendBatch::default();
        // One that is too long is not for the machine; then more than go into one batch.
        let mut datagrams =
            std::iter::once(vec![0; 101]).chain((0..300u16).map(|number| number.to_be_bytes().to_vec()));
        outgoing.fill(1_000, |out| {
            let datagram = datagrams.next()?;
            out.extend_from_slice(&datagram);
            Some(Transmit::one(addr, datagram.len()))
        });
        assert_eq!(outgoing.flush(&[&client]), None);
        let (mut incoming, mut received) = (RecvBatch::new(100), Vec::new());
        common::eventually("all have come back", || {
            incoming.receive(&client).unwrap();
            for datagram in incoming.iter() {
                assert_eq!((datagram.from, datagram.len), (addr, 2));
                received.push(u16::from_be_bytes(datagram.bytes.try_into().unwrap()));
            }
            received.len() == 600
        });
        assert!(received.into_iter().eq((0..300).flat_map(|number| [number, number])), "in order");
        assert_eq!(socket.received(), 301);
    }
    assert!(driver.stop().is_some());
}

#[test]
fn time_passes_and_events_are_told() {
    let (told, events) = mpsc::channel();
    let echo =
        |_| Solo { machine: Echo::default(), on_event: move |event| told.send(event).unwrap(), max_datagram: 100 };
    let driver = Driver::start("echo", Vec::new(), echo).unwrap();
    driver.commands().run(|echo, now| echo.machine.next = Some(now));
    assert_eq!(events.iter().take(3).collect::<Vec<_>>(), [1, 2, 3]);
    let echo = driver.stop().unwrap();
    assert_eq!(echo.machine.ticks, 3);
}

#[test]
fn commands_are_answered_in_order() {
    let echo = |_| Solo { machine: Echo::default(), on_event: |_| {}, max_datagram: 100 };
    let driver = Driver::start("echo", Vec::new(), echo).unwrap();
    for _ in 0..2_000 {
        driver.commands().run(|echo, _| echo.machine.ticks += 1);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(driver.commands().ask(|echo, _| echo.machine.ticks)), Some(2_000));
    let commands = driver.commands().clone();
    drop(driver);
    assert_eq!(runtime.block_on(commands.ask(|echo, _| echo.machine.ticks)), None, "nobody is there any more");
}
