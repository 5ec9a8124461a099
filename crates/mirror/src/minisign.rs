//! Signed files in the format of minisign: Ed25519 over the BLAKE2b-512 hash of the file, with a signed comment that states what
//! was signed, and when.
//!
//! The lobby signs copies of its list ([`SigningKey`]), and clients verify them ([`PublicKey`]). Whatever is signed here,
//! `minisign -V` verifies.
//!
//! ```
//! use rallypoint_mirror::minisign::{SignedFile, SigningKey, TrustedComment};
//!
//! // The seed is secret and comes from a secure random generator.
//! let key = SigningKey::from_seed([7; 32])?;
//! let comment = TrustedComment { timestamp: 1_800_000_000, file: "servers.json".into() };
//! let signature = key.sign(b"{}", &comment);
//!
//! // The signature and the file in one: what is fetched together is of the same age.
//! let signed = [signature.to_string().as_bytes(), b"{}"].concat();
//! let file = SignedFile::parse(&signed)?;
//! assert_eq!(file.verify(&key.public())?.timestamp, 1_800_000_000);
//! assert_eq!(file.message, b"{}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blake2b;
mod key;
mod signature;
mod signed_file;

pub use key::{InvalidPublicKey, InvalidSeed, KeyId, PublicKey, SigningKey};
pub use signature::{Signature, SignatureError, TrustedComment};
pub use signed_file::SignedFile;
