//! The pages in a real browser. Without chromedriver these tests skip themselves.

mod common;

use common::{Server, Site, browser::Browser};

const ORDER: &str = "[...document.querySelectorAll('#rows .v-name')].map((name) => name.textContent).join()";
const IS_LIVE: &str = "document.querySelector('#liveness.on')";

/// Down and Enter, as WebDriver has them.
const DOWN: &str = "\u{e015}";
const ENTER: &str = "\u{e007}";

fn site() -> Site {
    let site = Site::start();
    site.fill(&[
        Server::new(1, "Alpha").players(3),
        Server::new(2, "Beta").players(2),
        Server::new(3, "Gamma").players(1),
    ]);
    site
}

#[test]
fn live_changes_keep_every_row_in_its_place() {
    let Some(browser) = Browser::start(1_400) else { return };
    let site = site();
    browser.open(&format!("http://{}/", site.addr()));
    browser.wait_for(IS_LIVE);
    site.register(&Server::new(3, "Gamma").players(9));
    browser.wait_for("document.querySelector('#rows tr:last-child .v-players').textContent === '9 / 10'");
    site.unregister(1);
    browser.wait_for("document.querySelector('#rows tr:first-child').classList.contains('gone')");
    site.register(&Server::new(4, "Delta").players(10));
    browser.wait_for("document.querySelector('#news button')?.textContent === '1 new server: show'");
    assert_eq!(browser.run(&format!("return {ORDER}")), "Alpha,Beta,Gamma", "nothing has moved");
    browser.run("document.querySelector('#news button').click()");
    browser.wait_for(&format!("{ORDER} === 'Delta,Gamma,Beta'"));
    browser.wait_for("document.querySelector('#news button') === null");
}

#[test]
fn keys_and_filters_work_at_once_and_are_in_the_address() {
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
fn favourites_outlive_a_reload_and_the_server() {
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
    let names = ["<script>document.title='bad'</script>", "\"><img src=x onerror=\"document.title='bad'\">", &wide];
    let servers: Vec<_> = (1..).zip(names).map(|(number, name)| Server::new(number, name)).collect();
    let list = site.fill(&servers);
    let fits = "document.documentElement.scrollWidth <= innerWidth";
    browser.open(&format!("http://{}/", site.addr()));
    browser.wait_for(IS_LIVE);
    assert_eq!(
        browser.run(&format!("return [document.title, {fits}, document.querySelectorAll('#rows tr').length]")),
        { serde_json::json!(["Servers · Rallypoint", true, 3]) }
    );
    // What changes goes into the page another way than what was there.
    site.register(&servers[0].players(7));
    browser.wait_for("document.body.textContent.includes('7 / 10')");
    for server in list["servers"].as_array().unwrap() {
        browser.open(&format!("http://{}/servers/{}", site.addr(), server["id"].as_str().unwrap()));
        let title = format!("{} · Rallypoint", server["name"].as_str().unwrap());
        assert_eq!(browser.run(&format!("return [document.title, {fits}]")), serde_json::json!([title, true]));
    }
}
