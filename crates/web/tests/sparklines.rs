//! Rows have a sparkline of the last 24 hours, and the page shows it as soon as the history has been read.

use crate::common;

use common::{Server, Site, wait_until};
use rallypoint_history::{History, HistoryOptions, Observation};
use rallypoint_lobby::unix_now;
use rallypoint_web::WebOptions;

#[test]
fn a_server_with_history_has_a_sparkline_and_a_popularity() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::start(HistoryOptions::new(dir.path().join("history.db"))).unwrap();
    let reader = history.reader();
    let site = Site::with_sources(WebOptions::default(), |sources| sources.history = Some(reader));
    site.register_all(&[Server::new(1, "Alpha").players(5)]);
    let now = unix_now() as i64;
    for minute in (1..300).rev() {
        let servers = site.lobby.lists().snapshot();
        history.record(Observation { time: now - 60 * minute, servers, changes: Vec::new() });
        history.flush();
    }
    site.register_all(&[Server::new(1, "Alpha").players(0), Server::new(2, "New").players(1)]);
    assert!(!site.get("/").text().contains("class=\"spark\""), "the history has not been read yet");
    // Nothing else changes: the page has to be rendered again because of the history alone.
    let html = wait_until("the sparkline is shown", || {
        Some(site.get("/").text()).filter(|html| html.contains("class=\"spark\""))
    });
    assert_eq!(html.matches("class=\"spark\"").count(), 1, "a new server has none");
    assert!(html.contains("Players in the last 24 hours: at most 5 on average in an hour"), "{html}");
    let popular = site.json("/api/v1/servers?sort=-popularity");
    assert_eq!(popular["servers"][0]["name"], "Alpha", "{popular}");
}
