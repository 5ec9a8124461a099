//! A joining node reads all entries in parts whose size is bounded, and in few round trips.

use rallypoint_cluster::{Reply, Request, StoreClient};
use rallypoint_harness::RedisServer;

/// Fills the store with values of this size, and reads all of them. Returns the number of parts.
async fn scan(server: &RedisServer, count: u32, size: u32) -> u32 {
    let fill =
        "for n = 1, ARGV[1] do redis.call('HSET', KEYS[1], string.format('%016d', n), string.rep('x', ARGV[2])) end";
    let _ = server.command(&["DEL", "{rp:test}:entry"]);
    let _ = server.command(&["EVAL", fill, "1", "{rp:test}:entry", &count.to_string(), &size.to_string()]);
    assert_eq!(server.command(&["HLEN", "{rp:test}:entry"]), count.to_string());
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let mut connection = client.connect().await.unwrap();
    let (mut cursor, mut parts, mut values) = (0, 0, 0);
    loop {
        // Not entries: they are counted only, but read all the same.
        match client.execute(&mut connection, &Request::Scan { cursor }).await.unwrap() {
            Reply::Scanned { cursor: next, malformed, .. } => {
                cursor = next;
                values += malformed;
            }
            reply => panic!("{reply:?}"),
        }
        parts += 1;
        if cursor == 0 {
            assert!(values >= u64::from(count), "{values} of {count}");
            return parts;
        }
    }
}

#[tokio::test]
async fn many_small_entries_take_few_round_trips() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let parts = scan(&server, 20_000, 300).await;
    assert!(parts <= 8, "{parts} parts");
}

/// 20 MB in one part would be more than a slow connection carries in time.
#[tokio::test]
async fn long_entries_are_read_in_small_parts() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let parts = scan(&server, 400, 100_000).await;
    assert!(parts >= 3, "{parts} parts");
}
