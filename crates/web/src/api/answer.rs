//! What answers have in common: their tags, and what a client says it can take.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use std::hash::{DefaultHasher, Hasher};

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Ask again whether it is still the same, every time: that costs next to nothing.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// JSON, with a tag of its content.
pub(super) fn json(body: &impl serde::Serialize, request: &HeaderMap) -> Response {
    tagged(serde_json::to_vec(body).unwrap_or_default().into(), JSON, request)
}

/// An answer with a tag of its content, or that the client already has it.
pub(super) fn tagged(body: Bytes, kind: HeaderValue, request: &HeaderMap) -> Response {
    let mut hasher = DefaultHasher::new();
    hasher.write(&body);
    let tag = HeaderValue::from_str(&format!("\"{:016x}\"", hasher.finish()));
    reply(body, kind, &tag.unwrap_or(HeaderValue::from_static("\"\"")), request)
}

/// An answer with its tag, or that the client already has it.
pub(super) fn reply(body: Bytes, kind: HeaderValue, tag: &HeaderValue, request: &HeaderMap) -> Response {
    let mut response = if knows(request, tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let mut response = Response::new(Body::from(body));
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    };
    response.headers_mut().insert(header::ETAG, tag.clone());
    response.headers_mut().insert(header::CACHE_CONTROL, REVALIDATE);
    response
}

/// Whether the client has what this tag stands for.
fn knows(request: &HeaderMap, tag: &HeaderValue) -> bool {
    let tags = request.get_all(header::IF_NONE_MATCH).iter();
    let mut known = tags.flat_map(|tags| tags.as_bytes().split(|&byte| byte == b',')).map(<[u8]>::trim_ascii);
    known.any(|known| known == b"*" || known.strip_prefix(b"W/").unwrap_or(known) == tag.as_bytes())
}

/// Whether the client takes gzip: named, or else meant by `*`, and not with a weight of zero.
pub(crate) fn accepts_gzip(request: &HeaderMap) -> bool {
    let values = request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let (mut named, mut any) = (None, None);
    for coding in values.flat_map(|value| value.split(',')) {
        let mut parts = coding.split(';').map(str::trim);
        let which = match parts.next() {
            Some(name) if name.eq_ignore_ascii_case("gzip") => &mut named,
            Some("*") => &mut any,
            _ => continue,
        };
        let is_refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").or(part.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.trim().parse::<f32>() == Ok(0.0))
        });
        *which = Some(!is_refused);
    }
    named.or(any).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &header::HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn tags_are_compared_as_the_standard_says() {
        let knows =
            |values: &[&str]| knows(&with(&header::IF_NONE_MATCH, values), &HeaderValue::from_static("\"a-1\""));
        for same in ["\"a-1\"", "W/\"a-1\"", "\"x\", \"a-1\"", "*", "\"x\",W/\"a-1\" "] {
            assert!(knows(&[same]), "{same}");
        }
        assert!(knows(&["\"x\"", "\"a-1\""]), "two headers are one list");
        for other in ["", "\"a-2\"", "a-1", "\"a-1-gz\"", "\"*\""] {
            assert!(!knows(&[other]), "{other}");
        }
    }

    #[test]
    fn gzip_is_for_those_who_take_it() {
        let takes = |value: &str| accepts_gzip(&with(&header::ACCEPT_ENCODING, &[value]));
        for yes in ["gzip", "deflate, gzip;q=1.0", "br;q=1, GZIP ; q=0.1", "*", "*;q=0, gzip"] {
            assert!(takes(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip; q=0.0", "identity", "xgzip", "gzip;q=0, *", "*, gzip;q=0", "*;q=0"] {
            assert!(!takes(no), "{no}");
        }
    }
}
