//! The pages in a real browser. Without one these tests are skipped, except under `cargo xtask test`.

use crate::common;

use common::{Server, Site, browser::Browser, wait_until};
use rallypoint_history::{History, HistoryOptions, Observation};
use std::time::{SystemTime, UNIX_EPOCH};

const ORDER: &str = "[...document.querySelectorAll('#rows .v-name')].map((name) => name.textContent).join()";
const IS_LIVE: &str = "document.querySelector('#liveness.on')";

/// The WebDriver codes of the keys Down and Enter.
const DOWN: &str = "\u{e015}";
const ENTER: &str = "\u{e007}";

fn site() -> Site {
    let site = Site::start();
    site.register_all(&[
        Server::new(1, "Alpha").players(3),
        Server::new(2, "Beta").players(2),
        Server::new(3, "Gamma").players(1),
    ]);
    site
}

#[test]
fn live_changes_do_not_move_rows() {
    let Some(browser) = Browser::start(1_400) else { return };
    let site = site();
    browser.open(&format!("http://{}/", site.addr()));
    browser.wait_for(IS_LIVE);
    site.register(&Server::new(3, "Gamma").players(9));
    browser.wait_for("document.querySelector('#rows tr:last-child .v-players').textContent === '9 / 10'");
    site.unregister(1);
    browser.wait_for("document.querySelector('#rows tr:first-child').classList.contains('gone')");
    site.register(&Server::new(4, "Delta").players(10));
    browser.wait_for("document.querySelector('#updates button')?.textContent === '1 new server: show'");
    assert_eq!(browser.run(&format!("return {ORDER}")), "Alpha,Beta,Gamma", "no row has moved");
    assert_eq!(browser.run("return document.querySelector('#resort').disabled"), false, "the list is out of order");
    browser.run("document.querySelector('#updates button').click()");
    browser.wait_for(&format!("{ORDER} === 'Delta,Gamma,Beta'"));
    browser.wait_for("document.querySelector('#updates button') === null");
}

#[test]
fn keyboard_and_filters_apply_at_once_and_update_the_url() {
    let Some(browser) = Browser::start(1_400) else { return };
    let site = site();
    browser.open(&format!("http://{}/", site.addr()));
    browser.wait_for(IS_LIVE);
    browser.run("document.querySelector('th.c-name a').click()");
    browser.wait_for("location.search === '?sort=name'");
    browser.wait_for("document.querySelector('th.c-name').getAttribute('aria-sort') === 'ascending'");
    browser.press("/bet");
    browser.wait_for(&format!("{ORDER} === 'Beta' && location.search === '?q=bet&sort=name'"));
    browser.press(DOWN);
    assert_eq!(browser.run("return document.activeElement.textContent"), "Beta");
    browser.press(ENTER);
    browser
        .wait_for("location.pathname.startsWith('/servers/') && document.querySelector('h1').textContent === 'Beta'");
}

#[test]
fn a_view_is_shared_by_its_url() {
    let Some(browser) = Browser::start(1_400) else { return };
    let site = site();
    browser.open(&format!("http://{}/", site.addr()));
    browser.wait_for(IS_LIVE);
    browser.press("/a");
    browser.wait_for("location.search === '?q=a'");
    browser.click("input[name=not_empty]");
    browser.wait_for("location.search.includes('not_empty=1')");
    browser.click("th.c-name a");
    browser.wait_for("location.search.includes('sort')");
    // A second browser, which gets only the URL.
    let Some(other) = Browser::start(1_400) else { return };
    other.open(browser.run("return location.href").as_str().unwrap());
    let view = format!(
        "[location.href, {ORDER}, document.querySelector('#q').value, \
         document.querySelector('th.c-name').getAttribute('aria-sort')]"
    );
    let expected = other.run(&format!("return {view}"));
    assert_eq!(expected[3], "ascending");
    browser.wait_for(&format!("JSON.stringify({view}) === JSON.stringify({expected})"));
    assert_eq!(other.run("return document.querySelector('input[name=not_empty]').checked"), true);
    // Going back in the history restores the previous view.
    browser.run("history.back()");
    browser.wait_for("!location.search.includes('sort') && document.querySelector('#q').value === 'a'");
}

#[test]
fn new_servers_that_match_the_filter_are_offered() {
    let Some(browser) = Browser::start(1_400) else { return };
    let site = site();
    browser.open(&format!("http://{}/?q=omega", site.addr()));
    browser.wait_for(IS_LIVE);
    site.register(&Server::new(5, "Epsilon"));
    site.wait_for("/api/v1/servers", |list| list["total"] == 4);
    site.register(&Server::new(6, "Omega").players(2));
    browser.wait_for("document.querySelector('#updates[role=status] button')?.textContent === '1 new server: show'");
    browser.click("#updates button");
    browser.wait_for(&format!("{ORDER} === 'Omega'"));
    // Back undoes a filter that was chosen, or typed.
    browser.run("document.querySelector('[name=not_empty]').click()");
    browser.wait_for("location.search === '?q=omega&not_empty=1'");
    browser.press("/x");
    browser.wait_for("location.search.includes('q=x') && document.querySelector('.empty') !== null");
    browser.run("history.back()");
    browser.wait_for(&format!("location.search === '?q=omega&not_empty=1' && {ORDER} === 'Omega'"));
    browser.run("history.back()");
    browser.wait_for("location.search === '?q=omega' && !document.querySelector('[name=not_empty]').checked");
}

#[test]
fn a_copied_address_is_confirmed() {
    let Some(browser) = Browser::start(1_400) else { return };
    let site = site();
    browser.open(&format!("http://{}/", site.addr()));
    browser.wait_for(IS_LIVE);
    browser.click("#rows button.copy");
    browser.wait_for("document.querySelector('#rows button.copy.done')?.getAttribute('aria-label') === 'Copied'");
}

#[test]
fn the_server_page_shows_graphs_and_live_values() {
    let Some(browser) = Browser::start(1_400) else { return };
    let dir = tempfile::tempdir().unwrap();
    let history = History::start(HistoryOptions::new(dir.path().join("history.db"))).unwrap();
    let handle = history.reader();
    let site = Site::with_sources(rallypoint_web::WebOptions::default(), |sources| sources.history = Some(handle));
    let list = site.register_all(&[Server::new(1, "Alpha").players(3)]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    for minute in (1..90).rev() {
        let listed = site.lobby.lists().snapshot();
        history.record(Observation { time: now - 60 * minute, servers: listed, changes: Vec::new() });
        history.flush();
    }
    let page = format!("/servers/{}", list["servers"][0]["id"].as_str().unwrap());
    wait_until("the history is written", || site.get(&page).text().contains("player record").then_some(()));
    browser.open(&format!("http://{}{page}", site.addr()));
    let is_drawn = "document.querySelector('#history .plot .average')?.getBoundingClientRect().width > 0";
    browser.wait_for(is_drawn);
    assert!(browser.run("return document.querySelector('#history .plot .slots') !== null").as_bool().unwrap());
    browser.hover("#history .plot");
    browser.wait_for(
        "/^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d: /.test(document.querySelector('#history .values').textContent)",
    );
    browser.run("scrollTo(0, 40); window.isSamePage = true");
    assert_eq!(browser.run("return document.querySelector('.v-players').textContent"), "3 / 10");
    browser.click("#history .tabs a:nth-child(2)");
    browser.wait_for(&format!("location.search === '?range=7d' && {is_drawn} && window.isSamePage"));
    // The values are updated live.
    site.register(&Server::new(1, "Alpha").players(7));
    browser.wait_for("document.querySelector('.v-players').textContent === '7 / 10'");
}

#[test]
fn without_javascript_the_list_sorts_filters_and_links() {
    let Some(browser) = Browser::without_script(1_400) else { return };
    let site = site();
    browser.open(&format!("http://{}/", site.addr()));
    browser.wait_for(&format!("{ORDER} === 'Alpha,Beta,Gamma'"));
    let hidden = "[...document.querySelectorAll('.needs-script')].every((one) => one.getClientRects().length === 0)";
    assert_eq!(browser.run(&format!("return {hidden}")), true, "buttons that need JavaScript are hidden");
    browser.click("th.c-name a");
    browser.wait_for("location.search === '?sort=name'");
    browser.click("input[name=not_empty]");
    browser.click("#filter button.primary");
    browser.wait_for(&format!("location.search.includes('not_empty=1') && {ORDER} === 'Alpha,Beta,Gamma'"));
    browser.click("#rows .v-name");
    browser.wait_for("document.querySelector('h1').textContent === 'Alpha'");
}

#[test]
fn favourites_survive_a_reload_and_the_removal_of_the_server() {
    let Some(browser) = Browser::start(1_400) else { return };
    let site = site();
    let favourites = format!("http://{}/?favourites=1", site.addr());
    browser.open(&format!("http://{}/", site.addr()));
    browser.wait_for(IS_LIVE);
    browser.press(DOWN);
    browser.press("f");
    browser.wait_for("document.querySelector('#rows .star').getAttribute('aria-pressed') === 'true'");
    browser.open(&favourites);
    browser.wait_for(&format!("{ORDER} === 'Alpha'"));
    site.unregister(1);
    site.wait_for("/api/v1/servers", |list| list["total"] == 2);
    browser.open(&favourites);
    browser.wait_for(&format!("{ORDER} === 'Alpha' && document.querySelector('#rows tr.gone') !== null"));
}

#[test]
fn hostile_names_are_harmless_on_a_phone() {
    let Some(browser) = Browser::start(390) else { return };
    let site = Site::start();
    let wide = "寬".repeat(85);
    let names = [
        "<script>document.title='bad'</script>",
        "\"><img src=x onerror=\"document.title='bad'\">",
        "\u{202e}sdrawkcab\u{2066}\u{200f}",
        &wide,
    ];
    let servers: Vec<_> = (1..).zip(names).map(|(number, name)| Server::new(number, name)).collect();
    let list = site.register_all(&servers);
    let fits = "document.documentElement.scrollWidth <= innerWidth";
    browser.open(&format!("http://{}/", site.addr()));
    browser.wait_for(IS_LIVE);
    assert_eq!(
        browser.run(&format!("return [document.title, {fits}, document.querySelectorAll('#rows tr').length]")),
        { serde_json::json!(["Servers · Rallypoint", true, 4]) }
    );
    // Live changes are rendered by a script, not by the template.
    site.register(&servers[0].players(7));
    browser.wait_for("document.body.textContent.includes('7 / 10')");
    for server in list["servers"].as_array().unwrap() {
        browser.open(&format!("http://{}/servers/{}", site.addr(), server["id"].as_str().unwrap()));
        let title = format!("{} · Rallypoint", server["name"].as_str().unwrap());
        assert_eq!(browser.run(&format!("return [document.title, {fits}]")), serde_json::json!([title, true]));
    }
}
