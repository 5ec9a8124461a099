//! Asking game servers, answering for one, and the common view of a server. No sockets, no clock.
//!
//! * [`ServerInfo`] is what is known of a server, whoever told it: a lobby (documents 000 and 001), a Bloodmasters server
//!   (document 002) or a server of the session protocol (document 003).
//! * [`Prober`] asks thousands of servers at once, and gives a [`Report`] for each of them as it comes.
//! * [`Responder`] is the other side: it answers for a game, within budgets.
//!
//! ```
//! use rallypoint_machine::Machine;
//! use rallypoint_query_proto::{Prober, ProberConfig, Question, Responder, ResponderConfig, ServerInfo, Target};
//! use std::{net::SocketAddr, time::Instant};
//!
//! let (now, here, there): (_, SocketAddr, SocketAddr) = (Instant::now(), "192.0.2.1:1".parse()?, "192.0.2.2:2".parse()?);
//! let info = ServerInfo { name: Some("Bacon Town".into()), players: Some(3), ..ServerInfo::default() };
//! let mut responder = Responder::new(ResponderConfig::default(), 7, &info)?;
//! let mut prober = Prober::new(ProberConfig::default(), [7; 32])?;
//! prober.ask(Target::new(there, Question::Session { players: false }))?;
//!
//! let mut datagram = Vec::new();
//! while prober.poll_transmit(now, &mut datagram).is_some() {} // the network, in one direction
//! responder.handle_datagram(now, here, &datagram);
//! while let Some(sent) = responder.poll_transmit(now, &mut datagram) { // and in the other
//!     prober.handle_datagram(now, there, &datagram[datagram.len() - sent.len..]);
//! }
//! let report = prober.poll_event().expect("it has answered");
//! let answer = report.answer().filter(|answer| answer.is_complete()).expect("in full");
//! assert_eq!(answer.info.name.as_deref(), Some("Bacon Town"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Texts in a [`ServerInfo`] are fit to be shown to a person; the bytes as they came are in [`Answer::raw`] and, of a list,
//! in [`LobbyInfo::entries`].
#![forbid(unsafe_code)]

mod answer;
mod info;
mod prober;
mod responder;
mod secret;
mod target;

pub use answer::{Answer, Measured, Missing, Outcome, Raw, Report, RoundTrip};
pub use info::{BloodmastersInfo, LobbyInfo, Mod, Player, ServerInfo, SessionInfo, Team};
pub use prober::{Prober, ProberConfig, ProberConfigError, ProberStats};
pub use responder::{Responder, ResponderConfig, ResponderStats, SessionAnswers};
pub use target::{AskError, Question, Target, UnknownProtocol};
