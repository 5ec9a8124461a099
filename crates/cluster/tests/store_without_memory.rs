//! A store that answers but does not take changes (without memory, a replica, with values of another program) is recognised when it is
//! opened, and ends no leases.

use crate::support;

use rallypoint_cluster::{
    BanWrite, EntryValue, LeaseWrite, Reply, Request, StoreClient, StoreConnection, StoreError, StoreErrorKind, Write,
};
use rallypoint_harness::RedisServer;
use rallypoint_lobby_proto::{ListingOrigin, PublicId};
use rallypoint_wire::lobby::{ListBlock, Occupancy, TableBuf, Transport};

const EPOCH: [u8; 16] = [7; 16];
const SECRET: [u8; 16] = [1; 16];
const OPEN: Request = Request::Open { epoch: EPOCH, secret_check: SECRET };
const TICK: Request = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: None, after: 0 };

struct Store {
    server: RedisServer,
    client: StoreClient,
    connection: StoreConnection,
}

impl Store {
    /// A store that was set up some time ago, with one server whose lease has ended.
    async fn start() -> Option<Self> {
        let server = RedisServer::start(&[])?;
        let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
        let connection = client.connect().await.unwrap();
        let mut store = Self { server, client, connection };
        let Reply::Opened(opened) = store.execute(&OPEN).await.unwrap() else { panic!("not opened") };
        store.execute(&put(opened.time - 10)).await.unwrap();
        store.command(&["HSET", "{rp:test}:meta", "ticked", &opened.time.to_string(), "grace", "0"]);
        Some(store)
    }

    async fn execute(&mut self, request: &Request) -> Result<Reply, StoreError> {
        self.client.execute(&mut self.connection, request).await
    }

    fn command(&self, arguments: &[&str]) -> String {
        let reply = self.server.command(arguments);
        assert!(!reply.contains("ERR"), "{arguments:?}: {reply}");
        reply
    }

    fn servers(&self) -> String {
        self.command(&["HLEN", "{rp:test}:entry"])
    }
}

/// A server with a lease until this time.
fn put(lease: u64) -> Request {
    let transport = Transport::Udp;
    let mut block = Vec::new();
    let table = TableBuf::new();
    ListBlock { transport, v4: None, v6: None, occupancy: Occupancy::default(), table: table.as_table() }
        .emit(&mut block);
    let addr = "203.0.113.1:8190".parse().unwrap();
    let value = EntryValue {
        seq: 0,
        origin: ListingOrigin::Registered,
        transport,
        v4: Some((addr, addr)),
        v6: None,
        list_id: support::LOBBY,
        since: 5,
        is_proven: false,
        door: None,
        block: block[4..].to_vec(),
    };
    let put = Write::Put { id: PublicId::from_bytes([9; 16]), value: Box::new(value), leases: [lease, 0] };
    Request::Write { epoch: EPOCH, writes: vec![([0; 16], put)] }
}

/// Leases cannot be renewed there. If they ended, every node would lose the servers of the others.
#[tokio::test]
async fn nothing_is_opened_and_no_lease_ends_while_changes_are_refused() {
    for (commands, repair) in [
        (["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]),
        (["REPLICAOF", "127.0.0.1", "1", ""], ["REPLICAOF", "NO", "ONE", ""]),
    ] {
        let Some(mut store) = Store::start().await else { return };
        let words =
            |command: [&'static str; 4]| command.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>();
        store.command(&words(commands));
        let lease = LeaseWrite { id: PublicId::from_bytes([9; 16]), is_ipv6: false, deadline: u64::MAX >> 12 };
        for request in [OPEN, TICK, Request::Renew(vec![lease])] {
            let error = store.execute(&request).await.expect_err("an error");
            assert_eq!(error.kind, StoreErrorKind::ReadOnly, "{request:?}: {error}");
        }
        assert_eq!(store.servers(), "1");
        store.command(&words(repair));
        assert!(matches!(store.execute(&OPEN).await, Ok(Reply::Opened(opened)) if opened.epoch == EPOCH));
        store.execute(&TICK).await.unwrap();
        assert_eq!(store.servers(), "0", "the lease ends when it could have been renewed");
    }
}

/// An emptied store without memory is not set up.
#[tokio::test]
async fn an_empty_store_without_memory() {
    let Some(mut store) = Store::start().await else { return };
    store.command(&["FLUSHALL"]);
    store.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(store.execute(&OPEN).await.expect_err("an error").kind, StoreErrorKind::ReadOnly);
    assert_eq!(store.command(&["DBSIZE"]), "0");
}

#[tokio::test]
async fn a_key_of_another_type_is_named() {
    for key in ["meta", "entry", "at", "lease", "tomb", "node"] {
        let Some(mut store) = Store::start().await else { return };
        let key = format!("{{rp:test}}:{key}");
        store.command(&["SET", &key, "another program's"]);
        let error = store.execute(&OPEN).await.expect_err("an error");
        assert_eq!(error.kind, StoreErrorKind::Foreign, "{error}");
        assert!(error.message.contains(&format!("the key {key} is a string, not a ")), "{error}");
        assert_eq!(store.command(&["GET", &key]), "another program's", "it is left alone");
    }
}

/// The list does not depend on the bans and the log.
#[tokio::test]
async fn bans_and_log_of_another_type() {
    let Some(mut store) = Store::start().await else { return };
    store.command(&["SET", "{rp:test}:ban", "another program's"]);
    store.command(&["SET", "{rp:test}:log", "another program's"]);
    assert!(matches!(store.execute(&OPEN).await, Ok(Reply::Opened(_))));
    assert!(matches!(store.execute(&TICK).await, Ok(Reply::Ticked(Some(ticked))) if ticked.bans.is_none()));
    let bans = store.execute(&Request::Bans).await;
    assert_eq!(bans, Ok(Reply::Bans { bans: Vec::new(), left_out: 0, malformed: 1 }));
    let ban = Write::Ban(BanWrite { subject: b"x".to_vec(), value: Vec::new(), since: 1, end: 0, is_current: true });
    let write = Request::Write { epoch: EPOCH, writes: vec![([0; 16], ban)] };
    assert!(matches!(store.execute(&write).await, Ok(Reply::Written(Some(_)))));
    assert_eq!(store.command(&["GET", "{rp:test}:ban"]), "another program's");
}
