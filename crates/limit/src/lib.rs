//! Rate limits per address prefix and in total, in bounded memory, and the address prefixes themselves.
//!
//! Everything that comes from the network may be a flood, and its source addresses may be forged. A [`Limiter`] decides for
//! each datagram whether it may pass, by token buckets in packets and in bytes: for the address (IPv4 /32, IPv6 /128), for
//! its network (/24, /56), for its site (IPv6 /48) and for all sources together. It limits incoming datagrams as well as
//! replies to addresses that have not been verified.
//!
//! ```
//! use rallypoint_limit::{Budget, Decision, Limiter, LimiterConfig, Rate};
//! use std::time::{Duration, Instant};
//!
//! let two_per_second = Budget { packets: Some(Rate::per_second(2, 2)), bytes: None };
//! let mut limiter = Limiter::new(&LimiterConfig { host: two_per_second, ..LimiterConfig::default() }, 0x5eed);
//! let now = Instant::now();
//! let source = "192.0.2.1".parse().unwrap();
//! assert_eq!(limiter.check(now, source, 100), Decision::Allowed);
//! assert_eq!(limiter.check(now, source, 100), Decision::Allowed);
//! assert_eq!(limiter.check(now, source, 100).to_string(), "over_budget_host_packets");
//! assert!(limiter.check(now, "192.0.2.2".parse().unwrap(), 100).is_allowed(), "a neighbour has its own budget");
//! assert!(limiter.check(now + Duration::from_millis(500), source, 100).is_allowed(), "one token was refilled");
//! ```
//!
//! [`TokenBuckets`] is the same table for one rate and keys of any kind. Networks that are exempt from limits are the
//! caller's business ([`NetworkSet`]): it does not call the limiter for them.
//!
//! [`Prefix`] and its aliases compute the network of an address in one place for the whole workspace; [`PrefixMap`] looks an
//! address up in many networks.
//!
//! # How it works
//!
//! The state of a bucket is the time at which it will be full again, as in the generic cell rate algorithm (GCRA). So there
//! is nothing to do as time passes, and a source that is not in the table has full buckets: forgetting a source never
//! penalises it. All memory is allocated at the start. A key belongs to one set of eight slots of 32 bytes each, and only
//! that set is examined, so a datagram costs the same with one source as with millions. In a full set, the slot whose
//! buckets are (or will be) full first is evicted. Heavy sources are therefore remembered longest, and a flood of sources
//! that appear once cannot make the table forget one.
//!
//! The set is chosen by SipHash-1-3 with a secret seed, so that an attacker cannot choose addresses that collide. It costs a
//! few nanoseconds more than a hash without that property.
//!
//! # What is guaranteed
//!
//! A flood of forged sources uses up the total budget, and honest sources would then be refused with the rest. So a part of
//! the total (by default half of its rate and half of its burst) is reserved for *known* customers. A customer is what one
//! subscriber of a provider commonly has: an IPv4 address or an IPv6 /56 ([`Customer`]). It becomes known when it has passed
//! and comes back between 10 seconds and 2 minutes later, if a reserved slot is free for it; it stays known as long as it
//! passes again within 2 minutes of its buckets being full. The number of reserved slots is fixed (six of the eight slots of
//! a set), and each has an equal share of the reserved budget. Hence, whatever is sent from other networks, however many:
//!
//! 1. A known customer is never forgotten, nor evicted from its slot.
//! 2. Its share is never refused because of the total. If every other reserved slot is held by an attacker that uses its share
//!    to the last packet, all of them together use no more than what is reserved. (The burst of the total has to be large
//!    enough for one packet of each reserved slot at once, as the default is for packets of up to 2,700 bytes. Otherwise this
//!    holds in the long run, and attackers that act in step with each other can cause refusals for a moment.)
//! 3. The total is never exceeded, not even by known customers.
//! 4. A limit that is not exceeded has no effect: a refused datagram is charged to no budget.
//!
//! With the default, a share is two packets of up to 1,000 bytes every three seconds: the refreshes of twenty servers behind
//! one address.
//!
//! # What is not guaranteed
//!
//! * *New sources during a flood* compete with it for what is not reserved. When the flood is so large that they are forgotten
//!   before they come back, they do not become known while it lasts. [`Limiter::mark_known`] helps those that can be verified
//!   in another way.
//! * *Imitation* is possible: forged sources that come back like honest ones become known, too, and can take all free reserved
//!   slots with little traffic (one packet per slot and two minutes). It takes nothing from customers that were known before;
//!   later ones find no free slot until some are given up.
//! * *Forging the address of a source* uses up the budget of that address; forging its neighbours uses up that of the network.
//!   Nothing that only sees addresses can tell the two apart. A caller that can recognise a peer by a secret should do that
//!   first.
//! * *Neighbours* share the budget of their /24, /56 or /48: one of them can use it up. In return, the owner of a whole /24 or
//!   /48 can never have more than its budget, nor more than 256 reserved slots.
//! * The budgets of *addresses and networks that are forgotten* start full again. To gain by this, an attacker has to send from
//!   enough others, each of which has used more of its budget, that the total is the limit anyway.
#![forbid(unsafe_code)]

mod address;
mod clock;
mod config;
mod decision;
mod evicting_quota;
mod limiter;
mod prefix;
mod prefix_map;
mod quota;
mod rate;
mod stats;
mod table;
mod token_bucket;
mod token_buckets;

pub use address::{is_possible_source, is_public};
pub use config::{LimiterConfig, LimiterConfigError};
pub use decision::{Decision, OverBudget, Scope, Unit};
pub use evicting_quota::{Activity, Evictable, EvictingPermit, EvictingQuota, Phase, QuotaClient, QuotaLimits};
pub use limiter::Limiter;
pub use prefix::{BucketKey, Customer, Host, Lan, Net, Prefix, Site};
pub use prefix_map::{NetworkSet, PrefixMap, canonical_network};
pub use quota::{Quota, QuotaPermit};
pub use rate::{Budget, Rate, RateError};
pub use stats::LimiterStats;
pub use token_bucket::TokenBucket;
pub use token_buckets::{TakeResult, TokenBuckets};
