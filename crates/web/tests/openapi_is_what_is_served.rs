//! Requests that are made up from the document of the API, right and wrong ones: every answer is one that it describes.

mod common;

use common::{Answer, LOBBY, Server, Site, schema::check};
use proptest::{
    prelude::*,
    sample::select,
    strategy::{BoxedStrategy, Union},
    test_runner::{Config, TestRunner},
};
use serde_json::Value;

/// A value of a parameter: as its schema says, or as a stranger would write it.
fn value(parameter: &Value, ids: &[String]) -> BoxedStrategy<String> {
    let schema = &parameter["schema"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut right: Vec<BoxedStrategy<String>> = vec![Just(text(&parameter["example"])).boxed()];
    if let Some(all) = schema["enum"].as_array() {
        right.push(select(all.iter().map(text).collect::<Vec<_>>()).boxed());
    }
    if schema["type"] == "integer" {
        right.push((schema["minimum"].as_u64().unwrap_or(0)..3_000).prop_map(|number| number.to_string()).boxed());
    }
    if parameter["in"] == "path" || parameter["name"] == "ids" {
        right.push(select(ids.to_vec()).boxed());
        right.push(Just(LOBBY.to_string()).boxed());
    } else if schema.get("enum").is_none() {
        right.push("[a-c]{0,3}".boxed());
    }
    let wrong = prop_oneof!["\\PC{0,12}", "[-+]?[0-9]{1,20}", Just("🦀".repeat(201)), Just(String::new())];
    Union::new_weighted(vec![(4, Union::new(right).boxed()), (1, wrong.boxed())]).boxed()
}

/// A path of the document with its parameters, some of them, and sometimes one that nobody knows.
fn request(document: &Value, ids: &[String]) -> BoxedStrategy<(String, String)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let get = item["get"].clone();
        // A stream does not end; it has tests of its own.
        if get.is_null() || get["responses"]["200"]["content"].get("text/event-stream").is_some() {
            continue;
        }
        let parameters = get["parameters"].as_array().cloned().unwrap_or_default();
        let values: Vec<_> = parameters.iter().map(|one| prop::option::of(value(one, ids))).collect();
        let path = path.clone();
        let unknown = prop::option::weighted(0.05, "[a-z]{1,8}");
        all.push(
            (values, unknown)
                .prop_map(move |(values, unknown)| (path.clone(), address(&path, &parameters, &values, unknown)))
                .boxed(),
        );
    }
    Union::new(all).boxed()
}

/// The address of a request.
fn address(path: &str, parameters: &[Value], values: &[Option<String>], unknown: Option<String>) -> String {
    let (mut path, mut query) = (path.to_owned(), form_urlencoded::Serializer::new(String::new()));
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

/// Panics if the document does not describe this answer.
fn compare(document: &Value, path: &str, answer: &Answer) {
    let told = &document["paths"][path]["get"]["responses"][answer.status.to_string()];
    assert!(told.is_object(), "the status {} is not described: {}", answer.status, answer.text());
    let Some(kind) = answer.header("content-type") else {
        assert!(told.get("content").is_none(), "there should be content");
        return;
    };
    let kind = kind.split(';').next().unwrap();
    let content = &told["content"][kind];
    assert!(content.is_object(), "{kind} is not described for {}", answer.status);
    if kind.ends_with("json") && path != "/api/v1/openapi.json" {
        check(document, &content["schema"], &answer.json(), path);
    }
    if answer.status == 400 {
        // It names what was wrong.
        assert!(answer.json()["parameter"].is_string(), "{}", answer.text());
    }
}

#[test]
fn every_answer_is_one_that_the_document_describes() {
    let dir = tempfile::tempdir().unwrap();
    let history =
        rallypoint_history::History::start(rallypoint_history::HistoryOptions::new(dir.path().join("h.db"))).unwrap();
    let handle = history.reader();
    let site = Site::of(rallypoint_web::WebOptions::default(), |parts| parts.history = Some(handle));
    let more: &[(&[u8], &[u8])] = &[(b"map", b"a"), (b"game_url", b"https://example.org/"), (b"protocol_id", &[7; 16])];
    let list = site.fill(&[Server { more, ..Server::new(1, "abc") }, Server::new(2, "b").players(3)]);
    let ids: Vec<_> =
        list["servers"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    let document = site.json("/api/v1/openapi.json");
    let mut seen = std::collections::BTreeMap::<u16, usize>::new();
    let mut runner = TestRunner::new(Config { cases: 600, failure_persistence: None, ..Config::default() });
    let seen_in = std::cell::RefCell::new(&mut seen);
    let result = runner.run(&request(&document, &ids), |(path, address)| {
        let answer = site.get(&address);
        let described = std::panic::catch_unwind(|| compare(&document, &path, &answer));
        prop_assert!(described.is_ok(), "{}", address);
        *seen_in.borrow_mut().entry(answer.status).or_default() += 1;
        Ok(())
    });
    result.unwrap_or_else(|failed| panic!("{failed}"));
    assert!([200, 400, 404].iter().all(|status| seen.contains_key(status)), "right and wrong requests: {seen:?}");
}
