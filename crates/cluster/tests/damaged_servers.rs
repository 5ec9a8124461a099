//! Servers whose entry, lease or endpoint another program has damaged: the scripts find each kind, and the nodes write the server again.

use rallypoint_cluster::{EntryValue, Reply, Request, StoreClient, StoreConnection, Write, WriteResult};
use rallypoint_harness::RedisServer;
use rallypoint_lobby_proto::{ListingOrigin, PublicId};
use rallypoint_wire::lobby::{ListBlock, ListId, Occupancy, TableBuf, Transport};
use std::net::SocketAddr;

const EPOCH: [u8; 16] = [7; 16];
const META: &str = "{rp:test}:meta";
const ENTRY: &str = "{rp:test}:entry";
const LEASE: &str = "{rp:test}:lease";
const AT: &str = "{rp:test}:at";

/// A public ID that is text, so that redis-cli can name it.
fn id(letter: char) -> PublicId {
    PublicId::from_bytes([letter as u8; 16])
}

fn field(letter: char) -> String {
    letter.to_string().repeat(16)
}

struct Store {
    server: RedisServer,
    client: StoreClient,
    connection: StoreConnection,
    /// The store's time when it was opened.
    time: u64,
}

impl Store {
    async fn open() -> Option<Self> {
        let server = RedisServer::start(&[])?;
        let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
        let mut connection = client.connect().await.unwrap();
        let request = Request::Open { epoch: EPOCH, secret_check: [1; 16] };
        let Reply::Opened(opened) = client.execute(&mut connection, &request).await.unwrap() else {
            panic!("not opened")
        };
        let mut store = Self { server, client, connection, time: opened.time };
        // After this one, leases end without a time of grace.
        assert!(store.tick().await.is_some());
        Some(store)
    }

    /// Lists a server at an address.
    async fn put(&mut self, letter: char, addr: &str) -> WriteResult {
        let mut table = TableBuf::new();
        table.push(b"name", b"a server").unwrap();
        let transport = Transport::Udp;
        let mut block = Vec::new();
        ListBlock { transport, v4: None, v6: None, occupancy: Occupancy::default(), table: table.as_table() }
            .emit(&mut block);
        let list_id = ListId::from_bytes([1; 16]);
        let addr: SocketAddr = addr.parse().unwrap();
        let value = EntryValue {
            seq: 0,
            origin: ListingOrigin::Registered,
            transport,
            v4: Some((addr, addr)),
            v6: None,
            list_id,
            since: self.time,
            is_proven: false,
            door: None,
            block: block[4..].to_vec(),
        };
        let put = Write::Put { id: id(letter), value: Box::new(value), leases: [self.time + 70_000, 0] };
        let request = Request::Write { epoch: EPOCH, writes: vec![([letter as u8; 16], put)] };
        match self.client.execute(&mut self.connection, &request).await.unwrap() {
            Reply::Written(Some(mut results)) => results.remove(0),
            reply => panic!("{reply:?}"),
        }
    }

    /// Number of servers after a tick that ends leases; `None` if the store has to be filled again.
    async fn tick(&mut self) -> Option<u64> {
        let _ = self.server.command(&["HSET", META, "grace", "0", "expired", "0"]);
        let tick = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: None, after: 0 };
        match self.client.execute(&mut self.connection, &tick).await.unwrap() {
            Reply::Ticked(ticked) => ticked.map(|ticked| ticked.servers),
            reply => panic!("{reply:?}"),
        }
    }

    /// The servers that a joining node reads, and the number of values that are not valid.
    async fn scan(&mut self) -> (Vec<PublicId>, u64) {
        match self.client.execute(&mut self.connection, &Request::Scan { cursor: 0 }).await.unwrap() {
            Reply::Scanned { cursor: 0, entries, malformed } => {
                (entries.into_iter().map(|(id, _): (_, EntryValue)| id).collect(), malformed)
            }
            reply => panic!("{reply:?}"),
        }
    }

    /// Changes the entry of a server; `code` is an expression of its value.
    fn damage(&self, letter: char, code: &str) {
        let script = format!(
            "local value = redis.call('HGET', KEYS[1], ARGV[1]) redis.call('HSET', KEYS[1], ARGV[1], {code}) return 'done'"
        );
        assert_eq!(self.server.command(&["EVAL", &script, "1", ENTRY, &field(letter)]), "done");
    }

    fn servers(&self) -> String {
        self.server.command(&["HLEN", ENTRY])
    }
}

/// Each of these begins as an entry does.
#[tokio::test]
async fn an_entry_that_was_cut_off_is_deleted() {
    let Some(mut store) = Store::open().await else { return };
    store.put('b', "203.0.113.2:8190").await;
    for (code, is_found_by_tick) in [
        ("string.sub(value, 1, 20)", true),
        ("string.sub(value, 1, 40)", true),
        ("string.sub(value, 1, 11) .. '\\7' .. string.sub(value, 13)", true),
        // The rest is opaque to the scripts.
        ("string.sub(value, 1, #value - 1)", false),
    ] {
        store.put('a', "203.0.113.1:8190").await;
        assert_eq!(store.servers(), "2");
        store.damage('a', code);
        if is_found_by_tick {
            assert_eq!(store.tick().await, Some(1), "{code}");
        } else {
            assert_eq!(store.tick().await, Some(2), "{code}");
            assert_eq!(store.scan().await, (vec![id('b')], 1), "{code}");
        }
        assert_eq!(store.servers(), "1", "{code}");
        assert_eq!(store.scan().await, (vec![id('b')], 0), "{code}");
    }
}

/// Nodes would take all changes of that server for older ones.
#[tokio::test]
async fn an_entry_with_a_later_number_than_the_last_change_is_deleted() {
    let Some(mut store) = Store::open().await else { return };
    store.put('a', "203.0.113.1:8190").await;
    let later = "string.sub(value, 1, 1) .. string.rep('\\255', 8) .. string.sub(value, 10)";
    store.damage('a', later);
    assert_eq!(store.tick().await, Some(0));
    store.put('a', "203.0.113.1:8190").await;
    store.damage('a', later);
    assert_eq!(store.scan().await, (vec![], 1));
    store.put('a', "203.0.113.1:8190").await;
    store.damage('a', later);
    assert!(matches!(store.put('a', "203.0.113.1:8190").await, WriteResult::Done(seq) if seq < 100));
    assert_eq!(store.scan().await, (vec![id('a')], 0));
}

/// Changes of that server would seem to be older, and it would never expire.
#[tokio::test]
async fn a_lease_that_no_node_can_have_set_ends() {
    let Some(mut store) = Store::open().await else { return };
    for score in ["+inf", "1e300", "99999999999999"] {
        store.put('a', "203.0.113.1:8190").await;
        let _ = store.server.command(&["ZADD", LEASE, score, &format!("4{}", field('a'))]);
        assert!(matches!(store.put('a', "203.0.113.1:8190").await, WriteResult::Refused(..)), "{score}");
        assert_eq!(store.tick().await, Some(0), "{score}");
        assert!(matches!(store.put('a', "203.0.113.1:8190").await, WriteResult::Done(_)), "{score}");
    }
    assert_eq!(store.tick().await, Some(1), "a lease of a node stays");
}

/// L8 would replace a server at another address.
#[tokio::test]
async fn an_endpoint_that_names_the_wrong_server_replaces_none() {
    let Some(mut store) = Store::open().await else { return };
    store.put('a', "203.0.113.1:8190").await;
    store.put('b', "203.0.113.2:8190").await;
    let swap = "local keys = redis.call('HKEYS', KEYS[1]) for _, key in ipairs(keys) do \
                redis.call('HSET', KEYS[1], key, ARGV[1]) end return #keys";
    assert_eq!(store.server.command(&["EVAL", swap, "1", AT, &field('b')]), "2");
    // A third server at the first address: only the first one is replaced, if any is.
    assert!(matches!(store.put('c', "203.0.113.1:8190").await, WriteResult::Done(_)));
    let (mut servers, _) = store.scan().await;
    servers.sort();
    assert_eq!(servers, [id('a'), id('b'), id('c')]);
    // The second one is where the index says.
    assert!(matches!(store.put('c', "203.0.113.2:8190").await, WriteResult::Done(_)));
    assert_eq!(store.servers(), "2");
}

#[tokio::test]
async fn a_store_without_endpoints_is_filled_again() {
    let Some(mut store) = Store::open().await else { return };
    store.put('a', "203.0.113.1:8190").await;
    let _ = store.server.command(&["DEL", AT]);
    assert_eq!(store.tick().await, None);
    assert_eq!(store.servers(), "0");
}
