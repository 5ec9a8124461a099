//! The session protocol.
#![forbid(unsafe_code)]

mod crypto;
mod entropy;

pub use crypto::{KeyError, PublicKey, StaticKey};
