//! Scripts, styles and images, which are part of the program and which browsers cache for good.
//!
//! The address of each contains a hash of its content. Scripts import each other by plain file names, which are replaced by the
//! hashed ones here.

use crate::problem::Problem;
use axum::{
    extract::Path,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use std::{collections::HashMap, sync::LazyLock};

/// Name, extension and content of every file. Imported files come before those that import them.
const SOURCES: [(&str, &str, &str); 16] = [
    ("style", "css", include_str!("../../assets/style.css")),
    ("icon", "svg", include_str!("../../assets/icon.svg")),
    ("base", "js", include_str!("../../assets/base.js")),
    ("times", "js", include_str!("../../assets/times.js")),
    ("copy", "js", include_str!("../../assets/copy.js")),
    ("favourites", "js", include_str!("../../assets/favourites.js")),
    ("filter", "js", include_str!("../../assets/filter.js")),
    ("order", "js", include_str!("../../assets/order.js")),
    ("rows", "js", include_str!("../../assets/rows.js")),
    ("keys", "js", include_str!("../../assets/keys.js")),
    ("live", "js", include_str!("../../assets/live.js")),
    ("graph", "js", include_str!("../../assets/graph.js")),
    ("list", "js", include_str!("../../assets/list.js")),
    ("embed", "js", include_str!("../../assets/embed.js")),
    ("lists", "js", include_str!("../../assets/lists.js")),
    ("server", "js", include_str!("../../assets/server.js")),
];

/// All files as they are served.
struct Assets {
    /// `list.js` → `/assets/list.0123456789abcdef.js`
    urls: HashMap<String, String>,
    /// `list.0123456789abcdef.js` → content type and content.
    files: HashMap<String, (HeaderValue, Bytes)>,
}

static ASSETS: LazyLock<Assets> = LazyLock::new(Assets::new);

/// The address of a file by its plain name; empty if there is none.
pub(super) fn url(name: &str) -> &'static str {
    ASSETS.urls.get(name).map_or("", String::as_str)
}

/// A file by its hashed name.
pub(super) async fn serve(Path(name): Path<String>) -> Response {
    let Some((content_type, content)) = ASSETS.files.get(&name) else {
        return Problem::not_found("no such file: reload the page to get the current version").into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, content_type.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (headers, content.clone()).into_response()
}

/// `GET /favicon.ico`: browsers request it even though the pages name another icon.
pub(super) async fn icon() -> Response {
    serve(Path(url("icon.svg").trim_start_matches("/assets/").to_owned())).await
}

impl Assets {
    fn new() -> Self {
        let mut assets = Self { urls: HashMap::new(), files: HashMap::new() };
        let mut imports: Vec<(String, String)> = Vec::new();
        for (name, extension, source) in SOURCES {
            let mut content = source.to_owned();
            for (plain, hashed) in &imports {
                content = content.replace(plain, hashed);
            }
            let file = format!("{name}.{:016x}.{extension}", hash(content.as_bytes()));
            imports.push((format!("\"./{name}.{extension}\""), format!("\"./{file}\"")));
            assets.urls.insert(format!("{name}.{extension}"), format!("/assets/{file}"));
            assets.files.insert(file, (content_type(extension), content.into()));
        }
        assets
    }
}

fn content_type(extension: &str) -> HeaderValue {
    HeaderValue::from_static(match extension {
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    })
}

/// FNV-1a. The hash has to be the same in every build; collisions cannot be provoked, as all content is our own.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_import_only_files_that_are_served() {
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
