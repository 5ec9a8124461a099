//! JSON of server lists, lobbies and single servers.

use crate::common;

use common::{LOBBY, Server, Site};
use rallypoint_history::export::parse_time;
use rallypoint_web::{ListNames, WebOptions};
use rallypoint_wire::lobby::{ListId, Occupancy};
use serde_json::json;

#[test]
fn a_server_has_the_field_names_of_gamedig() {
    let site = Site::start();
    let keys: &[(&[u8], &[u8])] = &[
        (b"map", b"ctf_truefort"),
        (b"game", b"Gang Garrison 2"),
        (b"game_short", b"gg2"),
        (b"game_ver", b"v2.9"),
        (b"game_url", b"https://example.org/"),
        (b"protocol_id", &[0xde; 16]),
        (b"x-mood", b"good"),
    ];
    let occupancy = Occupancy { players: 3, bots: 2, slots: 24, password: true };
    let server = Server { keys, occupancy, ..Server::new(1, "Bacon Town") };
    let list = site.register_all(&[server]);
    let mut server_json = list["servers"][0].clone();
    let since = parse_time(server_json["since"].take().as_str().unwrap()).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    assert!((now - 60..=now).contains(&since), "{since}");
    let id = server_json["id"].as_str().unwrap().to_owned();
    let protocol = "dededede-dede-dede-dede-dededededede";
    let expected = json!({
        "id": id,
        "list": LOBBY.to_string(),
        "name": "Bacon Town",
        "map": "ctf_truefort",
        "password": true,
        "numplayers": 3,
        "maxplayers": 24,
        "numbots": 2,
        "game": "gg2",
        "game_name": "Gang Garrison 2",
        "version": "v2.9",
        "website": "https://example.org/",
        "connect": "127.0.0.1:8001",
        "addresses": { "ipv4": "127.0.0.1:8001", "ipv6": null },
        "transport": "udp",
        "protocol_id": protocol,
        "ping": null,
        "pings": null,
        "since": null,
        "origin": "registered",
        "door": "lobby",
        "verified": "not_queried",
        "differs": [],
        "session_key": null,
        "raw": {
            "name": "Bacon Town",
            "map": "ctf_truefort",
            "game": "Gang Garrison 2",
            "game_short": "gg2",
            "game_ver": "v2.9",
            "game_url": "https://example.org/",
            "protocol_id": protocol,
            "x-mood": "good",
        },
    });
    assert_eq!(server_json, expected);
    let mut detail = site.json(&format!("/api/v1/servers/{id}"));
    detail["since"].take();
    let detail_only = json!({ "list_name": null, "players": [], "bots": [] });
    let both: serde_json::Map<_, _> =
        [&expected, &detail_only].iter().flat_map(|part| part.as_object().unwrap().clone()).collect();
    assert_eq!(detail, json!(both));
}

#[test]
fn l5_hostile_names_are_harmless_json() {
    let site = Site::start();
    let name = "</script><b>\u{202e}\u{0}\n\"\\\u{1f}".as_bytes();
    let server = Server { name, ..Server::new(1, "") };
    let windows = Server { name: b"Caf\xe9 \x80", ..Server::new(2, "") };
    let website: &[(&[u8], &[u8])] = &[(b"game_url", b"javascript:alert(1)")];
    let list = site.register_all(&[server, windows, Server { keys: website, ..Server::new(3, "link") }]);
    let names: Vec<_> =
        list["servers"].as_array().unwrap().iter().map(|server| server["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"</script><b>\u{fffd}\u{fffd} \"\\\u{fffd}"), "{names:?}");
    assert!(names.contains(&"Café €"), "{names:?}");
    assert!(list["servers"].as_array().unwrap().iter().all(|server| server["website"].is_null()));
    assert_eq!(site.get("/api/v1/servers").header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn l13_the_secret_id_is_never_published() {
    let site = Site::start();
    let list = site.register_all(&[Server::new(0xa7, "secret")]);
    let id = list["servers"][0]["id"].as_str().unwrap().to_owned();
    let secret = "a7".repeat(16);
    assert_ne!(id, secret);
    for path in ["/", "/api/v1/servers", "/api/v1/lists", &format!("/api/v1/servers/{id}"), "/api/v1/outcomes"] {
        let text = site.get(path).text();
        assert!(!text.contains(&secret) && !text.contains("a7a7a7a7"), "{path}: {text}");
    }
    assert_eq!(site.get(&format!("/api/v1/servers/{secret}")).status, 404);
}

#[test]
fn lobbies_have_names_and_totals() {
    let other = ListId::from_bytes([9; 16]);
    let quiet = ListId::from_bytes([5; 16]);
    let names = [(LOBBY, "Gang Garrison 2".to_owned()), (quiet, "Quiet".to_owned())];
    let mut options = WebOptions::default();
    options.settings.names = ListNames(names.into());
    let site = Site::with_options(options);
    let other_server = Server { list: other, ..Server::new(3, "c") };
    site.register_all(&[Server::new(1, "a").players(3), Server::new(2, "b").players(4), other_server]);
    let expected = json!({
        "servers": 3, "players": 7, "bots": 0, "slots": 30, "export_key": null,
        "lists": [
            { "id": LOBBY.to_string(), "name": "Gang Garrison 2", "servers": 2, "players": 7, "bots": 0, "slots": 20 },
            { "id": other.to_string(), "name": null, "servers": 1, "players": 0, "bots": 0, "slots": 10 },
            { "id": quiet.to_string(), "name": "Quiet", "servers": 0, "players": 0, "bots": 0, "slots": 0 },
        ],
    });
    assert_eq!(site.json("/api/v1/lists"), expected);
    assert_eq!(site.json(&format!("/api/v1/servers?list={other}"))["servers"][0]["name"], "c");
    assert_eq!(site.json(&format!("/api/v1/servers?list={quiet}"))["total"], 0);
}

#[test]
fn pages_of_a_list_are_contiguous() {
    let site = Site::start();
    let names: Vec<_> = (1..=9).map(|number| format!("server {number}")).collect();
    let servers: Vec<_> = (1..=9).map(|number| Server::new(number, &names[usize::from(number) - 1])).collect();
    site.register_all(&servers);
    let names_at = |query: &str| -> Vec<String> {
        let list = site.json(&format!("/api/v1/servers{query}"));
        assert_eq!(list["total"], 9);
        let servers = list["servers"].as_array().unwrap();
        assert_eq!(list["count"], servers.len());
        servers.iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut parts = names_at("?sort=name&limit=4");
    parts.extend(names_at("?sort=name&limit=4&offset=4"));
    parts.extend(names_at("?sort=name&limit=4&offset=8"));
    assert_eq!(parts, names);
    assert!(names_at("?offset=100").is_empty());
    parts.reverse();
    assert_eq!(names_at("?sort=-name"), parts);
}

#[test]
fn an_unchanged_list_is_304_not_modified() {
    let site = Site::start();
    site.register_all(&[Server::new(1, "a")]);
    for (path, headers) in [
        ("/api/v1/servers", &[][..]),
        ("/api/v1/servers", &[("accept-encoding", "gzip")]),
        ("/api/v1/servers?q=a", &[]),
        ("/api/v1/lists", &[]),
        ("/api/v1/openapi.json", &[]),
    ] {
        let first = site.request("GET", path, headers);
        let tag = first.header("etag").unwrap().to_owned();
        assert!(tag.starts_with('"'), "a strong entity tag: {tag}");
        let conditional = [headers, &[("if-none-match", &*tag)]].concat();
        let again = site.request("GET", path, &conditional);
        assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(&*tag)), "{path}");
        let head = site.request("HEAD", path, headers);
        assert_eq!((head.status, head.header("content-length")), (200, first.header("content-length")), "{path}");
    }
    let plain = site.get("/api/v1/servers");
    let gzip = site.request("GET", "/api/v1/servers", &[("accept-encoding", "gzip")]);
    assert_eq!((gzip.header("content-encoding"), gzip.header("vary")), (Some("gzip"), Some("accept-encoding")));
    assert_ne!(plain.header("etag"), gzip.header("etag"));
    let mut unpacked = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&gzip.body[..]), &mut unpacked).unwrap();
    assert_eq!(unpacked, plain.body);

    site.register(&Server::new(1, "b"));
    site.wait_for("/api/v1/servers", |list| list["servers"][0]["name"] == "b");
    let tag = plain.header("etag").unwrap();
    assert_eq!(site.request("GET", "/api/v1/servers", &[("if-none-match", tag)]).status, 200);
}
