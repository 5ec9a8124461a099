//! Responses with an `ETag`, and the content codings that a client accepts.

use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use std::hash::{DefaultHasher, Hasher};

/// The content type of JSON.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Clients keep the response, and revalidate it at every use: that costs next to nothing.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// A JSON response with the hash of its content as `ETag`.
pub(super) fn json(body: &impl serde::Serialize, request: &HeaderMap) -> Response<Bytes> {
    // Only maps with keys that are not strings would fail.
    with_content_etag(serde_json::to_vec(body).unwrap_or_default().into(), JSON, request)
}

/// A response with the hash of its content as `ETag`, or 304 if the client has it already.
pub(super) fn with_content_etag(body: Bytes, content_type: HeaderValue, request: &HeaderMap) -> Response<Bytes> {
    let mut hasher = DefaultHasher::new();
    hasher.write(&body);
    let etag = HeaderValue::from_str(&format!("\"{:016x}\"", hasher.finish()));
    with_etag(body, content_type, &etag.unwrap_or(HeaderValue::from_static("\"\"")), request)
}

/// A response with this `ETag`, or 304 if the client has it already.
pub(super) fn with_etag(
    body: Bytes,
    content_type: HeaderValue,
    etag: &HeaderValue,
    request: &HeaderMap,
) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    if matches_etag(request, etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = body;
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    }
    response.headers_mut().insert(header::ETAG, etag.clone());
    response.headers_mut().insert(header::CACHE_CONTROL, REVALIDATE);
    response
}

/// Whether the `If-None-Match` of a request contains this tag (weak comparison, RFC 9110).
fn matches_etag(request: &HeaderMap, etag: &HeaderValue) -> bool {
    let values = request.get_all(header::IF_NONE_MATCH).iter();
    let mut tags = values.flat_map(|tags| tags.as_bytes().split(|&byte| byte == b',')).map(<[u8]>::trim_ascii);
    tags.any(|tag| tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == etag.as_bytes())
}

/// Whether the client accepts gzip: by name, or else by `*`, and not with a weight of zero.
pub(crate) fn accepts_gzip(request: &HeaderMap) -> bool {
    let values = request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut by_name = None;
    let mut by_wildcard = None;
    for coding in values.flat_map(|value| value.split(',')) {
        let mut parts = coding.split(';').map(str::trim);
        let accepted = match parts.next() {
            Some(name) if name.eq_ignore_ascii_case("gzip") => &mut by_name,
            Some("*") => &mut by_wildcard,
            _ => continue,
        };
        let has_zero_weight = parts.any(|part| {
            let weight = part.strip_prefix("q=").or(part.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.trim().parse::<f32>() == Ok(0.0))
        });
        *accepted = Some(!has_zero_weight);
    }
    by_name.or(by_wildcard).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &header::HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn etags_are_compared_as_in_rfc_9110() {
        let etag = HeaderValue::from_static("\"a-1\"");
        let matches = |values: &[&str]| matches_etag(&headers(&header::IF_NONE_MATCH, values), &etag);
        for same in ["\"a-1\"", "W/\"a-1\"", "\"x\", \"a-1\"", "*", "\"x\",W/\"a-1\" "] {
            assert!(matches(&[same]), "{same}");
        }
        assert!(matches(&["\"x\"", "\"a-1\""]), "two headers are one list");
        for other in ["", "\"a-2\"", "a-1", "\"a-1-gz\"", "\"*\""] {
            assert!(!matches(&[other]), "{other}");
        }
    }

    #[test]
    fn gzip_needs_a_weight_above_zero() {
        let accepts = |value: &str| accepts_gzip(&headers(&header::ACCEPT_ENCODING, &[value]));
        for yes in ["gzip", "deflate, gzip;q=1.0", "br;q=1, GZIP ; q=0.1", "*", "*;q=0, gzip"] {
            assert!(accepts(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip; q=0.0", "identity", "xgzip", "gzip;q=0, *", "*, gzip;q=0", "*;q=0"] {
            assert!(!accepts(no), "{no}");
        }
    }
}
