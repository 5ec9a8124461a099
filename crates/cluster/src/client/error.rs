//! Errors of the store, each one sentence for the operator.

use super::{bounded_stream::TOO_LARGE, tls_mismatch::TlsMismatch};
use crate::{StoreError, StoreErrorKind, StoreUrl};
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Codes of errors of a store that can be read but not changed.
const NOT_WRITABLE: [&str; 5] = ["READONLY", "OOM", "MISCONF", "NOREPLICAS", "MASTERDOWN"];

/// Parts of the errors of a script whose user lacks a right: in Redis 7.0, and in later versions and Valkey. Their code is not
/// NOPERM.
const SCRIPT_WITHOUT_RIGHT: [&str; 2] = ["user executing the script can't", "ACL failure in script"];

/// Maximum length of an error of the store in a message.
const MAX_ERROR_TEXT: usize = 200;

/// The meaning of an error, and what to do about it.
pub(crate) fn store_error(url: &StoreUrl, error: &RedisError) -> StoreError {
    // A failed pipeline has the errors of its commands.
    let first = error.clone().into_server_errors().and_then(|errors| Some(errors.first()?.1.clone()));
    let code = error.code().or_else(|| first.as_ref().map(redis::ServerError::code)).unwrap_or_default();
    let text = one_line(&error.to_string());
    let is_tls = text.to_lowercase().contains("certificate")
        || text.contains("TLS")
        || text.contains("tls")
        || text.contains("corrupt message");
    let (kind, message) = match error.kind() {
        _ if text.contains(TOO_LARGE) => (
            StoreErrorKind::TooLarge,
            format!(
                "the store at {url} has a value that another program wrote: delete it, or choose another cluster.name ({text})"
            ),
        ),
        _ if ["NOAUTH", "WRONGPASS"].contains(&code) => rejected(format!(
            "the store at {url} requires another user or password: check them in its address ({text})"
        )),
        // Of a Redis Cluster, the reason is only in the text.
        _ if error.kind() == ErrorKind::AuthenticationFailed || text.contains("AuthenticationFailed") => rejected(
            format!("the store at {url} does not accept the user or password: check them in its address ({text})"),
        ),
        _ if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm)
            || SCRIPT_WITHOUT_RIGHT.iter().any(|part| text.contains(part)) =>
        {
            let cluster = if url.is_cluster() { " +cluster|slots" } else { "" };
            rejected(format!(
                "the user of the store at {url} lacks a right: it needs ~{{rp:* +@read +@write +@scripting +@connection +time{cluster} ({text})"
            ))
        }
        _ if NOT_WRITABLE.contains(&code) => (
            StoreErrorKind::ReadOnly,
            format!("the store at {url} refuses changes: it must be a master with memory and disk space left ({text})"),
        ),
        _ if code == "WRONGTYPE" => (
            StoreErrorKind::Foreign,
            format!(
                "the store at {url} has other values where those of this cluster should be: delete its keys, which begin with \
                 {{rp: and cluster.name, or choose another cluster.name ({text})"
            ),
        ),
        _ if text.contains("cluster support disabled") => rejected(format!(
            "the servers at {url} are not a Redis Cluster: name one server, or Sentinel with redis+sentinel://host:26379/service"
        )),
        ErrorKind::Server(
            ServerErrorKind::Moved | ServerErrorKind::Ask | ServerErrorKind::CrossSlot | ServerErrorKind::ClusterDown,
        ) if !url.is_cluster() => return part_of_a_cluster(url),
        _ if text.contains("unknown command 'SCRIPT'") => rejected(format!(
            "the server at {url} does not execute scripts: if it is Sentinel, write redis+sentinel://host:26379/service"
        )),
        _ if text.contains("DB index is out of range") => {
            rejected(format!("the store at {url} has no database with that number: check the end of its address"))
        }
        _ if text.contains("unknown command 'SENTINEL'") => {
            rejected(format!("the server at {url} is not Sentinel: for the store itself write redis://host:6379"))
        }
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType | ErrorKind::RESP3NotSupported => {
            rejected(format!("the server at {url} is not Redis or Valkey: check the address of the store ({text})"))
        }
        ErrorKind::Io if text.contains("Parse error") => {
            rejected(format!("the servers at {url} are not Redis or Valkey: check the address of the store ({text})"))
        }
        ErrorKind::InvalidClientConfig => rejected(format!("the store at {url} cannot be used: {text}")),
        ErrorKind::MasterNameNotFoundBySentinel => {
            rejected(format!("the sentinels at {url} do not know that service: check its name ({text})"))
        }
        // The alert of TLS 1.3, and that of TLS 1.2 after a handshake without a certificate.
        _ if text.contains("CertificateRequired") => rejected(format!(
            "the store at {url} requires a certificate of its clients, which nodes do not have: set tls-auth-clients no or optional \
             there, and give the node a user and a password ({text})"
        )),
        _ if is_tls && text.to_lowercase().contains("certificate") => rejected(certificate_error(url, &text)),
        _ if is_tls => (
            StoreErrorKind::Unreachable,
            format!(
                "there is no encrypted connection to the store at {url}: check its address, and the settings of its TLS ({text})"
            ),
        ),
        _ if error.is_timeout() || text.contains("timed out") => return timeout(url),
        _ if code == "BUSY" => (
            StoreErrorKind::Unreachable,
            format!(
                "the store at {url} is occupied by a script of another program: wait, or end it with SCRIPT KILL ({text})"
            ),
        ),
        ErrorKind::Server(ServerErrorKind::BusyLoading) => (
            StoreErrorKind::Unreachable,
            format!("the store at {url} has just started and loads its data: wait ({text})"),
        ),
        ErrorKind::Server(
            ServerErrorKind::ClusterDown | ServerErrorKind::TryAgain | ServerErrorKind::Moved | ServerErrorKind::Ask,
        ) => (
            StoreErrorKind::Unreachable,
            format!(
                "no master of the Redis Cluster at {url} answers for the keys of this cluster, as in a failover; if that lasts, check \
                 it with redis-cli CLUSTER INFO ({text})"
            ),
        ),
        _ if is_closed(error) => (
            StoreErrorKind::Unreachable,
            format!(
                "the store at {url} closed the connection: check that it is running, that it accepts this machine, and that it is \
                 Redis or Valkey ({text})"
            ),
        ),
        _ => (
            StoreErrorKind::Unreachable,
            format!(
                "cannot reach the store at {url}: check its address (rediss:// with TLS), and that Redis or Valkey is running \
                 ({text})"
            ),
        ),
    };
    StoreError { kind, message }
}

/// Whether the server ended a connection that it had accepted.
fn is_closed(error: &RedisError) -> bool {
    // Without a source it is an error about several connections.
    let has_source = std::error::Error::source(error).is_some();
    error.is_connection_dropped() && !error.is_connection_refusal() && has_source
}

/// The problem with the certificate of the store, or with the encrypted connection.
fn certificate_error(url: &StoreUrl, text: &str) -> String {
    let lower = text.to_lowercase();
    if lower.contains("not valid for name") {
        format!(
            "the certificate of the store at {url} is for another name: use that in the address of the store ({text})"
        )
    } else if lower.contains("expired") || lower.contains("not valid yet") {
        format!(
            "the certificate of the store at {url} is not valid now: renew it, or correct the clock of this machine ({text})"
        )
    } else if text.contains("CaUsedAsEndEntity") {
        format!(
            "the certificate of the store at {url} is that of an authority, not of a server: make one with \
             basicConstraints=CA:FALSE ({text})"
        )
    } else {
        format!(
            "the store at {url} has no certificate that is trusted here: add its authority to the system's, or name a file \
             with it in the variable SSL_CERT_FILE ({text})"
        )
    }
}

/// The text of an error, which can contain what another program sent.
fn one_line(text: &str) -> String {
    let text = rallypoint_wire::text::sanitize(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
    text.chars().take(MAX_ERROR_TEXT).collect()
}

fn rejected(message: String) -> (StoreErrorKind, String) {
    (StoreErrorKind::Rejected, message)
}

pub(super) fn timeout(url: &StoreUrl) -> StoreError {
    StoreError {
        kind: StoreErrorKind::Unreachable,
        message: format!(
            "the store at {url} does not answer in time: check its address, and that it is running and not overloaded"
        ),
    }
}

/// A server with TLS that is addressed without it, or the other way round.
pub(super) fn tls_mismatch(url: &StoreUrl, mismatch: TlsMismatch) -> StoreError {
    let message = match mismatch {
        TlsMismatch::Encrypted => {
            format!(
                "the store at {url} requires TLS: write rediss:// (rediss+sentinel:// for Sentinel), or name a port without it"
            )
        }
        TlsMismatch::Plain => {
            format!(
                "the store at {url} does not use TLS: write redis:// (redis+sentinel:// for Sentinel), or name its port with TLS"
            )
        }
    };
    StoreError { kind: StoreErrorKind::Rejected, message }
}

/// One server of a Redis Cluster, which may have the keys now, and not after a failover.
pub(super) fn part_of_a_cluster(url: &StoreUrl) -> StoreError {
    let message = format!(
        "the server at {url} is part of a Redis Cluster: name several of its servers, redis://host:7000,host:7001, or the same \
         one twice"
    );
    StoreError { kind: StoreErrorKind::Rejected, message }
}

/// A key of the cluster with a value of another type.
pub(super) fn foreign(url: &StoreUrl, key: &str, found: &str, expected: &str) -> StoreError {
    let found = one_line(found);
    StoreError {
        kind: StoreErrorKind::Foreign,
        message: format!(
            "the store at {url} has other values where those of this cluster should be: the key {key} is a {found}, not a {expected}. \
             Delete it, or choose another cluster.name"
        ),
    }
}

pub(super) fn unexpected(url: &StoreUrl) -> StoreError {
    StoreError {
        kind: StoreErrorKind::Unreachable,
        message: format!("the store at {url} gave an unexpected reply: another program may have changed its keys"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stores' texts; the tests with a real one see only those of its version.
    #[test]
    fn a_script_whose_user_lacks_a_right_is_not_an_unreachable_store() {
        let url: StoreUrl = "redis://store.example.org".parse().unwrap();
        for text in [
            "The user executing the script can't run this command or subcommand script: 8a7f, on @user_script:3.",
            "ACL failure in script: User limited has no permissions to run the 'hset' command script: 8a7f, on @user_script:3.",
        ] {
            let kind = ErrorKind::Server(ServerErrorKind::ResponseError);
            let error =
                store_error(&url, &RedisError::from((kind, "An error was signalled by the server", text.into())));
            assert_eq!(error.kind, StoreErrorKind::Rejected, "{error}");
            assert!(error.message.contains("lacks a right: it needs ~{rp:* +@read"), "{error}");
        }
    }
}
