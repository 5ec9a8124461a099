//! Numbers that another program wrote into the store do not stop the nodes for ever: the next change repairs them.

use rallypoint_cluster::{BanWrite, Reply, Request, StoreClient, StoreConnection, Write, WriteResult};
use rallypoint_harness::RedisServer;

const EPOCH: [u8; 16] = [7; 16];
const META: &str = "{rp:test}:meta";
const TICK: Request = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: None, after: 0 };

async fn open(server: &RedisServer) -> (StoreClient, StoreConnection, u64) {
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let mut connection = client.connect().await.unwrap();
    let request = Request::Open { epoch: EPOCH, secret_check: [1; 16] };
    let Reply::Opened(opened) = client.execute(&mut connection, &request).await.unwrap() else { panic!("not opened") };
    (client, connection, opened.time)
}

#[tokio::test]
async fn times_are_bounded() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (client, mut connection, time) = open(&server).await;
    for garbage in ["inf", "-inf", "nan", "1e300", "99999999999999999999", "x", ""] {
        let now = time.to_string();
        let _ = server.command(&["HSET", META, "ticked", &now, "grace", garbage, "expired", garbage, "swept", garbage]);
        let reply = client.execute(&mut connection, &TICK).await;
        assert!(matches!(reply, Ok(Reply::Ticked(Some(_)))), "{garbage}: {reply:?}");
        let number = |field| server.command(&["HGET", META, field]).parse::<u64>();
        let grace = number("grace").unwrap_or_else(|_| panic!("{garbage}: the grace time is not a number"));
        assert!(grace <= time + 70_000, "{garbage}: {grace}");
        // Without the grace time, the next tick ends leases.
        let _ = server.command(&["HSET", META, "grace", "0"]);
        client.execute(&mut connection, &TICK).await.unwrap();
        let expired = number("expired").unwrap_or_else(|_| panic!("{garbage}: not the time of a tick"));
        assert!((time..time + 60_000).contains(&expired), "{garbage}: {expired}");
    }
}

/// A node could otherwise never change the ban again.
#[tokio::test]
async fn a_decision_replaces_one_with_an_impossible_time() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (client, mut connection, time) = open(&server).await;
    for garbage in ["9999999999999999 0 x", "99999999999999999999999999 0 x", "x"] {
        let _ = server.command(&["HSET", "{rp:test}:ban", "name", garbage]);
        let ban = Write::Ban(BanWrite {
            subject: b"name".into(),
            value: b"{}".into(),
            since: time,
            end: 0,
            is_current: false,
        });
        let write = Request::Write { epoch: EPOCH, writes: vec![([0; 16], ban)] };
        let Ok(Reply::Written(Some(results))) = client.execute(&mut connection, &write).await else {
            panic!("not written")
        };
        assert!(matches!(results[..], [WriteResult::Done(_)]), "{garbage}: {results:?}");
        assert_eq!(server.command(&["HGET", "{rp:test}:ban", "name"]), format!("{time} 0 {{}}"));
    }
}

/// The store's own error does not say which key has another type.
#[tokio::test]
async fn a_key_of_another_type_is_named() {
    let Some(server) = RedisServer::start(&[]) else { return };
    for part in ["meta", "entry", "at", "lease", "tomb", "log", "node", "ban", "msg"] {
        let (client, mut connection, _) = open(&server).await;
        let key = format!("{{rp:test}}:{part}");
        let _ = server.command(&["DEL", &key]);
        let _ = server.command(&["SET", &key, "x"]);
        let problem = client.status().await.problem.unwrap_or_default();
        assert!(problem.contains(&format!("the key {key} is a string")), "{problem}");
        let report = Some(b"{}".to_vec());
        let tick = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report, after: 0 };
        // The log is written anew; bans and messages are not needed for the list.
        let is_needed = ["meta", "entry", "at", "lease", "node"].contains(&part);
        match client.execute(&mut connection, &tick).await {
            Err(error) => assert!(is_needed && error.message.contains(&key), "{part}: {error:?}"),
            Ok(reply) => assert!(!is_needed, "{part}: {reply:?}"),
        }
        let _ = server.command(&["DEL", &key]);
    }
}

/// All entries are checked in turn, some at each tick that ends leases: one bad value of many is found after a bounded time.
#[tokio::test]
async fn one_overwritten_entry_of_many_is_found() {
    const COUNT: usize = 2_000;
    let Some(server) = RedisServer::start(&[]) else { return };
    let (client, mut connection, time) = open(&server).await;
    let fill = "for n = 1, tonumber(ARGV[1]) do \
                redis.call('HSET', KEYS[1], string.format('%016d', n), '\\1' .. string.rep('\\0', 9) .. 'u\\12' .. string.rep('x', 12) \
                .. '\\0' .. string.rep('x', 100)) \
                redis.call('HSET', KEYS[3], n, string.format('%016d', n)) \
                redis.call('ZADD', KEYS[2], ARGV[2], string.format('4%016d', n)) end";
    let (entries, later) = ("{rp:test}:entry", (time + 3_600_000).to_string());
    let (leases, endpoints) = ("{rp:test}:lease", "{rp:test}:at");
    let _ = server.command(&["EVAL", fill, "3", entries, leases, endpoints, &COUNT.to_string(), &later]);
    // After this one, leases end without a time of grace.
    client.execute(&mut connection, &TICK).await.unwrap();
    for (round, cursor) in ["0", "garbage", "7"].into_iter().enumerate() {
        let field = format!("{:016}", 300 * round + 7);
        let _ = server.command(&["HSET", META, "checked", cursor]);
        let _ = server.command(&["HSET", entries, &field, "another program's value"]);
        let mut ticks = 0;
        while server.command(&["HEXISTS", entries, &field]) == "1" {
            ticks += 1;
            assert!(ticks <= 2 * COUNT / 100, "the value was not found");
            let _ = server.command(&["HSET", META, "grace", "0", "expired", "0"]);
            client.execute(&mut connection, &TICK).await.unwrap();
        }
        assert_eq!(server.command(&["HLEN", entries]), (COUNT - 1 - round).to_string());
    }
}

/// The next tick of a node shows that records are gone that it has not read.
#[tokio::test]
async fn a_tick_shows_whether_the_log_goes_on() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (client, mut connection, time) = open(&server).await;
    let ban = |subject: &[u8]| {
        let ban = Write::Ban(BanWrite {
            subject: subject.into(),
            value: b"{}".into(),
            since: time,
            end: 0,
            is_current: true,
        });
        Request::Write { epoch: EPOCH, writes: vec![([0; 16], ban)] }
    };
    for subject in [b"a", b"b", b"c"] {
        client.execute(&mut connection, &ban(subject)).await.unwrap();
    }
    let log = "{rp:test}:log";
    let trimmed = server.command(&["XTRIM", log, "MAXLEN", "1"]);
    assert_eq!(trimmed, "2");
    for (after, expected) in [(0, false), (1, false), (2, true), (3, true)] {
        let tick = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: None, after };
        let Ok(Reply::Ticked(Some(ticked))) = client.execute(&mut connection, &tick).await else { panic!("no tick") };
        assert_eq!((ticked.seq, ticked.is_log_complete), (3, expected), "after {after}");
    }
    let _ = server.command(&["DEL", log]);
    let tick = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: None, after: 2 };
    assert!(matches!(client.execute(&mut connection, &tick).await, Ok(Reply::Ticked(Some(t))) if !t.is_log_complete));
}
