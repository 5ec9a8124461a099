//! `GET /api/v1/openapi.json`: the API for programs that write programs.

use super::{answer, lobbies::no_parameters};
use crate::problem::Problem;
use axum::{extract::RawQuery, http::HeaderMap, response::Response};
use bytes::Bytes;

/// Written by hand, and compared with the router in a test.
const DOCUMENT: &str = include_str!("openapi.json");

pub(super) async fn document(RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Problem> {
    no_parameters(query.as_deref())?;
    Ok(answer::tagged(Bytes::from_static(DOCUMENT.as_bytes()), answer::JSON, &headers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::routes;
    use std::collections::BTreeSet;

    #[test]
    fn the_document_has_every_address_and_no_other() {
        let document: serde_json::Value = serde_json::from_str(DOCUMENT).unwrap();
        let told: BTreeSet<_> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        let served: BTreeSet<_> = routes().into_iter().chain(crate::admin::routes()).map(|(path, _)| path).collect();
        assert_eq!(told, served);
    }
}
