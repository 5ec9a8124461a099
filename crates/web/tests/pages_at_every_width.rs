//! The pages at all widths: names are readable, nothing is cut off, and nothing moves while a page loads or changes.

use crate::common;

use common::{LOBBY, Server, Site, browser::Browser};
use rallypoint_wire::lobby::Occupancy;

const WIDTHS: [u32; 10] = [320, 360, 768, 820, 900, 1_024, 1_151, 1_280, 1_920, 3_840];

/// Maximum layout shift of a page.
const MAX_SHIFT: f64 = 0.02;

const IS_LIVE: &str = "document.querySelector('#liveness.on')";

fn site() -> (Site, String) {
    let site = Site::start();
    let keys: &[(&[u8], &[u8])] = &[
        (b"map", b"ctf_a_map_with_a_rather_long_name"),
        (b"game", b"Gang Garrison 2 with a long name"),
        (b"game_ver", b"2.9.2-beta"),
        (b"game_url", b"https://example.org/a/long/path/that/has/to/be/wrapped/somewhere?and=a&query=string"),
    ];
    let names: Vec<_> =
        (1..=20_u8).map(|number| format!("Server number {number} with a long name, maps and rules")).collect();
    let occupancy = Occupancy { players: 3, bots: 2, slots: 16, password: true };
    let servers: Vec<_> =
        (1..).zip(&names).map(|(number, name)| Server { keys, occupancy, ..Server::new(number, name) }).collect();
    let list = site.register_all(&servers);
    (site, list["servers"][0]["id"].as_str().unwrap().to_owned())
}

#[test]
fn names_are_readable_and_nothing_moves() {
    let Some(browser) = Browser::start(1_400) else { return };
    browser.measure_layout_shift();
    let (site, id) = site();
    let pages = [
        "/".into(),
        "/?q=no-match".into(),
        format!("/servers/{id}"),
        format!("/servers/{id}/website"),
        format!("/servers/{id}/embed"),
        "/lists".into(),
        format!("/lists/{LOBBY}"),
        "/why".into(),
        "/status".into(),
        "/nowhere".into(),
    ];
    let narrowest = "Math.min(...[...document.querySelectorAll('#rows .c-name')].map((cell) => cell.getBoundingClientRect().width))";
    let in_order = "[...document.querySelectorAll('.columns .card')].map((card) => card.getBoundingClientRect().top) \
                    .every((top, index, all) => index === 0 || top > all[index - 1])";
    let overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    for width in WIDTHS {
        browser.set_viewport(width, 900);
        for page in &pages {
            browser.open(&format!("http://{}{page}", site.addr()));
            if page == "/" {
                browser.wait_for(IS_LIVE);
                let name = browser.run(&format!("return {narrowest}")).as_f64().unwrap();
                assert!(name >= 200.0, "{width} px: a name has {name} px");
            }
            // A page that arrives in pieces would move what is shown below parts that arrive later.
            let is_ordered = browser.run(&format!("return {in_order}"));
            assert!(is_ordered == true || width > 900, "{page} at {width} px is not in the order of the document");
            assert_eq!(browser.run(&format!("return {overflow}")), 0, "{page} at {width} px is wider than the window");
            let shift = browser.layout_shift();
            assert!(shift < MAX_SHIFT, "{page} at {width} px: layout shift {shift}");
        }
    }
    // Live changes move nothing either, on a phone and on a wide screen.
    for (width, number) in [(360, 21), (1_280, 22)] {
        browser.set_viewport(width, 900);
        browser.open(&format!("http://{}/", site.addr()));
        browser.wait_for(IS_LIVE);
        site.register(&Server::new(number, "New").players(12));
        browser.wait_for("document.querySelector('#updates button') !== null");
        let shift = browser.layout_shift();
        assert!(shift < MAX_SHIFT, "{width} px: layout shift {shift} by live changes");
    }
    // On paper the rows are lines of a table, without controls, and none overlaps the next or is wider than the page, also if
    // a name has no space.
    site.register(&Server::new(23, &"LongNameWithoutSpaces".repeat(8)));
    browser.set_viewport(720, 900);
    browser.open(&format!("http://{}/?q=LongNameWithout", site.addr()));
    browser.wait_for("document.querySelectorAll('#rows tr').length === 1");
    browser.open(&format!("http://{}/", site.addr()));
    browser.set_medium("print");
    assert_eq!(browser.run(&format!("return {overflow}")), 0, "the printed list is wider than the page");
    let overlaps = "[...document.querySelectorAll('#rows tr')].some((row, index, rows) => index > 0 && \
                    row.getBoundingClientRect().top < rows[index - 1].getBoundingClientRect().bottom - 1)";
    let controls =
        "[...document.querySelectorAll('#filter, .star, .actions')].some((one) => one.getClientRects().length > 0)";
    assert_eq!(browser.run(&format!("return [{overlaps}, {controls}]")), serde_json::json!([false, false]));
}

#[test]
fn an_empty_list_shows_how_to_get_into_it_and_fills_by_itself() {
    let Some(browser) = Browser::start(1_280) else { return };
    let site = Site::start();
    browser.open(&format!("http://{}/", site.addr()));
    browser.wait_for(IS_LIVE);
    let command = browser.run("return document.querySelector('.invitation pre').textContent");
    assert!(command.as_str().unwrap().starts_with("rallypoint announce --lobby 127.0.0.1:"), "{command}");
    // A line of a command does not end within the name of an option.
    for width in WIDTHS {
        browser.set_viewport(width, 900);
        let lines = "[...document.querySelectorAll('.option')].map((option) => option.getClientRects().length)";
        assert_eq!(browser.run(&format!("return {lines}")), serde_json::json!([1, 1, 1]), "{width} px");
    }
    let shown =
        "['#filter', '.keys', '.invitation'].map((one) => document.querySelector(one)?.getClientRects().length > 0)";
    assert_eq!(browser.run(&format!("return {shown}")), serde_json::json!([false, false, true]));
    site.register(&Server::new(1, "First"));
    browser.wait_for("document.querySelector('#rows .v-name')?.textContent === 'First'");
    assert_eq!(browser.run(&format!("return {shown}[0]")), true, "the filters appear with the first server");
    let lobbies = "return document.querySelectorAll('[name=list] option').length";
    assert_eq!(browser.run(lobbies), 2, "they offer all lobbies, and that of the server");
}
