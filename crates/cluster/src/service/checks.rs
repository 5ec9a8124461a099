//! Reachability checks that one node makes for all.

use super::connection::SharedConnection;
use crate::StoreClient;
use rallypoint_lobby::{BoxFuture, CheckCoordinator};
use rallypoint_lobby_proto::{CheckKind, CheckRequest, CheckResult, CheckTarget};
use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long the result of a check counts for other nodes. Each node then keeps it as long as its own.
const RESULT_TIME: Duration = Duration::from_secs(10);

/// Interval at which the result of another node is awaited.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Time beyond that of the check for which a claim holds: a check that fails takes all of its time, and its result is published
/// after that.
const CLAIM_MARGIN: Duration = Duration::from_secs(1);

/// Lets the first node that claims a check make it. Without contact with the store every node makes its own.
#[derive(Debug)]
pub(super) struct StoreChecks {
    client: StoreClient,
    node: u64,
    connection: Arc<SharedConnection>,
}

impl StoreChecks {
    pub fn new(client: StoreClient, connection: Arc<SharedConnection>, node: u64) -> Self {
        Self { client, node, connection }
    }
}

impl CheckCoordinator for StoreChecks {
    fn coordinate(
        &self,
        request: CheckRequest,
        check: BoxFuture<io::Result<CheckResult>>,
    ) -> BoxFuture<io::Result<CheckResult>> {
        let connection = self.connection.get();
        let client = self.client.clone();
        let node = self.node;
        Box::pin(async move {
            let Some(mut connection) = connection else { return check.await };
            let target = target_name(&request.target);
            let claim_time = request.timeout + CLAIM_MARGIN;
            // Another node's claim has ended by then, and this node's next one is granted. Whatever the store answers, the wait
            // ends.
            let end = Instant::now() + claim_time + 2 * POLL_INTERVAL;
            loop {
                let claim = client.claim(&mut connection, &target, node, claim_time).await;
                let Ok(claim) = claim else { return check.await };
                if claim == b"granted" {
                    break;
                }
                if let Some(result) = parse(&claim) {
                    return Ok(result);
                }
                if Instant::now() >= end {
                    break;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            let result = check.await;
            if let Ok(result) = &result
                && let Some(bytes) = emit(*result)
            {
                let _ = client.publish_check(&mut connection, &target, &bytes, RESULT_TIME).await;
            }
            result
        })
    }
}

fn target_name(target: &CheckTarget) -> String {
    let kind = match target.kind {
        CheckKind::Connect => "tcp",
        CheckKind::Query(protocol) => protocol.as_str(),
    };
    format!("{kind}:{}", target.addr)
}

/// The bytes of a result: `r` and the latency in microseconds, `u`, or `c` for a closed port. An undecided check has none:
/// another node may succeed.
fn emit(result: CheckResult) -> Option<Vec<u8>> {
    match result {
        CheckResult::Reachable(latency) => Some(format!("r{}", latency.as_micros()).into_bytes()),
        CheckResult::Unreachable => Some(b"u".to_vec()),
        CheckResult::Refused => Some(b"c".to_vec()),
        CheckResult::Unknown => None,
    }
}

/// The result of another node; `None` if it is a claim, or not one of ours.
fn parse(bytes: &[u8]) -> Option<CheckResult> {
    match bytes.split_first()? {
        (b'r', latency) => {
            let latency: u32 = std::str::from_utf8(latency).ok()?.parse().ok()?;
            Some(CheckResult::Reachable(Duration::from_micros(u64::from(latency))))
        }
        (b'u', []) => Some(CheckResult::Unreachable),
        (b'c', []) => Some(CheckResult::Refused),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_harness::RedisServer;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// A check that counts, and takes some time until it has a result.
    fn check(counter: &Arc<AtomicUsize>, time: Duration) -> BoxFuture<io::Result<CheckResult>> {
        let counter = Arc::clone(counter);
        Box::pin(async move {
            counter.fetch_add(1, Relaxed);
            tokio::time::sleep(time).await;
            Ok(CheckResult::Unreachable)
        })
    }

    /// The check of a server that does not answer takes all of its time, and the result is published later.
    #[tokio::test]
    async fn a_server_that_does_not_answer_is_checked_by_one_node() {
        let Some(server) = RedisServer::start(&[]) else { return };
        let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
        let timeout = Duration::from_millis(500);
        let target = CheckTarget { kind: CheckKind::Connect, addr: "203.0.113.1:8190".parse().unwrap() };
        let counter = Arc::new(AtomicUsize::new(0));
        let mut nodes = Vec::new();
        for node in 1..=3 {
            let connection = Arc::new(SharedConnection::default());
            connection.set(Some(client.connect().await.unwrap()));
            let checks = StoreChecks::new(client.clone(), connection, node);
            let request = CheckRequest { target, timeout };
            nodes.push(tokio::spawn(checks.coordinate(request, check(&counter, timeout + POLL_INTERVAL))));
        }
        for node in nodes {
            assert_eq!(node.await.unwrap().unwrap(), CheckResult::Unreachable);
        }
        assert_eq!(counter.load(Relaxed), 1);
    }

    #[test]
    fn results_are_parsed_and_claims_are_not() {
        for result in
            [CheckResult::Reachable(Duration::from_micros(1_234)), CheckResult::Unreachable, CheckResult::Refused]
        {
            assert_eq!(parse(&emit(result).unwrap()), Some(result));
        }
        assert_eq!(emit(CheckResult::Unknown), None);
        for other in [&b""[..], b"n17", b"r", b"rx", b"r99999999999", b"ux"] {
            assert_eq!(parse(other), None);
        }
    }
}
