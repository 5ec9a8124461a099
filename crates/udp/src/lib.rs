//! UDP sockets, batched I/O, the event loop, the clock and entropy: what runs the state machines on a real network.
//!
//! Everything else in Rallypoint is handed the datagrams and the time; this crate is where they come from. (Linux.)
//!
//! * [`Driver`] runs any state machine on UDP sockets, in a thread of its own.
//! * [`RecvBatch`] and [`SendBatch`] move many datagrams per system call.
//! * [`clock`] and [`entropy`] are the only places that read the time and the system's random numbers.
#![deny(unsafe_code)]

mod batch;
mod bind_error;
pub mod clock;
mod driver;
pub mod entropy;
mod socket;
mod sys;
mod waker;

pub use batch::{Received, RecvBatch, SendBatch};
pub use bind_error::{BindError, SocketKind};
pub use driver::{Commands, Driven, Driver, Solo};
pub use entropy::EntropyError;
pub use socket::{UdpSocket, Undelivered};
pub use sys::{BATCH, Watch, ignores_broken_pipes, wait};
#[cfg(feature = "async")]
pub use sys::{register, register_udp};
