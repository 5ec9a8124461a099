//! Scripts, styles and pictures: part of the program, and kept by browsers for good.
//!
//! The address of each has a hash of its content in it. Scripts import each other by plain names; here those are replaced
//! by the real ones.

use crate::problem::Problem;
use axum::{
    extract::Path,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use std::{collections::HashMap, sync::LazyLock};

/// Whoever is imported stands before who imports it.
const SOURCES: [(&str, &str, &str); 12] = [
    ("style", "css", include_str!("../../assets/style.css")),
    ("icon", "svg", include_str!("../../assets/icon.svg")),
    ("times", "js", include_str!("../../assets/times.js")),
    ("copy", "js", include_str!("../../assets/copy.js")),
    ("favourites", "js", include_str!("../../assets/favourites.js")),
    ("filter", "js", include_str!("../../assets/filter.js")),
    ("rows", "js", include_str!("../../assets/rows.js")),
    ("keys", "js", include_str!("../../assets/keys.js")),
    ("live", "js", include_str!("../../assets/live.js")),
    ("list", "js", include_str!("../../assets/list.js")),
    ("embed", "js", include_str!("../../assets/embed.js")),
    ("server", "js", include_str!("../../assets/server.js")),
];

/// What is served.
struct Assets {
    /// `list.js` → `/assets/list.0123456789abcdef.js`
    urls: HashMap<String, String>,
    /// `list.0123456789abcdef.js` → its content.
    files: HashMap<String, (HeaderValue, Bytes)>,
}

static ASSETS: LazyLock<Assets> = LazyLock::new(Assets::new);

/// The address of a script, style or picture; empty if there is none of that name.
pub(super) fn url(name: &str) -> &'static str {
    ASSETS.urls.get(name).map_or("", String::as_str)
}

/// `GET /assets/{name}`
pub(super) async fn serve(Path(name): Path<String>) -> Response {
    let Some((kind, content)) = ASSETS.files.get(&name) else {
        return Problem::not_found("there is no such file, or not any more: load the page again").into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, kind.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (headers, content.clone()).into_response()
}

/// `GET /favicon.ico`: browsers ask for it, whatever the page says.
pub(super) async fn icon() -> Response {
    serve(Path(url("icon.svg").trim_start_matches("/assets/").to_owned())).await
}

impl Assets {
    fn new() -> Self {
        let mut assets = Self { urls: HashMap::new(), files: HashMap::new() };
        let mut imports: Vec<(String, String)> = Vec::new();
        for (name, ending, source) in SOURCES {
            let mut content = source.to_owned();
            for (plain, real) in &imports {
                content = content.replace(plain, real);
            }
            let file = format!("{name}.{:016x}.{ending}", hash(content.as_bytes()));
            imports.push((format!("\"./{name}.{ending}\""), format!("\"./{file}\"")));
            assets.urls.insert(format!("{name}.{ending}"), format!("/assets/{file}"));
            assets.files.insert(file, (kind(ending), content.into()));
        }
        assets
    }
}

fn kind(ending: &str) -> HeaderValue {
    HeaderValue::from_static(match ending {
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    })
}

/// FNV-1a: it only has to differ when the content does, and to be the same everywhere.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_import_only_what_is_served() {
        for (file, (_, content)) in &ASSETS.files {
            let content = str::from_utf8(content).unwrap();
            for import in content.lines().filter(|line| line.starts_with("import ")) {
                let target = import.rsplit('"').nth(1).unwrap().trim_start_matches("./");
                assert!(ASSETS.files.contains_key(target), "{file}: {import}");
            }
        }
        assert_eq!(url("no-such.js"), "");
    }
}
