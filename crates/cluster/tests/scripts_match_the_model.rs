//! The scripts of the store do what its model does: the same random changes give the same results, log and entries with a real
//! redis-server.

use crate::support;

use rallypoint_cluster::{
    BanWrite, ClusterSecret, EntryValue, LeaseWrite, Reply, Request, StoreClient, StoreConnection, Write, WriteResult,
};
use rallypoint_harness::RedisServer;
use rallypoint_lobby_proto::{ListingOrigin, PublicId, UnlistReason};
use rallypoint_wire::lobby::{ListBlock, ListId, Occupancy, TableBuf, Transport};
use std::net::SocketAddr;
use support::{Random, model::ModelStore};

const EPOCH: [u8; 16] = [7; 16];

struct Stores {
    client: StoreClient,
    connection: StoreConnection,
    model: ModelStore,
}

impl Stores {
    /// Executes a request with both, and compares the replies except for the time.
    async fn execute(&mut self, request: Request) -> Reply {
        let reply = self.client.execute(&mut self.connection, &request).await.unwrap();
        match &reply {
            Reply::Opened(opened) => self.model.now = opened.time,
            Reply::Ticked(Some(ticked)) => self.model.now = ticked.time,
            _ => {}
        }
        let expected = self.model.execute(&request);
        let expected = expected.unwrap_or(Reply::Log { records: Vec::new(), is_malformed: false });
        assert_eq!(sorted(reply.clone()), sorted(expected), "{request:?}");
        reply
    }
}

/// A reply in an order that does not depend on hash tables.
fn sorted(mut reply: Reply) -> Reply {
    match &mut reply {
        Reply::Scanned { entries, cursor, .. } => {
            entries.sort_by_key(|(id, _)| *id);
            *cursor = 0;
        }
        Reply::Ticked(Some(ticked)) => ticked.nodes = None,
        _ => {}
    }
    reply
}

fn id(number: u64) -> PublicId {
    PublicId::from_bytes((u128::from(number) << 64 | 0xff).to_be_bytes())
}

type Addrs = Option<(SocketAddr, SocketAddr)>;

/// A registered server at these addresses.
fn value(transport: Transport, v4: Addrs, v6: Addrs, random: &mut Random) -> EntryValue {
    let mut table = TableBuf::new();
    table.push(b"name", format!("server \0\u{e9} {}", random.below(3)).as_bytes()).unwrap();
    let mut block = Vec::new();
    ListBlock { transport, v4: None, v6: None, occupancy: Occupancy::default(), table: table.as_table() }
        .emit(&mut block);
    EntryValue {
        seq: 0,
        origin: ListingOrigin::Registered,
        transport,
        v4,
        v6,
        list_id: ListId::from_bytes([random.below(2) as u8; 16]),
        since: 5,
        is_proven: random.chance(50),
        door: None,
        block: block[4..].to_vec(),
    }
}

fn random_write(random: &mut Random, now: u64) -> Write {
    let server = id(random.below(6));
    let deadline = now + 60_000 + random.below(12_000);
    match random.below(10) {
        0..7 => {
            let transport = if random.chance(80) { Transport::Udp } else { Transport::Tcp };
            let addr = |text: String| -> (SocketAddr, SocketAddr) {
                let external: SocketAddr = text.parse().unwrap();
                (SocketAddr::new(external.ip(), 9_999), external)
            };
            let v4 = addr(format!("203.0.113.{}:8190", random.below(4)));
            let v6 = addr(format!("[2001:db8::{}]:8190", random.below(4)));
            let has_v6 = random.chance(50);
            let has_v4 = !has_v6 || random.chance(50);
            let origin = ListingOrigin::ALL[if random.chance(85) { 0 } else { 1 + random.below(2) as usize }];
            let v4_lease = if has_v4 { deadline } else { 0 };
            let v6_lease = if has_v6 { deadline + random.below(500) } else { 0 };
            let value = value(transport, has_v4.then_some(v4), has_v6.then_some(v6), random);
            let value = Box::new(EntryValue { origin, ..value });
            Write::Put { id: server, value, leases: [v4_lease, v6_lease] }
        }
        7 | 8 => {
            let reasons = [UnlistReason::Unregistered, UnlistReason::Replaced, UnlistReason::Unreachable];
            Write::Remove { id: server, reason: reasons[random.below(3) as usize], deadline }
        }
        _ => {
            let subject = format!("203.0.113.{}", random.below(3)).into_bytes();
            let (since, is_current) = (100 + random.below(50), random.chance(30));
            Write::Ban(BanWrite { subject, value: b"{}".to_vec(), since, end: random.below(2) * now, is_current })
        }
    }
}

#[tokio::test]
async fn random_changes_have_the_same_results() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let connection = client.connect().await.unwrap();
    let secret = ClusterSecret::new("the secret of the tests' cluster").unwrap();
    for seed in 0..10 {
        let mut random = Random(seed);
        let _ = server.command(&["FLUSHALL"]);
        let mut stores = Stores { client: client.clone(), connection: connection.clone(), model: ModelStore::at(0) };
        let Reply::Opened(opened) =
            stores.execute(Request::Open { epoch: EPOCH, secret_check: secret.check_value() }).await
        else {
            panic!("not opened")
        };
        let mut refused = 0;
        for round in 0..40_u64 {
            let writes = (0..random.below(12) + 1).map(|n| {
                ((u128::from(round) << 64 | u128::from(n)).to_be_bytes(), random_write(&mut random, opened.time))
            });
            let request = Request::Write { epoch: EPOCH, writes: writes.collect() };
            let Reply::Written(Some(results)) = stores.execute(request).await else { panic!("another epoch") };
            refused += results.iter().filter(|result| matches!(result, WriteResult::Refused(..))).count();
            let lease = LeaseWrite {
                id: id(random.below(6)),
                is_ipv6: random.chance(50),
                deadline: opened.time + 60_000 + random.below(20_000),
            };
            stores.execute(Request::Renew(vec![lease])).await;
            stores.execute(Request::Fetch((0..6).map(id).collect())).await;
            if random.chance(20) {
                let token = u128::from(round).to_be_bytes();
                stores
                    .execute(Request::Tick { epoch: EPOCH, token, node: 1, report: Some(b"report".to_vec()), after: 0 })
                    .await;
            }
        }
        assert!(refused > 10, "seed {seed}: {refused} changes were refused");
        stores.execute(Request::ReadLog { after: 0 }).await;
        let Reply::Scanned { entries, .. } =
            stores.client.execute(&mut stores.connection, &Request::Scan { cursor: 0 }).await.unwrap()
        else {
            panic!("no entries")
        };
        assert_eq!(entries.into_iter().collect::<std::collections::BTreeMap<_, _>>(), stores.model.entries);
    }
}

/// Leases that have ended, after the time that nodes have to renew them.
#[tokio::test]
async fn ended_leases_are_removed_one_family_at_a_time() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let connection = client.connect().await.unwrap();
    let mut stores = Stores { client, connection, model: ModelStore::at(0) };
    let secret_check = [1; 16];
    let Reply::Opened(opened) = stores.execute(Request::Open { epoch: EPOCH, secret_check }).await else { panic!() };
    // As if nodes had been at work for a while.
    let _ = server.command(&["HSET", "{rp:test}:meta", "ticked", &opened.time.to_string(), "grace", "0"]);
    stores.model.skip_grace(opened.time);
    let mut random = Random(3);
    let mut write = |number: u64, v4: u64, v6: u64| {
        let at = [addrs(&format!("203.0.113.{number}:1")), addrs(&format!("[2001:db8::{number}]:1"))];
        let value = value(Transport::Udp, Some(at[0]), Some(at[1]), &mut random);
        Write::Put { id: id(number), value: Box::new(value), leases: [v4, v6] }
    };
    let (past, future) = (opened.time - 10, opened.time + 60_000);
    let writes = vec![write(1, past, future), write(2, past, past - 5), write(3, future, future)];
    let writes = writes.into_iter().map(|write| ([1; 16], write)).collect();
    stores.execute(Request::Write { epoch: EPOCH, writes }).await;
    stores
        .execute(Request::Tick { epoch: EPOCH, token: [2; 16], node: 1, report: Some(b"{}".to_vec()), after: 0 })
        .await;
    stores.execute(Request::Fetch(vec![id(1), id(2), id(3)])).await;
    let Reply::Fetched(entries) =
        stores.client.execute(&mut stores.connection, &Request::Fetch(vec![id(1), id(2), id(3)])).await.unwrap()
    else {
        panic!("no entries")
    };
    let families = entries.iter().map(|entry| entry.as_ref().map(|entry| (entry.v4.is_some(), entry.v6.is_some())));
    assert_eq!(families.collect::<Vec<_>>(), [Some((false, true)), None, Some((true, true))]);
}

fn addrs(text: &str) -> (SocketAddr, SocketAddr) {
    (text.parse().unwrap(), text.parse().unwrap())
}

#[tokio::test]
async fn an_emptied_store_refuses_changes_of_the_old_epoch() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let mut connection = client.connect().await.unwrap();
    client.execute(&mut connection, &Request::Open { epoch: EPOCH, secret_check: [1; 16] }).await.unwrap();
    let _ = server.command(&["FLUSHALL"]);
    let remove = Write::Remove { id: id(1), reason: UnlistReason::Replaced, deadline: 0 };
    let write = Request::Write { epoch: EPOCH, writes: vec![([0; 16], remove)] };
    assert_eq!(client.execute(&mut connection, &write).await, Ok(Reply::Written(None)));
    let tick = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: Some(b"{}".to_vec()), after: 0 };
    assert_eq!(client.execute(&mut connection, &tick).await, Ok(Reply::Ticked(None)));
}

/// Keys of other programs are left alone, and values of theirs in our keys are skipped.
#[tokio::test]
async fn garbage_in_the_store_is_skipped() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let mut connection = client.connect().await.unwrap();
    let _ = server.command(&["SET", "other", "value"]);
    client.execute(&mut connection, &Request::Open { epoch: EPOCH, secret_check: [1; 16] }).await.unwrap();
    let _ = server.command(&["HSET", "{rp:test}:entry", "x", "y", "0123456789abcdef", "\u{1}garbage"]);
    let _ = server.command(&["HSET", "{rp:test}:node", "x", "y"]);
    let _ = server.command(&["ZADD", "{rp:test}:lease", "1", "garbage"]);
    let _ = server.command(&["XADD", "{rp:test}:log", "1-0", "a", "b"]);
    let scanned = client.execute(&mut connection, &Request::Scan { cursor: 0 }).await.unwrap();
    assert_eq!(scanned, Reply::Scanned { cursor: 0, entries: Vec::new(), malformed: 2 });
    let log = client.execute(&mut connection, &Request::ReadLog { after: 0 }).await.unwrap();
    assert_eq!(log, Reply::Log { records: Vec::new(), is_malformed: true });
    let tick = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: Some(b"{}".to_vec()), after: 0 };
    assert!(matches!(client.execute(&mut connection, &tick).await, Ok(Reply::Ticked(Some(_)))));
    assert_eq!(server.command(&["GET", "other"]), "value");
}

/// Bans that ended or were lifted more than 30 days ago are removed; others, and garbage, stay.
#[tokio::test]
async fn old_bans_are_removed_from_the_store() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let mut connection = client.connect().await.unwrap();
    let open = Request::Open { epoch: EPOCH, secret_check: [1; 16] };
    let Reply::Opened(opened) = client.execute(&mut connection, &open).await.unwrap() else { panic!("not opened") };
    let ban = |subject: &str, end: u64| {
        let _ = server.command(&["HSET", "{rp:test}:ban", subject, &format!("5 {end} {{}}")]);
    };
    let days = |days: u64| opened.time - days * 86_400_000;
    [("old", days(31)), ("recent", days(29)), ("permanent", 0)].into_iter().for_each(|(name, end)| ban(name, end));
    let _ = server.command(&["HSET", "{rp:test}:ban", "garbage", "x"]);
    let tick = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: Some(b"{}".to_vec()), after: 0 };
    client.execute(&mut connection, &tick).await.unwrap();
    let mut left: Vec<_> = server.command(&["HKEYS", "{rp:test}:ban"]).lines().map(str::to_owned).collect();
    left.sort();
    assert_eq!(left, ["garbage", "permanent", "recent"]);
}

/// The store's clock was set back: everything is written again, in the new time.
#[tokio::test]
async fn a_clock_that_was_set_back_begins_a_new_epoch() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let mut connection = client.connect().await.unwrap();
    let open = Request::Open { epoch: EPOCH, secret_check: [1; 16] };
    let Reply::Opened(opened) = client.execute(&mut connection, &open).await.unwrap() else { panic!("not opened") };
    let tick = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: Some(b"{}".to_vec()), after: 0 };
    for (ahead, is_kept) in [(500, true), (90_000, false)] {
        let ticked = (opened.time + ahead).to_string();
        let _ = server.command(&["HSET", "{rp:test}:meta", "ticked", &ticked]);
        let Reply::Ticked(ticked) = client.execute(&mut connection, &tick).await.unwrap() else { panic!("no tick") };
        assert_eq!(ticked.is_some(), is_kept, "{ahead}");
    }
}

/// The key of the leases was evicted or deleted: everything is written again, with leases.
#[tokio::test]
async fn lost_leases_begin_a_new_epoch() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let mut connection = client.connect().await.unwrap();
    let open = Request::Open { epoch: EPOCH, secret_check: [1; 16] };
    let Reply::Opened(opened) = client.execute(&mut connection, &open).await.unwrap() else { panic!("not opened") };
    let value = value(Transport::Udp, Some(addrs("203.0.113.1:8190")), None, &mut Random(1));
    let put = Write::Put { id: id(1), value: Box::new(value), leases: [opened.time + 60_000, 0] };
    let write = Request::Write { epoch: EPOCH, writes: vec![([0; 16], put)] };
    client.execute(&mut connection, &write).await.unwrap();
    let tick = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: None, after: 0 };
    assert!(matches!(client.execute(&mut connection, &tick).await, Ok(Reply::Ticked(Some(_)))));
    let _ = server.command(&["DEL", "{rp:test}:lease"]);
    assert_eq!(client.execute(&mut connection, &tick).await, Ok(Reply::Ticked(None)));
    assert_eq!(server.command(&["EXISTS", "{rp:test}:entry"]), "0");
}

/// One call ends a limited number of leases, and reports that there are more.
#[tokio::test]
async fn many_ended_leases_take_several_ticks() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let client = StoreClient::new(&server.url().parse().unwrap(), "test").unwrap();
    let mut connection = client.connect().await.unwrap();
    let open = Request::Open { epoch: EPOCH, secret_check: [1; 16] };
    let Reply::Opened(opened) = client.execute(&mut connection, &open).await.unwrap() else { panic!("not opened") };
    let _ = server.command(&["HSET", "{rp:test}:meta", "ticked", &opened.time.to_string(), "grace", "0"]);
    let leases: Vec<_> = (0..700).flat_map(|n| ["1".to_owned(), format!("4{n:016}")]).collect();
    let mut command = vec!["ZADD", "{rp:test}:lease"];
    command.extend(leases.iter().map(String::as_str));
    let _ = server.command(&command);
    let tick = Request::Tick { epoch: EPOCH, token: [0; 16], node: 1, report: Some(b"{}".to_vec()), after: 0 };
    let mut more = Vec::new();
    for _ in 0..2 {
        let Ok(Reply::Ticked(Some(ticked))) = client.execute(&mut connection, &tick).await else { panic!("no tick") };
        more.push(ticked.has_more);
    }
    assert_eq!(more, [true, false]);
}
