//! Whether it is alive, and whether it is ready.

mod common;

use common::{Server, Site, until};
use rallypoint_history::{History, HistoryOptions, Observation};
use rallypoint_web::WebOptions;

#[test]
fn alive_and_ready() {
    let site = Site::start();
    let alive = site.get("/healthz");
    assert_eq!((alive.status, alive.text()), (200, "ok\n".to_owned()));
    let ready = until("it is ready", || Some(site.get("/readyz")).filter(|answer| answer.status == 200));
    assert_eq!(ready.text(), r#"{"status":"ready","save":"saved","history":"off"}"#);
    assert_eq!(ready.header("cache-control"), Some("no-store"));
}

#[test]
fn without_its_registry_it_is_alive_but_not_ready() {
    let site = Site::start();
    site.fill(&[Server::new(1, "a")]);
    site.runtime.block_on(site.lobby.shutdown());
    let answer = site.get("/readyz");
    assert_eq!((answer.status, answer.header("content-type")), (503, Some("application/problem+json")));
    assert_eq!(answer.json()["detail"], "the lobby has stopped");
    assert_eq!(site.get("/healthz").status, 200);
    assert_eq!(site.json("/api/v1/servers")["total"], 1, "it still shows what it knows");
}

#[test]
fn a_disk_that_fails_is_told_and_the_lobby_serves_on() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::saving(Default::default(), dir.path(), |_| {});
    // Nothing can be written where a folder is in the way.
    std::fs::create_dir_all(dir.path().join("servers.save.new/in-the-way")).unwrap();
    site.fill(&[Server::new(1, "a")]);
    let is_degraded = |answer: &common::Answer| answer.json()["save"] == "failing";
    let answer = until("a save has failed", || Some(site.get("/readyz")).filter(is_degraded));
    assert_eq!((answer.status, answer.json()["status"].clone()), (200, "degraded".into()));
}

#[test]
fn a_history_that_stands_still_because_the_clock_was_set_back_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::start(HistoryOptions::new(dir.path().join("history.db"))).unwrap();
    let site = Site::of(WebOptions::default(), |parts| parts.history = Some(history.reader()));
    let look = |time| {
        history.record(Observation { time, servers: site.lobby.lists().snapshot(), changes: Vec::new() });
        history.flush();
        let answer = until("it is ready", || Some(site.get("/readyz")).filter(|answer| answer.status == 200)).json();
        ["status", "history"].map(|key| answer[key].as_str().unwrap().to_owned())
    };
    assert_eq!(look(1_800_000_000), ["ready", "writing"]);
    assert_eq!(look(1_800_000_000 - 240), ["degraded", "failing"]);
    assert_eq!(look(1_800_000_000 + 60), ["ready", "writing"]);
}
