//! A seeded virtual network and clock for state machines.
//!
//! Every [`Machine`](rallypoint_machine::Machine) can be a node of a [`Network`]. Time is virtual: it jumps from one event to
//! the next, so an hour of keepalives takes a millisecond. The same seed gives the same run, datagram for datagram.
//!
//! ```
//! use rallypoint_netsim::{Link, Network, ManualPeer};
//! use std::time::Duration;
//!
//! let mut net = Network::new(7);
//! net.set_default_link(Link::default().delay(Duration::from_millis(25)).loss(0.5));
//! let alice = net.add(([10, 0, 0, 1], 1000), ManualPeer::default());
//! let bob = net.add(([10, 0, 0, 2], 2000), ManualPeer::default());
//! let to = net.address(bob);
//! for _ in 0..100 {
//!     net.with(alice, |alice, _now| alice.send(to, b"hello"));
//! }
//! net.run_for(Duration::from_secs(1));
//! assert_eq!(net.counters(alice, bob).lost_random.datagrams, 100 - net.take_events(bob).len() as u64);
//! ```
//!
//! # Overview
//!
//! * **Nodes** may be of different types. [`Network::add`] returns a typed handle ([`Node`]); [`Network::with`] runs a closure
//!   on the machine and then drains it, [`Network::machine`] borrows it, [`Network::take_events`] takes its events.
//!   [`Network::replace`] restarts a node, [`Network::rebind`] gives it another address. [`ManualPeer`] is a machine that the
//!   test controls by hand.
//! * **Links** ([`Link`]) are per direction. There is a default link, and any pair of nodes can have its own. All of them can
//!   change at any time, also later: [`Network::schedule_in`] schedules any change of the network. Several directions can
//!   share a link ([`Network::share_link`]) or only a bottleneck ([`Network::add_bottleneck`]).
//! * **Cross traffic**: [`CubicSender`] and [`CubicReceiver`] are a bulk transfer with the congestion control of RFC 9438, to
//!   compete with.
//! * **Faults** beyond the link model: [`Network::partition`], [`Network::isolate`], [`Network::inject`] (forged datagrams),
//!   [`Network::set_filter`] (drop or alter chosen datagrams), [`Network::start_chaos`] (random faults for a limited time).
//! * **Time** advances in [`Network::run_for`] and the other `run_*` methods. Events at the same instant happen in this order:
//!   scheduled changes, arriving datagrams (in the order of sending), wake-ups (in the order of the nodes).
//! * **Results**: [`Counters`] are always kept; after [`Network::record`] there is also a [`PacketLog`] of every datagram and
//!   what became of it, to print or to open as a packet capture. A test that panics prints its seed and its log.
//!
//! The link model ([`LinkState`]) does not depend on the simulator and can be used wherever datagrams are to be impaired.
#![forbid(unsafe_code)]

mod chaos;
mod counters;
mod cubic;
mod delivery;
mod extent;
mod in_flight;
mod link;
mod manual_peer;
mod network;
mod node;
mod packet_log;
mod paths;
mod pcap;
mod rng;
mod run;

pub use counters::{Counters, Tally};
pub use cubic::{CubicReceiver, CubicSender};
pub use extent::{is_full, number_from_env, seeds};
pub use link::{Arrival, Bottleneck, BurstLoss, Link, LinkResult, LinkState, Loss};
pub use manual_peer::ManualPeer;
pub use network::{BottleneckId, FilterAction, Network, Packet};
pub use node::{Node, NodeId};
pub use packet_log::{DeliveryStatus, PacketLog, PacketRecord};
pub use pcap::Pcap;
pub use rng::Rng;
