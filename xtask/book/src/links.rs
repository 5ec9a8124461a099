//! Links of the built book that lead nowhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

/// A sentence for each link to a missing file or anchor.
pub fn broken(book: &Path) -> io::Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(book)? {
        let path = entry?.path();
        // All chapters once more, for printing, with other anchors.
        let is_page = path.extension().is_some_and(|extension| extension == "html") && !path.ends_with("print.html");
        if is_page {
            pages.insert(path.clone(), fs::read_to_string(path)?);
        }
    }
    let anchors: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages.iter().map(|(path, html)| (path, attributes(html, " id=\"").collect())).collect();
    let mut broken = Vec::new();
    for (page, html) in &pages {
        for link in attributes(html, " href=\"").chain(attributes(html, " src=\"")) {
            if link.contains(':') || link.is_empty() || is_broken(book, page, link, &anchors) == Some(false) {
                continue;
            }
            let name = page.file_name().unwrap_or_default().to_string_lossy();
            broken.push(format!("{name}: a link that leads nowhere: {link}"));
        }
    }
    Ok(broken)
}

/// Whether the file or the anchor is missing. `None` if the page has no anchors to compare with.
fn is_broken(book: &Path, page: &Path, link: &str, anchors: &BTreeMap<&PathBuf, BTreeSet<&str>>) -> Option<bool> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_path_buf() } else { book.join(file) };
    if !target.exists() {
        return Some(true);
    }
    if anchor.is_empty() {
        return Some(false);
    }
    Some(!anchors.get(&target)?.contains(anchor))
}

/// The values of an attribute; `start` is its name with the quote.
fn attributes<'a>(html: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    html.split(start).skip(1).filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_and_anchors_are_found() {
        let book = tempfile::tempdir().unwrap();
        let page =
            r##"<h1 id="a"></h1><a href="#a"></a><a href="b.html#x"></a><a href="c.html"></a><a href="b.html"></a>"##;
        fs::write(book.path().join("a.html"), page).unwrap();
        fs::write(book.path().join("b.html"), "<p>").unwrap();
        let found = broken(book.path()).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("b.html#x") && found[1].contains("c.html"), "{found:?}");
    }
}
