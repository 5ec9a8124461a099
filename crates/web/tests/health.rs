//! Liveness and readiness probes: `/healthz` and `/readyz`.

use crate::common;

use common::{Server, Site, wait_until};
use rallypoint_history::{History, HistoryOptions, Observation};
use rallypoint_lobby::{ClusterProblem, ClusterStatus, LobbyOptions, NodeIdentity};
use rallypoint_web::WebOptions;

#[test]
fn healthz_and_readyz_of_a_running_lobby() {
    let site = Site::start();
    let alive = site.get("/healthz");
    assert_eq!((alive.status, alive.text()), (200, "ok\n".to_owned()));
    let ready =
        wait_until("the lobby is ready", || Some(site.get("/readyz")).filter(|response| response.status == 200));
    let expected = r#"{"status":"ready","save":"saved","history":"off","cluster":"off","export":"off","proxy":"ok"}"#;
    assert_eq!(ready.text(), expected);
    assert_eq!(ready.header("cache-control"), Some("no-store"));
}

#[test]
fn a_stopped_lobby_is_alive_but_not_ready() {
    let site = Site::start();
    site.register_all(&[Server::new(1, "a")]);
    site.runtime.block_on(site.lobby.shutdown());
    let response = site.get("/readyz");
    assert_eq!((response.status, response.header("content-type")), (503, Some("application/problem+json")));
    assert_eq!(response.json()["detail"], "the lobby has stopped");
    assert_eq!(site.get("/healthz").status, 200);
    assert_eq!(site.json("/api/v1/servers")["total"], 1, "the last list is still served");
}

#[test]
fn a_failing_save_is_degraded_but_ready() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::with_data_dir(Default::default(), dir.path(), |_| {});
    // A directory of the same name makes every write fail.
    std::fs::create_dir_all(dir.path().join("servers.save.new/in-the-way")).unwrap();
    site.register_all(&[Server::new(1, "a")]);
    let is_degraded = |response: &common::Response| response.json()["save"] == "failing";
    let response = wait_until("a save has failed", || Some(site.get("/readyz")).filter(is_degraded));
    assert_eq!((response.status, response.json()["status"].clone()), (200, "degraded".into()));
}

#[test]
fn a_clock_set_back_makes_the_history_degraded() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::start(HistoryOptions::new(dir.path().join("history.db"))).unwrap();
    let site = Site::with_sources(WebOptions::default(), |sources| sources.history = Some(history.reader()));
    let readiness_at = |time| {
        history.record(Observation { time, servers: site.lobby.lists().snapshot(), changes: Vec::new() });
        history.flush();
        let response =
            wait_until("the lobby is ready", || Some(site.get("/readyz")).filter(|response| response.status == 200))
                .json();
        ["status", "history"].map(|key| response[key].as_str().unwrap().to_owned())
    };
    assert_eq!(readiness_at(1_800_000_000), ["ready", "writing"]);
    assert_eq!(readiness_at(1_800_000_000 - 240), ["degraded", "failing"]);
    assert_eq!(readiness_at(1_800_000_000 + 60), ["ready", "writing"]);
}

#[test]
fn a_node_is_ready_when_it_has_the_servers_of_the_others() {
    let identity = NodeIdentity { name: "a".into(), public_id_key: [1; 16] };
    let lobby = LobbyOptions { cluster: Some(identity), ..LobbyOptions::default() };
    let site = Site::with_lobby(lobby, WebOptions::default(), |_| {});
    let link = site.lobby.cluster().unwrap();
    let problem = Some(ClusterProblem { code: "loading", summary: "they are being loaded" });
    let joining = ClusterStatus { is_joining: true, problem, ..ClusterStatus::default() };
    let is_loading = |response: &common::Response| {
        response.status == 503 && response.json()["detail"] == "the servers of other nodes are being loaded"
    };
    wait_until("it is not ready before it has contact", || Some(site.get("/readyz")).filter(is_loading));
    link.set_status(joining.clone());
    assert!(is_loading(&site.get("/readyz")));
    for (status, expected) in [
        (ClusterStatus { is_connected: true, ..ClusterStatus::default() }, "ready"),
        // An outage, or a start without the store that takes too long.
        (ClusterStatus { is_joining: false, ..joining.clone() }, "degraded"),
        // Something is not shared.
        (ClusterStatus { is_joining: false, is_connected: true, ..joining }, "degraded"),
    ] {
        link.set_status(status);
        let response = site.get("/readyz");
        assert_eq!((response.status, response.json()["status"].clone()), (200, expected.into()));
    }
}
