//! The event loop runs any state machine on real sockets.

use crate::common;

use common::{any_v4, any_v6};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_udp::{EventLoop, EventLoopThread, RecvBatch, SendBatch, UdpSocket};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

/// Maximum size of a datagram that the machine accepts, in bytes.
const MAX_DATAGRAM: usize = 100;

/// Sends every datagram back twice, in one transmit of two segments, and counts timeouts.
#[derive(Default)]
struct Echo {
    outgoing: VecDeque<(SocketAddr, Vec<u8>)>,
    ticks: u32,
    next_tick: Option<Instant>,
    events: VecDeque<u32>,
}

impl Machine for Echo {
    type Event = u32;

    fn handle_datagram(&mut self, _now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.outgoing.push_back((from, bytes.to_vec()));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.ticks += 1;
        self.events.push_back(self.ticks);
        self.next_tick = (self.ticks < 3).then(|| now + Duration::from_millis(1));
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, bytes) = self.outgoing.pop_front()?;
        out.extend_from_slice(&bytes);
        out.extend_from_slice(&bytes);
        Some(Transmit { to, len: 2 * bytes.len(), segment: Some(bytes.len()), from: None })
    }

    fn poll_event(&mut self) -> Option<u32> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_tick
    }

    fn max_datagram(&self) -> usize {
        MAX_DATAGRAM
    }
}

fn spawn(sockets: Vec<Arc<UdpSocket>>) -> EventLoopThread<Echo> {
    EventLoop::new(sockets).unwrap().spawn("echo", Echo::default(), drop).unwrap()
}

fn sockets() -> Vec<Arc<UdpSocket>> {
    [any_v4(), any_v6()].map(|addr| Arc::new(UdpSocket::bind(addr, 1 << 20).unwrap())).into()
}

#[test]
fn datagrams_are_answered_over_both_families() {
    let sockets = sockets();
    let thread = spawn(sockets.clone());
    for socket in &sockets {
        let addr = socket.local_addr();
        let any = if addr.is_ipv4() { any_v4() } else { any_v6() };
        let client = UdpSocket::bind(any, 1 << 20).unwrap();
        let mut outgoing = SendBatch::default();
        // One that is too long for the machine, then more than fit into one batch.
        let mut datagrams =
            std::iter::once(vec![0; MAX_DATAGRAM + 1]).chain((0..300u16).map(|number| number.to_be_bytes().to_vec()));
        outgoing.fill(1_000, |out| {
            let datagram = datagrams.next()?;
            out.extend_from_slice(&datagram);
            Some(Transmit::one(addr, datagram.len()))
        });
        assert_eq!(outgoing.flush(&[&client]), None);
        let mut incoming = RecvBatch::new(100);
        let mut received = Vec::new();
        common::eventually("all have been answered", || {
            incoming.recv(&client).unwrap();
            for datagram in incoming.iter() {
                assert_eq!((datagram.from, datagram.len), (addr, 2));
                received.push(u16::from_be_bytes(datagram.bytes.try_into().unwrap()));
            }
            received.len() == 600
        });
        assert!(received.into_iter().eq((0..300).flat_map(|number| [number, number])), "in order");
        assert_eq!(socket.received(), 301);
    }
    assert!(thread.stop().is_some());
}

#[test]
fn timers_fire_and_events_reach_the_callback() {
    let (sender, events) = mpsc::channel();
    let event_loop = EventLoop::new(Vec::new()).unwrap();
    let thread = event_loop.spawn("echo", Echo::default(), move |event| sender.send(event).unwrap()).unwrap();
    thread.handle().run(|echo, now| echo.next_tick = Some(now));
    assert_eq!(events.iter().take(3).collect::<Vec<_>>(), [1, 2, 3]);
    let echo = thread.stop().unwrap();
    assert_eq!(echo.ticks, 3);
}

#[test]
fn posted_closures_run_in_order_and_calls_return_their_result() {
    let thread = spawn(Vec::new());
    for _ in 0..2_000 {
        thread.handle().run(|echo, _| echo.ticks += 1);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(thread.handle().call(|echo, _| echo.ticks)), Some(2_000));
    let handle = thread.handle().clone();
    drop(thread);
    assert_eq!(runtime.block_on(handle.call(|echo, _| echo.ticks)), None, "the thread has ended");
}
