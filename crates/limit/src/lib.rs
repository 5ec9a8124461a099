//! Budgets per address prefix and in total, in bounded memory.
//!
//! Whatever comes from the network may be a flood, and its sources may be forged. A [`Limiter`] decides for each
//! datagram whether it may pass, by token buckets in packets and in bytes: for the address (IPv4 /32, IPv6 /128), for
//! its network (/24, /56), for its site (IPv6 /48) and for all together. It serves for what arrives as well as for what
//! is sent to addresses that have proved nothing.
//!
//! ```
//! use rallypoint_limit::{Budget, LimiterConfig, Limiter, Rate, Decision};
//! use std::time::{Duration, Instant};
//!
//! let two_per_second = Budget { packets: Some(Rate::per_second(2, 2)), bytes: None };
//! let mut limiter = Limiter::new(&LimiterConfig { host: two_per_second, ..LimiterConfig::default() }, 0x5eed);
//! let (now, source) = (Instant::now(), "192.0.2.1".parse().unwrap());
//! assert_eq!(limiter.check(now, source, 100), Decision::Allowed);
//! assert_eq!(limiter.check(now, source, 100), Decision::Allowed);
//! assert_eq!(limiter.check(now, source, 100).to_string(), "over_budget_host_packets");
//! assert!(limiter.check(now, "192.0.2.2".parse().unwrap(), 100).is_allowed(), "a neighbour has a budget of its own");
//! assert!(limiter.check(now + Duration::from_millis(500), source, 100).is_allowed(), "one has come back");
//! ```
//!
//! [`TokenBuckets`] is the same table for one rate and keys of any kind. Networks that are exempt from limits are for the
//! caller to know: it does not ask about them.
//!
//! # How it works
//!
//! The state of a bucket is the time at which it will be full again, so nothing has to be done as time passes, and a
//! source that nobody remembers has full buckets: forgetting never punishes. Everything is allocated at the start. A
//! key belongs to one set of eight slots, 32 bytes each, and only these are looked at, so a datagram costs the same
//! with one source as with millions. In a full set the slot is given away whose buckets are (or will be) full first.
//! Whoever has used much is therefore remembered longest, and a flood of sources that are seen once can't make the
//! table forget a heavy one.
//!
//! The sets are chosen by a hash with a secret seed, SipHash-1-3: addresses that collide can't be chosen. It costs a
//! few nanoseconds more than a hash for friendly keys, and the argument ends there.
//!
//! # What is guaranteed
//!
//! The total is what a flood of forged sources uses up, and then honest sources would be refused with the rest. So a
//! part of it (by default half of its rate and half of its burst) is kept for *known* parties. A party is what one
//! customer is commonly given: an IPv4 address or an IPv6 /56. It becomes known when it has passed and comes back
//! between 10 seconds and 2 minutes later, if there is a seat for it; it stays known while no more than 2 minutes go
//! by, with full buckets, until it passes again. There is a fixed number of seats (six of the eight slots of a set),
//! and each has an equal share of what is reserved. Hence, whatever is sent from other networks, by however many:
//!
//! 1. A known party is never forgotten, nor pushed off its seat.
//! 2. Its share is never refused by the total. If every other seat is held by an attacker who uses his share to the
//!    last packet, all of them together use no more than what is reserved. (The burst of the total has to be large
//!    enough to give one packet to each seat at once, as the default is for packets of up to 2,700 bytes. Otherwise
//!    this holds in the long run, and attackers who strike in step with each other can cause refusals for a moment.)
//! 3. The total is never exceeded, not even by known parties.
//! 4. A limit that is not exceeded does not bite: what is refused is charged to nobody.
//!
//! With the default, a share is two packets of up to 1,000 bytes every three seconds: the refreshes of twenty servers
//! behind one address.
//!
//! # What is not guaranteed
//!
//! * *Newcomers during a flood* compete with it for what is not reserved. When the flood is so large that they are
//!   forgotten before they come back, they don't become known while it lasts. [`Limiter::vouch`] helps those that can
//!   prove themselves otherwise.
//! * *Imitation* is possible: forged sources that come back like honest ones become known, too, and can take all free
//!   seats with little traffic (one packet per seat and two minutes). It takes nothing from those who were there
//!   before; who comes later finds no seat until some are given up.
//! * *Forging the very address* of somebody uses up that address's budget, forging its neighbours' uses up that of the
//!   network. Nothing that only looks at addresses can tell the two apart. A caller that can recognise a peer by a
//!   secret should do that first.
//! * *Neighbours* share the budget of their /24, /56 or /48: one of them can use it up. In return, whoever has a whole
//!   /24 or /48 can never have more than its budget, nor more than 256 seats.
//! * The budgets of *addresses and networks that are forgotten* begin anew. To gain by this, an attacker has to send
//!   from so many others that have used more of theirs that the total is the limit anyway.
#![forbid(unsafe_code)]

mod address;
mod buckets;
mod clock;
mod config;
mod decision;
mod limiter;
mod prefix;
mod prefix_map;
mod quota;
mod rate;
mod stats;
mod table;

pub use address::{is_possible_source, is_public};
pub use buckets::{TakeResult, TokenBuckets};
pub use config::{LimiterConfig, LimiterConfigError};
pub use decision::{Decision, OverBudget, Scope, Unit};
pub use limiter::Limiter;
pub use prefix::{BucketKey, Customer, Host, Lan, Net, Prefix, Site};
pub use prefix_map::{NetworkSet, PrefixMap};
pub use quota::{Quota, QuotaPermit};
pub use rate::{Budget, Rate, RateError};
pub use stats::LimiterStats;
