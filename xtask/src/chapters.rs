//! The chapters of the book: docs/SUMMARY.md names each, and each link to a heading leads to one. The book itself is built by
//! `cargo xtask book`, whose libraries take longer to compile than all tests of a crate.

use crate::{Stop, hygiene::links};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

/// The table of contents.
const SUMMARY: &str = "SUMMARY.md";

/// Chapters that are not in the book, and links to headings that do not exist.
pub fn problems(root: &Path) -> Result<Vec<String>, Stop> {
    let docs = root.join("docs");
    let Ok(summary) = fs::read_to_string(docs.join(SUMMARY)) else { return Ok(Vec::new()) };
    let chapters = read(&docs).map_err(Stop::while_doing("read docs/"))?;
    let left_out = chapters.keys().filter(|name| !summary.contains(&format!("({name})")));
    let mut problems: Vec<_> = left_out.map(|name| format!("docs/{name} is not in docs/{SUMMARY}")).collect();
    let anchors: BTreeMap<_, _> = chapters.iter().map(|(name, text)| (name.as_str(), anchors(text))).collect();
    for (name, text) in &chapters {
        for (number, line) in prose(text) {
            for link in links(line) {
                let Some((file, anchor)) = link.split_once('#').filter(|_| !link.contains("://")) else { continue };
                let file = if file.is_empty() { name } else { file };
                if anchors.get(file).is_some_and(|anchors| !anchors.contains(anchor)) {
                    problems.push(format!("docs/{name}:{number}: a link to a heading that does not exist: {link}"));
                }
            }
        }
    }
    Ok(problems)
}

/// The files of the chapters, with their texts.
fn read(docs: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut chapters = BTreeMap::new();
    for entry in fs::read_dir(docs)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".md") && name != SUMMARY {
            chapters.insert(name, fs::read_to_string(path)?);
        }
    }
    Ok(chapters)
}

/// The lines outside of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// The names of the headings, as mdBook and GitHub make them: a further heading with the same text gets a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim();
        // Of a link, only the text counts.
        let heading = heading.split("](").enumerate().map(|(part, text)| match part {
            0 => text,
            _ => text.split_once(')').map_or("", |(_, rest)| rest),
        });
        let is_kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
        let name: String = heading.collect::<String>().to_lowercase().chars().filter(is_kept).collect();
        let name = name.replace(' ', "-");
        let further = (1..).map(|number| format!("{name}-{number}"));
        let free = [name.clone()].into_iter().chain(further).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::Temporary;

    #[test]
    fn headings_have_the_names_that_links_use() {
        let text = "# The `x-query` key, & more\n## Again\n## Again\n```\n# no\n```\n## [A link](a.md)\n";
        assert_eq!(
            anchors(text).into_iter().collect::<Vec<_>>(),
            ["a-link", "again", "again-1", "the-x-query-key--more"]
        );
    }

    #[test]
    fn links_to_missing_headings_and_chapters_outside_the_book_are_found() {
        let project = Temporary::new();
        project.file("docs/SUMMARY.md", "[a](a.md)");
        project.file("docs/a.md", "# Top\n[ok](#top) [ok](b.md#part) [bad](#b)\n```\n[code](#c)\n```\n");
        project.file("docs/b.md", "## Part\n[ok](a.md#top) [bad](a.md#part) [far](https://example.org/#x)\n");
        let found = problems(&project).ok().unwrap();
        let expected = [
            "docs/b.md is not in docs/SUMMARY.md",
            "docs/a.md:2: a link to a heading that does not exist: #b",
            "docs/b.md:2: a link to a heading that does not exist: a.md#part",
        ];
        assert_eq!(found, expected);
    }
}
