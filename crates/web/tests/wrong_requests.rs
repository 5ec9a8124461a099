//! What is wrong with a request is told, in a form that programs can read.

mod common;

use common::{Server, Site};
use rallypoint_limit::Rate;
use rallypoint_web::WebOptions;
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn a_wrong_parameter_is_named() {
    let site = Site::start();
    let cases = [
        ("/api/v1/servers?lobby=gg2", "lobby"),
        ("/api/v1/servers?sort=size", "sort"),
        ("/api/v1/servers?limit=0", "limit"),
        ("/api/v1/servers?limit=1001", "limit"),
        ("/api/v1/servers?limit=-1", "limit"),
        ("/api/v1/servers?offset=x", "offset"),
        ("/api/v1/servers?not_empty=maybe", "not_empty"),
        ("/api/v1/servers?not_empty=yes", "not_empty"),
        ("/api/v1/servers?ids=1,2", "ids"),
        ("/api/v1/servers?page=1", "page"),
        ("/api/v1/servers?map=a&map=b", "map"),
        ("/api/v1/servers/7", "id"),
        ("/api/v1/servers/%ff", "id"),
        ("/api/v1/servers/7/history", "id"),
        ("/api/v1/lobbies/7/history", "id"),
        ("/api/v1/history?from=yesterday", "from"),
        ("/api/v1/history?from=5&to=4", "from"),
        ("/api/v1/history?from=0&resolution=minute", "from"),
        // 50,000 minutes and a half are 50,001 points.
        ("/api/v1/history?from=0&to=3000030&resolution=minute", "from"),
        ("/api/v1/history?resolution=second", "resolution"),
        ("/api/v1/history?format=xml", "format"),
        ("/api/v1/events?after=7", "after"),
        ("/api/v1/events?lobby=x", "lobby"),
        ("/api/v1/outcomes?address=localhost", "address"),
    ];
    for (path, parameter) in cases {
        let answer = site.get(path);
        assert_eq!((answer.status, answer.header("content-type")), (400, Some("application/problem+json")), "{path}");
        let problem = answer.json();
        assert_eq!((&problem["parameter"], &problem["status"]), (&parameter.into(), &400.into()), "{path}");
        assert!(problem["detail"].as_str().unwrap().starts_with(parameter), "{problem}");
    }
    let long = format!("/api/v1/servers?q={}", "x".repeat(300));
    assert_eq!(site.get(&long).json()["parameter"], "q");
}

#[test]
fn addresses_and_methods_that_do_not_exist() {
    let site = Site::start();
    for path in [
        "/nothing",
        "/api/v1",
        "/api/v1/servers/",
        "/api/v1/../../etc/passwd",
        "/%2e%2e/etc/passwd",
        "//",
        "/api/v1/servers/%00",
    ] {
        let answer = site.get(path);
        assert!(matches!(answer.status, 400 | 404), "{path}: {answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
        let answer = site.ask(method, "/api/v1/servers", &[]);
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET,HEAD,OPTIONS")), "{method}");
        assert_eq!(answer.json()["status"], 405);
    }
}

#[test]
fn scripts_of_other_pages_may_read_what_is_public() {
    let site = Site::start();
    let origin = ("origin", "https://launcher.example");
    for path in ["/api/v1/servers", "/api/v1/lobbies", "/api/v1/openapi.json", "/api/v1/servers?sort=x"] {
        assert_eq!(site.ask("GET", path, &[origin]).header("access-control-allow-origin"), Some("*"), "{path}");
    }
    let question = site.ask("OPTIONS", "/api/v1/servers", &[origin, ("access-control-request-method", "GET")]);
    assert_eq!((question.status, question.header("access-control-allow-origin")), (204, Some("*")));
    assert!(question.header("access-control-allow-headers").unwrap().contains("if-none-match"));
    assert_eq!(site.ask("OPTIONS", "/nothing", &[origin]).status, 404);
    // It tells something about the visitor, which the pages that they visit should not get to know.
    assert_eq!(site.ask("GET", "/api/v1/outcomes", &[origin]).header("access-control-allow-origin"), None);
}

#[test]
fn who_asks_too_often_is_told_to_wait() {
    let mut options = WebOptions::default();
    options.settings.exempt.clear();
    options.settings.requests = Some(Rate { count: 1, per: std::time::Duration::from_secs(3_600), burst: 3 });
    let site = Site::with(options);
    for left in ["2", "1", "0"] {
        let answer = site.get("/api/v1/lobbies");
        assert_eq!((answer.status, answer.header("ratelimit-remaining")), (200, Some(left)));
        assert_eq!(answer.header("ratelimit-limit"), Some("3"));
        assert!(answer.header("ratelimit-reset").is_some());
    }
    let refused = site.get("/api/v1/lobbies");
    assert_eq!((refused.status, refused.json()["status"].clone()), (429, 429.into()));
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((3_000..=3_600).contains(&wait), "{wait}");
    assert_eq!(refused.header("access-control-allow-origin"), Some("*"), "so that a script can see why");
}

#[test]
fn outcomes_are_for_their_owner() {
    let site = Site::start();
    site.fill(&[Server::new(1, "a")]);
    site.send(b"nonsense");
    let answer = site.wait_for("/api/v1/outcomes", |answer| answer["outcomes"].as_array().unwrap().len() == 2);
    assert_eq!(answer["address"], "127.0.0.1");
    let [listed, malformed] = [0, 1].map(|place| &answer["outcomes"][place]);
    assert_eq!((&listed["code"], &listed["port"], &listed["accepted"]), (&"listed".into(), &8001.into(), &true.into()));
    assert_eq!((&malformed["code"], &malformed["accepted"]), (&"malformed".into(), &false.into()));
    assert_eq!((&malformed["times"], malformed["seconds_ago"].is_u64()), (&1.into(), true));
    let other = "/api/v1/outcomes?address=192.0.2.1";
    assert_eq!(site.json(other)["outcomes"], Value::Array(Vec::new()), "this machine may ask for any");
    // Somebody behind a proxy on this machine is not this machine, whether the proxy is believed or not.
    let refused = site.ask("GET", other, &[("x-forwarded-for", "198.51.100.7")]);
    assert_eq!((refused.status, refused.json()["parameter"].clone()), (403, "address".into()));
    for header in ["x-real-ip", "x-forwarded-host", "x-forwarded-proto"] {
        assert_eq!(site.ask("GET", other, &[(header, "https")]).status, 403, "{header}");
    }
}

#[test]
fn a_request_has_one_host() {
    let site = Site::start();
    for path in ["/metrics", "/", "/api/v1/servers"] {
        assert_eq!(site.ask("GET", path, &[("host", "evil.example")]).status, 400, "{path}");
    }
}

#[test]
fn the_document_of_the_api_tells_the_truth() {
    let site = Site::start();
    let document = site.json("/api/v1/openapi.json");
    let paths = document["paths"].as_object().unwrap().iter();
    for (path, methods) in paths.filter(|(path, _)| !path.starts_with("/api/v1/admin")) {
        let parameters = methods["get"]["parameters"].as_array().cloned().unwrap_or_default();
        let path =
            parameters.iter().filter(|parameter| parameter["in"] == "path").fold(path.clone(), |path, parameter| {
                path.replace(
                    &format!("{{{}}}", parameter["name"].as_str().unwrap()),
                    parameter["example"].as_str().unwrap(),
                )
            });
        let queries = parameters.iter().filter(|parameter| parameter["in"] == "query");
        let mut told = BTreeSet::new();
        for parameter in queries {
            let name = parameter["name"].as_str().unwrap();
            told.insert(name.to_owned());
            let example = match &parameter["example"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let answer = site.ask("HEAD", &format!("{path}?{name}={example}"), &[]);
            // Nobody is there yet, and there is no history, but the parameter itself is understood.
            assert!(matches!(answer.status, 200 | 404 | 503), "{path} {name}: {answer:?}");
            let answers = methods["get"]["responses"].as_object().unwrap();
            assert!(answers.contains_key(&answer.status.to_string()), "{path} {name}: {}", answer.status);
        }
        let refused = site.get(&format!("{path}?no_such_parameter=1"));
        assert_eq!(refused.status, 400, "{path}: {refused:?}");
        let problem = refused.json();
        let detail = problem["detail"].as_str().unwrap();
        let known = detail.split_once("known parameters: ").map_or("", |(_, known)| known);
        let known: BTreeSet<_> = known.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        assert_eq!(known, told, "{path}: {detail}");
    }
}
