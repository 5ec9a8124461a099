//! The page of a server, its badge, its embed frame and the link to its website, also with hostile values.

use crate::common;

use common::{Response, Server, Site};

/// Server names that attempt injection.
const HOSTILE: [&str; 4] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "\u{202e}desrever\u{2066}",
    "{{ 7 * 7 }}' onmouseover='alert(1)",
];

fn id_of(list: &serde_json::Value) -> String {
    list["servers"][0]["id"].as_str().unwrap().to_owned()
}

/// Registers a server with these keys and requests its page.
fn page(name: &str, keys: &[(&[u8], &[u8])]) -> (Site, String, Response) {
    let site = Site::start();
    let id = id_of(&site.register_all(&[Server { keys, ..Server::new(1, name) }]));
    let response = site.get(&format!("/servers/{id}"));
    (site, id, response)
}

#[test]
fn the_page_shows_every_registered_key() {
    let keys: &[(&[u8], &[u8])] = &[(b"map", b"koth"), (b"x-mood", b"sunny"), (b"x-bytes", &[0, 1, 255])];
    let (_site, id, response) = page("Bacon Town", keys);
    let html = response.text();
    for text in ["<title>Bacon Town ", "koth", "x-mood", "sunny", "x-bytes", "0001ff", "127.0.0.1:8001", "online"] {
        assert!(html.contains(text), "{text}: {html}");
    }
    assert!(!html.contains("<dt>Game</dt>"), "the server sent no game: {html}");
    assert!(
        html.contains(&format!("http://localhost/servers/{id}/badge.svg")),
        "the snippet has the host that the visitor uses"
    );
}

#[test]
fn l13_the_secret_id_is_not_on_any_page() {
    let (site, id, response) = page("Bacon Town", &[]);
    let secret = "01010101";
    for html in [response.text(), site.get("/").text(), site.get(&format!("/servers/{id}/embed")).text()] {
        assert!(!html.contains(secret), "{html}");
    }
}

#[test]
fn hostile_values_are_escaped() {
    for name in HOSTILE {
        let keys: &[(&[u8], &[u8])] =
            &[(b"map", name.as_bytes()), (b"x-key", name.as_bytes()), (b"game", name.as_bytes())];
        let (site, id, response) = page(name, keys);
        let badge = site.get(&format!("/servers/{id}/badge.svg"));
        let embed = site.get(&format!("/servers/{id}/embed"));
        for response in [response, site.get("/"), site.get("/status"), badge, embed] {
            let html = response.text();
            assert_eq!(response.status, 200);
            for pattern in ["<script>", "<img src=x", "onmouseover='", "\u{202e}", "\u{2066}"] {
                assert!(!html.contains(pattern), "{name} {pattern}: {html}");
            }
        }
    }
}

#[test]
fn only_http_links_are_shown_and_lead_through_a_warning() {
    let (site, id, response) = page("A", &[(b"game_url", b"https://example.org/?a=1&b=2")]);
    let html = response.text();
    assert!(html.contains(&format!("href=\"/servers/{id}/website\"")) && !html.contains("href=\"https://"), "{html}");
    let warning = site.get(&format!("/servers/{id}/website")).text();
    assert!(
        warning.contains("href=\"https://example.org/?a=1&#38;b=2\" rel=\"nofollow noopener noreferrer\""),
        "{warning}"
    );
    let (site, id, response) = page("B", &[(b"game_url", b"javascript:alert(1)")]);
    assert!(!response.text().contains("href=\"javascript"));
    assert_eq!(site.get(&format!("/servers/{id}/website")).status, 404);
}

#[test]
fn the_badge_and_the_embed_frame_can_be_used_on_other_sites() {
    let (site, id, _) = page("Bacon & Town", &[]);
    let badge = site.get(&format!("/servers/{id}/badge.svg"));
    assert_eq!(badge.header("content-type"), Some("image/svg+xml"));
    assert!(badge.text().contains("Bacon &#38; Town") && badge.text().contains("0 / 10"), "{}", badge.text());
    let unknown = site.get(&format!("/servers/{}/badge.svg", "0".repeat(32)));
    assert_eq!(unknown.status, 200, "an image that shows \"offline\" is better than a broken one");
    assert!(unknown.text().contains("offline"));
    let embed = site.get(&format!("/servers/{id}/embed"));
    assert!(embed.header("content-security-policy").unwrap().contains("frame-ancestors *"));
    let page = site.get(&format!("/servers/{id}"));
    assert!(page.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));
}

#[test]
fn an_unknown_server_is_404() {
    let site = Site::start();
    let response = site.get(&format!("/servers/{}", "0".repeat(32)));
    assert_eq!(response.status, 404);
    assert!(response.text().contains("this server is not in the list (any more)"));
}
