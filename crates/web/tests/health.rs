//! Whether it is alive, and whether it is ready.

mod common;

use common::{Server, Site, until};

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
    assert_eq!(answer.json()["detail"], "the registry has ended");
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
