//! The path of a datagram: out of one machine, over a link, into another.

use crate::{
    Arrival, DeliveryStatus, FilterAction, LinkResult, Network, NodeId, Packet, PacketRecord,
    in_flight::InFlight,
    paths::{NO_NODE, RouteIndex},
};
use std::{mem, net::SocketAddr};

/// Maximum number of wake-ups of one node at one instant. A machine may have several things to do at the same time, one
/// wake-up for each, but not this many.
const MAX_WAKES: u32 = 10_000;

/// Source and destination of a datagram that is being sent.
#[derive(Clone, Copy)]
struct Hop {
    from: SocketAddr,
    to: SocketAddr,
    sender: NodeId,
    receiver: Option<NodeId>,
    route: RouteIndex,
}

impl Network {
    /// Delivers the next datagram to its receiver.
    pub(crate) fn deliver(&mut self) {
        let Some(datagram) = self.in_flight.pop() else { return };
        let is_unchanged = datagram.epoch == self.epoch;
        let receiver = if is_unchanged { datagram.receiver } else { self.addresses.get(&datagram.to).copied() };
        let status = receiver.map_or(DeliveryStatus::NoReceiver, |_| DeliveryStatus::Delivered { at: self.elapsed() });
        self.count(datagram.route, status, datagram.bytes.len());
        if let Some(record) = datagram.record {
            self.log.finish(record, status);
        }
        if let Some(node) = receiver
            && let Some(machine) = &mut self.nodes[node.index()].machine
        {
            machine.handle_datagram(self.now, datagram.from, &datagram.bytes);
            self.drain(node);
        }
        self.in_flight.recycle(datagram.bytes);
    }

    /// Wakes a node whose timer is due.
    pub(crate) fn wake(&mut self, node: NodeId) {
        let entry = &mut self.nodes[node.index()];
        entry.wake = None;
        entry.woken = if entry.woken.0 == self.now { (self.now, entry.woken.1 + 1) } else { (self.now, 1) };
        if entry.woken.1 > MAX_WAKES {
            let name = self.name(node);
            let at = self.elapsed();
            panic!("{name} spins: woken {MAX_WAKES} times at {at:?}, and its poll_timeout() is still not after that");
        }
        if let Some(machine) = &mut entry.machine {
            machine.handle_timeout(self.now);
            self.drain(node);
        }
    }

    /// Polls a machine, as after each call in.
    pub(crate) fn drain(&mut self, node: NodeId) {
        let mut outbox = mem::take(&mut self.outbox);
        let entry = &mut self.nodes[node.index()];
        // The callers have just used its machine.
        let machine = entry.machine.as_mut().expect("a node that was not removed");
        let wake = match machine.drain(self.now, &mut outbox) {
            Ok(wake) => wake.map(|wake| wake.max(self.now)),
            Err(misuse) => panic!("{}: {misuse}", self.name(node)),
        };
        if wake != entry.wake {
            if let Some(old) = entry.wake {
                self.schedule.wakes.remove(&(old, node));
            }
            if let Some(new) = wake {
                self.schedule.wakes.insert((new, node));
            }
            entry.wake = wake;
        }
        let mut rest = &outbox.bytes[..];
        for transmit in &outbox.transmits {
            // In range: `drain` has checked that each transmit appended this many bytes.
            let (bytes, after) = rest.split_at(transmit.len);
            rest = after;
            transmit.datagrams(bytes).for_each(|datagram| self.send(node, transmit.to, datagram));
        }
        outbox.bytes.clear();
        outbox.transmits.clear();
        self.outbox = outbox;
    }

    /// A node's name in messages.
    pub(crate) fn name(&self, node: NodeId) -> String {
        format!("node {} ({})", node.0, self.address(node))
    }

    fn send(&mut self, sender: NodeId, to: SocketAddr, bytes: &[u8]) {
        let receiver = self.addresses.get(&to).copied();
        let route = self.paths.route(sender, receiver.unwrap_or(NO_NODE));
        let hop = Hop { from: self.nodes[sender.index()].address, to, sender, receiver, route };
        self.totals.sent.add(bytes.len());
        self.paths.at(route).counters.sent.add(bytes.len());

        let Some(mut filter) = self.filter.take() else {
            return self.pass_link(hop, bytes);
        };
        let mut altered = mem::take(&mut self.filtered);
        altered.clear();
        altered.extend_from_slice(bytes);
        match filter(Packet { at: self.elapsed(), from: hop.from, to, bytes: &mut altered }) {
            FilterAction::Pass => self.pass_link(hop, &altered),
            FilterAction::Drop => self.lose(hop, bytes, DeliveryStatus::Filtered),
        }
        self.filtered = altered;
        self.filter = Some(filter);
    }

    fn pass_link(&mut self, hop: Hop, bytes: &[u8]) {
        let is_isolated = |id: NodeId| self.nodes[id.index()].is_isolated;
        if is_isolated(hop.sender) || hop.receiver.is_some_and(is_isolated) || self.paths.at(hop.route).is_cut {
            return self.lose(hop, bytes, DeliveryStatus::Partitioned);
        }
        match self.paths.send(hop.route, self.now, bytes.len()) {
            LinkResult::Lost(loss) => self.lose(hop, bytes, loss.into()),
            LinkResult::Arrives(first, second) => {
                self.launch(hop, bytes, first, false);
                if let Some(second) = second {
                    self.launch(hop, bytes, second, true);
                }
            }
        }
    }

    /// Puts one copy of a datagram into flight.
    fn launch(&mut self, hop: Hop, bytes: &[u8], arrival: Arrival, is_duplicate: bool) {
        for counters in [&mut self.totals, &mut self.paths.at(hop.route).counters] {
            if is_duplicate {
                counters.duplicated.add(bytes.len());
            }
            if arrival.flipped_bit.is_some() {
                counters.corrupted.add(bytes.len());
            }
        }
        let Hop { from, to, receiver, .. } = hop;
        let record = self.log.is_on().then(|| {
            let status = DeliveryStatus::InFlight { arrives: arrival.at - self.start };
            let record = PacketRecord::new(self.elapsed(), from, to, bytes, status);
            self.log.push(PacketRecord { is_duplicate, flipped_bit: arrival.flipped_bit, ..record })
        });
        let mut bytes = self.in_flight.buffer(bytes);
        arrival.apply(&mut bytes);
        let route = Some(hop.route);
        let Arrival { at, departs, .. } = arrival;
        let epoch = self.epoch;
        self.in_flight.push(at, InFlight { from, to, bytes, departs, route, record, receiver, epoch });
    }

    fn lose(&mut self, hop: Hop, bytes: &[u8], status: DeliveryStatus) {
        self.count(Some(hop.route), status, bytes.len());
        if self.log.is_on() {
            self.log.push(PacketRecord::new(self.elapsed(), hop.from, hop.to, bytes, status));
        }
    }

    fn count(&mut self, route: Option<RouteIndex>, status: DeliveryStatus, bytes: usize) {
        self.totals.count(status, bytes);
        if let Some(route) = route {
            self.paths.at(route).counters.count(status, bytes);
        }
    }
}
