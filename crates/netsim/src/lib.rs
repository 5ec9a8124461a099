//! A seeded virtual network and clock for state machines.
//!
//! Everything that has the five calls of [`Machine`](rallypoint_machine::Machine) can be a node of a [`Network`]. Time is
//! virtual: it jumps from one thing that happens to the next, so an hour of keepalives takes a millisecond. The same seed
//! gives the same run, datagram for datagram.
//!
//! ```
//! use rallypoint_netsim::{Link, Network, Puppet};
//! use std::time::Duration;
//!
//! let mut net = Network::new(7);
//! net.set_default_link(Link::default().delay(Duration::from_millis(25)).loss(0.5));
//! let alice = net.add(([10, 0, 0, 1], 1000), Puppet::default());
//! let bob = net.add(([10, 0, 0, 2], 2000), Puppet::default());
//! let to = net.address(bob);
//! for _ in 0..100 {
//!     net.with(alice, |alice, _now| alice.send(to, b"hello"));
//! }
//! net.run_for(Duration::from_secs(1));
//! assert_eq!(net.counters(alice, bob).lost_random.datagrams, 100 - net.take_events(bob).len() as u64);
//! ```
//!
//! # How to use it
//!
//! * **Nodes** may be of different types. [`Network::add`] gives a typed handle ([`Node`]); [`Network::with`] calls a
//!   command on the machine and then drains it, [`Network::machine`] looks at it, [`Network::take_events`] takes what it
//!   told its owner. [`Network::replace`] restarts a node, [`Network::rebind`] gives it another address. [`Puppet`] is a
//!   node that the test plays by hand.
//! * **Links** ([`Link`]) are per direction. There is a default one, and any pair can have its own. All of them can change
//!   at any time, also at a planned one: [`Network::after`] runs any change of the network later.
//! * **Trouble** that no link model makes: [`Network::partition`], [`Network::isolate`], [`Network::inject`] (forged
//!   datagrams), [`Network::set_filter`] (drop or alter chosen datagrams), [`Network::storm`] (random trouble, then calm).
//! * **Time** goes on in [`Network::run_for`] and its relatives. What falls on the same instant happens in this order:
//!   planned changes, arriving datagrams (in the order in which they were sent), wake-ups (in the order of the nodes).
//! * **What happened**: [`Counters`] are always there; after [`Network::record`] there is also a [`Log`] of every datagram
//!   with its fate, to print or to open as a packet capture. A test that panics prints its seed and its log.
//!
//! The link model ([`LinkState`]) does not depend on the simulator and serves wherever datagrams are to be impaired.
#![forbid(unsafe_code)]

mod carry;
mod count;
mod flight;
mod link;
mod log;
mod network;
mod node;
mod paths;
mod pcap;
mod puppet;
mod rng;
mod run;
mod storm;

pub use count::{Counters, Tally};
pub use link::{Arrival, Burst, Link, LinkState, Loss, Outcome, Rate};
pub use log::{Fate, Log, Record};
pub use network::{Network, Packet, Verdict};
pub use node::{Node, NodeId};
pub use pcap::Pcap;
pub use puppet::Puppet;
pub use rng::Rng;
