//! UDP sockets, batched I/O, the event loop, the clock and entropy: everything that runs state machines on a real network.
//!
//! All other crates of Rallypoint are handed datagrams and the time; this crate is where both come from.
//! It runs everywhere; on Linux it moves many datagrams per system call.
//!
//! * [`EventLoop`] runs any [`Machine`](rallypoint_machine::Machine) on UDP sockets, in a thread of its own.
//! * [`UdpSocket`] is a socket; [`RecvBatch`] and [`SendBatch`] move many datagrams per system call.
//! * [`BindError`] is the reason why a socket, UDP or TCP, cannot be bound.
//! * [`entropy`] is the only place that reads the system's random numbers, and [`clock`] is where machines get the time.
//!
//! With the feature `async`, sockets can be registered with a tokio runtime ([`AsyncSocket`], [`AsyncListener`]).
//!
//! ```
//! use rallypoint_udp::{RecvBatch, UdpSocket};
//!
//! let socket = UdpSocket::bind("127.0.0.1:0".parse()?, 1 << 20)?;
//! let mut batch = RecvBatch::new(1_500);
//! batch.recv(&socket)?;
//! println!("{} datagrams have arrived at {}", batch.len(), socket.local_addr());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod bind_error;
pub mod clock;
pub mod entropy;
mod event_loop;
mod receive_moderation;
mod recv_batch;
mod resident_memory;
mod send_batch;
mod socket;
mod sys;

pub use bind_error::{BindError, SocketKind};
pub use entropy::EntropyError;
pub use event_loop::{EventLoop, EventLoopHandle, EventLoopThread};
pub use recv_batch::RecvBatch;
pub use resident_memory::resident_memory;
pub use send_batch::SendBatch;
pub use socket::UdpSocket;
#[cfg(feature = "async")]
pub use sys::{AsyncListener, AsyncSocket};
pub use sys::{
    BATCH_SIZE, Poller, SEND_FLAGS, bound_free_memory, is_family_not_supported, is_shortage, is_sigpipe_ignored,
    is_too_many_open_files, prepare_listener, release_free_memory,
};

/// Maximum number of bytes that the system puts into one buffer with several datagrams, received (GRO) or to be sent (GSO).
const MAX_COALESCED: usize = 65_535;
