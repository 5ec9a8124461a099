//! The admin API: bans, notes, unlisting and the audit log, for holders of the token only.

use crate::common;

use common::{Response, Server, Site, TIMEOUT, connect, read_response, schema::check, wait_until};
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

/// A site with the admin API, which stores its data in this directory.
fn site(dir: &Path) -> Site {
    site_with(dir, |_| {})
}

/// Lobby options that practically never save the list: these tests are about bans and notes.
fn lobby_options(dir: &Path) -> LobbyOptions {
    let save_every = Duration::from_secs(3_600);
    LobbyOptions { data_dir: Some(dir.into()), save_every, ..LobbyOptions::default() }
}

fn site_with(dir: &Path, set: impl FnOnce(&mut WebOptions)) -> Site {
    let mut options = WebOptions::default();
    options.settings.admin_token = Some(AdminToken::new(TOKEN).unwrap());
    set(&mut options);
    Site::with_lobby(lobby_options(dir), options, |_| {})
}

/// Sends a request with the token.
fn request(site: &Site, method: &str, path: &str, body: &Value) -> Response {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    request_with_headers(site, method, path, body.as_bytes(), &[("authorization", &format!("Bearer {TOKEN}"))])
}

fn request_with_headers(site: &Site, method: &str, path: &str, body: &[u8], headers: &[(&str, &str)]) -> Response {
    let mut tcp = connect(site.addr());
    tcp.set_read_timeout(Some(TIMEOUT)).unwrap();
    let length = body.len();
    write!(tcp, "{method} /api/v1/admin{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n").unwrap();
    for (name, value) in headers {
        write!(tcp, "{name}: {value}\r\n").unwrap();
    }
    write!(tcp, "connection: close\r\n\r\n").unwrap();
    // The server may refuse the request and close the connection before the body is sent.
    let _ = tcp.write_all(body);
    read_response(&mut BufReader::new(tcp), method == "HEAD").expect("a response")
}

/// All operations of the admin API.
const OPERATIONS: [(&str, &str); 8] = [
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
fn without_a_token_the_admin_api_does_not_exist() {
    let dir = tempfile::tempdir().unwrap();
    let site = site_with(dir.path(), |options| options.settings.admin_token = None);
    for (method, path) in OPERATIONS {
        let response = request(&site, method, path, &Value::Null);
        assert_eq!(
            (response.status, response.header("content-type")),
            (404, Some("application/problem+json")),
            "{path}"
        );
    }
}

#[test]
fn requests_without_the_token_are_unauthorized() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(dir.path());
    for (method, path) in OPERATIONS {
        for headers in [
            &[][..],
            &[("authorization", "Bearer")],
            &[("authorization", "Basic 0123456789abcdef-the-token")],
            &[("cookie", "token=0123456789abcdef-the-token")],
            &[("authorization", "Bearer 0123456789abcdef-the-tokeN")],
            &[("authorization", "Bearer 0123456789abcdef-the-token2")],
        ] {
            let response = request_with_headers(&site, method, path, b"{}", headers);
            assert_eq!(
                (response.status, response.header("www-authenticate")),
                (401, Some("Bearer")),
                "{path} {headers:?}"
            );
            assert_eq!(response.json()["status"], 401);
            assert_eq!(response.header("access-control-allow-origin"), None);
        }
    }
    assert_eq!(request(&site, "GET", "/bans", &Value::Null).status, 200);
    let preflight = request_with_headers(&site, "OPTIONS", "/bans", b"", &[("origin", "https://evil.example")]);
    assert_eq!(preflight.header("access-control-allow-origin"), None, "no cross-origin access: {preflight:?}");
    assert!(!dir.path().join("audit.jsonl").exists(), "no action was audited");
}

#[test]
fn repeated_wrong_tokens_are_rate_limited() {
    let dir = tempfile::tempdir().unwrap();
    let site = site_with(dir.path(), |options| options.settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()]);
    let guess = |from: &str, token: &str| {
        let token = format!("Bearer {token}");
        request_with_headers(&site, "GET", "/bans", b"", &[("x-forwarded-for", from), ("authorization", &token)])
    };
    for _ in 0..10 {
        assert_eq!(guess("203.0.113.9", "a-wrong-token-0123").status, 401);
    }
    let refused = guess("203.0.113.9", "a-wrong-token-0123");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("60")));
    assert_eq!(guess("203.0.113.9", TOKEN).status, 429, "not even with the right token");
    assert_eq!(guess("198.51.100.7", TOKEN).status, 200, "other addresses are not affected");
    assert_eq!(request(&site, "GET", "/bans", &Value::Null).status, 200, "nor is the local machine");
    let metrics = site.get("/metrics").text();
    assert!(metrics.contains("rallypoint_admin_refused_total{reason=\"wrong_token\"} 10\n"), "{metrics}");
}

#[test]
fn a_ban_unlists_servers_and_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let first = site(dir.path());
    first.register_all(&[Server::new(1, "Casino Royale"), Server::new(2, "Bacon Town")]);
    let body = json!({ "name": "*casino*", "reason": "advertising", "seconds": 3600 });
    let created = request(&first, "POST", "/bans", &body);
    assert_eq!(created.status, 201, "{created:?}");
    let ban = created.json();
    assert_eq!((&ban["name"], &ban["source"], &ban["in_force"]), (&"*casino*".into(), &"admin".into(), &true.into()));
    first.wait_for("/api/v1/servers", |list| list["total"] == 1 && list["servers"][0]["name"] == "Bacon Town");
    let again = request(&first, "POST", "/bans", &json!({ "name": "*casino*", "reason": "still" }));
    assert_eq!((again.status, &again.json()["id"], &again.json()["until"]), (200, &ban["id"], &Value::Null));
    drop(first);

    let second = site(dir.path());
    second.register(&Server::new(1, "Casino Royale"));
    second.register_all(&[Server::new(2, "Bacon Town")]);
    let outcomes = second.wait_for("/api/v1/outcomes", |response| response["outcomes"].as_array().unwrap().len() == 2);
    assert_eq!(outcomes["outcomes"][0]["code"], "banned");
    let path = format!("/bans/{}", ban["id"]);
    assert_eq!(request(&second, "DELETE", &path, &Value::Null).status, 204);
    assert_eq!(request(&second, "DELETE", &path, &Value::Null).status, 404);
    second.register_all(&[Server::new(1, "Casino Royale"), Server::new(2, "Bacon Town")]);

    let audit = request(&second, "GET", "/audit?limit=2", &Value::Null).json();
    let actions: Vec<_> = audit["entries"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["unban", "ban"], "{audit}");
    assert_eq!((&audit["entries"][1]["reason"], &audit["entries"][1]["from"]), (&"still".into(), &"127.0.0.1".into()));
}

#[test]
fn bans_from_the_configuration_are_listed_without_an_id() {
    let dir = tempfile::tempdir().unwrap();
    let subject = BanSubject::Network("203.0.113.0/24".parse().unwrap());
    let until = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000));
    let ban = Ban { subject, reason: "floods".into(), until };
    let site = site_with(dir.path(), |options| options.settings.bans = vec![ban]);
    let bans = request(&site, "GET", "/bans", &Value::Null).json();
    let expected = json!({ "total": 1, "offset": 0, "count": 1, "bans": [{
        "id": null, "network": "203.0.113.0/24", "name": null, "server": null, "reason": "floods",
        "until": "1970-01-01T00:16:40Z", "since": null,
        "source": "configuration", "in_force": false,
    }] });
    assert_eq!(bans, expected);
}

#[test]
fn an_unlisted_server_cannot_register_again_even_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    // The list and the key of the public IDs are saved as well.
    let start = || {
        let mut options = WebOptions::default();
        options.settings.admin_token = Some(AdminToken::new(TOKEN).unwrap());
        Site::with_data_dir(options, dir.path(), |_| {})
    };
    let first = start();
    let server = Server::new(1, "a");
    let other = Server::new(2, "b");
    let list = first.register_all(&[server, other]);
    let is_a = |one: &&Value| one["name"] == "a";
    let id = list["servers"].as_array().unwrap().iter().find(is_a).unwrap()["id"].as_str().unwrap();
    let response = request(&first, "POST", &format!("/servers/{id}/unlist"), &json!({ "reason": "test" }));
    assert_eq!((response.status, &response.json()["name"], &response.json()["banned"]), (200, &"a".into(), &json!([])));
    first.wait_for("/api/v1/servers", |list| list["total"] == 1 && list["servers"][0]["name"] == "b");
    assert_eq!(request(&first, "POST", &format!("/servers/{id}/unlist"), &Value::Null).status, 404, "no longer listed");
    first.runtime.block_on(first.lobby.shutdown());
    drop(first);

    let second = start();
    second.register(&server);
    let outcomes = second.wait_for("/api/v1/outcomes", |response| response["outcomes"][0].is_object());
    let outcome = &outcomes["outcomes"][0];
    assert_eq!(outcome["code"], "banned", "{outcomes}");
    assert!(outcome["text"].as_str().unwrap().contains("test"), "the outcome contains the reason: {outcomes}");
    let bans = request(&second, "GET", "/bans", &Value::Null).json();
    let ban = &bans["bans"][0];
    assert_eq!((&ban["server"]["id"], &ban["server"]["addresses"]), (&id.into(), &json!(["127.0.0.1:8001"])), "{bans}");
    assert_eq!(request(&second, "DELETE", &format!("/bans/{}", ban["id"]), &Value::Null).status, 204);
    second.register_all(&[server, other]);
}

#[test]
fn unlisting_can_also_ban_the_addresses_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(dir.path());
    let list = site.register_all(&[Server::new(1, "a"), Server::new(2, "b")]);
    let id = list["servers"][0]["id"].as_str().unwrap();
    let response = request(&site, "POST", &format!("/servers/{id}/unlist"), &json!({ "ban": true }));
    assert_eq!((response.status, &response.json()["banned"]), (200, &json!(["127.0.0.1"])), "{response:?}");
    site.wait_for("/api/v1/servers", |list| list["total"] == 0);
    assert_eq!(request(&site, "GET", "/bans", &Value::Null).json()["total"], 2);
    let audit = request(&site, "GET", "/audit", &Value::Null).json();
    let entries: Vec<_> =
        audit["entries"].as_array().unwrap().iter().map(|entry| (&entry["action"], &entry["about"])).collect();
    let about = format!("server {id}");
    assert_eq!(entries, [(&"ban".into(), &"127.0.0.1".into()), (&"unlist".into(), &about.into())]);
}

#[test]
fn notes_are_stored_filtered_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let note = json!({ "about": "203.0.113.9/24", "text": "their \"friend\" <script>" });
    let created = request(&site(dir.path()), "POST", "/notes", &note).json();
    assert_eq!(created["about"], "203.0.113.0/24");
    let site = site(dir.path());
    request(&site, "POST", "/notes", &json!({ "about": "2001:db8::1", "text": "x" }));
    let notes = request(&site, "GET", "/notes?about=203.0.113.0/24", &Value::Null).json();
    assert_eq!(notes["notes"], json!([created]));
    let second = request(&site, "GET", "/notes?offset=1&limit=1", &Value::Null).json();
    assert_eq!((&second["total"], &second["count"], &second["notes"][0]["text"]), (&2.into(), &1.into(), &"x".into()));
    assert_eq!(request(&site, "DELETE", &format!("/notes/{}", created["id"]), &Value::Null).status, 204);
    assert_eq!(request(&site, "GET", "/notes", &Value::Null).json()["notes"].as_array().unwrap().len(), 1);
}

#[test]
fn invalid_requests_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(dir.path());
    let cases = [
        ("/bans", json!({}), "network"),
        ("/bans", json!({ "network": "0.0.0.0/0" }), "network"),
        ("/bans", json!({ "address": "example.org" }), "address"),
        ("/bans", json!({ "name": "*" }), "name"),
        ("/bans", json!({ "address": "192.0.2.1", "network": "192.0.2.0/24" }), "network"),
        ("/bans", json!({ "address": "192.0.2.1", "until": "tomorrow" }), "until"),
        ("/bans", json!({ "address": "192.0.2.1", "until": "2999-01-01", "seconds": 1 }), "until"),
        ("/bans", json!({ "address": "192.0.2.1", "seconds": 0 }), "seconds"),
        ("/bans", json!({ "address": "192.0.2.1", "reason": "x".repeat(501) }), "reason"),
        ("/notes", json!({ "about": "example", "text": "x" }), "about"),
        ("/notes", json!({ "about": "192.0.2.1", "text": " " }), "text"),
        ("/notes", json!({ "about": "192.0.2.1", "text": "to\u{202e}gnp.exe" }), "text"),
        ("/servers/7/unlist", Value::Null, "id"),
        ("/servers/0123456789abcdef0123456789abcdef/unlist", json!({ "seconds": 1_000_000_000 }), "seconds"),
    ];
    for (path, body, parameter) in cases {
        let response = request(&site, "POST", path, &body);
        assert_eq!(
            (response.status, &response.json()["parameter"]),
            (400, &parameter.into()),
            "{path} {body}: {response:?}"
        );
    }
    let response = request(&site, "POST", "/bans", &json!({ "name": "casino", "seconds": 1.5 }));
    assert_eq!((response.status, &response.json()["parameter"]), (400, &"seconds".into()), "{response:?}");
    // Valid by itself, but not at this time.
    let response = request(&site, "POST", "/bans", &json!({ "address": "192.0.2.1", "until": "2001-01-01" }));
    assert_eq!((response.status, &response.json()["parameter"]), (409, &"until".into()), "{response:?}");
    for body in ["", "{", "[]", "{\"address\":\"192.0.2.1\",\"expires\":1}", "{\"address\":7}"] {
        let response = request_with_headers(
            &site,
            "POST",
            "/bans",
            body.as_bytes(),
            &[("authorization", &format!("Bearer {TOKEN}"))],
        );
        assert_eq!(response.status, 400, "{body}");
    }
    let response = request(&site, "POST", "/bans", &json!({ "address": "192.0.2.1", "reason": "x".repeat(20_000) }));
    assert_eq!((response.status, response.header("content-type")), (413, Some("application/problem+json")));
    for file in ["admin.json", "audit.jsonl"] {
        assert!(!dir.path().join(file).exists(), "{file} is not written");
    }
}

#[test]
fn lenient_spellings_are_refused_with_problem_json() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(dir.path());
    assert_eq!(request(&site, "POST", "/bans", &json!({ "address": "192.0.2.1" })).json()["id"], 1);
    for id in ["+1", "%2B1", "01", "1%20", "%ff"] {
        let response = request(&site, "DELETE", &format!("/bans/{id}"), &Value::Null);
        assert_eq!((response.status, response.header("content-type")), (400, Some("application/problem+json")), "{id}");
        assert_eq!(response.json()["parameter"], "id");
    }
    let response = request(&site, "DELETE", "/bans/1?dry_run=1", &Value::Null);
    assert_eq!((response.status, &response.json()["parameter"]), (400, &"dry_run".into()));
    // The fields as an array, which serde would accept in place of an object.
    for (path, body) in [
        ("/bans", json!(["192.0.2.9", null, null, "", null, null])),
        ("/notes", json!(["192.0.2.9", "x"])),
        ("/servers/0123456789abcdef0123456789abcdef/unlist", json!(["x", 1, false])),
    ] {
        let response = request(&site, "POST", path, &body);
        assert_eq!(response.status, 400, "{path}: {response:?}");
        assert!(response.json()["detail"].as_str().unwrap().contains("not a JSON object"), "{response:?}");
    }
    let right = ("authorization", &*format!("Bearer {TOKEN}"));
    let repeated =
        request_with_headers(&site, "GET", "/bans", b"", &[right, ("authorization", "Bearer another-token-0123")]);
    assert_eq!((repeated.status, repeated.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(request(&site, "GET", "/bans", &Value::Null).json()["total"], 1);
    assert_eq!(request(&site, "GET", "/notes", &Value::Null).json()["total"], 0);
}

#[test]
fn exhausted_ids_are_a_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let file = json!({ "version": 1, "next": u64::MAX, "bans": [], "notes": [] });
    std::fs::write(dir.path().join("admin.json"), file.to_string()).unwrap();
    let site = site(dir.path());
    for (path, body) in
        [("/bans", json!({ "address": "192.0.2.1" })), ("/notes", json!({ "about": "192.0.2.1", "text": "x" }))]
    {
        let response = request(&site, "POST", path, &body);
        assert_eq!(
            (response.status, response.header("content-type")),
            (409, Some("application/problem+json")),
            "{path}"
        );
    }
}

#[test]
fn a_change_that_cannot_be_written_is_not_applied() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(dir.path());
    site.register_all(&[Server::new(1, "Casino")]);
    // A directory of the same name makes every write fail.
    std::fs::create_dir_all(dir.path().join("audit.jsonl/in-the-way")).unwrap();
    assert_eq!(request(&site, "POST", "/bans", &json!({ "name": "casino" })).status, 503);
    assert_eq!(request(&site, "GET", "/bans", &Value::Null).json()["bans"], json!([]));
    assert_eq!(site.json("/api/v1/servers")["total"], 1);
}

#[test]
fn the_openapi_document_describes_the_admin_api() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(dir.path());
    let list = site.register_all(&[Server::new(1, "a")]);
    let document = site.json("/api/v1/openapi.json");
    let id = list["servers"][0]["id"].as_str().unwrap();
    // One entry in each list, so that its schema is checked too.
    for (path, body) in [
        ("/bans", json!({ "name": "casino" })),
        ("/notes", json!({ "about": "192.0.2.1", "text": "x" })),
        (&*format!("/servers/{id}/unlist"), json!({ "ban": true })),
    ] {
        let response = request(&site, "POST", path, &body);
        let documented = &document["paths"][format!("/api/v1/admin{}", path.replace(id, "{id}"))]["post"]["responses"];
        let schema = &documented[response.status.to_string()]["content"]["application/json"]["schema"];
        check(&document, schema, &response.json(), path);
    }
    let paths = document["paths"].as_object().unwrap();
    let mut operations = 0;
    for (path, methods) in paths.iter().filter(|(path, _)| path.starts_with("/api/v1/admin")) {
        for (method, operation) in methods.as_object().unwrap() {
            operations += 1;
            let path = path.trim_start_matches("/api/v1/admin").replace("{id}", "1");
            let (refused, response) = (
                request_with_headers(&site, &method.to_uppercase(), &path, b"", &[]),
                request(&site, &method.to_uppercase(), &path, &Value::Null),
            );
            for response in [refused, response] {
                let documented = &operation["responses"][response.status.to_string()];
                assert!(documented.is_object(), "{method} {path}: {}", response.status);
                if let Some(kind) = response.header("content-type") {
                    check(&document, &documented["content"][kind]["schema"], &response.json(), &path);
                }
            }
            assert_eq!(operation["security"], json!([{ "operator": [] }]), "{method} {path}");
        }
    }
    assert_eq!(operations, OPERATIONS.len());
    let _ =
        wait_until("the site still responds", || Some(site.get("/healthz")).filter(|response| response.status == 200));
}
