//! `cargo xtask readmes`: the README of each crate is the first part of its documentation, so that neither grows stale.

use crate::{Stop, workspace::Workspace};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Writes all READMEs.
pub fn write(workspace: &Workspace) -> Result<(), Stop> {
    for (path, text) in readmes(&workspace.root)? {
        fs::write(&path, text).map_err(Stop::while_doing("write a README"))?;
        println!("{}", workspace.relative(&path));
    }
    Ok(())
}

/// The READMEs that differ from the documentation of their crate.
pub fn problems(root: &Path) -> Result<Vec<String>, Stop> {
    let stale = |(path, text): &(PathBuf, String)| fs::read_to_string(path).ok().as_deref() != Some(text);
    let readmes = readmes(root)?;
    Ok(readmes
        .iter()
        .filter(|readme| stale(readme))
        .map(|(path, _)| {
            let name = path.strip_prefix(root).unwrap_or(path);
            format!("{}: differs from the crate's documentation; `cargo xtask readmes` writes it", name.display())
        })
        .collect())
}

/// The README of every crate, with its path.
fn readmes(root: &Path) -> Result<Vec<(PathBuf, String)>, Stop> {
    let mut crates: Vec<_> = match fs::read_dir(root.join("crates")) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect(),
        Err(_) => Vec::new(),
    };
    crates.sort();
    crates.into_iter().map(|directory| Ok((directory.join("README.md"), readme(&directory)?))).collect()
}

fn readme(directory: &Path) -> Result<String, Stop> {
    let read = |path: &str| fs::read_to_string(directory.join(path));
    let manifest = read("Cargo.toml").map_err(Stop::while_doing("read a manifest"))?;
    let source = read("src/lib.rs").or_else(|_| read("src/main.rs")).map_err(Stop::while_doing("read a crate"))?;
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).unwrap_or_default();
    Ok(format!(
        "# {name}\n\n{}\n\nPart of [Rallypoint](../../README.md); [docs/architecture.md](../../docs/architecture.md) shows how \
         the crates fit together.\n\n## Licence\n\nMIT or Apache-2.0, at your choice.\n",
        front_page(&source)
    ))
}

/// The first page of the documentation as Markdown: up to its second section, without hidden lines, and with code instead of
/// links that only rustdoc resolves.
fn front_page(source: &str) -> String {
    let mut page = Vec::new();
    let mut in_code = false;
    let mut sections = 0;
    for line in source.lines().map_while(|line| line.strip_prefix("//!")) {
        let line = line.strip_prefix(' ').unwrap_or(line);
        if line.starts_with("```") {
            in_code = !in_code;
            // Code without a language is Rust to rustdoc, but plain text elsewhere.
            let language = line.trim_start_matches('`');
            let is_rust = in_code && (language.is_empty() || language == "no_run");
            page.push(if is_rust { "```rust".to_owned() } else { line.to_owned() });
        } else if in_code {
            if line != "#" && !line.starts_with("# ") {
                page.push(line.to_owned());
            }
        } else {
            sections += usize::from(line.starts_with("# "));
            if sections > 1 {
                break;
            }
            let heading = if line.starts_with('#') { "#" } else { "" };
            page.push(format!("{heading}{}", without_rustdoc_links(line)));
        }
    }
    page.join("\n").trim_end().to_owned()
}

/// Replaces links that only rustdoc resolves, to a name alone or with its path, by the name.
fn without_rustdoc_links(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((code, after)) = after.split_once("`]") else { break };
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        text.push_str(before);
        let is_file = target.is_some_and(|(path, _)| !path.contains("::"));
        text += &if is_file { format!("[`{code}`]") } else { format!("`{code}`") };
        rest = match target {
            Some((_, after_target)) if !is_file => after_target,
            _ => after,
        };
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::Temporary;

    #[test]
    fn rustdoc_links_become_code_and_others_stay() {
        let line = "[`A`] and [`b()`](crate::x::b), [`c`](https://example.org/c), [d](../d.md)";
        assert_eq!(without_rustdoc_links(line), "`A` and `b()`, [`c`](https://example.org/c), [d](../d.md)");
    }

    #[test]
    fn the_first_section_is_kept_without_hidden_lines() {
        let source = "//! A crate.\n//!\n//! # Example\n//!\n//! ```\n//! # use x::y;\n//! y();\n//! ```\n//!\n//! # Why\n//!\n//! Text.\nmod a;\n";
        assert_eq!(front_page(source), "A crate.\n\n## Example\n\n```rust\ny();\n```");
    }

    #[test]
    fn a_readme_that_differs_is_found() {
        let project = Temporary::new();
        project.file("crates/wire/Cargo.toml", "[package]\nname = \"rallypoint-wire\"\n");
        project.file("crates/wire/src/lib.rs", "//! Bytes.\n");
        assert_eq!(problems(&project).unwrap().len(), 1);
        let (path, text) = readmes(&project).unwrap().remove(0);
        assert!(text.starts_with("# rallypoint-wire\n\nBytes.\n"), "{text}");
        fs::write(path, text).unwrap();
        assert_eq!(problems(&project).unwrap(), [""; 0]);
    }
}
