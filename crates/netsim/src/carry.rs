//! The way of a datagram: out of one machine, over a link, into another.

use crate::{Arrival, Fate, Network, NodeId, Outcome, Packet, Record, Verdict, flight::Flyer, paths::NOBODY};
use std::{mem, net::SocketAddr};

/// From where to where a datagram goes.
#[derive(Clone, Copy)]
struct Way {
    from: SocketAddr,
    to: SocketAddr,
    sender: NodeId,
    receiver: Option<NodeId>,
    route: u32,
}

impl Network {
    /// Gives the next datagram to its receiver.
    pub(crate) fn deliver(&mut self) {
        let Some(flyer) = self.flight.pop() else { return };
        let unchanged = flyer.epoch == self.epoch;
        let receiver = if unchanged { flyer.receiver } else { self.addresses.get(&flyer.to).copied() };
        let fate = receiver.map_or(Fate::NoReceiver, |_| Fate::Delivered { at: self.elapsed() });
        self.count(flyer.route, fate, flyer.bytes.len());
        if let Some(record) = flyer.record {
            self.log.finish(record, fate);
        }
        if let Some(node) = receiver
            && let Some(machine) = &mut self.nodes[node.index()].machine
        {
            machine.handle_datagram(self.now, flyer.from, &flyer.bytes);
            self.drain(node);
        }
        self.flight.recycle(flyer.bytes);
    }

    /// Wakes a node whose time has come.
    pub(crate) fn wake(&mut self, node: NodeId) {
        /// A machine may have several things to do at one instant, one wake-up for each; but not so many.
        const MOST_WAKES: u32 = 10_000;
        let entry = &mut self.nodes[node.index()];
        entry.wake = None;
        entry.woken = if entry.woken.0 == self.now { (self.now, entry.woken.1 + 1) } else { (self.now, 1) };
        if entry.woken.1 > MOST_WAKES {
            let (name, at) = (self.name(node), self.elapsed());
            panic!("{name} spins: woken {MOST_WAKES} times at {at:?}, and its poll_timeout() is still not after that");
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
        let machine = entry.machine.as_mut().expect("a node that was not removed");
        let wake = match machine.drain(self.now, &mut outbox) {
            Ok(wake) => wake.map(|wake| wake.max(self.now)),
            Err(misuse) => panic!("{}: {misuse}", self.name(node)),
        };
        if wake != entry.wake {
            if let Some(old) = entry.wake {
                self.wakes.remove(&(old, node));
            }
            if let Some(new) = wake {
                self.wakes.insert((new, node));
            }
            entry.wake = wake;
        }
        let mut rest = &outbox.bytes[..];
        for transmit in &outbox.transmits {
            let (bytes, after) = rest.split_at(transmit.len);
            rest = after;
            transmit.datagrams(bytes).for_each(|datagram| self.send(node, transmit.to, datagram));
        }
        outbox.bytes.clear();
        outbox.transmits.clear();
        self.outbox = outbox;
    }

    /// A node for people.
    pub(crate) fn name(&self, node: NodeId) -> String {
        format!("node {} ({})", node.0, self.address(node))
    }

    fn send(&mut self, sender: NodeId, to: SocketAddr, bytes: &[u8]) {
        let receiver = self.addresses.get(&to).copied();
        let route = self.paths.route(sender, receiver.unwrap_or(NOBODY));
        let way = Way { from: self.nodes[sender.index()].address, to, sender, receiver, route };
        self.totals.sent.add(bytes.len());
        self.paths.at(route).counters.sent.add(bytes.len());

        let Some(mut filter) = self.filter.take() else {
            return self.pass_link(way, bytes);
        };
        let mut altered = mem::take(&mut self.filtered);
        altered.clear();
        altered.extend_from_slice(bytes);
        match filter(Packet { at: self.elapsed(), from: way.from, to, bytes: &mut altered }) {
            Verdict::Pass => self.pass_link(way, &altered),
            Verdict::Drop => self.lose(way, bytes, Fate::Filtered),
        }
        self.filtered = altered;
        self.filter = Some(filter);
    }

    fn pass_link(&mut self, way: Way, bytes: &[u8]) {
        let isolated = |id: NodeId| self.nodes[id.index()].isolated;
        if isolated(way.sender) || way.receiver.is_some_and(isolated) || self.paths.at(way.route).cut {
            return self.lose(way, bytes, Fate::Partitioned);
        }
        match self.paths.link_of(way.route).offer(self.now, bytes.len()) {
            Outcome::Lost(loss) => self.lose(way, bytes, loss.into()),
            Outcome::Arrives(first, second) => {
                self.fly(way, bytes, first, false);
                if let Some(second) = second {
                    self.fly(way, bytes, second, true);
                }
            }
        }
    }

    fn fly(&mut self, way: Way, bytes: &[u8], arrival: Arrival, duplicate: bool) {
        for counters in [&mut self.totals, &mut self.paths.at(way.route).counters] {
            if duplicate {
                counters.duplicated.add(bytes.len());
            }
            if arrival.flipped.is_some() {
                counters.corrupted.add(bytes.len());
            }
        }
        let Way { from, to, receiver, .. } = way;
        let record = self.log.is_on().then(|| {
            let fate = Fate::InFlight { arrives: arrival.at - self.start };
            let record = Record::new(self.elapsed(), from, to, bytes, fate);
            self.log.push(Record { duplicate, flipped: arrival.flipped, ..record })
        });
        let mut bytes = self.flight.buffer(bytes);
        arrival.apply(&mut bytes);
        let route = Some(way.route);
        self.flight.push(arrival.at, Flyer { from, to, bytes, route, record, receiver, epoch: self.epoch });
    }

    fn lose(&mut self, way: Way, bytes: &[u8], fate: Fate) {
        self.count(Some(way.route), fate, bytes.len());
        if self.log.is_on() {
            self.log.push(Record::new(self.elapsed(), way.from, way.to, bytes, fate));
        }
    }

    fn count(&mut self, route: Option<u32>, fate: Fate, bytes: usize) {
        self.totals.count(fate, bytes);
        if let Some(route) = route {
            self.paths.at(route).counters.count(fate, bytes);
        }
    }
}
