//! The page of a server: everything it sent, its badge, its frame, the way to its website; and what strangers write in it.

mod common;

use common::{Answer, Server, Site};

/// What people call their servers to cause trouble.
const HOSTILE: [&str; 4] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "\u{202e}desrever\u{2066}",
    "{{ 7 * 7 }}' onmouseover='alert(1)",
];

fn id_of(list: &serde_json::Value) -> String {
    list["servers"][0]["id"].as_str().unwrap().to_owned()
}

/// The page of a server that sent these keys.
fn page(name: &str, more: &[(&[u8], &[u8])]) -> (Site, String, Answer) {
    let site = Site::start();
    let id = id_of(&site.fill(&[Server { more, ..Server::new(1, name) }]));
    let answer = site.get(&format!("/servers/{id}"));
    (site, id, answer)
}

#[test]
fn it_shows_everything_that_was_sent() {
    let more: &[(&[u8], &[u8])] = &[(b"map", b"koth"), (b"x-mood", b"sunny"), (b"x-bytes", &[0, 1, 255])];
    let (_site, id, answer) = page("Bacon Town", more);
    let html = answer.text();
    for text in ["<title>Bacon Town ", "koth", "x-mood", "sunny", "x-bytes", "0001ff", "127.0.0.1:8001", "online"] {
        assert!(html.contains(text), "{text}: {html}");
    }
    assert!(!html.contains("<dt>Game</dt>"), "it did not say what is played: {html}");
    assert!(
        html.contains(&format!("http://localhost/servers/{id}/badge.svg")),
        "the snippet has the visitor's address"
    );
}

#[test]
fn the_secret_id_is_nowhere() {
    let (site, id, answer) = page("Bacon Town", &[]);
    let secret = "01010101";
    for html in [answer.text(), site.get("/").text(), site.get(&format!("/servers/{id}/embed")).text()] {
        assert!(!html.contains(secret), "{html}");
    }
}

#[test]
fn what_strangers_write_is_harmless() {
    for name in HOSTILE {
        let more: &[(&[u8], &[u8])] =
            &[(b"map", name.as_bytes()), (b"x-key", name.as_bytes()), (b"game", name.as_bytes())];
        let (site, id, answer) = page(name, more);
        let badge = site.get(&format!("/servers/{id}/badge.svg"));
        let embed = site.get(&format!("/servers/{id}/embed"));
        for answer in [answer, site.get("/"), site.get("/status"), badge, embed] {
            let html = answer.text();
            assert_eq!(answer.status, 200);
            for trouble in ["<script>", "<img src=x", "onmouseover='", "\u{202e}", "\u{2066}"] {
                assert!(!html.contains(trouble), "{name} {trouble}: {html}");
            }
        }
    }
}

#[test]
fn links_are_for_the_web_only_and_lead_through_a_warning() {
    let (site, id, answer) = page("A", &[(b"game_url", b"https://example.org/?a=1&b=2")]);
    let html = answer.text();
    assert!(html.contains(&format!("href=\"/servers/{id}/website\"")) && !html.contains("href=\"https://"), "{html}");
    let warning = site.get(&format!("/servers/{id}/website")).text();
    assert!(
        warning.contains("href=\"https://example.org/?a=1&#38;b=2\" rel=\"nofollow noopener noreferrer\""),
        "{warning}"
    );
    let (site, id, answer) = page("B", &[(b"game_url", b"javascript:alert(1)")]);
    assert!(!answer.text().contains("href=\"javascript"));
    assert_eq!(site.get(&format!("/servers/{id}/website")).status, 404);
}

#[test]
fn a_badge_and_a_frame_are_for_other_pages() {
    let (site, id, _) = page("Bacon & Town", &[]);
    let badge = site.get(&format!("/servers/{id}/badge.svg"));
    assert_eq!(badge.header("content-type"), Some("image/svg+xml"));
    assert!(badge.text().contains("Bacon &#38; Town") && badge.text().contains("0 / 10"), "{}", badge.text());
    let nobody = site.get(&format!("/servers/{}/badge.svg", "0".repeat(32)));
    assert_eq!(nobody.status, 200, "a picture that says so is better than a broken one");
    assert!(nobody.text().contains("offline"));
    let embed = site.get(&format!("/servers/{id}/embed"));
    assert!(embed.header("content-security-policy").unwrap().contains("frame-ancestors *"));
    let page = site.get(&format!("/servers/{id}"));
    assert!(page.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));
}

#[test]
fn a_server_that_nobody_knows_has_no_page() {
    let site = Site::start();
    let answer = site.get(&format!("/servers/{}", "0".repeat(32)));
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains("not in the list"));
}
