//! Every page works without JavaScript, has no inline script or style, and is determined by its URL.

use crate::common;

use common::{LOBBY, Server, Site};
use rallypoint_wire::lobby::Occupancy;

fn site() -> (Site, String) {
    let site = Site::start();
    let keys: &[(&[u8], &[u8])] = &[(b"map", b"ctf_dirtbowl"), (b"game_short", b"gg2"), (b"game_ver", b"2.9")];
    let occupancy = Occupancy { players: 5, bots: 2, slots: 16, password: true };
    let list = site.register_all(&[
        Server { keys, occupancy, ..Server::new(1, "Alpha") },
        Server::new(2, "Beta").players(9),
        Server::new(3, "Gamma"),
    ]);
    let servers = list["servers"].as_array().unwrap().clone();
    let alpha = servers.iter().find(|server| server["name"] == "Alpha").unwrap();
    (site, alpha["id"].as_str().unwrap().to_owned())
}

/// Those texts that occur in a page, in the order of their first occurrence.
fn order(html: &str, texts: &[&str]) -> Vec<String> {
    let mut found: Vec<_> = texts.iter().filter_map(|text| Some((html.find(text)?, (*text).to_owned()))).collect();
    found.sort();
    found.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn the_list_has_every_column() {
    let (site, id) = site();
    let response = site.get("/");
    assert_eq!((response.status, response.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let html = response.text();
    for text in
        ["ctf_dirtbowl", ">5 / 16<", ">+ 2 bots<", "gg2", "2.9", "127.0.0.1:8001", "Password required", "3 servers"]
    {
        assert!(html.contains(text), "{text}: {html}");
    }
    assert!(html.contains(&format!("href=\"/servers/{id}\"")));
    assert!(html.contains("Round-trip time from the lobby to the server"), "the meaning of the latency");
    assert_eq!(order(&html, &[">Alpha<", ">Beta<", ">Gamma<"]), [">Beta<", ">Alpha<", ">Gamma<"], "most players first");
}

#[test]
fn the_full_name_of_a_game_is_shown() {
    let site = Site::start();
    let keys: &[(&[u8], &[u8])] = &[(b"game", b"Gang Garrison 2"), (b"game_short", b"gg2")];
    let list = site.register_all(&[Server { keys, ..Server::new(1, "Alpha") }]);
    let html = site.get("/").text();
    assert!(html.contains("<span class=\"v-game\" title=\"Gang Garrison 2\" dir=\"auto\">Gang Garrison 2<"), "{html}");
    let id = list["servers"][0]["id"].as_str().unwrap();
    assert!(site.get(&format!("/servers/{id}")).text().contains("<dt>Game</dt><dd dir=\"auto\">Gang Garrison 2 "));
}

#[test]
fn filters_and_order_are_taken_from_the_url() {
    let (site, _) = site();
    let names = [">Alpha<", ">Beta<", ">Gamma<"];
    let shown = |query: &str| order(&site.get(&format!("/?{query}")).text(), &names);
    assert_eq!(shown("sort=name"), names);
    assert_eq!(shown("sort=-name"), [">Gamma<", ">Beta<", ">Alpha<"]);
    assert_eq!(shown("q=alp"), [">Alpha<"]);
    assert_eq!(shown("not_empty=1&no_password=1"), [">Beta<"]);
    assert_eq!(shown("game=gg2&map=&version="), [">Alpha<"], "a form sends its empty fields too");
    assert_eq!(shown(&format!("list={LOBBY}&sort=name")), names);
    assert_eq!(shown("per_page=1&page=2"), [">Alpha<"]);
    assert!(shown("favourites=1").is_empty(), "favourites are stored in the browser");
    let html = site.get("/?q=a+%26%22b&not_full=1&sort=-age").text();
    assert!(html.contains("value=\"a &#38;&#34;b\""), "the form shows the active filter: {html}");
    assert!(html.contains("name=\"not_full\" value=\"1\" checked"));
    assert!(html.contains("<option value=\"-age\" selected>"));
    assert!(html.contains("No server matches these filters."));
    let html = site.get("/?q=alp&not_full=1&sort=-age").text();
    assert!(html.contains("href=\"/?q=alp&#38;not_full=1&#38;sort=name\""), "a column head keeps the filters: {html}");
}

#[test]
fn a_long_list_is_paginated() {
    let (site, _) = site();
    let html = site.get("/?per_page=2&sort=name").text();
    assert!(html.contains("1–2 of 3 servers"), "{html}");
    assert!(html.contains("rel=\"next\" href=\"/?sort=name&#38;per_page=2&#38;page=2\""), "{html}");
    let html = site.get("/?per_page=2&sort=name&page=2").text();
    assert!(html.contains("3–3 of 3 servers") && html.contains("rel=\"prev\""), "{html}");
}

#[test]
fn pages_have_nothing_inline_and_every_asset_exists() {
    let (site, id) = site();
    let pages = [
        "/".to_owned(),
        "/status".into(),
        "/lists".into(),
        format!("/lists/{LOBBY}"),
        "/why".into(),
        format!("/servers/{id}"),
        format!("/servers/{id}/embed"),
        "/?sort=nonsense".into(),
    ];
    for path in &pages {
        let response = site.request("GET", path, &[("accept", "text/html")]);
        let html = response.text();
        let policy = response.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert!(!html.contains(" style=") && !html.contains("<style"), "{path}");
        assert!(
            ![" onclick", " onload", " onerror", "javascript:"].iter().any(|inline| html.contains(inline)),
            "{path}"
        );
        for script in html.split("<script").skip(1) {
            assert!(script.starts_with(" type=\"module\" src=\"/assets/") && script.contains("\"></script>"), "{path}");
        }
        let assets = html.split('"').filter(|text| text.starts_with("/assets/"));
        for asset in assets {
            let response = site.get(asset);
            assert_eq!(response.status, 200, "{path}: {asset}");
            assert!(response.header("cache-control").unwrap().contains("immutable"), "{asset}");
        }
        assert!(html.contains("<html lang=\"en\">") && html.contains("<title>"), "{path}");
    }
}

#[test]
fn pages_are_compressed_if_the_client_accepts_gzip() {
    let (site, _) = site();
    let plain = site.get("/");
    let packed = site.request("GET", "/", &[("accept-encoding", "gzip, br")]);
    assert_eq!((plain.header("content-encoding"), packed.header("content-encoding")), (None, Some("gzip")));
    assert_eq!(packed.header("vary"), Some("accept-encoding"));
    assert!(packed.body.starts_with(&[0x1f, 0x8b]) && packed.body.len() * 2 < plain.body.len());
    let head = site.request("HEAD", "/", &[("accept-encoding", "gzip")]);
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn browsers_get_errors_as_pages() {
    let (site, _) = site();
    let html = [("accept", "text/html,*/*")];
    for (path, status) in [("/?sort=nonsense", 400), ("/servers/x", 404), ("/nowhere", 404), ("/lists/x", 404)] {
        let response = site.request("GET", path, &html);
        assert_eq!(
            (response.status, response.header("content-type")),
            (status, Some("text/html; charset=utf-8")),
            "{path}"
        );
    }
    assert_eq!(site.get("/nowhere").header("content-type"), Some("application/problem+json"));
    assert_eq!(site.get("/assets/list.js").status, 404, "assets exist only under their hashed names");
    assert_eq!(site.get("/favicon.ico").header("content-type"), Some("image/svg+xml"));
}
