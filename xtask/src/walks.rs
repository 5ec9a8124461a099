//! The walks of docs/architecture.md, compared with the code: the files of a step exist, and have the functions that it names.

use crate::Stop;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

const DOCUMENT: &str = "docs/architecture.md";

/// How the headings begin below which names are checked.
const HEADINGS: &[&str] = &["## Walk ", "## A change in a cluster"];

/// A file below crates/, without `src/` in its path.
struct Source {
    path: String,
    text: String,
}

/// Names and files in the walks that the code does not have.
pub fn problems(root: &Path) -> Result<Vec<String>, Stop> {
    let Ok(document) = fs::read_to_string(root.join(DOCUMENT)) else { return Ok(Vec::new()) };
    let mut sources = Vec::new();
    collect(&root.join("crates"), &root.join("crates"), &mut sources).map_err(Stop::while_doing("read the crates"))?;
    Ok(stale(&document, &sources))
}

fn collect(root: &Path, directory: &Path, sources: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path: PathBuf = entry?.path();
        if path.is_dir() {
            collect(root, &path, sources)?;
        } else if path
            .extension()
            .is_some_and(|extension| ["rs", "lua", "html"].iter().any(|known| extension == *known))
        {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            sources.push(Source { path: name.replacen("/src/", "/", 1), text: fs::read_to_string(&path)? });
        }
    }
    Ok(())
}

fn stale(document: &str, sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut is_walk = false;
    for (number, line) in document.lines().enumerate() {
        if line.starts_with("## ") {
            is_walk = HEADINGS.iter().any(|heading| line.starts_with(heading));
        }
        if is_walk {
            let found = if is_step(line) { stale_step(line, sources) } else { stale_names(line, sources) };
            problems.extend(found.into_iter().map(|problem| format!("{DOCUMENT}:{}: {problem}", number + 1)));
        }
    }
    problems
}

/// Whether a line is a numbered row of a table.
fn is_step(line: &str) -> bool {
    line.strip_prefix("| ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// A row: `| number | functions | files | ...`.
fn stale_step(row: &str, sources: &[Source]) -> Vec<String> {
    let cells: Vec<_> = row.split('|').map(str::trim).collect();
    let [_, _, functions, files, ..] = cells[..] else { return vec!["a step without files".into()] };
    let mut problems = Vec::new();
    let mut of_step = Vec::new();
    // A remark can follow the path.
    let paths = files.split(',').map(|file| file.trim().split([':', ' ']).next().unwrap_or_default());
    for path in paths.filter(|path| path.contains(['/', '.'])) {
        let before = of_step.len();
        of_step.extend(sources.iter().filter(|source| source.is_at(path)));
        if of_step.len() == before {
            problems.push(format!("there is no file {path}"));
        }
    }
    let is_missing = |name: &&str| {
        let (types, last) = name.rsplit_once("::").unwrap_or(("", name));
        let is_known = |word: &str| of_step.iter().any(|source| source.names_type(word));
        !of_step.iter().any(|source| source.defines(last)) || !parts(types).all(is_known)
    };
    let missing = names(functions).filter(is_missing);
    problems.extend(missing.map(|name| format!("`{name}` is not in {files}")));
    problems
}

/// Text between the tables: names of methods and files, wherever they are.
fn stale_names(line: &str, sources: &[Source]) -> Vec<String> {
    let is_file = |code: &&str| code.ends_with(".rs") && !code.contains(' ');
    let files = line.split('`').skip(1).step_by(2).filter(is_file);
    let files = files.filter(|path| !sources.iter().any(|source| source.is_at(path)));
    let is_missing = |name: &&str| {
        let Some((types, last)) = name.rsplit_once("::") else { return false };
        !sources.iter().any(|source| source.defines(last) && parts(types).all(|word| source.names_type(word)))
    };
    let names = names(line).filter(is_missing);
    files
        .map(|path| format!("there is no file {path}"))
        .chain(names.map(|name| format!("there is no `{name}`")))
        .collect()
}

/// Names of Rust in backticks, without arguments.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let codes = text.split('`').skip(1).step_by(2).map(|code| code.split('(').next().unwrap_or_default());
    codes.filter(|code| !code.is_empty() && code.chars().all(|c| c.is_alphanumeric() || "_:".contains(c)))
}

/// The parts of a path.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split("::").filter(|part| !part.is_empty())
}

impl Source {
    /// Whether it is the file, or in the directory, whose path ends like this.
    fn is_at(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let own = format!("/{}", self.path);
        own.ends_with(&format!("/{path}")) || (!path.contains('.') && own.contains(&format!("/{path}/")))
    }

    /// Whether it defines the function or module, or names the type or variant.
    fn defines(&self, name: &str) -> bool {
        match name.starts_with(|c: char| c.is_lowercase()) {
            true => self.has_word(&format!("fn {name}")) || self.has_word(&format!("mod {name}")),
            false => self.has_word(name),
        }
    }

    /// Whether it names the type, or is the module.
    fn names_type(&self, name: &str) -> bool {
        self.has_word(name) || self.is_at(&format!("{name}.rs"))
    }

    fn has_word(&self, word: &str) -> bool {
        let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        self.text.match_indices(word).any(|(at, _)| {
            !is_part(self.text[..at].chars().next_back()) && !is_part(self.text[at + word.len()..].chars().next())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Vec<Source> {
        vec![Source {
            path: "lobby/service/thread.rs".into(),
            text: "impl LobbyThread { fn handle_batch() {} }\nenum Event { Check }".into(),
        }]
    }

    fn problems_of(line: &str) -> Vec<String> {
        stale(&format!("`Not::checked` x.rs\n## Walk 1: it\n{line}\n## Glossary\n`gone.rs`\n"), &sources())
    }

    #[test]
    fn steps_that_the_code_has_are_no_problem() {
        for line in [
            "| 1 | `LobbyThread::handle_batch` → `Event::Check` | lobby/service/thread.rs | text `gone` |",
            "| 1a | `thread::handle_batch(x)`: text | service/thread.rs: remark, lobby/service |",
            "text `LobbyThread::handle_batch`, `some_word`, `GET /`, `thread.rs`",
        ] {
            assert_eq!(problems_of(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn names_and_files_that_are_gone_are_found() {
        for (line, problem) in [
            ("| 1 | `LobbyThread::handle` | thread.rs |", "`LobbyThread::handle` is not in thread.rs"),
            ("| 1 | `Registry::handle_batch` | thread.rs |", "`Registry::handle_batch` is not in thread.rs"),
            ("| 1 | `handle_batch` | thread.rs, read.rs |", "there is no file read.rs"),
            ("text `Registry::handle_batch`", "there is no `Registry::handle_batch`"),
            ("text (`lobby/thread.rs`)", "there is no file lobby/thread.rs"),
        ] {
            assert_eq!(problems_of(line), [format!("docs/architecture.md:3: {problem}")], "{line}");
        }
    }
}
