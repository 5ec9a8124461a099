//! The operator's settings for the pages: title, welcome text, logo, colour, base path, map pictures, join links; and what other sites
//! use: feeds and link previews.

use crate::common;

use common::{LOBBY, Server, Site};
use rallypoint_web::{SiteSettings, WebOptions};
use rallypoint_wire::lobby::ListId;

/// A picture: an SVG image without content.
const PICTURE: &[u8] = b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>";

const KEYS: &[(&[u8], &[u8])] = &[(b"map", b"ctf_truefort"), (b"game", b"Gang Garrison 2"), (b"game_ver", b"2.9")];

fn id(list: &serde_json::Value) -> String {
    list["servers"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn the_pages_are_those_of_the_operator() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("CTF_truefort.svg"), PICTURE).unwrap();
    let mut options = WebOptions::default();
    options.settings.site = SiteSettings {
        title: "Clan <Bacon>".into(),
        welcome: "Be nice.\nNo <b>cheating</b>.".into(),
        logo: Some(dir.path().join("CTF_truefort.svg")),
        color: Some("#ffcc00".parse().unwrap()),
        maps: Some(dir.path().into()),
        ..SiteSettings::default()
    };
    options.settings.joins.insert(LOBBY, "gg2://{address}".parse().unwrap());
    let site = Site::with_options(options);
    let id = id(&site.register_all(&[Server { keys: KEYS, ..Server::new(1, "Alpha") }]));
    let list = site.get("/").text();
    for text in
        ["Servers · Clan &#60;Bacon&#62;", "Be nice.\nNo &#60;b&#62;cheating", "gg2://127.0.0.1:8001", "/logo?v="]
    {
        assert!(list.contains(text), "{text}: {list}");
    }
    assert_eq!(site.get("/logo").header("content-type"), Some("image/svg+xml"));
    assert!(site.get("/logo").header("content-security-policy").unwrap().contains("sandbox"));
    let theme = list.split('"').find(|text| text.starts_with("/theme.css")).unwrap();
    assert!(site.get(theme).text().contains("--accent"), "{}", site.get(theme).text());
    let page = site.get(&format!("/servers/{id}")).text();
    assert!(page.contains("src=\"/maps/CTF_truefort.svg\""), "{page}");
    assert_eq!(site.get("/maps/CTF_truefort.svg").body, PICTURE);
    for missing in ["/maps/other.png", "/maps/..%2Fsecret.png", "/maps/ctf_truefort.svg"] {
        assert_eq!(site.get(missing).status, 404, "{missing}");
    }
    assert!(page.contains("class=\"button primary large\" href=\"gg2://127.0.0.1:8001\""), "{page}");
}

#[test]
fn the_pages_are_complete_below_a_base_path() {
    let mut options = WebOptions::default();
    options.settings.site.base_path = Some("/games/servers".parse().unwrap());
    let site = Site::with_options(options);
    let id = id(&site.register_all(&[Server { keys: KEYS, ..Server::new(1, "Alpha") }]));
    for path in ["/", "/lists", "/why", "/nowhere", &format!("/servers/{id}"), &format!("/lists/{LOBBY}")] {
        // A proxy can remove the base path or pass it on.
        for path in [path.to_owned(), format!("/games/servers{path}")] {
            let html = site.request("GET", &path, &[("accept", "text/html")]).text();
            let attributes =
                ["href=\"", "src=\"", "action=\""].map(|name| html.split(name).skip(1).collect::<Vec<_>>()).concat();
            let links =
                attributes.iter().filter_map(|rest| rest.split('"').next()).filter(|link| link.starts_with('/'));
            for link in links {
                assert!(link.starts_with("/games/servers/"), "{path}: {link}");
                assert_eq!(site.get(&link.replace("&#38;", "&")).status, 200, "{path}: {link}");
            }
        }
    }
    let page = site.get(&format!("/servers/{id}")).text();
    assert!(page.contains("http://localhost/games/servers/servers/"), "snippets have the base path: {page}");
}

#[test]
fn links_and_feeds_show_name_map_and_players() {
    let site = Site::start();
    let other = ListId::from_bytes([9; 16]);
    site.register_all(&[
        Server { keys: KEYS, ..Server::new(1, "Alpha & Co").players(5) },
        Server { list: other, ..Server::new(2, "Elsewhere") },
    ]);
    let alpha = site.json("/api/v1/servers?q=alpha");
    let page = site.get(&format!("/servers/{}", id(&alpha))).text();
    for tag in [
        "<meta property=\"og:title\" content=\"Alpha &#38; Co\">",
        "<meta property=\"og:description\" content=\"ctf_truefort · 5 / 10 players · Gang Garrison 2 2.9\">",
        &format!("<meta property=\"og:url\" content=\"http://localhost/servers/{}\">", id(&alpha)),
    ] {
        assert!(page.contains(tag), "{tag}: {page}");
    }
    let feed = site.get(&format!("/lists/{LOBBY}/feed.atom"));
    assert_eq!(feed.header("content-type"), Some("application/atom+xml; charset=utf-8"));
    let feed = feed.text();
    assert!(feed.contains("<title>Alpha &#38; Co</title>") && !feed.contains("Elsewhere"), "{feed}");
    assert_eq!(site.get("/feed.atom").text().matches("<entry>").count(), 2);
    assert_eq!(site.get("/lists/gg2/feed.atom").text(), feed, "lobbies have names");
    let badge = site.get(&format!("/servers/{}/badge.svg?graph=1", id(&alpha))).text();
    assert!(badge.contains("height=\"50\""), "{badge}");
}

#[test]
fn lists_have_names_wherever_they_have_uuids() {
    let mut options = WebOptions::default();
    let own = ListId::from_bytes([9; 16]);
    options.settings.names.0.insert(own, "My Games".into());
    let site = Site::with_options(options);
    site.register_all(&[Server::new(1, "Alpha"), Server { list: own, ..Server::new(2, "Beta") }]);
    assert_eq!(site.json("/api/v1/servers?list=gg2")["servers"][0]["name"], "Alpha");
    assert_eq!(site.json("/api/v1/servers?list=my+games")["servers"][0]["name"], "Beta");
    assert!(site.get("/?list=My%20Games").text().contains(">Beta<"));
    assert_eq!(site.get("/lists/my%20games").status, 200);
    let unknown = site.get("/api/v1/servers?list=quake");
    assert_eq!((unknown.status, unknown.json()["parameter"].as_str()), (404, Some("list")));
}

/// A database in the format of MaxMind in which addresses below 128.0.0.0 are in Germany: a tree of one node with two records of
/// 24 bits (17 is the start of the data, 1 is "not found"), the data, and the metadata.
const GEOIP: &[u8] = b"\0\0\x11\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \xe1\x47country\xe2\x48iso_code\x42DE\x45names\xe1\x42en\x47Germany\xab\xcd\xefMaxMind.com\
    \xe9\x5bbinary_format_major_version\xa1\x02\x5bbinary_format_minor_version\xa1\0\x4bbuild_epoch\x01\x02\x01\
    \x4ddatabase_type\x44test\x4bdescription\xe0\x4aip_version\xa1\x04\x49languages\0\x04\x4anode_count\xc1\x01\
    \x4brecord_size\xa1\x18";

#[test]
fn countries_are_shown_if_the_operator_has_a_database_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("country.mmdb");
    std::fs::write(&file, GEOIP).unwrap();
    for (geoip, is_shown) in [(Some(file), true), (None, false)] {
        let mut options = WebOptions::default();
        options.settings.site.geoip = geoip;
        let site = Site::with_options(options);
        let list = site.register_all(&[Server::new(1, "Alpha")]);
        let row = "<span class=\"country\" title=\"Germany\">DE</span>";
        assert_eq!(site.get("/").text().contains(row), is_shown);
        let page = site.get(&format!("/servers/{}", id(&list))).text();
        assert_eq!(page.contains("<dt>Country</dt><dd>Germany</dd>"), is_shown, "{page}");
    }
}
