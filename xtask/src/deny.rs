//! The rules of deny.toml about libraries of other authors: their licences, banned crates, sources, and no crate in two versions
//! in the program. They are checked here on the output of `cargo tree`, because compiling cargo-deny takes longer than a build of
//! the project; `cargo deny check` reads the same file, and checks known vulnerabilities too.

use crate::{Stop, package::files::output, workspace::Workspace};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

/// What deny.toml allows and forbids.
struct Rules {
    licences: Vec<String>,
    banned: Vec<String>,
    registries: Vec<String>,
}

/// A crate in the output of `cargo tree`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Crate<'a> {
    name: &'a str,
    version: &'a str,
    licence: &'a str,
    /// Runs in the compiler, and is not part of any program.
    is_macro: bool,
}

pub fn check(workspace: &Workspace) -> Result<(), Stop> {
    let read =
        |file: &str| fs::read_to_string(workspace.root.join(file)).map_err(Stop::while_doing(&format!("read {file}")));
    let rules = Rules::parse(&read("deny.toml")?);
    let all = tree(workspace, &["--workspace", "--edges", "normal,build,dev"])?;
    let program = tree(workspace, &["--package", "rallypoint", "--edges", "normal,no-proc-macro"])?;
    let mut problems = rules.problems(&crates(&all));
    problems.extend(rules.foreign_sources(&read("Cargo.lock")?));
    problems.extend(duplicates(&crates(&program)));
    if problems.is_empty() { Ok(()) } else { Err(Stop::Failed(problems.join("\n"))) }
}

fn tree(workspace: &Workspace, what: &[&str]) -> Result<String, Stop> {
    let mut command = workspace.cargo();
    command.args(["tree", "--locked", "--prefix", "none", "--format", "{p}|{l}"]).args(what);
    Ok(String::from_utf8_lossy(&output(&mut command)?).into_owned())
}

/// The crates of other authors.
fn crates(tree: &str) -> BTreeSet<Crate<'_>> {
    let parse = |line| {
        let (id, licence) = str::trim_end_matches(line, " (*)").split_once('|')?;
        let (name, version) = id.split_once(" v")?;
        // A path after the version stands for a crate of the workspace.
        let (version, remark) = version.split_once(' ').unwrap_or((version, ""));
        let is_macro = remark == "(proc-macro)";
        (is_macro || remark.is_empty()).then_some(Crate { name, version, licence, is_macro })
    };
    tree.lines().filter_map(parse).collect()
}

impl Rules {
    fn parse(text: &str) -> Self {
        let list = |section, key| strings(text, section, key);
        Self {
            licences: list("licenses", "allow"),
            banned: list("bans", "deny"),
            registries: list("sources", "allow-registry"),
        }
    }

    fn problems(&self, crates: &BTreeSet<Crate>) -> Vec<String> {
        let mut problems = Vec::new();
        for Crate { name, version, licence, .. } in crates {
            if !Licence::is_allowed(licence, &self.licences) {
                problems.push(format!("{name} {version}: the licence `{licence}` is not allowed in deny.toml"));
            }
            if self.banned.iter().any(|banned| banned == name) {
                problems.push(format!("{name} {version}: banned in deny.toml (cargo tree --workspace -i {name})"));
            }
        }
        problems
    }

    /// Sources in Cargo.lock from which nothing may be fetched.
    fn foreign_sources(&self, lock: &str) -> Vec<String> {
        let sources: BTreeSet<_> = lock.lines().filter_map(|line| line.strip_prefix("source = \"")).collect();
        let is_known = |source: &str| {
            source.strip_prefix("registry+").is_some_and(|url| self.registries.iter().any(|known| known == url))
        };
        let sources = sources.into_iter().map(|source| source.trim_end_matches('"'));
        sources
            .filter(|source| !is_known(source))
            .map(|source| format!("Cargo.lock: the source {source} is not allowed in deny.toml"))
            .collect()
    }
}

/// Crates of which a program contains more than one version.
fn duplicates(crates: &BTreeSet<Crate>) -> Vec<String> {
    let mut versions = BTreeMap::<&str, BTreeSet<&str>>::new();
    for library in crates.iter().filter(|library| !library.is_macro) {
        versions.entry(library.name).or_default().insert(library.version);
    }
    versions
        .iter()
        .filter(|(_, versions)| versions.len() > 1)
        .map(|(name, versions)| {
            let versions: Vec<_> = versions.iter().copied().collect();
            format!("{name}: the program contains several versions: {}", versions.join(", "))
        })
        .collect()
}

/// The strings of `key = [...]` in a section of a TOML file without nested tables.
fn strings(text: &str, section: &str, key: &str) -> Vec<String> {
    let mut is_inside = false;
    let mut is_value = false;
    let mut values = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if line.starts_with('[') && !is_value {
            is_inside = line == format!("[{section}]");
        }
        is_value |= is_inside && line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
        if is_value {
            values.extend(line.split('"').skip(1).step_by(2).map(str::to_owned));
            is_value = !line.ends_with(']');
        }
    }
    values
}

/// Evaluates an SPDX expression; `/` stands for `OR`, as in old manifests.
struct Licence<'a> {
    tokens: Vec<&'a str>,
    next: usize,
    allowed: &'a [String],
}

impl<'a> Licence<'a> {
    fn is_allowed(expression: &'a str, allowed: &'a [String]) -> bool {
        let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let tokens: Vec<_> = spaced.split_whitespace().collect();
        let mut licence = Licence { tokens, next: 0, allowed };
        licence.any() && licence.next == licence.tokens.len()
    }

    fn any(&mut self) -> bool {
        let mut is_allowed = self.every();
        while self.take("OR") {
            is_allowed |= self.every();
        }
        is_allowed
    }

    fn every(&mut self) -> bool {
        let mut is_allowed = self.one();
        while self.take("AND") {
            is_allowed &= self.one();
        }
        is_allowed
    }

    fn one(&mut self) -> bool {
        if self.take("(") {
            return self.any() & self.take(")");
        }
        let Some(&name) = self.tokens.get(self.next) else { return false };
        self.next += 1;
        let name = if self.take("WITH") {
            self.next += 1;
            format!("{name} WITH {}", self.tokens.get(self.next - 1).unwrap_or(&""))
        } else {
            name.to_owned()
        };
        self.allowed.contains(&name)
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.tokens.get(self.next) == Some(&token);
        self.next += usize::from(is_next);
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "[licenses]\nallow = [\n    # Ours.\n    \"MIT\",\n    \"Apache-2.0\", \"Zlib\",\n]\n\
                         [bans]\ndeny = [\"openssl-sys\"]\n[sources]\nallow-registry = [\"https://registry.example/index\"]\n";

    #[test]
    fn licences_are_expressions() {
        let allowed = strings(RULES, "licenses", "allow");
        assert_eq!(allowed, ["MIT", "Apache-2.0", "Zlib"]);
        for good in ["MIT", "GPL-3.0 OR MIT", "BSL-1.0/MIT", "(MIT OR GPL-3.0) AND Zlib", "X WITH Y OR MIT"] {
            assert!(Licence::is_allowed(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT)", "MIT WITH Y", "MIT Zlib"] {
            assert!(!Licence::is_allowed(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn crates_that_break_a_rule_are_named() {
        let tree = "rallypoint v0.2.0 (/src/crates/cli)|\nzeta v1.0.0|MIT\nzeta v1.0.0|MIT (*)\nopenssl-sys v2.0.0|MIT\n\
                    derive v1.0.0 (proc-macro)|Proprietary\n";
        let found = Rules::parse(RULES).problems(&crates(tree));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("derive 1.0.0: the licence `Proprietary`"), "{found:?}");
        assert!(found[1].starts_with("openssl-sys 2.0.0: banned"), "{found:?}");
    }

    #[test]
    fn sources_that_are_not_listed_are_named() {
        let lock = "source = \"registry+https://registry.example/index\"\nsource = \"git+https://git.example/x#1\"\n";
        let found = Rules::parse(RULES).foreign_sources(lock);
        assert_eq!(found, ["Cargo.lock: the source git+https://git.example/x#1 is not allowed in deny.toml"]);
    }

    #[test]
    fn a_program_contains_a_crate_once() {
        let tree =
            "syn v1.0.0|MIT\nsyn v2.0.0|MIT\nutil v1.0.0|MIT\nderive v1.0.0 (proc-macro)|MIT\nderive v2.0.0|MIT\n";
        assert_eq!(duplicates(&crates(tree)), ["syn: the program contains several versions: 1.0.0, 2.0.0"]);
    }
}
