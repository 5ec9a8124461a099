//! `GET /api/v1/openapi.json`: the OpenAPI document, generated from the handlers and types.

use super::{lists::no_parameters, response};
use crate::{admin, problem::Problem};
use axum::{body::Body, extract::RawQuery, http::HeaderMap, response::Response};
use bytes::Bytes;
use std::sync::LazyLock;
use utoipa::{
    OpenApi,
    openapi::{
        ContentBuilder, Ref, RefOr, ResponseBuilder,
        path::Operation,
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Rallypoint",
        version = "1",
        description = "The servers of a lobby: lists, live changes, history. Public and without a key, except for \
                       /api/v1/admin; scripts of any page may read it (CORS). Texts come from game servers: they have no \
                       control characters, but have to be escaped where they are shown.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/")),
    components(schemas(Problem))
)]
struct ApiDocument;

/// Name of the security scheme of the admin API.
const OPERATOR: &str = "operator";

/// The document as JSON.
static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| {
    // Serializing to memory fails only for maps with keys that are not strings.
    generate().to_pretty_json().unwrap_or_default().into()
});

/// This document
#[utoipa::path(
    get,
    operation_id = "openapi_document",
    path = "/api/v1/openapi.json",
    responses(
        (
            status = 200,
            description = "This document.",
            body = Object,
            content_type = "application/json",
            headers(("ETag" = String, description = "Send it as If-None-Match: the response is 304 while nothing has changed."))
        ),
        (status = 304, description = "The client has the current version (If-None-Match)."),
    )
)]
pub(super) async fn document(RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Problem> {
    no_parameters(query.as_deref())?;
    Ok(response::with_content_etag(DOCUMENT.clone(), response::JSON, &headers).map(Body::from))
}

/// Collects the operations of all routes, and adds the errors that they share.
fn generate() -> utoipa::openapi::OpenApi {
    let mut document = ApiDocument::openapi();
    let groups =
        [super::open_routes(), super::long_open_routes(), super::event_open_routes(), super::private_open_routes()];
    for group in groups {
        document.merge(group.into_openapi());
    }
    let mut admin = admin::open_routes().into_openapi();
    for item in admin.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten() {
            let scopes: [&str; 0] = [];
            operation.security = Some(vec![SecurityRequirement::new(OPERATOR, scopes)]);
            add_response(operation, "400", "A parameter or a field of the body is invalid; `parameter` names it.");
            add_response(operation, "401", "The token is missing or wrong.");
            add_response(
                operation,
                "404",
                "The admin API is off, because the operator has configured no token; or there is no such entry.",
            );
            add_response(
                operation,
                "429",
                "Too many wrong tokens or requests from this address; Retry-After is the time to wait in seconds.",
            );
        }
    }
    for item in document.paths.paths.values_mut() {
        for operation in [&mut item.get].into_iter().flatten() {
            add_response(operation, "400", "A parameter is invalid; `parameter` names it.");
            add_response(
                operation,
                "429",
                "Too many requests from this address; Retry-After is the time to wait in seconds.",
            );
        }
    }
    document.merge(admin);
    for item in document.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten() {
            describe_errors(operation);
        }
    }
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    let bearer = bearer.description(Some(
        "The operator's token (web.admin_token_file). Without one in the configuration there is no admin API.",
    ));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(OPERATOR, SecurityScheme::Http(bearer.build()));
    document
}

fn add_response(operation: &mut Operation, status: &str, description: &str) {
    let response = ResponseBuilder::new().description(description).build();
    operation.responses.responses.entry(status.to_owned()).or_insert(RefOr::T(response));
}

/// Every error is a problem document.
fn describe_errors(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && status.starts_with(['4', '5'])
        {
            let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
            response.content.insert("application/problem+json".to_owned(), content.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The committed document is for readers, and shows changes of the API in reviews. `UPDATE_OPENAPI=1` rewrites it.
    #[test]
    fn the_committed_document_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        let generated = format!("{}\n", String::from_utf8_lossy(&DOCUMENT));
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(path, &generated).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap();
        assert!(committed == generated, "crates/web/openapi.json is out of date: run this test with UPDATE_OPENAPI=1");
    }

    /// Generators of clients make a function of each operation.
    #[test]
    fn operation_ids_are_unique() {
        let document: serde_json::Value = serde_json::from_slice(&DOCUMENT).unwrap();
        let items = document["paths"].as_object().unwrap().values();
        let operations = items.flat_map(|item| item.as_object().unwrap().values());
        let mut ids: Vec<_> = operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert!(count >= 17 && ids.len() == count, "{ids:?}");
    }

    /// A value cannot have two types, so a schema of several parts with different types describes nothing.
    #[test]
    fn every_schema_can_be_satisfied() {
        fn check(schema: &serde_json::Value, at: &str) {
            let types: BTreeSet<_> =
                schema["allOf"].as_array().into_iter().flatten().filter_map(|part| part["type"].as_str()).collect();
            assert!(types.len() <= 1, "{at} has to be {types:?} at once");
            let fields = schema.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value));
            let items =
                schema.as_array().into_iter().flatten().enumerate().map(|(index, value)| (index.to_string(), value));
            fields.chain(items).for_each(|(key, value)| check(value, &format!("{at}/{key}")));
        }
        let document: serde_json::Value = serde_json::from_slice(&DOCUMENT).unwrap();
        check(&document, "");
        let request = &document["components"]["schemas"]["UnlistRequest"];
        let [reason, seconds] = ["reason", "seconds"].map(|field| &request["properties"][field]);
        assert_eq!((&reason["type"], &seconds["type"]), (&"string".into(), &"integer".into()));
        assert_eq!((&seconds["minimum"], &seconds["maximum"]), (&1.into(), &31_622_400.into()));
        assert_eq!(request.get("required"), None, "every field is optional");
    }

    /// A field without a value is null: clients need not tell that from a field that is missing.
    #[test]
    fn responses_have_all_their_fields() {
        let document: serde_json::Value = serde_json::from_slice(&DOCUMENT).unwrap();
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            if name.ends_with("Request") {
                continue;
            }
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            for field in schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys()) {
                assert!(required.contains(&field.as_str().into()), "{name}: {field} may be missing");
            }
        }
    }
}
