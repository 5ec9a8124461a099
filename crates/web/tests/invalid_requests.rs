//! Invalid, excessive and cross-origin requests: errors are problem details (RFC 9457) that programs can read.

use crate::common;

use common::{Server, Site};
use rallypoint_limit::Rate;
use rallypoint_web::WebOptions;
use serde_json::Value;
use std::{collections::BTreeSet, io::Write};

#[test]
fn an_invalid_parameter_is_named() {
    let site = Site::start();
    let cases = [
        ("/api/v1/servers?sort=size", "sort"),
        ("/api/v1/servers?limit=0", "limit"),
        ("/api/v1/servers?limit=1001", "limit"),
        ("/api/v1/servers?limit=-1", "limit"),
        ("/api/v1/servers?offset=x", "offset"),
        ("/api/v1/servers?sort=", "sort"),
        ("/api/v1/servers?limit=", "limit"),
        ("/api/v1/servers?verified=", "verified"),
        ("/api/v1/servers?ids=", "ids"),
        ("/api/v1/servers?not_empty=maybe", "not_empty"),
        ("/api/v1/servers?not_empty=yes", "not_empty"),
        ("/api/v1/servers?ids=1,2", "ids"),
        ("/api/v1/servers?page=1", "page"),
        ("/api/v1/servers?map=a&map=b", "map"),
        ("/api/v1/servers/7", "id"),
        ("/api/v1/servers/%ff", "id"),
        ("/api/v1/servers/7/history", "id"),
        ("/api/v1/history?from=yesterday", "from"),
        ("/api/v1/history?from=", "from"),
        ("/api/v1/history?resolution=second", "resolution"),
        ("/api/v1/history?resolution=", "resolution"),
        ("/api/v1/history?format=xml", "format"),
        ("/api/v1/events?after=7", "after"),
        ("/api/v1/outcomes?address=localhost", "address"),
    ];
    for (path, parameter) in cases {
        let response = site.get(path);
        assert_eq!(
            (response.status, response.header("content-type")),
            (400, Some("application/problem+json")),
            "{path}"
        );
        let problem = response.json();
        assert_eq!((&problem["parameter"], &problem["status"]), (&parameter.into(), &400.into()), "{path}");
        assert!(problem["detail"].as_str().unwrap().starts_with(parameter), "{problem}");
    }
    let long = format!("/api/v1/servers?q={}", "x".repeat(300));
    assert_eq!(site.get(&long).json()["parameter"], "q");
}

#[test]
fn a_list_that_does_not_exist_is_404() {
    let site = Site::start();
    let cases = [
        ("/api/v1/servers?list=quake", "list"),
        ("/api/v1/servers?list=", "list"),
        ("/api/v1/events?list=x", "list"),
        ("/api/v1/lists/7/history", "id"),
    ];
    for (path, parameter) in cases {
        let response = site.get(path);
        assert_eq!((response.status, &response.json()["parameter"]), (404, &parameter.into()), "{path}");
    }
}

#[test]
fn unknown_paths_and_methods_are_refused() {
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
        let response = site.get(path);
        assert!(matches!(response.status, 400 | 404), "{path}: {response:?}");
        assert_eq!(response.header("content-type"), Some("application/problem+json"), "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
        let response = site.request(method, "/api/v1/servers", &[]);
        assert_eq!((response.status, response.header("allow")), (405, Some("GET,HEAD,OPTIONS")), "{method}");
        assert_eq!(response.json()["status"], 405);
    }
}

#[test]
fn public_data_is_readable_cross_origin() {
    let site = Site::start();
    let origin = ("origin", "https://launcher.example");
    for path in ["/api/v1/servers", "/api/v1/lists", "/api/v1/openapi.json", "/api/v1/servers?sort=x"] {
        assert_eq!(site.request("GET", path, &[origin]).header("access-control-allow-origin"), Some("*"), "{path}");
    }
    let preflight = site.request("OPTIONS", "/api/v1/servers", &[origin, ("access-control-request-method", "GET")]);
    assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (204, Some("*")));
    assert!(preflight.header("access-control-allow-headers").unwrap().contains("if-none-match"));
    assert_eq!(site.request("OPTIONS", "/nothing", &[origin]).status, 404);
    // The outcomes belong to the address of the visitor; other sites must not read them.
    assert_eq!(site.request("GET", "/api/v1/outcomes", &[origin]).header("access-control-allow-origin"), None);
}

#[test]
fn requests_over_the_rate_limit_are_429_with_retry_after() {
    let mut options = WebOptions::default();
    options.settings.exempt.clear();
    options.settings.requests = Some(Rate { count: 1, per: std::time::Duration::from_secs(3_600), burst: 3 });
    let site = Site::with_options(options);
    for left in ["2", "1", "0"] {
        let response = site.get("/api/v1/lists");
        assert_eq!((response.status, response.header("ratelimit-remaining")), (200, Some(left)));
        assert_eq!(response.header("ratelimit-limit"), Some("3"));
        assert!(response.header("ratelimit-reset").is_some());
    }
    let refused = site.get("/api/v1/lists");
    assert_eq!((refused.status, refused.json()["status"].clone()), (429, 429.into()));
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((3_000..=3_600).contains(&wait), "{wait}");
    assert_eq!(refused.header("access-control-allow-origin"), Some("*"), "a script can read the error");
}

#[test]
fn outcomes_are_shown_to_their_own_address_only() {
    let site = Site::start();
    site.register_all(&[Server::new(1, "a")]);
    site.send(b"nonsense");
    let response = site.wait_for("/api/v1/outcomes", |response| response["outcomes"].as_array().unwrap().len() == 2);
    assert_eq!(response["address"], "127.0.0.1");
    assert_eq!(response["silent_nodes"], Value::Array(Vec::new()));
    let [listed, malformed] = [0, 1].map(|index| &response["outcomes"][index]);
    assert_eq!((&listed["code"], &listed["port"], &listed["accepted"]), (&"listed".into(), &8001.into(), &true.into()));
    assert_eq!((&malformed["code"], &malformed["accepted"]), (&"malformed".into(), &false.into()));
    assert_eq!((&malformed["times"], malformed["seconds_ago"].is_u64()), (&1.into(), true));
    let other = "/api/v1/outcomes?address=192.0.2.1";
    assert_eq!(site.json(other)["outcomes"], Value::Array(Vec::new()), "a local client may query any address");
    // A client behind a local proxy is not local, whether the proxy is trusted or not.
    let refused = site.request("GET", other, &[("x-forwarded-for", "198.51.100.7")]);
    assert_eq!((refused.status, refused.json()["parameter"].clone()), (403, "address".into()));
    for header in ["x-real-ip", "x-forwarded-host", "x-forwarded-proto"] {
        assert_eq!(site.request("GET", other, &[(header, "https")]).status, 403, "{header}");
    }
}

#[test]
fn a_second_host_header_is_refused() {
    let site = Site::start();
    for path in ["/metrics", "/", "/api/v1/servers"] {
        assert_eq!(site.request("GET", path, &[("host", "evil.example")]).status, 400, "{path}");
    }
}

/// RFC 9112: an HTTP/1.1 request has exactly one valid `Host`.
#[test]
fn a_missing_or_invalid_host_is_refused() {
    let site = Site::start();
    let status = |head: &str| {
        let mut tcp = common::connect(site.addr());
        tcp.write_all(format!("GET /healthz {head}connection: close\r\n\r\n").as_bytes()).unwrap();
        common::read_response(&mut std::io::BufReader::new(tcp), false).unwrap().status
    };
    assert_eq!(status("HTTP/1.1\r\n"), 400);
    for host in ["a b", "a/b", "user@localhost", "[::1"] {
        assert_eq!(status(&format!("HTTP/1.1\r\nhost: {host}\r\n")), 400, "{host}");
    }
    for host in ["localhost", "example.org:29950", "[::1]:29950", ""] {
        assert_eq!(status(&format!("HTTP/1.1\r\nhost: {host}\r\n")), 200, "{host}");
    }
    assert_eq!(status("HTTP/1.0\r\n"), 200);
}

#[test]
fn a_query_with_very_many_parameters_is_refused() {
    let site = Site::start();
    let query: Vec<_> = (0..1_000).map(|number| format!("a{number}")).collect();
    assert_eq!(site.get(&format!("/?{}", query.join("&"))).status, 400);
}

#[test]
fn the_openapi_document_lists_exactly_the_accepted_parameters() {
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
        let mut documented = BTreeSet::new();
        for parameter in queries {
            let name = parameter["name"].as_str().unwrap();
            documented.insert(name.to_owned());
            let example = match &parameter["example"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let response = site.request("HEAD", &format!("{path}?{name}={example}"), &[]);
            // No server is registered and there is no history, but the parameter itself is valid.
            assert!(matches!(response.status, 200 | 404 | 503), "{path} {name}: {response:?}");
            let responses = methods["get"]["responses"].as_object().unwrap();
            assert!(responses.contains_key(&response.status.to_string()), "{path} {name}: {}", response.status);
        }
        let refused = site.get(&format!("{path}?no_such_parameter=1"));
        assert_eq!(refused.status, 400, "{path}: {refused:?}");
        let problem = refused.json();
        let detail = problem["detail"].as_str().unwrap();
        let known = detail.split_once("known parameters: ").map_or("", |(_, known)| known);
        let known: BTreeSet<_> = known.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        assert_eq!(known, documented, "{path}: {detail}");
    }
}
