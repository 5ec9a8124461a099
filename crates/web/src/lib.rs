//! The HTTP server of a lobby: the server browser, the API, live events, metrics and the admin API.
//!
//! [`WebService`] serves the list of a [`LobbyService`](rallypoint_lobby::LobbyService):
//!
//! * `live` turns changes of the lobby's table of servers into events.
//! * [`filter`] selects and sorts servers, the same way for the page and the API.
//! * `server` accepts connections within limits, and passes requests to the router of `router`, whose layers are in
//!   `middleware`.
//!
//! [`ExportService`] writes the same list as signed files, which other web servers can publish while this one is down.
//!
//! ```
//! use rallypoint_lobby::{DoorAddrs, LobbyOptions, LobbyService};
//! use rallypoint_web::{WebOptions, WebService, WebSources};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let any_port = vec!["127.0.0.1:0".parse()?];
//! let options = LobbyOptions { doors: DoorAddrs::lobby(any_port.clone()), ..LobbyOptions::default() };
//! let lobby = LobbyService::start(options, &tokio::runtime::Handle::current())?;
//! let options = WebOptions { listen: any_port, ..WebOptions::default() };
//! let web = WebService::start(options, WebSources::new(lobby.clone()))?;
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
mod doors;
mod export;
pub mod filter;
mod health;
mod join;
mod json;
mod live;
pub mod metrics;
mod middleware;
mod options;
mod page;
mod path_id;
mod prebuilt_lists;
mod problem;
mod render_age;
mod render_limiter;
mod router;
mod server;
mod service;
mod site;
mod state;
mod trends;
mod words;

pub use admin::{AdminToken, InvalidAdminToken};
pub use export::{ExportOptions, ExportService, ExportSettings};
pub use join::{InvalidJoinLink, JoinLink};
pub use options::{ListNames, OutcomeAccess, PORT, WebLimits, WebOptions, WebSettings, WebSources};
pub use problem::Problem;
pub use server::WebStartError;
pub use service::WebService;
pub use site::{AccentColor, BasePath, InvalidBasePath, InvalidColor, SiteFileError, SiteSettings};
