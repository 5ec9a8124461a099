//! The chapters as mdBook reads them: links to files outside docs/, which the book does not contain, become their paths.

use std::{error::Error, fs, path::Path};

/// Copies docs/ to `target`, with links adapted.
pub fn prepare(root: &Path, target: &Path) -> Result<(), Box<dyn Error>> {
    let docs = root.join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md"))?;
    copy(root, &docs, target)?;
    for entry in fs::read_dir(&docs)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_chapter = name.ends_with(".md") && name != "SUMMARY.md";
        if is_chapter && !summary.contains(&format!("({name})")) {
            return Err(format!("docs/{name} is not in docs/SUMMARY.md").into());
        }
    }
    Ok(())
}

fn copy(root: &Path, from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let copied = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(root, &path, &copied)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let mut text = fs::read_to_string(&path)?;
            if let Some((before, rest)) = text.split_once("{{#include ../")
                && let Some((file, after)) = rest.split_once("}}")
            {
                // A file at the top of the repository names its neighbours without `../`, and chapters with `docs/`.
                let included = adapt(&fs::read_to_string(root.join(file))?, |link| match link.strip_prefix("docs/") {
                    Some(chapter) => Destination::Inside(chapter.to_owned()),
                    None => Destination::Outside(link.to_owned()),
                });
                text = format!("{before}{included}{after}");
            }
            fs::write(copied, adapt(&text, from_docs))?;
        } else {
            fs::copy(&path, copied)?;
        }
    }
    Ok(())
}

/// The target of a link in a chapter.
enum Destination {
    /// A page or picture of the book.
    Inside(String),
    /// A file of the repository.
    Outside(String),
}

fn from_docs(link: &str) -> Destination {
    match link.strip_prefix("../") {
        Some("SECURITY.md") => Destination::Inside("security.md".into()),
        Some(path) if path.starts_with("docs/") => Destination::Inside(path["docs/".len()..].to_owned()),
        Some(path) => Destination::Outside(path.trim_start_matches("../").to_owned()),
        None => Destination::Inside(link.to_owned()),
    }
}

/// Rewrites the links of a Markdown text, outside of code.
fn adapt(text: &str, destination: impl Fn(&str) -> Destination) -> String {
    let mut adapted = String::new();
    let mut in_code = false;
    for line in text.split_inclusive('\n') {
        in_code ^= line.trim_start().starts_with("```");
        adapted += &if in_code { line.to_owned() } else { adapt_line(line, &destination) };
    }
    adapted
}

fn adapt_line(line: &str, destination: &impl Fn(&str) -> Destination) -> String {
    let mut adapted = String::new();
    let mut rest = line;
    while let Some(middle) = rest.find("](") {
        let before = &rest[..middle];
        let after = &rest[middle + 2..];
        let (Some(start), Some(end)) = (before.rfind('['), after.find(')')) else { break };
        let text = &before[start + 1..];
        let link = &after[..end];
        let is_file = !link.contains("://") && !link.starts_with('#');
        adapted += &before[..start];
        adapted += &match destination(link) {
            Destination::Outside(path) if is_file => as_path(text, &path),
            Destination::Inside(path) if is_file => format!("[{text}]({path})"),
            _ => format!("[{text}]({link})"),
        };
        rest = &after[end + 1..];
    }
    adapted + rest
}

/// A link to a file that the book does not contain, as text.
fn as_path(text: &str, path: &str) -> String {
    let words = text.trim_matches('`');
    if path.contains(words) { format!("`{path}`") } else { format!("{text} (`{path}`)") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_book_become_paths() {
        let text =
            "[`echo`](../crates/session/examples/echo.rs), [it](../clients), [api](api.md#x), [w](https://a.org/)";
        let expected = "`crates/session/examples/echo.rs`, it (`clients`), [api](api.md#x), [w](https://a.org/)";
        assert_eq!(adapt(text, from_docs), expected);
    }

    #[test]
    fn code_and_links_to_other_chapters_stay() {
        let text = "```\n[x](../y)\n```\n[security](../SECURITY.md) ![p](pictures/p.svg)\n";
        assert_eq!(adapt(text, from_docs), "```\n[x](../y)\n```\n[security](security.md) ![p](pictures/p.svg)\n");
    }
}
