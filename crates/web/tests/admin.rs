//! What the operator can do by HTTP, and nobody else.

mod common;

use common::{Answer, PATIENCE, Server, Site, connect, read_answer, schema::check, until};
use rallypoint_lobby::LobbyOptions;
use rallypoint_lobby_proto::{Ban, BanSubject};
use rallypoint_web::{AdminToken, WebOptions};
use serde_json::{Value, json};
use std::{
    io::{BufReader, Write},
    path::Path,
    time::{Duration, SystemTime},
};

const TOKEN: &str = "0123456789abcdef-the-token";

/// A lobby with an operator, who keeps decisions in this folder.
fn site(dir: &Path) -> Site {
    site_of(dir, |_| {})
}

/// The list itself is not saved: the tests are about bans and notes.
fn lobby_options(dir: &Path) -> LobbyOptions {
    let save_every = Duration::from_secs(3_600);
    LobbyOptions { data_dir: Some(dir.into()), save_every, ..LobbyOptions::default() }
}

fn site_of(dir: &Path, set: impl FnOnce(&mut WebOptions)) -> Site {
    let mut options = WebOptions::default();
    options.settings.admin_token = Some(AdminToken::new(TOKEN).unwrap());
    set(&mut options);
    Site::at(lobby_options(dir), options, |_| {})
}

/// A request of the operator.
fn ask(site: &Site, method: &str, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    ask_as(site, method, path, body.as_bytes(), &[("authorization", &format!("Bearer {TOKEN}"))])
}

fn ask_as(site: &Site, method: &str, path: &str, body: &[u8], headers: &[(&str, &str)]) -> Answer {
    let mut tcp = connect(site.addr());
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    write!(tcp, "{method} /api/v1/admin{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n").unwrap();
    for (name, value) in headers {
        write!(tcp, "{name}: {value}\r\n").unwrap();
    }
    write!(tcp, "connection: close\r\n\r\n").unwrap();
    // Whoever is refused may find the connection closed before all is sent.
    let _ = tcp.write_all(body);
    read_answer(&mut BufReader::new(tcp), method == "HEAD").expect("an answer")
}

/// What there is, each with a method.
const ADDRESSES: [(&str, &str); 8] = [
    ("GET", "/bans"),
    ("POST", "/bans"),
    ("DELETE", "/bans/1"),
    ("POST", "/servers/0123456789abcdef0123456789abcdef/unlist"),
    ("GET", "/notes"),
    ("POST", "/notes"),
    ("DELETE", "/notes/1"),
    ("GET", "/audit"),
];

#[test]
fn without_a_token_there_is_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let site = site_of(dir.path(), |options| options.settings.admin_token = None);
    for (method, path) in ADDRESSES {
        let answer = ask(&site, method, path, &Value::Null);
        assert_eq!((answer.status, answer.header("content-type")), (404, Some("application/problem+json")), "{path}");
    }
}

#[test]
fn only_the_operator_is_let_in() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(dir.path());
    for (method, path) in ADDRESSES {
        for headers in [
            &[][..],
            &[("authorization", "Bearer")],
            &[("authorization", "Basic 0123456789abcdef-the-token")],
            &[("cookie", "token=0123456789abcdef-the-token")],
            &[("authorization", "Bearer 0123456789abcdef-the-tokeN")],
            &[("authorization", "Bearer 0123456789abcdef-the-token2")],
        ] {
            let answer = ask_as(&site, method, path, b"{}", headers);
            assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")), "{path} {headers:?}");
            assert_eq!(answer.json()["status"], 401);
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    assert_eq!(ask(&site, "GET", "/bans", &Value::Null).status, 200);
    let question = ask_as(&site, "OPTIONS", "/bans", b"", &[("origin", "https://evil.example")]);
    assert_eq!(question.header("access-control-allow-origin"), None, "no page may ask: {question:?}");
    assert!(!dir.path().join("audit.jsonl").exists(), "nothing was done");
}

#[test]
fn who_guesses_is_refused_without_a_look() {
    let dir = tempfile::tempdir().unwrap();
    let site = site_of(dir.path(), |options| options.settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()]);
    let guess = |from: &str, token: &str| {
        let token = format!("Bearer {token}");
        ask_as(&site, "GET", "/bans", b"", &[("x-forwarded-for", from), ("authorization", &token)])
    };
    for _ in 0..10 {
        assert_eq!(guess("203.0.113.9", "a-wrong-token-0123").status, 401);
    }
    let refused = guess("203.0.113.9", "a-wrong-token-0123");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("60")));
    assert_eq!(guess("203.0.113.9", TOKEN).status, 429, "not even the right one");
    assert_eq!(guess("198.51.100.7", TOKEN).status, 200, "others are not concerned");
    assert_eq!(ask(&site, "GET", "/bans", &Value::Null).status, 200, "nor is who is on the machine itself");
    let metrics = site.get("/metrics").text();
    assert!(metrics.contains("rallypoint_admin_refused_total{reason=\"wrong_token\"} 10\n"), "{metrics}");
}

#[test]
fn a_ban_takes_servers_off_the_list_and_outlives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let first = site(dir.path());
    first.fill(&[Server::new(1, "Casino Royale"), Server::new(2, "Bacon Town")]);
    let wanted = json!({ "name": "*casino*", "reason": "advertising", "seconds": 3600 });
    let made = ask(&first, "POST", "/bans", &wanted);
    assert_eq!(made.status, 201, "{made:?}");
    let ban = made.json();
    assert_eq!((&ban["name"], &ban["source"], &ban["in_force"]), (&"*casino*".into(), &"admin".into(), &true.into()));
    first.wait_for("/api/v1/servers", |list| list["total"] == 1 && list["servers"][0]["name"] == "Bacon Town");
    let again = ask(&first, "POST", "/bans", &json!({ "name": "*casino*", "reason": "still" }));
    assert_eq!((again.status, &again.json()["id"], &again.json()["until"]), (200, &ban["id"], &Value::Null));
    drop(first);

    let second = site(dir.path());
    second.register(&Server::new(1, "Casino Royale"));
    second.fill(&[Server::new(2, "Bacon Town")]);
    let outcomes = second.wait_for("/api/v1/outcomes", |answer| answer["outcomes"].as_array().unwrap().len() == 2);
    assert_eq!(outcomes["outcomes"][0]["code"], "banned");
    let path = format!("/bans/{}", ban["id"]);
    assert_eq!(ask(&second, "DELETE", &path, &Value::Null).status, 204);
    assert_eq!(ask(&second, "DELETE", &path, &Value::Null).status, 404);
    second.fill(&[Server::new(1, "Casino Royale"), Server::new(2, "Bacon Town")]);

    let audit = ask(&second, "GET", "/audit?limit=2", &Value::Null).json();
    let actions: Vec<_> = audit["entries"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["unban", "ban"], "{audit}");
    assert_eq!((&audit["entries"][1]["reason"], &audit["entries"][1]["from"]), (&"still".into(), &"127.0.0.1".into()));
}

#[test]
fn bans_of_the_configuration_are_shown_and_stay() {
    let dir = tempfile::tempdir().unwrap();
    let subject = BanSubject::Network("203.0.113.0/24".parse().unwrap());
    let until = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000));
    let ban = Ban { subject, reason: "floods".into(), until };
    let site = site_of(dir.path(), |options| options.settings.bans = vec![ban]);
    let bans = ask(&site, "GET", "/bans", &Value::Null).json();
    let expected = json!({ "total": 1, "offset": 0, "count": 1, "bans": [{
        "id": null, "network": "203.0.113.0/24", "reason": "floods", "until": 1000, "since": null,
        "source": "configuration", "in_force": false,
    }] });
    assert_eq!(bans, expected);
}

#[test]
fn an_unlisted_server_comes_back_neither_at_once_nor_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    // It keeps its list and the key of the public IDs, too.
    let start = || {
        let mut options = WebOptions::default();
        options.settings.admin_token = Some(AdminToken::new(TOKEN).unwrap());
        Site::saving(options, dir.path(), |_| {})
    };
    let first = start();
    let (server, other) = (Server::new(1, "a"), Server::new(2, "b"));
    let list = first.fill(&[server, other]);
    let of_a = |one: &&Value| one["name"] == "a";
    let id = list["servers"].as_array().unwrap().iter().find(of_a).unwrap()["id"].as_str().unwrap();
    let answer = ask(&first, "POST", &format!("/servers/{id}/unlist"), &json!({ "reason": "test" }));
    assert_eq!((answer.status, &answer.json()["name"], &answer.json()["banned"]), (200, &"a".into(), &json!([])));
    first.wait_for("/api/v1/servers", |list| list["total"] == 1 && list["servers"][0]["name"] == "b");
    assert_eq!(ask(&first, "POST", &format!("/servers/{id}/unlist"), &Value::Null).status, 404, "it is not there");
    first.runtime.block_on(first.lobby.shutdown());
    drop(first);

    let second = start();
    second.register(&server);
    let outcomes = second.wait_for("/api/v1/outcomes", |answer| answer["outcomes"][0].is_object());
    let outcome = &outcomes["outcomes"][0];
    assert_eq!(outcome["code"], "banned", "{outcomes}");
    assert!(outcome["text"].as_str().unwrap().contains("test"), "its owner is told why: {outcomes}");
    let bans = ask(&second, "GET", "/bans", &Value::Null).json();
    let ban = &bans["bans"][0];
    assert_eq!((&ban["server"]["id"], &ban["server"]["addresses"]), (&id.into(), &json!(["127.0.0.1:8001"])), "{bans}");
    assert_eq!(ask(&second, "DELETE", &format!("/bans/{}", ban["id"]), &Value::Null).status, 204);
    second.fill(&[server, other]);
}

#[test]
fn the_addresses_of_an_unlisted_server_can_be_banned_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(dir.path());
    let list = site.fill(&[Server::new(1, "a"), Server::new(2, "b")]);
    let id = list["servers"][0]["id"].as_str().unwrap();
    let answer = ask(&site, "POST", &format!("/servers/{id}/unlist"), &json!({ "ban": true }));
    assert_eq!((answer.status, &answer.json()["banned"]), (200, &json!(["127.0.0.1"])), "{answer:?}");
    site.wait_for("/api/v1/servers", |list| list["total"] == 0);
    assert_eq!(ask(&site, "GET", "/bans", &Value::Null).json()["total"], 2);
    let audit = ask(&site, "GET", "/audit", &Value::Null).json();
    let told: Vec<_> =
        audit["entries"].as_array().unwrap().iter().map(|entry| (&entry["action"], &entry["about"])).collect();
    let about = format!("server {id}");
    assert_eq!(told, [(&"ban".into(), &"127.0.0.1".into()), (&"unlist".into(), &about.into())]);
}

#[test]
fn notes_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let note = json!({ "about": "203.0.113.9/24", "text": "their \"friend\" <script>" });
    let made = ask(&site(dir.path()), "POST", "/notes", &note).json();
    assert_eq!(made["about"], "203.0.113.0/24");
    let site = site(dir.path());
    ask(&site, "POST", "/notes", &json!({ "about": "2001:db8::1", "text": "x" }));
    let notes = ask(&site, "GET", "/notes?about=203.0.113.0/24", &Value::Null).json();
    assert_eq!(notes["notes"], json!([made]));
    let second = ask(&site, "GET", "/notes?offset=1&limit=1", &Value::Null).json();
    assert_eq!((&second["total"], &second["count"], &second["notes"][0]["text"]), (&2.into(), &1.into(), &"x".into()));
    assert_eq!(ask(&site, "DELETE", &format!("/notes/{}", made["id"]), &Value::Null).status, 204);
    assert_eq!(ask(&site, "GET", "/notes", &Value::Null).json()["notes"].as_array().unwrap().len(), 1);
}

#[test]
fn what_makes_no_sense_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(dir.path());
    let cases = [
        ("/bans", json!({}), "network"),
        ("/bans", json!({ "network": "0.0.0.0/0" }), "network"),
        ("/bans", json!({ "address": "example.org" }), "address"),
        ("/bans", json!({ "name": "*" }), "name"),
        ("/bans", json!({ "address": "192.0.2.1", "network": "192.0.2.0/24" }), "network"),
        ("/bans", json!({ "address": "192.0.2.1", "until": "2001-01-01" }), "until"),
        ("/bans", json!({ "address": "192.0.2.1", "until": "2999-01-01", "seconds": 1 }), "until"),
        ("/bans", json!({ "address": "192.0.2.1", "seconds": 0 }), "seconds"),
        ("/bans", json!({ "address": "192.0.2.1", "reason": "x".repeat(501) }), "reason"),
        ("/notes", json!({ "about": "somebody", "text": "x" }), "about"),
        ("/notes", json!({ "about": "192.0.2.1", "text": " " }), "text"),
        ("/notes", json!({ "about": "192.0.2.1", "text": "to\u{202e}gnp.exe" }), "text"),
        ("/servers/7/unlist", Value::Null, "id"),
        ("/servers/0123456789abcdef0123456789abcdef/unlist", json!({ "seconds": 1_000_000_000 }), "seconds"),
    ];
    for (path, body, parameter) in cases {
        let answer = ask(&site, "POST", path, &body);
        assert_eq!((answer.status, &answer.json()["parameter"]), (400, &parameter.into()), "{path} {body}: {answer:?}");
    }
    for body in ["", "{", "[]", "{\"address\":\"192.0.2.1\",\"expires\":1}", "{\"address\":7}"] {
        let answer = ask_as(&site, "POST", "/bans", body.as_bytes(), &[("authorization", &format!("Bearer {TOKEN}"))]);
        assert_eq!(answer.status, 400, "{body}");
    }
    let answer = ask(&site, "POST", "/bans", &json!({ "address": "192.0.2.1", "reason": "x".repeat(20_000) }));
    assert_eq!((answer.status, answer.header("content-type")), (413, Some("application/problem+json")));
    for file in ["admin.json", "audit.jsonl"] {
        assert!(!dir.path().join(file).exists(), "nothing is written");
    }
}

#[test]
fn what_only_looks_right_is_refused_in_the_form_of_the_api() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(dir.path());
    assert_eq!(ask(&site, "POST", "/bans", &json!({ "address": "192.0.2.1" })).json()["id"], 1);
    for id in ["+1", "%2B1", "01", "1%20", "%ff"] {
        let answer = ask(&site, "DELETE", &format!("/bans/{id}"), &Value::Null);
        assert_eq!((answer.status, answer.header("content-type")), (400, Some("application/problem+json")), "{id}");
        assert_eq!(answer.json()["parameter"], "id");
    }
    let answer = ask(&site, "DELETE", "/bans/1?dry_run=1", &Value::Null);
    assert_eq!((answer.status, &answer.json()["parameter"]), (400, &"dry_run".into()));
    // The fields of a structure, in their order.
    for (path, body) in [
        ("/bans", json!(["192.0.2.9", null, null, "", null, null])),
        ("/notes", json!(["192.0.2.9", "x"])),
        ("/servers/0123456789abcdef0123456789abcdef/unlist", json!(["x", 1, false])),
    ] {
        let answer = ask(&site, "POST", path, &body);
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        assert!(answer.json()["detail"].as_str().unwrap().contains("not a JSON object"), "{answer:?}");
    }
    let right = ("authorization", &*format!("Bearer {TOKEN}"));
    let twice = ask_as(&site, "GET", "/bans", b"", &[right, ("authorization", "Bearer another-token-0123")]);
    assert_eq!((twice.status, twice.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(ask(&site, "GET", "/bans", &Value::Null).json()["total"], 1);
    assert_eq!(ask(&site, "GET", "/notes", &Value::Null).json()["total"], 0);
}

#[test]
fn when_there_are_no_numbers_left_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let file = json!({ "version": 1, "next": u64::MAX, "bans": [], "notes": [] });
    std::fs::write(dir.path().join("admin.json"), file.to_string()).unwrap();
    let site = site(dir.path());
    for (path, body) in
        [("/bans", json!({ "address": "192.0.2.1" })), ("/notes", json!({ "about": "192.0.2.1", "text": "x" }))]
    {
        let answer = ask(&site, "POST", path, &body);
        assert_eq!((answer.status, answer.header("content-type")), (409, Some("application/problem+json")), "{path}");
    }
}

#[test]
fn what_cannot_be_kept_is_not_done() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(dir.path());
    site.fill(&[Server::new(1, "Casino")]);
    // Nothing can be written where a folder is in the way.
    std::fs::create_dir_all(dir.path().join("audit.jsonl/in-the-way")).unwrap();
    assert_eq!(ask(&site, "POST", "/bans", &json!({ "name": "casino" })).status, 503);
    assert_eq!(ask(&site, "GET", "/bans", &Value::Null).json()["bans"], json!([]));
    assert_eq!(site.json("/api/v1/servers")["total"], 1);
}

#[test]
fn a_damaged_file_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("admin.json"), "{\"version\":1,").unwrap();
    let site = site(dir.path());
    assert_eq!(ask(&site, "GET", "/bans", &Value::Null).json()["bans"], json!([]));
    assert!(dir.path().join("admin.json.damaged-1").exists());
}

#[test]
fn the_document_of_the_api_has_these_too() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(dir.path());
    let list = site.fill(&[Server::new(1, "a")]);
    let document = site.json("/api/v1/openapi.json");
    let id = list["servers"][0]["id"].as_str().unwrap();
    // Something for every list, so that the document can be held against it.
    for (path, body) in [
        ("/bans", json!({ "name": "casino" })),
        ("/notes", json!({ "about": "192.0.2.1", "text": "x" })),
        (&*format!("/servers/{id}/unlist"), json!({ "ban": true })),
    ] {
        let answer = ask(&site, "POST", path, &body);
        let told = &document["paths"][format!("/api/v1/admin{}", path.replace(id, "{id}"))]["post"]["responses"];
        let schema = &told[answer.status.to_string()]["content"]["application/json"]["schema"];
        check(&document, schema, &answer.json(), path);
    }
    let paths = document["paths"].as_object().unwrap();
    let mut operations = 0;
    for (path, methods) in paths.iter().filter(|(path, _)| path.starts_with("/api/v1/admin")) {
        for (method, told) in methods.as_object().unwrap() {
            operations += 1;
            let path = path.trim_start_matches("/api/v1/admin").replace("{id}", "1");
            let (refused, answer) = (
                ask_as(&site, &method.to_uppercase(), &path, b"", &[]),
                ask(&site, &method.to_uppercase(), &path, &Value::Null),
            );
            for answer in [refused, answer] {
                let told = &told["responses"][answer.status.to_string()];
                assert!(told.is_object(), "{method} {path}: {}", answer.status);
                if let Some(kind) = answer.header("content-type") {
                    check(&document, &told["content"][kind]["schema"], &answer.json(), &path);
                }
            }
            assert_eq!(told["security"], json!([{ "operator": [] }]), "{method} {path}");
        }
    }
    assert_eq!(operations, ADDRESSES.len());
    let _ = until("it still serves", || Some(site.get("/healthz")).filter(|answer| answer.status == 200));
}
