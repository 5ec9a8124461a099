//! Rules about the project's files that no compiler checks.

use crate::{Stop, chapters, figures, portability, promises, readmes, walks, workspace::Workspace};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Marks a line that breaks a rule on purpose.
const ALLOWED: &str = "hygiene: allow";

/// Largest file in bytes; larger data does not belong into the repository.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Longest comment line in columns. Comments may be longer than code (120 columns), which rustfmt wraps; comments it does not.
const MAX_COMMENT_COLUMNS: usize = 132;

/// Prefixes of home directories, split so that this file passes its own check.
const HOMES: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/"), concat!("\\Us", "ers\\")];

/// Macros that are left in by accident, split for the same reason.
const LEFTOVERS: &[&str] = &[concat!("to", "do!("), concat!("db", "g!(")];

pub fn check(workspace: &Workspace) -> Result<(), Stop> {
    let mut problems = problems(&workspace.root).map_err(Stop::while_doing("read the project's files"))?;
    problems.extend(readmes::problems(&workspace.root)?);
    problems.extend(figures::problems(&workspace.root)?);
    problems.extend(promises::problems(&workspace.root)?);
    problems.extend(walks::problems(&workspace.root)?);
    problems.extend(chapters::problems(&workspace.root)?);
    if problems.is_empty() { Ok(()) } else { Err(Stop::Failed(problems.join("\n"))) }
}

fn problems(root: &Path) -> std::io::Result<Vec<String>> {
    let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let ignored: Vec<_> = ignored.lines().filter_map(|line| Some(root.join(line.strip_prefix('/')?))).collect();
    let mut files = Vec::new();
    walk(root, &ignored, &mut files)?;
    files.sort();

    let mut problems = Vec::new();
    for file in &files {
        let name = file.strip_prefix(root).unwrap_or(file);
        if fs::metadata(file)?.len() > MAX_FILE_BYTES {
            problems.push(format!("{}: larger than 1 MiB", name.display()));
            continue;
        }
        // Fuzzer inputs are not text.
        if ["fuzz/corpus", "fuzz/regressions"].iter().any(|directory| name.starts_with(directory)) {
            continue;
        }
        let Ok(text) = String::from_utf8(fs::read(file)?) else { continue };
        let extension = file.extension().unwrap_or_default();
        if extension == "rs" {
            let found = portability::problems(name, &text).into_iter();
            problems.extend(found.map(|(line, what)| format!("{}:{line}: {what}", name.display())));
        }
        let mut in_code_block = false;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.contains(ALLOWED)) {
            let mut problem = |what: String| problems.push(format!("{}:{}: {what}", name.display(), number + 1));
            if let Some(path) = personal_path(line, root) {
                problem(format!("a path that exists on one machine only: {path}"));
            }
            if extension == "rs" {
                code_problems(line, &mut problem);
            }
            if extension == "rs" && is_crate_source(name) && is_long_comment(line) {
                problem(format!("a comment of more than {MAX_COMMENT_COLUMNS} columns"));
            }
            let is_shown = match line.trim_start() {
                _ if in_code_block || name.components().any(|part| part.as_os_str() == "examples") => true,
                line => line.starts_with("///") || line.starts_with("//!"),
            };
            if is_shown && ends_for_one_player(line) {
                problem(
                    "one player who leaves or is slow would end the program for all: handle the error of `send`".into(),
                );
            }
            if extension == "md" {
                in_code_block ^= line.trim_start().starts_with("```");
                let links = if in_code_block { Vec::new() } else { links(line) };
                for link in links.into_iter().filter(|link| !resolves(root, file, link)) {
                    problem(format!("a link to a file that does not exist: {link}"));
                }
            }
        }
    }
    for target in files.iter().filter(|file| file.parent().is_some_and(|parent| parent.ends_with("fuzz/fuzz_targets")))
    {
        let name = target.file_stem().unwrap_or_default();
        let corpus = root.join("fuzz/corpus").join(name);
        if !files.iter().any(|file| file.starts_with(&corpus)) {
            problems.push(format!("fuzz/corpus/{}: a fuzz target without a corpus", name.display()));
        }
    }
    for main in files.iter().filter(|file| file.ends_with("tests/main.rs")) {
        problems.extend(tests_left_out(root, main, &files)?);
    }
    Ok(problems)
}

/// Test files beside `main` that neither it nor the crate's manifest names: Cargo would not build them.
fn tests_left_out(root: &Path, main: &Path, files: &[PathBuf]) -> std::io::Result<Vec<String>> {
    let directory = main.parent().unwrap_or(root);
    let program = fs::read_to_string(main)?;
    let manifest = fs::read_to_string(directory.with_file_name("Cargo.toml"))?;
    let is_left_out = |file: &&PathBuf| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        file.parent() == Some(directory)
            && file.extension().is_some_and(|extension| extension == "rs")
            && *file != main
            && !program.lines().any(|line| line == format!("mod {name};"))
            && !manifest.lines().any(|line| line == format!("name = \"{name}\""))
    };
    let left_out = files.iter().filter(is_left_out);
    Ok(left_out
        .map(|file| {
            let name = file.strip_prefix(root).unwrap_or(file);
            format!("{}: not built, because main.rs beside it does not name it", name.display())
        })
        .collect())
}

fn walk(directory: &Path, ignored: &[PathBuf], files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        if ignored.contains(&path) || entry.file_name() == ".git" {
            continue;
        }
        if kind.is_dir() {
            walk(&path, ignored, files)?;
        } else if kind.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// A path in a home directory or in this checkout, if the line has one.
fn personal_path<'a>(line: &'a str, root: &Path) -> Option<&'a str> {
    let checkout = root.to_str().filter(|path| path.len() > 3);
    for start in HOMES.iter().copied().chain(checkout) {
        for (at, _) in line.match_indices(start) {
            // Inside a longer path or address, the same characters mean something else.
            let begins = !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/}".contains(c));
            let path =
                line[at..].split(|c: char| c.is_whitespace() || "\"'`<>)]".contains(c)).next().unwrap_or_default();
            if begins && (checkout == Some(start) || path.len() > start.len()) {
                return Some(path);
            }
        }
    }
    None
}

fn code_problems(line: &str, problem: &mut impl FnMut(String)) {
    let code = line.split("//").next().unwrap_or_default();
    if code.trim_start().starts_with(concat!("#[ign", "ore")) {
        problem("an ignored test".into());
    }
    for leftover in LEFTOVERS.iter().filter(|leftover| code.contains(**leftover)) {
        problem(format!("{leftover} was left in"));
    }
}

/// Whether a file is in `crates/*/src`.
fn is_crate_source(name: &Path) -> bool {
    let mut parts = name.iter();
    parts.next().is_some_and(|part| part == "crates") && parts.nth(1).is_some_and(|part| part == "src")
}

fn is_long_comment(line: &str) -> bool {
    line.trim_start().starts_with("//") && line.chars().count() > MAX_COMMENT_COLUMNS
}

/// Whether a line passes on the error of a `send` that does not wait. An async client may: it has only itself to end.
fn ends_for_one_player(line: &str) -> bool {
    ["server.send(", "server.try_send(", "client.send(", "client.try_send("].iter().any(|call| {
        let rest = line.split_once(call).map_or("", |(_, rest)| rest);
        rest.contains(")?") || (call.starts_with("server") && rest.contains(").await?"))
    })
}

/// The targets of the Markdown links in a line: `[text](target "title")` and `[name]: target`.
pub fn links(line: &str) -> Vec<&str> {
    // Every second piece is code between backticks and no link. (A link whose text is code is cut before `](`.)
    let mut targets: Vec<_> = line
        .split('`')
        .step_by(2)
        .flat_map(|piece| piece.split("](").skip(1))
        .filter_map(|rest| rest.split([')', ' ']).next())
        .collect();
    if let Some((name, target)) = line.split_once("]: ")
        && name.starts_with('[')
        && !name.starts_with("[^")
    {
        targets.extend(target.split_whitespace().next());
    }
    targets
}

fn resolves(root: &Path, file: &Path, link: &str) -> bool {
    let path = link.trim_matches(['<', '>']).split('#').next().unwrap_or_default();
    if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
        return true;
    }
    match path.strip_prefix('/') {
        Some(from_root) => root.join(from_root).exists(),
        None => file.parent().unwrap_or(root).join(path).exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::Temporary;

    /// The problems of a project that consists of one file.
    fn problems_of(path: &str, content: impl AsRef<[u8]>) -> Vec<String> {
        let project = Temporary::new();
        project.file(path, content);
        problems(&project).unwrap()
    }

    #[test]
    fn a_test_that_is_not_built_is_found() {
        let project = Temporary::new();
        project.file("crates/wire/Cargo.toml", "[[test]]\nname = \"vectors\"\n");
        project.file("crates/wire/tests/main.rs", "mod lists;\n");
        for name in ["lists", "vectors", "expiry"] {
            project.file(&format!("crates/wire/tests/{name}.rs"), "");
        }
        let found = problems(&project).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("expiry.rs: not built"), "{found:?}");
    }

    #[test]
    fn an_ordinary_project_has_no_problems() {
        let project = Temporary::new();
        project.file("README.md", "[design](docs/design.md#shape), [there](https://example.org/x), [here](#here)");
        project.file(
            "docs/design.md",
            "[back](../README.md)\n```\n[no](link.md)\n```\n`[no](link.md)`\n[r]: ../README.md",
        );
        project.file("src/lib.rs", format!("fn f() {{}} // {}x)\n", LEFTOVERS[0]));
        project.file("fuzz/fuzz_targets/reader.rs", "");
        project.file("fuzz/corpus/reader/one", format!("{}someone", HOMES[0]));
        project.file("web.rs", format!("\"example.org{}page\"", HOMES[0]));
        project.file("bytes.bin", [0xff, 0xfe]);
        assert_eq!(problems(&project).unwrap(), [""; 0]);
    }

    #[test]
    fn paths_of_home_directories_and_of_the_checkout_are_found() {
        for home in HOMES {
            let found = problems_of("a.toml", format!("ok\npath = \"{home}someone/x\"\n"));
            assert_eq!(found, [format!("a.toml:2: a path that exists on one machine only: {home}someone/x")]);
        }
        let project = Temporary::new();
        project.file("a.md", format!("cd {}/src", project.display()));
        assert_eq!(problems(&project).unwrap().len(), 1);
    }

    #[test]
    fn allowed_lines_and_ignored_directories_are_not_checked() {
        assert_eq!(problems_of("a.rs", format!("x({}1) // {ALLOWED}", LEFTOVERS[1])), [""; 0]);
        let project = Temporary::new();
        project.file(".gitignore", "/target\n");
        project.file("target/big", vec![b'x'; 2 << 20]);
        assert_eq!(problems(&project).unwrap(), [""; 0]);
    }

    #[test]
    fn big_files_are_found() {
        assert_eq!(problems_of("data.bin", vec![0; (1 << 20) + 1]), ["data.bin: larger than 1 MiB"]);
        assert_eq!(problems_of("data.bin", vec![0; 1 << 20]), [""; 0]);
    }

    #[test]
    fn ignored_tests_and_leftovers_are_found() {
        assert_eq!(problems_of("t.rs", concat!("    #[ign", "ore = \"slow\"]")), ["t.rs:1: an ignored test"]);
        for leftover in LEFTOVERS {
            assert_eq!(
                problems_of("t.rs", format!("let x = {leftover}y);")),
                [format!("t.rs:1: {leftover} was left in")]
            );
        }
    }

    #[test]
    fn long_comments_are_found() {
        let longest = format!("    /// {}", "ä".repeat(MAX_COMMENT_COLUMNS - 8));
        let found = problems_of("crates/wire/src/session/data.rs", format!("{longest}\n{longest}x\n"));
        assert_eq!(found, ["crates/wire/src/session/data.rs:2: a comment of more than 132 columns"]);
        for (path, line) in [
            ("crates/wire/tests/lists.rs", format!("{longest}x")),
            ("crates/wire/src/lib.rs", format!("const TABLE: &str = \"{longest}\";")),
        ] {
            assert_eq!(problems_of(path, line), [""; 0]);
        }
    }

    #[test]
    fn examples_that_end_for_all_players_are_found() {
        let sends = [
            "server.send(new.player, b\"x\")",
            "server.try_send(p, &m)",
            "server.send(p, &m).await",
            "client.send(&m)",
        ];
        for send in sends {
            for (path, content) in [
                ("docs/a.md", format!("```rust\n    {send}?;\n```\n")),
                ("crates/session/examples/a.rs", format!("fn f() {{\n    drop({send}?);\n}}\n")),
                ("crates/session/src/lib.rs", format!("//! ```\n//! {send}?;\n//! ```\n")),
            ] {
                let found = problems_of(path, &content);
                assert_eq!(found.len(), 1, "{content}: {found:?}");
            }
            assert_eq!(problems_of("crates/ffi/src/lib.rs", format!("Ok({send}?)\n")), [""; 0]);
            assert_eq!(problems_of("docs/a.md", format!("```rust\nif let Err(error) = {send} {{\n```\n")), [""; 0]);
        }
        assert_eq!(problems_of("docs/a.md", "```rust\nclient.send(b\"x\").await?;\n```\n"), [""; 0]);
    }

    #[test]
    fn dead_links_are_found() {
        for text in ["[a](b.md)", "x [`a`](b.md \"title\")", "[a]: b.md", "[ok](#x) [a](b.md#part)", "[a](</b.md>)"] {
            let found = problems_of("README.md", text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].contains("b.md"), "{text}");
        }
    }

    #[test]
    fn a_fuzz_target_without_a_corpus_is_found() {
        let found = problems_of("fuzz/fuzz_targets/reader.rs", "");
        assert_eq!(found, ["fuzz/corpus/reader: a fuzz target without a corpus"]);
    }
}
