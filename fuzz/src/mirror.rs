//! Copies of lists: the signed file, the public key, and the document of a lobby whose signature is valid.

use rallypoint_mirror::minisign::{PublicKey, SignatureError, SignedFile, SigningKey, TrustedComment};
use rallypoint_query::mirror::{CopiedList, CopyRules, FILE};
use std::sync::OnceLock;

const NOW: u64 = 1_800_000_000;

fn key() -> &'static SigningKey {
    static KEY: OnceLock<SigningKey> = OnceLock::new();
    KEY.get_or_init(|| SigningKey::from_seed([7; 32]).expect("any 32 bytes are a seed"))
}

/// Reads the bytes as a file of a mirror, as a key, and as a document that the lobby has signed.
pub fn run(data: &[u8]) {
    if let Ok(file) = SignedFile::parse(data) {
        let emitted = [file.signature.to_string().as_bytes(), file.message].concat();
        assert_eq!(emitted, data, "there is one way to write a signature");
        let stranger = SigningKey::from_seed([8; 32]).expect("any 32 bytes are a seed").public();
        let verified = file.verify(&stranger);
        assert!(matches!(verified, Err(SignatureError::OtherKey { .. } | SignatureError::Invalid)), "{verified:?}");
    }
    if let Some(key) = std::str::from_utf8(data).ok().and_then(|text| PublicKey::from_file(text).ok()) {
        assert_eq!(PublicKey::from_file(&key.to_file()), Ok(key));
    }
    let rules = CopyRules { key: &key().public(), lobby: "lobby.example.org", max_age: None, now: NOW };
    let _ = CopiedList::open(data, &rules);

    let comment = TrustedComment { timestamp: NOW - 60, file: FILE.into() };
    let signed = [key().sign(data, &comment).to_string().as_bytes(), data].concat();
    if let Ok(copy) = CopiedList::open(&signed, &rules) {
        assert_eq!(copy.made_at, NOW - 60);
        for server in copy.servers {
            assert!((1..=2).contains(&server.endpoints.len()), "{server:?}");
        }
    }
}
