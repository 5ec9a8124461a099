//! `/metrics`: valid in the exposition format, documented, and complete for the dashboard and the alerts.

use crate::common;
use crate::exposition;

use common::{Server, Site, request, wait_until};
use exposition::{Metrics, parse};
use rallypoint_history::{History, HistoryOptions};
use rallypoint_lobby_proto::{RegistrationOutcome, UnlistReason};
use rallypoint_web::{ListNames, WebOptions};
use rallypoint_wire::lobby::ListId;
use std::{collections::BTreeSet, net::Shutdown};

/// Series that Prometheus itself creates.
const PROMETHEUS_SERIES: [&str; 1] = ["up"];

fn metrics(site: &Site) -> Metrics {
    let response = site.get("/metrics");
    assert_eq!(
        (response.status, response.header("content-type")),
        (200, Some("text/plain; version=0.0.4; charset=utf-8"))
    );
    parse(&response.text())
}

/// A site with a history and saves, so that all families have samples.
fn site() -> (Site, History, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let history = History::start(HistoryOptions::new(dir.path().join("history.db"))).unwrap();
    let handle = history.reader();
    let mut options = WebOptions::default();
    options.settings.names = ListNames([(ListId::GANG_GARRISON_2, "Gang \"Garrison\" 2".to_owned())].into());
    let site = Site::with_data_dir(options, dir.path(), |sources| sources.history = Some(handle));
    (site, history, dir)
}

#[test]
fn all_label_values_exist_from_the_start() {
    let site = Site::start();
    let metrics = metrics(&site);
    for code in RegistrationOutcome::CODES {
        assert_eq!(metrics.value("rallypoint_outcomes_total", &[("code", code)]), 0.0, "{code}");
    }
    for reason in UnlistReason::CODES {
        assert_eq!(metrics.value("rallypoint_unlisted_total", &[("reason", reason)]), 0.0, "{reason}");
    }
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(metrics.value("rallypoint_build_info", &version), 1.0);
    assert!(metrics.value("rallypoint_process_resident_memory_bytes", &[]) > 1e6);
    let open = metrics.value("rallypoint_process_open_fds", &[]);
    assert!(open > 3.0 && open < metrics.value("rallypoint_process_max_fds", &[]));
    assert!(metrics.value("rallypoint_process_start_time_seconds", &[]) > 1.7e9);
}

#[test]
fn registrations_lists_and_requests_are_counted() {
    let (site, _history, _dir) = site();
    let other = ListId::from_bytes([9; 16]);
    let in_other = |number| Server { list: other, ..Server::new(number, "b") };
    site.register_all(&[Server::new(1, "a").players(3), in_other(2).players(2), in_other(3).players(1)]);
    site.send(b"nonsense");
    let lobby = site.lobby_addr();
    let mut request = Vec::new();
    rallypoint_wire::lobby::ListRequest { list_id: other }.emit(&mut request);
    let mut tcp = common::connect(lobby);
    std::io::Write::write_all(&mut tcp, &request).unwrap();
    tcp.shutdown(Shutdown::Write).unwrap();
    std::io::copy(&mut tcp, &mut std::io::sink()).unwrap();
    let is_complete = |metrics: &Metrics| {
        metrics.value("rallypoint_outcomes_total", &[("code", "malformed")]) == 1.0
            && metrics.value("rallypoint_saves_total", &[("result", "written")]) > 0.0
            && metrics.value("rallypoint_list_reply_seconds_count", &[]) == 1.0
    };
    let metrics = wait_until("all counters are updated", || Some(metrics(&site)).filter(is_complete));
    let value = |name: &str, labels: &[(&str, &str)]| metrics.value(name, labels);
    assert_eq!(value("rallypoint_outcomes_total", &[("code", "listed")]), 3.0);
    assert_eq!(value("rallypoint_servers_listed", &[]), 3.0);
    assert_eq!(value("rallypoint_endpoints", &[]), 3.0);
    let named = [("list", "1ccf16b1-436d-856f-504d-cc1af306aaa7"), ("name", "Gang \"Garrison\" 2")];
    let rest = [("list", "other"), ("name", "other")];
    assert_eq!((value("rallypoint_list_servers", &named), value("rallypoint_list_players", &named)), (1.0, 3.0));
    assert_eq!((value("rallypoint_list_servers", &rest), value("rallypoint_list_players", &rest)), (2.0, 3.0));
    assert_eq!(value("rallypoint_list_requests_total", &[]), 1.0);
    assert_eq!(value("rallypoint_save_failing", &[]), 0.0);
    assert!(value("rallypoint_save_time_seconds", &[]) > 1.7e9 && value("rallypoint_save_bytes", &[]) > 0.0);
    assert!(value("rallypoint_web_requests_total", &[("route", "api"), ("status", "2xx")]) > 0.0);
    assert_eq!(value("rallypoint_web_connections", &[]), 1.0, "the connection of this request");
}

#[test]
fn access_is_limited_to_the_configured_networks() {
    let site = Site::start();
    assert_eq!(site.get("/metrics").status, 200);
    let refused = site.request("GET", "/metrics", &[("x-forwarded-for", "198.51.100.7")]);
    assert_eq!(
        (refused.status, refused.json()["status"].clone()),
        (403, 403.into()),
        "a request through a proxy is not local"
    );
    assert_eq!(refused.header("access-control-allow-origin"), None);
    let mut options = WebOptions::default();
    options.settings.metrics.clear();
    assert_eq!(Site::with_options(options).get("/metrics").status, 404);
}

#[test]
fn requests_and_registrations_do_not_create_series() {
    let site = Site::start();
    let before = metrics(&site).len();
    site.register_all(
        &[1, 2, 3].map(|number| Server { list: ListId::from_bytes([number; 16]), ..Server::new(number, "x") }),
    );
    for path in ["/a", "/b", "/api/v1/x", "/api/v1/servers?sort=x"] {
        request(site.addr(), "BREW", path, &[("host", "\"}\n")]);
    }
    assert_eq!(metrics(&site).len(), before);
}

#[test]
fn the_dashboard_and_the_alerts_use_existing_series() {
    let (site, history, _dir) = site();
    site.register_all(&[Server::new(1, "a")]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let listed = site.lobby.lists().snapshot();
    history.record(rallypoint_history::Observation { time: now as i64, servers: listed, changes: Vec::new() });
    let is_complete = |metrics: &Metrics| {
        metrics.value("rallypoint_saves_total", &[("result", "written")]) > 0.0
            && metrics.value("rallypoint_history_sweeps_total", &[("result", "written")]) > 0.0
    };
    let metrics = wait_until("all families have samples", || Some(metrics(&site)).filter(is_complete));

    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut expressions: Vec<String> = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    assert!(expressions.len() >= panels.len(), "every panel has a query");
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    expressions.extend(variables.filter(|list| list["type"] == "query").map(|list| list["query"].to_string()));
    let rules: Vec<_> =
        RULES.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).map(str::to_owned).collect();
    assert_eq!(rules.len(), RULES.matches("- alert: ").count());
    let mut names = BTreeSet::new();
    for expression in expressions.iter().chain(&rules) {
        let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
        let ours: Vec<_> = words.filter(|word| word.starts_with("rallypoint_")).collect();
        assert!(!ours.is_empty() || PROMETHEUS_SERIES.iter().any(|own| expression.starts_with(own)), "{expression}");
        names.extend(ours.into_iter().map(str::to_owned));
        assert_eq!(expression.matches('(').count(), expression.matches(')').count(), "{expression}");
        assert_eq!(expression.matches('{').count(), expression.matches('}').count(), "{expression}");
        for (label, value) in exposition::matched_labels(expression) {
            let is_known = label == "instance" || label == "job" || metrics.has_label(&label, &value);
            assert!(is_known, "no sample has {label} = {value}: {expression}");
        }
    }
    for name in &names {
        assert!(metrics.has_series(name), "no series {name}");
    }
    assert!(names.len() > 25, "{names:?}");
}

#[test]
fn every_metric_is_documented_with_its_help_text() {
    let (site, _history, _dir) = site();
    let text = site.get("/metrics").text();
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let helps = text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '));
    let mut rows = Vec::new();
    for ((name, kind), (described, help)) in kinds.zip(helps) {
        assert_eq!(name, described);
        rows.push(format!("| `{name}` | {kind} | {help} |"));
    }
    assert!(rows.len() > 50);
    for row in rows {
        assert!(DOCUMENTED.lines().any(|line| line == row), "docs/metrics.md has no line {row}");
    }
}

const DOCUMENTED: &str = include_str!("../../../docs/metrics.md");
const DASHBOARD: &str = include_str!("../../../packaging/grafana/rallypoint.json");
const RULES: &str = include_str!("../../../packaging/prometheus/rallypoint.rules.yml");
