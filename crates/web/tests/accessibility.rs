//! axe-core reports no accessibility violation on any page: light and dark, wide and narrow.

use crate::common;

use common::{
    LOBBY, Server, Site,
    browser::{Browser, axe},
    game_server::{info, respond},
    wait_until,
};
use rallypoint_mirror::ExportKey;
use rallypoint_web::{ExportOptions, ExportService};
use rallypoint_wire::lobby::Occupancy;
use serde_json::Value;
use std::path::Path;

/// A site with one server of each kind: verified, differing from its registration, and with a password and a hostile name.
/// Returns the ID of a server with a website.
fn site() -> (Site, String) {
    let site = Site::with_probing();
    let addr = respond("127.0.0.1:0", &info("Alpha", 2));
    let x_query = format!("session:{}", addr.port());
    let keys: &[(&[u8], &[u8])] = &[(b"map", b"ctf_two"), (b"x-query", x_query.as_bytes()), (b"game_ver", b"2.9")];
    let occupancy = Occupancy { players: 2, bots: 1, slots: 10, password: false };
    let list = site.register_all(&[
        Server { keys, occupancy, ..Server::new(1, "Alpha") },
        Server { keys, occupancy: Occupancy { players: 9, ..occupancy }, ..Server::new(2, "Alpha") },
        Server {
            keys: &[(b"game_url", b"https://example.org/")],
            occupancy: Occupancy { password: true, ..occupancy },
            ..Server::new(3, "<b>\u{202e}")
        },
    ]);
    site.wait_for("/api/v1/servers?verified=differs", |list| list["total"] == 1);
    site.wait_for("/api/v1/servers?verified=verified", |list| list["total"] == 1);
    let with_website = |server: &&Value| !server["website"].is_null();
    let id = list["servers"].as_array().unwrap().iter().find(with_website).unwrap()["id"].as_str().unwrap().to_owned();
    (site, id)
}

/// Writes a static copy of the list to this folder, and returns the address of its page.
fn exported_page(site: &Site, folder: &Path) -> String {
    let key = ExportKey::load_or_create(&folder.join("key")).unwrap();
    let mut options = ExportOptions::new(folder.join("copy"), key);
    options.settings.page_url = Some("https://lobby.example.org/".into());
    let _runtime = site.runtime.enter();
    let export = ExportService::start(options, site.lobby.clone()).unwrap();
    let page = folder.join("copy/index.html");
    let is_written = || std::fs::read_to_string(&page).is_ok_and(|html| html.contains("ctf_two"));
    wait_until("the copy is written", || is_written().then_some(()));
    site.runtime.block_on(export.shutdown());
    format!("file://{}", page.display())
}

/// The violations on the open page.
fn violations(browser: &Browser) -> Vec<String> {
    let run = "const done = arguments[arguments.length - 1]; \
               axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => done(violations), String)";
    let found = browser.run_async(run);
    let all = found.as_array().unwrap_or_else(|| panic!("axe-core ended with {found}"));
    all.iter().map(|one| format!("{}: {} {}", one["id"], one["help"], one["nodes"][0]["html"])).collect()
}

#[test]
fn axe_core_reports_no_violations() {
    let Some(axe) = axe() else { return };
    let Some(browser) = Browser::start(1_400) else { return };
    browser.inject_script(&axe);
    let (site, id) = site();
    let lobby = format!("/lists/{LOBBY}");
    let server = format!("/servers/{id}");
    let website = format!("/servers/{id}/website");
    let embed = format!("/servers/{id}/embed");
    let pages = [
        "/",
        "/status",
        &server,
        "/?q=no-match",
        "/?favourites=1",
        "/lists",
        &lobby,
        "/why",
        &website,
        &embed,
        "/nowhere",
    ];
    // A lobby without servers invites to register one.
    let empty = Site::start();
    // The page of the static copies is a file of its own.
    let folder = tempfile::tempdir().unwrap();
    let copy = exported_page(&site, folder.path());
    for (width, scheme) in [(1_400, "light"), (1_400, "dark"), (390, "light"), (390, "dark")] {
        browser.set_viewport(width, 900);
        browser.set_color_scheme(scheme);
        let pages = pages.map(|page| (site.addr(), page)).into_iter();
        for (addr, page) in pages.chain([(empty.addr(), "/"), (empty.addr(), "/lists")]) {
            browser.open(&format!("http://{addr}{page}"));
            let found = violations(&browser);
            assert!(found.is_empty(), "{page}, {width} px, {scheme}: {found:#?}");
        }
        browser.open(&copy);
        let found = violations(&browser);
        assert!(found.is_empty(), "{copy}, {width} px, {scheme}: {found:#?}");
    }
}
