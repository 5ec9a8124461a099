//! Numbers that another program wrote into the store do not stop the nodes for ever: the next change repairs them.

use rallypoint_cluster::{Reply, Request, StoreClient, StoreConnection, Write, WriteResult};
use rallypoint_harness::RedisServer;

const EPOCH: [u8; 16] = [7; 16];
const META: &str = "{rp:test}:meta";
const TICK: Request = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: None };

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
        let ban = Write::Ban { subject: b"name".into(), value: b"{}".into(), since: time, end: 0, is_current: false };
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
        let tick = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report };
        // The log is written anew; bans and messages are not needed for the list.
        let is_needed = ["meta", "entry", "lease", "node"].contains(&part);
        match client.execute(&mut connection, &tick).await {
            Err(error) => assert!(is_needed && error.message.contains(&key), "{part}: {error:?}"),
            Ok(reply) => assert!(!is_needed, "{part}: {reply:?}"),
        }
        let _ = server.command(&["DEL", &key]);
    }
}
