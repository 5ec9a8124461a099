//! Every filter and order against a naive implementation.

use super::*;
use crate::{
    ListNames,
    live::{Cursor, LiveSnapshot},
};
use proptest::prelude::*;
use rallypoint_lobby::{ServerTable, TableScope, WallClock};
use rallypoint_lobby_proto::{Config, HashKeys, Registry};
use rallypoint_wire::lobby::{Occupancy, Registration, ServerId, TableBuf, Transport};
use std::{
    cmp::Ordering,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::{Instant, SystemTime},
};

const DEFAULTS: QueryDefaults = QueryDefaults {
    sort: Sort::ascending(Column::Id),
    limit: MAX_ROWS,
    max_limit: 1_000,
    by_page: false,
    is_strict: true,
};

fn parse(text: &str, defaults: &QueryDefaults) -> Result<ListQuery, InvalidParameter> {
    ListQuery::parse(text, defaults, &ListNames::default())
}

/// A generated server.
#[derive(Clone, Debug)]
struct TestServer {
    list: u8,
    texts: [String; 4],
    occupancy: Occupancy,
    families: (bool, bool),
}

fn test_server() -> impl Strategy<Value = TestServer> {
    let text = || prop_oneof!["[abAB ]{0,4}", Just("Straße".to_owned())];
    let occupancy = (0..4u16, 0..3u16, 0..4u16, any::<bool>()).prop_map(|(players, bots, slots, password)| Occupancy {
        players,
        bots,
        slots,
        password,
    });
    let families = prop_oneof![Just((true, false)), Just((false, true)), Just((true, true))];
    (0..3u8, [text(), text(), text(), text()], occupancy, families)
        .prop_map(|(list, texts, occupancy, families)| TestServer { list, texts, occupancy, families })
}

fn list(number: u8) -> ListId {
    ListId::from_bytes([number; 16])
}

/// A snapshot with these servers. The key `x` holds the index of each.
fn snapshot(servers: &[TestServer]) -> Arc<TableSnapshot> {
    let now = Instant::now();
    let mut registry = Registry::new(Config::default(), HashKeys::default(), now).unwrap();
    for (index, server) in (0u8..).zip(servers) {
        let mut table = TableBuf::new();
        for (key, text) in [&b"name"[..], b"map", b"game", b"game_ver"].into_iter().zip(&server.texts) {
            table.push(key, text.as_bytes()).unwrap();
        }
        table.push(b"x", index.to_string().as_bytes()).unwrap();
        let id = ServerId::from_bytes([index; 16]);
        let port = (1_000 + u16::from(index)).try_into().unwrap();
        let list = list(server.list);
        let registration =
            Registration::new(id, list, Transport::Udp, port, server.occupancy, table.as_table()).unwrap();
        let mut datagram = Vec::new();
        registration.emit(&mut datagram);
        let v4 = IpAddr::from(Ipv4Addr::new(192, 0, 2, index));
        let v6 = IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, index.into(), 0, 0, 0, 0, 1));
        for (_, ip) in [(server.families.0, v4), (server.families.1, v6)].into_iter().filter(|(has, _)| *has) {
            assert!(registry.handle_datagram(now, (ip, 5_000).into(), &datagram).is_listed());
        }
    }
    registry.publish(now);
    let mut table = ServerTable::new(now, WallClock::new(now, SystemTime::now()), TableScope::All);
    table.handle_list(&registry.lists().snapshot());
    table.handle_timeout(now);
    Arc::clone(table.published())
}

fn index(row: &ServerRecord) -> usize {
    row.table().iter().find(|(key, _)| key == "x").unwrap().1.parse().unwrap()
}

/// The parameters of a query.
#[derive(Clone, Debug)]
struct TestQuery {
    q: Option<String>,
    list: Option<u8>,
    exact: [Option<String>; 3],
    switches: [bool; 4],
    sort: (usize, bool),
    part: (usize, usize),
}

fn test_query() -> impl Strategy<Value = TestQuery> {
    let exact = || {
        prop::option::weighted(0.2, prop_oneof!["[abAB]{1,2}", Just("STRASSE".to_owned()), Just("STRAßE".to_owned())])
    };
    (
        prop::option::weighted(0.4, "[abAB ]{0,3}"),
        prop::option::weighted(0.4, 0..4u8),
        [exact(), exact(), exact()],
        prop::array::uniform4(prop::bool::weighted(0.3)),
        (0..Column::ALL.len(), any::<bool>()),
        (0..6usize, 1..8usize),
    )
        .prop_map(|(q, list, exact, switches, sort, part)| TestQuery { q, list, exact, switches, sort, part })
}

impl TestQuery {
    /// The query string.
    fn to_query_string(&self) -> String {
        let mut out = form_urlencoded::Serializer::new(String::new());
        let texts = [("q", &self.q), ("map", &self.exact[0]), ("game", &self.exact[1]), ("version", &self.exact[2])];
        for (name, text) in texts {
            out.extend_pairs(text.iter().map(|text| (name, text)));
        }
        out.extend_pairs(self.list.map(|number| ("list", list(number).to_string())));
        for (name, on) in ["not_empty", "not_full", "no_password", "both_families"].into_iter().zip(self.switches) {
            out.extend_pairs(on.then_some((name, "1")));
        }
        let (column, descending) = self.sort;
        out.append_pair("sort", &format!("{}{}", if descending { "-" } else { "" }, Column::ALL[column].0));
        out.append_pair("offset", &self.part.0.to_string()).append_pair("limit", &self.part.1.to_string());
        out.finish()
    }

    fn matches(&self, server: &TestServer) -> bool {
        let lower = |text: &str| text.to_lowercase();
        let same =
            |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| lower(wanted) == lower(text));
        let has =
            |part: &Option<String>, text: &str| part.as_ref().is_none_or(|part| lower(text).contains(&lower(part)));
        let words = self.q.iter().flat_map(|q| q.split_whitespace().map(lower));
        let Occupancy { players, slots, password, .. } = server.occupancy;
        let [not_empty, not_full, no_password, both] = self.switches;
        let [_, map, game, version] = &server.texts;
        let mut words = words;
        words.all(|word| server.texts.iter().any(|text| lower(text).contains(&word)))
            && self.list.is_none_or(|number| number == server.list)
            && has(&self.exact[0], map)
            && same(&self.exact[1], game)
            && has(&self.exact[2], version)
            && (!not_empty || players > 0)
            && (!not_full || slots == 0 || players < slots)
            && (!no_password || !password)
            && (!both || server.families == (true, true))
    }

    fn order(&self, a: &(&TestServer, &ServerRecord), b: &(&TestServer, &ServerRecord)) -> Ordering {
        let lower = |text: &str| text.to_lowercase();
        let by_text = |at: usize| lower(&a.0.texts[at]).cmp(&lower(&b.0.texts[at]));
        let (x, y) = (a.0.occupancy, b.0.occupancy);
        let first = match Column::ALL[self.sort.0].0 {
            "id" => a.1.id.cmp(&b.1.id),
            "name" => by_text(0),
            "map" => by_text(1),
            "game" => by_text(2),
            "version" => by_text(3),
            "players" => x.players.cmp(&y.players),
            "bots" => x.bots.cmp(&y.bots),
            "slots" => x.slots.cmp(&y.slots),
            "password" => x.password.cmp(&y.password),
            "list" => a.0.list.cmp(&b.0.list),
            "address" => (a.1.v4, a.1.v6).cmp(&(b.1.v4, b.1.v6)),
            // All servers are equally old here, and none was measured or probed.
            _ => Ordering::Equal,
        };
        let first = if self.sort.1 { first.reverse() } else { first };
        first.then(y.players.cmp(&x.players)).then(a.1.id.cmp(&b.1.id))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_filter_and_order_agrees_with_a_naive_implementation(
        servers in prop::collection::vec(test_server(), 0..24),
        query in test_query(),
    ) {
        let snapshot = snapshot(&servers);
        let found = parse(&query.to_query_string(), &DEFAULTS).unwrap().select(&snapshot, &|_| 0.0);
        let mut expected: Vec<_> =
            snapshot.records().map(|row| (&servers[index(row)], &**row)).filter(|(server, _)| query.matches(server)).collect();
        expected.sort_by(|a, b| query.order(a, b));
        prop_assert_eq!(found.total, expected.len());
        let expected: Vec<_> = expected.iter().skip(query.part.0).take(query.part.1).map(|(_, row)| row.id).collect();
        prop_assert_eq!(found.rows.iter().map(|row| row.id).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn parsing_never_panics(text in ".{0,60}") {
        let _ = parse(&text, &DEFAULTS);
        let _ = parse(&text, &QueryDefaults { by_page: true, is_strict: false, ..DEFAULTS });
    }

    #[test]
    fn filters_round_trip(query in test_query()) {
        let filter = parse(&query.to_query_string(), &DEFAULTS).unwrap().filter;
        prop_assert_eq!(parse(&filter.to_string(), &DEFAULTS).unwrap().filter, filter);
    }
}

#[test]
fn favourites_are_found_by_their_ids() {
    let server = TestServer {
        list: 1,
        texts: Default::default(),
        occupancy: Occupancy { players: 0, bots: 0, slots: 1, password: false },
        families: (true, false),
    };
    let snapshot = snapshot(&vec![server; 5]);
    let ids: Vec<_> = snapshot.records().map(|row| row.id).collect();
    let gone = "0".repeat(32);
    let query = format!("ids={},{},{gone},{}", ids[3], ids[1], ids[3]);
    let found = parse(&query, &DEFAULTS).unwrap().select(&snapshot, &|_| 0.0);
    assert_eq!(found.rows.iter().map(|row| row.id).collect::<Vec<_>>(), [ids[1], ids[3]]);
}

#[test]
fn pages_start_at_one_and_unknown_parameters_are_refused_only_in_strict_mode() {
    let page = QueryDefaults { by_page: true, is_strict: false, limit: 50, ..DEFAULTS };
    let query = parse("page=3&utm_source=x&q=&map=", &page).unwrap();
    assert_eq!((query.offset, query.limit, query.filter.is_all()), (100, 50, true));
    assert_eq!(parse("utm_source=x", &DEFAULTS).unwrap_err().name, "utm_source");
    assert_eq!(parse("page=0", &page).unwrap_err().name, "page");
    let last = parse("page=1000000&per_page=1000", &page).unwrap();
    assert!(last.select(&snapshot(&[]), &|_| 0.0).rows.is_empty());
}

#[test]
fn a_long_list_is_truncated_and_can_be_continued_with_offset() {
    let server = TestServer {
        list: 1,
        texts: Default::default(),
        occupancy: Occupancy { players: 0, bots: 0, slots: 1, password: false },
        families: (true, false),
    };
    let snapshot = snapshot(&vec![server; 9]);
    let size = |row: &Arc<ServerRecord>| crate::json::server(row).len() + 1;
    let longest = snapshot.records().map(size).max().unwrap();
    let live = LiveSnapshot::new(Arc::clone(&snapshot), Cursor { epoch: 1, number: 0 }, 0);
    for (max_bytes, responses) in [(longest * 4, 3), (longest, 9), (1, 9), (usize::MAX, 1)] {
        let mut ids = Vec::new();
        for _ in 0..responses {
            let query = parse(&format!("sort=-id&offset={}", ids.len()), &DEFAULTS).unwrap();
            let list = crate::api::servers::write_list(&query, &live, &|_| 0.0, max_bytes);
            let list: serde_json::Value = serde_json::from_slice(&list).unwrap();
            let servers = list["servers"].as_array().unwrap();
            assert_eq!((&list["total"], &list["count"]), (&9.into(), &servers.len().into()));
            ids.extend(servers.iter().map(|server| server["id"].as_str().unwrap().to_owned()));
        }
        let mut expected: Vec<_> = snapshot.records().map(|row| row.id.to_string()).collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(ids, expected, "{max_bytes}");
    }
}

#[test]
fn servers_are_found_by_parts_of_their_addresses() {
    let server = TestServer {
        list: 1,
        texts: ["Server 1000".into(), String::new(), String::new(), "2.9".into()],
        occupancy: Occupancy { players: 0, bots: 0, slots: 1, password: false },
        families: (true, false),
    };
    let snapshot = snapshot(&[server]);
    let total = |q: &str| parse(&format!("q={q}"), &DEFAULTS).unwrap().select(&snapshot, &|_| 0.0).total;
    let address = snapshot.records().next().unwrap().addresses().next().unwrap();
    let port = format!("%3A{}", address.port());
    assert_eq!((total(&address.to_string()), total(&port), total(&address.ip().to_string())), (1, 1, 1));
    assert_eq!((total("2.9"), total("1000"), total("%3A9"), total("198.51.100.7")), (1, 1, 0, 0));
}

#[test]
fn the_most_popular_servers_come_first() {
    let server = |name: &str, players| TestServer {
        list: 1,
        texts: [name.into(), String::new(), String::new(), String::new()],
        occupancy: Occupancy { players, bots: 0, slots: 9, password: false },
        families: (true, false),
    };
    let snapshot = snapshot(&[server("a", 1), server("b", 2), server("c", 3), server("d", 4)]);
    let popular = snapshot.records().find(|row| &*row.name == "a").unwrap().id;
    let names = |sort: &str| -> String {
        let query = parse(&format!("sort={sort}&limit=3"), &DEFAULTS).unwrap();
        let found = query.select(&snapshot, &|id| if id == popular { 2.5 } else { 0.0 });
        found.rows.iter().map(|row| &*row.name).collect()
    };
    assert_eq!((names("-popularity"), names("popularity")), ("adc".into(), "dcb".into()));
}

#[test]
fn a_search_has_a_bounded_number_of_words() {
    let many: String = (0..100).map(|number| format!("{} ", char::from_u32(0x4e00 + number).unwrap())).collect();
    assert_eq!(words(&many).len(), MAX_WORDS);
    assert_eq!(words("one two one  two"), ["one", "two"]);
}
