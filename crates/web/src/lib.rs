//! HTTP: the server browser, the API and its live events.
//!
//! [`WebService`] shows what a [`LobbyService`](rallypoint_lobby::LobbyService) knows:
//!
//! * `live` turns updates of the lobby's table of servers into events.
//! * [`filter`] is which servers, in which order: the same for page and API.
//! * `serve` accepts connections, within bounds; every request passes the gate (who asks, how often) before the router.
//!
//! ```
//! use rallypoint_lobby::{LobbyOptions, LobbyService};
//! use rallypoint_web::{Parts, WebOptions, WebService};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let any_port = vec!["127.0.0.1:0".parse()?];
//! let options = LobbyOptions { listen: any_port.clone(), legacy: Vec::new(), ..LobbyOptions::default() };
//! let lobby = LobbyService::start(options, &tokio::runtime::Handle::current())?;
//! let options = WebOptions { listen: any_port, ..WebOptions::default() };
//! let web = WebService::start(options, Parts::new(lobby.clone()))?;
//! println!("browse http://{}/", web.local_addrs()[0]);
//! web.shutdown().await;
//! lobby.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod admin;
mod api;
mod book;
mod calendar;
pub mod filter;
mod gate;
mod health;
mod id;
mod join;
mod json;
mod live;
mod masterlist;
pub mod metrics;
mod options;
mod page;
mod prebuilt;
mod problem;
mod serve;
mod service;
mod shared;
mod turns;

pub use admin::{Admin, AdminError, NotAToken, Token};
pub use join::{JoinLink, NotAJoinLink};
pub use options::{LobbyNames, Outcomes, Parts, WebLimits, WebOptions, WebSettings};
pub use problem::Problem;
pub use serve::StartError;
pub use service::WebService;
