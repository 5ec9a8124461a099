//! The licences of the libraries that a program or library of ours contains. Most of them require their text to be handed out with it.

use super::files;
use crate::{Stop, workspace::Workspace};
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Name of the file in a package.
pub const FILE: &str = "THIRD-PARTY-LICENSES";

/// A crate of another author.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Library {
    name: String,
    version: String,
    licence: String,
}

/// Writes a file with all licences of the crates that `package` is linked with.
pub fn write(workspace: &Workspace, package: &str, file: &Path) -> Result<(), Stop> {
    let mut command = workspace.cargo();
    command.args(["tree", "--locked", "--package", package, "--edges", "normal"]);
    command.args(["--prefix", "none", "--format", "{p}|{l}"]);
    let tree = files::output(&mut command)?;
    let libraries = parse_tree(&String::from_utf8_lossy(&tree));
    let mut texts = BTreeMap::<String, Vec<&Library>>::new();
    for library in &libraries {
        for text in licence_texts(library) {
            texts.entry(text).or_default().push(library);
        }
    }
    if texts.is_empty() {
        let reason = "the sources of the libraries are not in Cargo's registry, so their licences cannot be collected: run cargo fetch";
        return Err(Stop::Failed(reason.into()));
    }
    files::write(file, format(&libraries, &texts).as_bytes())
}

/// Writes the notices compressed, as Debian requires of long documents.
pub fn write_compressed(workspace: &Workspace, package: &str, file: &Path) -> Result<(), Stop> {
    write(workspace, package, file)?;
    files::run(Command::new("gzip").args(["--best", "--no-name", "--force"]).arg(file))
}

/// The crates in the output of `cargo tree`. Those of the workspace and procedural macros have a remark in parentheses: the former
/// have our licence, the latter are not linked.
fn parse_tree(tree: &str) -> BTreeSet<Library> {
    let library = |line: &str| {
        let (id, licence) = line.trim_end_matches(" (*)").split_once('|')?;
        let (name, version) = id.split_once(" v")?;
        let version = (!version.contains(' ')).then_some(version)?;
        Some(Library { name: name.into(), version: version.into(), licence: licence.into() })
    };
    tree.lines().filter_map(library).collect()
}

/// The texts that came with a crate.
fn licence_texts(library: &Library) -> Vec<String> {
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(env::home_dir()?.join(".cargo"))).unwrap_or_default();
    let mut texts = Vec::new();
    for registry in entries(&cargo.join("registry/src")) {
        for file in entries(&registry.join(format!("{}-{}", library.name, library.version))) {
            let name = file.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            if ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"].iter().any(|prefix| name.starts_with(prefix)) {
                texts.extend(fs::read_to_string(file).ok().map(|text| text.trim().to_owned()));
            }
        }
    }
    texts
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn format(libraries: &BTreeSet<Library>, texts: &BTreeMap<String, Vec<&Library>>) -> String {
    let mut page =
        "The libraries of other authors in this program, with their licences. The texts follow.\n\n".to_owned();
    for Library { name, version, licence } in libraries {
        let _ = writeln!(page, "{name} {version}: {licence}");
    }
    for (text, users) in texts {
        let users: Vec<_> = users.iter().map(|library| &*library.name).collect();
        let _ = write!(page, "\n{}\n{}\n\n{text}\n", "-".repeat(72), users.join(", "));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_others_are_listed_with_the_texts_that_they_share() {
        let libraries = parse_tree(
            "rallypoint v0.2.0 (/src/crates/cli)|MIT OR Apache-2.0\nzeta v1.0.0|MIT\nalpha v2.1.0|MIT OR Apache-2.0 (*)\n\
             zeta v1.0.0|MIT (*)\nderive v1.0.0 (proc-macro)|MIT\n",
        );
        let names: Vec<_> = libraries.iter().map(|library| (&*library.name, &*library.licence)).collect();
        assert_eq!(names, [("alpha", "MIT OR Apache-2.0"), ("zeta", "MIT")]);
        let texts = BTreeMap::from([("Do as you like.".to_owned(), libraries.iter().collect())]);
        let page = format(&libraries, &texts);
        assert!(page.contains("\nalpha 2.1.0: MIT OR Apache-2.0\nzeta 1.0.0: MIT\n"), "{page}");
        assert!(page.ends_with("\nalpha, zeta\n\nDo as you like.\n"), "{page}");
    }
}
