//! axe-core finds nothing on any page that would keep people out: in the light, in the dark, on a phone.

mod common;

use common::{
    LOBBY, Server, Site,
    browser::{Browser, axe},
    responder::{info, respond},
};
use rallypoint_wire::lobby::Occupancy;
use serde_json::Value;

/// A site with something of everything: a server that is verified, one that lies, one with a password and hostile texts.
fn site() -> (Site, String) {
    let site = Site::probing();
    let at = respond("127.0.0.1:0", &info("Alpha", 2));
    let x_query = format!("session:{}", at.port());
    let more: &[(&[u8], &[u8])] = &[(b"map", b"ctf_two"), (b"x-query", x_query.as_bytes()), (b"game_ver", b"2.9")];
    let occupancy = Occupancy { players: 2, bots: 1, slots: 10, password: false };
    let list = site.fill(&[
        Server { more, occupancy, ..Server::new(1, "Alpha") },
        Server { more, occupancy: Occupancy { players: 9, ..occupancy }, ..Server::new(2, "Alpha") },
        Server {
            more: &[(b"game_url", b"https://example.org/")],
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

/// What is wrong with the page that is open.
fn violations(browser: &Browser) -> Vec<String> {
    let run = "const done = arguments[arguments.length - 1]; \
               axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => done(violations), String)";
    let found = browser.run_async(run);
    let all = found.as_array().unwrap_or_else(|| panic!("axe-core ended with {found}"));
    all.iter().map(|one| format!("{}: {} {}", one["id"], one["help"], one["nodes"][0]["html"])).collect()
}

#[test]
fn axe_core_finds_nothing() {
    let Some(axe) = axe() else { return };
    let Some(wide) = Browser::start(1_400) else { return };
    let Some(narrow) = Browser::start(390) else { return };
    let (site, id) = site();
    let lobby = format!("/lobbies/{LOBBY}");
    let (server, website) = (format!("/servers/{id}"), format!("/servers/{id}/website"));
    let embed = format!("/servers/{id}/embed");
    let others = ["/?q=nobody", "/?favourites=1", "/lobbies", &lobby, "/why", &website, &embed, "/nowhere"];
    // Colours and widths are the same on the others.
    let main = ["/", "/status", &server];
    let all: Vec<_> = main.into_iter().chain(others).collect();
    for browser in [&wide, &narrow] {
        browser.bring(&axe);
    }
    for (browser, scheme, pages) in [(&wide, "light", &all[..]), (&wide, "dark", &main), (&narrow, "dark", &main)] {
        browser.prefer(scheme);
        for page in pages {
            browser.open(&format!("http://{}{page}", site.addr()));
            let found = violations(browser);
            assert!(found.is_empty(), "{page}, {scheme}: {found:#?}");
        }
    }
}
