//! Valid and invalid requests generated from the OpenAPI document: every response matches its description.

use crate::common;

use common::{LOBBY, Response, Server, Site, schema::check};
use proptest::{
    prelude::*,
    sample::select,
    strategy::{BoxedStrategy, Union},
    test_runner::{Config, TestRunner},
};
use serde_json::Value;

/// A value of a parameter, either valid according to its schema or arbitrary.
fn value(parameter: &Value, ids: &[String]) -> BoxedStrategy<String> {
    let schema = &parameter["schema"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut valid: Vec<BoxedStrategy<String>> = vec![Just(text(&parameter["example"])).boxed()];
    if let Some(all) = schema["enum"].as_array() {
        valid.push(select(all.iter().map(text).collect::<Vec<_>>()).boxed());
    }
    if schema["type"] == "integer" {
        valid.push((schema["minimum"].as_u64().unwrap_or(0)..3_000).prop_map(|number| number.to_string()).boxed());
    }
    if parameter["in"] == "path" || parameter["name"] == "ids" {
        valid.push(select(ids.to_vec()).boxed());
        valid.push(Just(LOBBY.to_string()).boxed());
    } else if schema.get("enum").is_none() {
        valid.push("[a-c]{0,3}".boxed());
    }
    let arbitrary = prop_oneof!["\\PC{0,12}", "[-+]?[0-9]{1,20}", Just("🦀".repeat(201)), Just(String::new())];
    Union::new_weighted(vec![(4, Union::new(valid).boxed()), (1, arbitrary.boxed())]).boxed()
}

/// A path of the document and a URL for it, with some of its parameters and sometimes an unknown one.
fn request(document: &Value, ids: &[String]) -> BoxedStrategy<(String, String)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let get = item["get"].clone();
        // A stream does not end; it is tested separately.
        if get.is_null() || get["responses"]["200"]["content"].get("text/event-stream").is_some() {
            continue;
        }
        let parameters = get["parameters"].as_array().cloned().unwrap_or_default();
        let values: Vec<_> = parameters.iter().map(|one| prop::option::of(value(one, ids))).collect();
        let path = path.clone();
        let unknown = prop::option::weighted(0.05, "[a-z]{1,8}");
        all.push(
            (values, unknown)
                .prop_map(move |(values, unknown)| (path.clone(), url(&path, &parameters, &values, unknown)))
                .boxed(),
        );
    }
    Union::new(all).boxed()
}

/// The URL of a request.
fn url(path: &str, parameters: &[Value], values: &[Option<String>], unknown: Option<String>) -> String {
    let mut path = path.to_owned();
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (parameter, value) in parameters.iter().zip(values) {
        let name = parameter["name"].as_str().unwrap();
        match (parameter["in"].as_str(), value) {
            (Some("path"), value) => {
                let value = value.as_deref().filter(|value| !value.is_empty()).unwrap_or("x");
                let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
                path = path.replace(&format!("{{{name}}}"), &value);
            }
            (_, Some(value)) => drop(query.append_pair(name, value)),
            _ => {}
        }
    }
    query.extend_pairs(unknown.map(|name| (name, "1")));
    format!("{path}?{}", query.finish())
}

/// Panics if the response does not match the document.
fn compare(document: &Value, path: &str, response: &Response) {
    let documented = &document["paths"][path]["get"]["responses"][response.status.to_string()];
    assert!(documented.is_object(), "the status {} is not described: {}", response.status, response.text());
    let Some(kind) = response.header("content-type") else {
        assert!(documented.get("content").is_none(), "the documented content is missing");
        return;
    };
    let kind = kind.split(';').next().unwrap();
    let content = &documented["content"][kind];
    assert!(content.is_object(), "{kind} is not described for {}", response.status);
    if kind.ends_with("json") && path != "/api/v1/openapi.json" {
        check(document, &content["schema"], &response.json(), path);
    }
    if response.status == 400 {
        // The problem names the invalid parameter.
        assert!(response.json()["parameter"].is_string(), "{}", response.text());
    }
}

#[test]
fn every_response_matches_the_document() {
    let dir = tempfile::tempdir().unwrap();
    let history =
        rallypoint_history::History::start(rallypoint_history::HistoryOptions::new(dir.path().join("h.db"))).unwrap();
    let handle = history.reader();
    let site = Site::with_sources(rallypoint_web::WebOptions::default(), |sources| sources.history = Some(handle));
    let keys: &[(&[u8], &[u8])] = &[(b"map", b"a"), (b"game_url", b"https://example.org/"), (b"protocol_id", &[7; 16])];
    let list = site.register_all(&[Server { keys, ..Server::new(1, "abc") }, Server::new(2, "b").players(3)]);
    let ids: Vec<_> =
        list["servers"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    let document = site.json("/api/v1/openapi.json");
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    let mut runner = TestRunner::new(Config { cases: 600, failure_persistence: None, ..Config::default() });
    let counts = std::cell::RefCell::new(&mut statuses);
    let result = runner.run(&request(&document, &ids), |(path, url)| {
        let response = site.get(&url);
        let matched = std::panic::catch_unwind(|| compare(&document, &path, &response));
        prop_assert!(matched.is_ok(), "{}", url);
        *counts.borrow_mut().entry(response.status).or_default() += 1;
        Ok(())
    });
    result.unwrap_or_else(|failed| panic!("{failed}"));
    assert!(
        [200, 400, 404].iter().all(|status| statuses.contains_key(status)),
        "valid and invalid requests: {statuses:?}"
    );
}
